"""The transactions of intake: dedup, meaning and job, together or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agno_lark.commands import COMMAND, SAY, STOP_RUN, CommandContext, NearMiss, ParsedCommand, decide, say_payload
from agno_lark.jobs import NewJob, Queue, enqueue
from agno_lark.locale import Lang
from agno_lark.replies import Place
from agno_lark.sessions import Scope, current_generation, session_id
from agno_lark.store import Tx
from agno_lark.turns import TURN, NewRun, RunRow, last_language, open_run, request_cancel, run_of_turn

__all__ = ["Accepted", "Intent", "Note", "Origin", "StopAnswer", "Talk", "accept_message", "accept_stop", "seen_before"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a message came from, as far as its job needs to know. `sender` is an open id."""

    app_id: str
    tenant_key: str
    event_id: str
    sender: str
    chat_type: str
    place: Place
    scope: Scope
    language: Lang | None  # None: nothing in the message tells it
    fallback_language: Lang = "zh"


@dataclass(frozen=True, kw_only=True, slots=True)
class Talk:
    """Words for the agent."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something the bridge answers itself, with one phrase."""

    phrase: str
    values: tuple[tuple[str, str], ...] = ()


type Intent = Talk | Note | NearMiss | ParsedCommand


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """`is_new` is False for what had been accepted before. `turn_id` where the message became a turn."""

    is_new: bool
    turn_id: str | None = None


SEEN = """
INSERT INTO dedup_messages (app_id, kind, key, seen_ms) VALUES (:app, :kind, :key, :now)
ON CONFLICT (app_id, kind, key) DO NOTHING
"""


def seen_before(tx: Tx, app_id: str, event_id: str, message_id: str | None) -> bool:
    """Note the keys of an event; True when either was known. Feishu's own pages name one key each: both are kept."""
    new_event = tx.execute(SEEN, {"app": app_id, "kind": "event", "key": event_id, "now": tx.now_ms})
    if message_id is None:
        return not new_event
    new_message = tx.execute(SEEN, {"app": app_id, "kind": "message", "key": message_id, "now": tx.now_ms})
    return not (new_event and new_message)


def accept_message(tx: Tx, job_id: str, origin: Origin, intent: Intent, target: tuple[str, str]) -> Accepted:
    """Take a message: its keys, what it means, and the one job that will answer it.

    What it means is fixed here: its session is the current generation of its scope, and `/new` raises that, so the
    order of acceptance is the order of meaning.
    """
    if seen_before(tx, origin.app_id, origin.event_id, origin.place.message_id):
        return Accepted(is_new=False)
    language = origin.language or last_language(tx, origin.sender) or origin.fallback_language
    match intent:
        case ParsedCommand(name="new", rest=rest) if rest:
            decide(tx, "new", CommandContext(scope=str(origin.scope), rest=""))
            return _accept_turn(tx, job_id, origin, language, rest, target)
        case Talk(text=text):
            return _accept_turn(tx, job_id, origin, language, text, target)
        case ParsedCommand(name=name, rest=rest):
            decided = decide(tx, name, CommandContext(scope=str(origin.scope), rest=rest))
            payload = {
                "name": name,
                "decided": decided,
                "place": origin.place.as_json(),
                "language": language,
                "scope": str(origin.scope),
                "generation": current_generation(tx, str(origin.scope)),
            }
            _control(tx, job_id, COMMAND, origin, payload)
            if decided.get("result") == "requested":
                _ask_to_stop(tx, f"{job_id}-stop", decided["turn_id"])
        case NearMiss(given=given, meant=meant):
            payload = dict(say_payload("hint.command", origin.place, language, given=given, meant=meant))
            _control(tx, job_id, SAY, origin, payload)
        case Note(phrase=phrase, values=values):
            payload = dict(say_payload(phrase, origin.place, language, **dict(values)))
            _control(tx, job_id, SAY, origin, payload)
    return Accepted(is_new=True)


def _accept_turn(tx: Tx, turn_id: str, origin: Origin, language: Lang, text: str, target: tuple[str, str]) -> Accepted:
    scope = str(origin.scope)
    generation = current_generation(tx, scope)
    session = session_id(scope, generation)
    job = NewJob(id=turn_id, kind=TURN, queue=Queue.TURNS, lane=session, payload={"text": text})
    seq = enqueue(tx, job)
    run = NewRun(
        turn_id=turn_id,
        seq=seq,
        scope=scope,
        generation=generation,
        session_id=session,
        target_type=target[0],
        target_id=target[1],
        app_id=origin.app_id,
        tenant_key=origin.tenant_key,
        requester=origin.sender,
        chat_id=origin.place.chat_id,
        chat_type=origin.chat_type,
        thread_id=origin.place.thread_id,
        message_id=origin.place.message_id,
        language=language,
    )
    open_run(tx, run)
    return Accepted(is_new=True, turn_id=turn_id)


def _control(tx: Tx, job_id: str, kind: str, origin: Origin, payload: dict[str, Any]) -> None:
    # A lane of the scope's own, so that two commands are answered in their order, and never behind a turn.
    lane = f"control:{origin.scope}"
    enqueue(tx, NewJob(id=job_id, kind=kind, queue=Queue.CONTROL, lane=lane, payload=payload))


@dataclass(frozen=True, kw_only=True, slots=True)
class StopAnswer:
    """What a press of Stop came to: a phrase for the toast, and the turn that is being stopped."""

    phrase: str
    language: Lang | None = None
    turn_id: str | None = None


def accept_stop(
    tx: Tx,
    job_id: str,
    app_id: str,
    event_id: str,
    turn_id: str,
    card_message_id: str,
    may_stop: Callable[[RunRow], bool],
) -> StopAnswer:
    """Take a press of Stop: record the wish and enqueue the request to the AgentOS. Pressed again it changes nothing.

    `may_stop(row)` says whether who pressed has a say in the turn's conversation. The card pressed must be the turn's.
    """
    repeated = seen_before(tx, app_id, event_id, None)
    row = run_of_turn(tx, turn_id)
    if row is None or row.app_id != app_id or row.card_message_id not in (None, card_message_id):
        return StopAnswer(phrase="toast.unknown")
    if not may_stop(row):
        return StopAnswer(phrase="cancel.foreign", language=row.language)
    already = row.cancel_requested_ms is not None
    if not request_cancel(tx, turn_id):
        return StopAnswer(phrase="cancel.over", language=row.language)
    if not repeated and not already:
        _ask_to_stop(tx, job_id, turn_id)
    return StopAnswer(phrase="toast.stopping", language=row.language, turn_id=turn_id)


def _ask_to_stop(tx: Tx, job_id: str, turn_id: str) -> None:
    # A lane of the turn's own: an AgentOS that does not answer must not hold up the scope's next command.
    lane = f"control:stop:{turn_id}"
    enqueue(tx, NewJob(id=job_id, kind=STOP_RUN, queue=Queue.CONTROL, lane=lane, payload={"turn_id": turn_id}))
