"""The transactions of intake: dedup, meaning and job, together or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agno_lark.commands import (
    COMMAND,
    SAY,
    CommandContext,
    NearMiss,
    ParsedCommand,
    ask_to_stop,
    decide,
    say_payload,
)
from agno_lark.jobs import NewJob, Queue, enqueue
from agno_lark.locale import Lang
from agno_lark.replies import DISMISS, RETRY, STOP, Place
from agno_lark.sessions import Scope, current_generation
from agno_lark.store import Tx
from agno_lark.turns import (
    Asked,
    Decided,
    RunRow,
    begin_turn,
    dismiss_turn,
    is_stale,
    last_language,
    request_cancel,
    retry_turn,
    run_of_turn,
    set_aside,
    supersede,
)

__all__ = [
    "Accepted",
    "Click",
    "ClickAnswer",
    "Intent",
    "Note",
    "Origin",
    "Talk",
    "accept_click",
    "accept_message",
    "seen_before",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a message came from, as far as its job needs to know. `sender` is an open id. `too_late_ms` is the age of a
    message that came too late to be run without asking; `interrupts`: it stops what is still running before it."""

    app_id: str
    tenant_key: str
    event_id: str
    sender: str
    chat_type: str
    place: Place
    scope: Scope
    language: Lang | None  # None: nothing in the message tells it
    fallback_language: Lang = "zh"
    too_late_ms: int | None = None
    interrupts: bool = False


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
    """`is_new` is False for what had been accepted before. `turn_id` where the message became a turn that will run,
    `superseded` the turn it was put in the place of."""

    is_new: bool
    turn_id: str | None = None
    superseded: str | None = None


SEEN = """
INSERT INTO dedup_messages (app_id, kind, key, seen_ms, job_id) VALUES (:app, :kind, :key, :now, :job)
ON CONFLICT (app_id, kind, key) DO NOTHING
"""


def seen_before(tx: Tx, app_id: str, event_id: str, message_id: str | None, job_id: str | None = None) -> bool:
    """Note the keys of an event, and the job it becomes; True when either was known. Feishu's own pages name one key
    each: both are kept."""
    given = {"app": app_id, "now": tx.now_ms, "job": job_id}
    new_event = tx.execute(SEEN, given | {"kind": "event", "key": event_id})
    if message_id is None:
        return not new_event
    new_message = tx.execute(SEEN, given | {"kind": "message", "key": message_id})
    return not (new_event and new_message)


def accept_message(tx: Tx, job_id: str, origin: Origin, intent: Intent, target: tuple[str, str]) -> Accepted:
    """Take a message: its keys, what it means, and the one job that will answer it.

    What it means is fixed here: its session is the current generation of its scope, and `/new` raises that, so the
    order of acceptance is the order of meaning.
    """
    if seen_before(tx, origin.app_id, origin.event_id, origin.place.message_id, job_id):
        return Accepted(is_new=False)
    language = origin.language or last_language(tx, origin.sender) or origin.fallback_language
    match intent:
        case ParsedCommand(name="new", rest=rest) if rest:
            decide(tx, "new", CommandContext(scope=str(origin.scope), rest="", job_id=job_id))
            return _accept_turn(tx, job_id, origin, language, rest, target)
        case Talk(text=text):
            return _accept_turn(tx, job_id, origin, language, text, target)
        case ParsedCommand(name=name, rest=rest):
            decided = decide(tx, name, CommandContext(scope=str(origin.scope), rest=rest, job_id=job_id))
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
                ask_to_stop(tx, f"{job_id}-stop", decided["turn_id"])
        case NearMiss(given=given, meant=meant):
            payload = dict(say_payload("hint.command", origin.place, language, given=given, meant=meant))
            _control(tx, job_id, SAY, origin, payload)
        case Note(phrase=phrase, values=values):
            payload = dict(say_payload(phrase, origin.place, language, **dict(values)))
            _control(tx, job_id, SAY, origin, payload)
    return Accepted(is_new=True)


def _accept_turn(tx: Tx, turn_id: str, origin: Origin, language: Lang, text: str, target: tuple[str, str]) -> Accepted:
    asked = Asked(
        text=text,
        scope=str(origin.scope),
        target_type=target[0],
        target_id=target[1],
        app_id=origin.app_id,
        tenant_key=origin.tenant_key,
        requester=origin.sender,
        chat_type=origin.chat_type,
        place=origin.place,
        language=language,
    )
    if origin.too_late_ms is not None:
        set_aside(tx, turn_id, asked, origin.too_late_ms)
        return Accepted(is_new=True)
    session = begin_turn(tx, turn_id, asked)
    superseded = supersede(tx, session) if origin.interrupts else None
    if superseded is not None:
        ask_to_stop(tx, f"{turn_id}-stop", superseded.turn_id)
    return Accepted(is_new=True, turn_id=turn_id, superseded=superseded.turn_id if superseded else None)


def _control(tx: Tx, job_id: str, kind: str, origin: Origin, payload: dict[str, Any]) -> None:
    # A lane of the scope's own, so that two commands are answered in their order, and never behind a turn.
    lane = f"control:{origin.scope}"
    enqueue(tx, NewJob(id=job_id, kind=kind, queue=Queue.CONTROL, lane=lane, payload=payload))


@dataclass(frozen=True, kw_only=True, slots=True)
class Click:
    """A press of one of our buttons: `op` is what it asks for (STOP, RETRY, DISMISS), `turn_id` the turn it names,
    `operator` who pressed (an open id)."""

    app_id: str
    event_id: str
    message_id: str
    op: str
    turn_id: str
    operator: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ClickAnswer:
    """What a press came to: a phrase for the toast, and whether it did what it asks for."""

    phrase: str
    language: Lang | None = None
    is_good: bool = False


def accept_click(tx: Tx, job_id: str, click: Click, may_decide: Callable[[RunRow], bool]) -> ClickAnswer:
    """Take a press: record the wish, and what follows from it. Pressed again it changes nothing.

    `may_decide(row)` says whether who pressed has a say in the turn's conversation. The card must be the turn's.
    """
    repeated = seen_before(tx, click.app_id, click.event_id, None, job_id)
    row = run_of_turn(tx, click.turn_id)
    if row is None or row.app_id != click.app_id or row.card_message_id not in (None, click.message_id):
        return ClickAnswer(phrase="toast.unknown")
    if not may_decide(row):
        return ClickAnswer(phrase="cancel.foreign", language=last_language(tx, click.operator) or row.language)
    if click.op == STOP:
        return _accept_stop(tx, job_id, row, repeated=repeated)
    assert click.op in (RETRY, DISMISS)  # noqa: S101 - the caller has looked
    decided = retry_turn(tx, row.turn_id, job_id) if click.op == RETRY else dismiss_turn(tx, row.turn_id)
    done = decided is Decided.DONE
    retried = "toast.answering" if is_stale(row) else "toast.retried"
    told = (retried if click.op == RETRY else "toast.dismissed") if done else "toast.decided"
    return ClickAnswer(phrase=told, language=row.language, is_good=done)


def _accept_stop(tx: Tx, job_id: str, row: RunRow, *, repeated: bool) -> ClickAnswer:
    already = row.cancel_requested_ms is not None
    if not request_cancel(tx, row.turn_id):
        return ClickAnswer(phrase="cancel.over", language=row.language)
    if not repeated and not already:
        ask_to_stop(tx, job_id, row.turn_id)
    return ClickAnswer(phrase="toast.stopping", language=row.language, is_good=True)
