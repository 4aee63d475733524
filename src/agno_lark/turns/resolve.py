"""What becomes of turns that were left open: set aside because they came too late, superseded by a newer message,
unknown; and what a person decides about them. All of it inside the transaction that decides."""

from dataclasses import replace
from enum import StrEnum

from agno_lark.jobs import (
    JobState,
    amend_payload,
    cancel_queued,
    forget_payload,
    kept_payload,
    resolve_unknown,
    revoke,
    running_in_lane,
)
from agno_lark.replies import Ending, Resolution, ending_to_json, kept_ending, view_from_json
from agno_lark.store import Tx
from agno_lark.targets import RunState, RunView, StepState, close_running
from agno_lark.turns.begin import Asked, begin_turn, place_of
from agno_lark.turns.ends import answer_turn
from agno_lark.turns.rows import (
    RunPhase,
    RunRow,
    close_run,
    request_cancel,
    resolve_stale_run,
    resolve_unknown_run,
    run_of_turn,
)

__all__ = [
    "Decided",
    "cancel_waiting",
    "dismiss_turn",
    "is_stale",
    "retry_turn",
    "set_aside",
    "supersede",
    "was_superseded",
]

STALE = "stale"
SUPERSEDED = "superseded"


class Decided(StrEnum):
    """What a decision about an open turn came to."""

    DONE = "done"
    ALREADY = "already"  # somebody had decided before, or its words have been erased since
    NOTHING = "nothing"  # there is nothing to decide about this turn


def set_aside(tx: Tx, turn_id: str, asked: Asked, age_ms: int) -> None:
    """Take a message that came too late: nothing runs, the person is asked whether it shall."""
    begin_turn(tx, turn_id, asked, age_ms=age_ms)
    cancel_queued(tx, turn_id, STALE, keep_payload=True)
    close_run(tx, turn_id, RunPhase.CANCELLED, STALE)
    row = _row(tx, turn_id)
    answer_turn(tx, row, Ending(view=RunView(), elapsed_ms=age_ms, stale=True, turn_id=turn_id))


def cancel_waiting(tx: Tx, turn_id: str, reason: str) -> bool:
    """Take back a turn that nobody has begun, and tell the person; False where it has been begun or is over."""
    if not cancel_queued(tx, turn_id, reason):
        return False
    close_run(tx, turn_id, RunPhase.CANCELLED, reason)
    row = _row(tx, turn_id)
    elapsed_ms = tx.now_ms - row.accepted_ms
    view = RunView(state=RunState.CANCELLED)
    answer_turn(tx, row, Ending(view=view, elapsed_ms=elapsed_ms, taken_back=True))
    return True


def supersede(tx: Tx, session_id: str) -> RunRow | None:
    """Take the turn that is running in this lane from its handler, for the sake of a newer message; returns its row as
    it was. Where nobody can tell yet whether the AgentOS has got its run, it becomes unknown, else cancelled.

    The lane goes on at once. Asking the AgentOS to stop the run is the caller's part.
    """
    turn_id = running_in_lane(tx, session_id)
    row = run_of_turn(tx, turn_id) if turn_id else None
    if row is None:
        return None
    unsure = row.state is RunPhase.SUBMITTED
    if not revoke(tx, row.turn_id, JobState.UNKNOWN if unsure else JobState.CANCELLED, SUPERSEDED):
        return None
    request_cancel(tx, row.turn_id)
    close_run(tx, row.turn_id, RunPhase.UNKNOWN if unsure else RunPhase.CANCELLED, SUPERSEDED)
    seen = view_from_json(row.seen) or RunView()
    steps = close_running(seen.steps, StepState.STOPPED, None)
    ending = Ending(
        view=replace(seen, run_id=row.run_id or "", state=RunState.CANCELLED, steps=steps),
        elapsed_ms=tx.now_ms - row.accepted_ms,
        superseded=True,
        unknown=unsure,
        turn_id=row.turn_id,
    )
    amend_payload(tx, row.turn_id, ending=ending_to_json(ending))
    answer_turn(tx, row, ending)
    return row


def retry_turn(tx: Tx, turn_id: str, new_turn_id: str) -> Decided:
    """Ask again what this turn asked, as a new turn at the end of its conversation; at most once a turn.

    For turns that are unknown, failed, or were set aside.
    """
    row = run_of_turn(tx, turn_id)
    if row is None or not (row.state in (RunPhase.UNKNOWN, RunPhase.FAILED) or row.reason in (*Resolution, STALE)):
        return Decided.NOTHING
    kept = kept_payload(tx, turn_id)
    if not kept.get("text"):
        return Decided.ALREADY
    asked = Asked(
        text=kept["text"],
        scope=row.scope,
        target_type=row.target_type,
        target_id=row.target_id,
        app_id=row.app_id,
        tenant_key=row.tenant_key,
        requester=row.requester,
        chat_type=row.chat_type,
        place=place_of(row),
        language=row.language,
        retry_of=turn_id,
    )
    _let_go(tx, row, Resolution.RETRIED, kept)
    begin_turn(tx, new_turn_id, asked)
    return Decided.DONE


def dismiss_turn(tx: Tx, turn_id: str) -> Decided:
    """Leave an unknown turn, or one that was set aside, as it is; its words are erased."""
    row = run_of_turn(tx, turn_id)
    if row is None:
        return Decided.NOTHING
    kept = kept_payload(tx, turn_id)
    if row.state is RunPhase.UNKNOWN or (is_stale(row) and kept):
        _let_go(tx, row, Resolution.DISMISSED, kept)
        return Decided.DONE
    return Decided.ALREADY if row.reason in (*Resolution, STALE) else Decided.NOTHING


def _let_go(tx: Tx, row: RunRow, resolution: Resolution, kept: dict[str, object]) -> None:
    """Erase its words, and show on the card that asked what was decided."""
    unknown = resolve_unknown_run(tx, row.turn_id, resolution)
    if unknown:
        resolve_unknown(tx, row.turn_id, resolution)
    forget_payload(tx, row.turn_id)
    if not unknown and not is_stale(row):
        return
    if unknown:
        known = kept_ending(str(kept.get("ending", "")))
        asked = known or Ending(view=RunView(run_id=row.run_id or ""), elapsed_ms=0)
    else:
        resolve_stale_run(tx, row.turn_id, resolution)
        age_ms = kept.get("age_ms")
        asked = Ending(view=RunView(), elapsed_ms=age_ms if isinstance(age_ms, int) else 0, stale=True)
    ending = replace(asked, unknown=unknown, turn_id=row.turn_id, resolved=resolution)
    answer_turn(tx, row, ending, "resolved")


def was_superseded(row: RunRow) -> bool:
    """Its run may still be going on: nobody has seen its end."""
    return row.reason == SUPERSEDED


def is_stale(row: RunRow) -> bool:
    """It came too late, and nobody has decided about it yet."""
    return row.state is RunPhase.CANCELLED and row.reason == STALE


def _row(tx: Tx, turn_id: str) -> RunRow:
    row = run_of_turn(tx, turn_id)
    assert row is not None  # noqa: S101 - written a line before, in this transaction
    return row
