"""/status and /cancel."""

from collections.abc import Mapping
from typing import Any

from agno_lark.locale import Lang, duration, say
from agno_lark.replies.elements import Card, plain
from agno_lark.replies.notes import note_card
from agno_lark.store import Tx
from agno_lark.turns import RunPhase, RunRow, active_runs, find_run, recent_runs, request_cancel, short_run_id

__all__ = ["StatusFacts", "answer_cancel", "answer_status", "decide_cancel", "read_status"]

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


def _newest(active: list[RunRow]) -> RunRow | None:
    """The newest run that was handed over; where there is none, the turn that will be next."""
    under_way = [row for row in active if row.state is not RunPhase.WAITING]
    return under_way[-1] if under_way else (active[0] if active else None)


def answer_cancel(decided: Mapping[str, Any], lang: Lang) -> Card:
    match decided["result"]:
        case "arguments":
            takes = say("hint.arguments.run", lang)
            return note_card(say("hint.arguments", lang, command="/cancel", takes=takes))
        case result:
            return note_card(say(f"cancel.{result}", lang, run=plain(decided.get("run", ""))))


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
    state = say("run.stopping" if stopping else f"run.{row.state}", lang)
    since_ms = row.finished_ms or row.accepted_ms
    run = f"`{short_run_id(row.run_id)}`" if row.run_id else "–"
    return say("status.line", lang, state=state, when=duration(now_ms - since_ms, lang), run=run)
