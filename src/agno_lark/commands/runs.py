"""/status, /cancel, /retry and /dismiss."""

from collections.abc import Mapping
from typing import Any

from agno_lark.locale import Lang, duration, say
from agno_lark.replies.elements import Card, plain
from agno_lark.replies.notes import note_card
from agno_lark.store import Tx
from agno_lark.turns import (
    Decided,
    RunPhase,
    RunRow,
    active_runs,
    dismiss_turn,
    find_run,
    is_stale,
    newest_open,
    recent_runs,
    request_cancel,
    retry_turn,
    short_run_id,
)

__all__ = [
    "StatusFacts",
    "answer_cancel",
    "answer_decision",
    "answer_status",
    "decide_cancel",
    "decide_dismiss",
    "decide_retry",
    "read_status",
]

type StatusFacts = tuple[list[RunRow], list[RunRow]]

SHOWN_MOST = 10


def decide_cancel(tx: Tx, scope: str, given: str) -> Mapping[str, Any]:
    """Record the wish to stop one run of this scope: the named one, else the newest that is under way.

    Returns `result` (requested, nothing, not_found, over, arguments), `turn_id` and `run` for the answer.
    """
    if len(given.split()) > 1:
        return {"result": "arguments"}
    if given:
        row = find_run(tx, given.strip("`"))
        if row is None or row.scope != scope:  # a run of somebody else is as good as none
            return {"result": "not_found", "run": given[:40]}
    else:
        row = _newest(active_runs(tx, scope))
        if row is None:
            return {"result": "nothing"}
    stops = request_cancel(tx, row.turn_id)
    return {"result": "requested" if stops else "over", "turn_id": row.turn_id, "run": short_run_id(row.run_id)}


def decide_retry(tx: Tx, scope: str, given: str, new_turn_id: str) -> Mapping[str, Any]:
    """Ask again what a turn of this scope asked: the named run's, else the newest one that is open or failed.

    Returns `result` (done, already, nothing, answered, not_found, arguments) and `run`.
    """
    row, found = _named_or_open(tx, scope, given, failed=True)
    return _decided(retry_turn(tx, row.turn_id, new_turn_id), row, given) if row else found


def decide_dismiss(tx: Tx, scope: str, given: str) -> Mapping[str, Any]:
    """Leave a turn of this scope that is open as it is; returns as `decide_retry` does."""
    row, found = _named_or_open(tx, scope, given, failed=False)
    return _decided(dismiss_turn(tx, row.turn_id), row, given) if row else found


def _decided(decided: Decided, row: RunRow, given: str) -> Mapping[str, Any]:
    named_in_vain = decided is Decided.NOTHING and bool(given)
    return {"result": "answered" if named_in_vain else str(decided), "run": short_run_id(row.run_id)}


def _named_or_open(tx: Tx, scope: str, given: str, *, failed: bool) -> tuple[RunRow | None, Mapping[str, Any]]:
    """The turn that is meant, else what to say instead."""
    if len(given.split()) > 1:
        return None, {"result": "arguments"}
    row = find_run(tx, given.strip("`")) if given else newest_open(tx, scope, failed=failed)
    if row is None or row.scope != scope:
        return None, {"result": "not_found", "run": given[:40]} if given else {"result": "nothing"}
    return row, {}


def _newest(active: list[RunRow]) -> RunRow | None:
    """The newest run that was handed over; where there is none, the turn that will be next."""
    under_way = [row for row in active if row.state is not RunPhase.WAITING]
    return under_way[-1] if under_way else (active[0] if active else None)


def answer_cancel(decided: Mapping[str, Any], lang: Lang) -> Card:
    if decided["result"] == "arguments":
        return _one_run_at_most("/cancel", lang)
    return note_card(say(f"cancel.{decided['result']}", lang, run=plain(decided.get("run", ""))))


def answer_decision(name: str, decided: Mapping[str, Any], lang: Lang) -> Card:
    """For /retry and /dismiss."""
    match decided["result"]:
        case "arguments":
            return _one_run_at_most(f"/{name}", lang)
        case "done":
            return note_card(say(f"{name}.done", lang))
        case result:
            return note_card(say(f"decide.{result}", lang, run=plain(decided.get("run", ""))))


def _one_run_at_most(command: str, lang: Lang) -> Card:
    return note_card(say("hint.arguments", lang, command=command, takes=say("hint.arguments.run", lang)))


def read_status(tx: Tx, scope: str) -> StatusFacts:
    """What /status shows: turns not over (oldest first), and the last ones that are."""
    return active_runs(tx, scope), recent_runs(tx, scope)


def answer_status(facts: StatusFacts, generation: int, target_name: str, now_ms: int, lang: Lang) -> Card:
    active, recent = facts
    under_way = [row for row in active if row.state is not RunPhase.WAITING]
    waiting = [row for row in active if row.state is RunPhase.WAITING]
    blocks = [say("status.session", lang, generation=generation, target=plain(target_name))]
    if not active:
        blocks.append(say("status.nothing", lang))
    for key, rows in (("status.active", under_way), ("status.waiting", waiting), ("status.recent", recent)):
        if rows:
            lines = [_line(row, now_ms, lang) for row in rows[:SHOWN_MOST]]
            if len(rows) > SHOWN_MOST:
                lines.append(say("status.more", lang, count=len(rows) - SHOWN_MOST))
            blocks += [say(key, lang), "\n".join(lines)]
    return note_card("\n\n".join(blocks), title=say("status.title", lang))


def _line(row: RunRow, now_ms: int, lang: Lang) -> str:
    stopping = row.cancel_requested_ms is not None and row.finished_ms is None
    state = say("run.stopping" if stopping else "run.stale" if is_stale(row) else f"run.{row.state}", lang)
    since_ms = row.finished_ms or row.accepted_ms
    run = f"`{short_run_id(row.run_id)}`" if row.run_id else "–"
    return say("status.line", lang, state=state, when=duration(now_ms - since_ms, lang), run=run)
