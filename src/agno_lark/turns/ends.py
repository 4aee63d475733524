"""How a turn ends: run and job closed, and the answer in the outbox, all in one transaction."""

import logging

from agno_lark import crash
from agno_lark.jobs import JobState, Outcome, amend_payload
from agno_lark.replies import Ending, ending_to_json, put_answer
from agno_lark.store import Tx
from agno_lark.turns.begin import place_of
from agno_lark.turns.rows import RunPhase, RunRow, close_run

__all__ = ["answer_turn", "log_end", "outcome_of"]

logger = logging.getLogger(__name__)

_JOB_STATES = {
    RunPhase.FAILED: JobState.FAILED,
    RunPhase.CANCELLED: JobState.CANCELLED,
    RunPhase.UNKNOWN: JobState.UNKNOWN,
}


def answer_turn(tx: Tx, row: RunRow, ending: Ending, name: str = "reply") -> None:
    """Let the person see how the turn ended, and under another `name` what was decided about it since."""
    put_answer(
        tx,
        ending,
        reply_id=f"{row.turn_id}-{name}",
        turn_id=row.turn_id,
        lane=row.session_id,
        place=place_of(row),
        language=row.language,
    )


def outcome_of(row: RunRow, phase: RunPhase, ending: Ending) -> Outcome:
    """What the job runner is to write for a turn that ended in `phase`, or paused."""
    fault = str(ending.fault) if ending.fault else ""

    def close(tx: Tx) -> None:
        close_run(tx, row.turn_id, phase, fault or None)
        if phase is RunPhase.UNKNOWN:  # what its card says is needed once more, when somebody has decided
            amend_payload(tx, row.turn_id, ending=ending_to_json(ending))
        answer_turn(tx, row, ending)

    return Outcome(state=_JOB_STATES.get(phase, JobState.DONE), error=fault, also=close, after=_closed)


async def _closed() -> None:
    crash.reached("turn.closed")


def log_end(row: RunRow, phase: RunPhase, ending: Ending, *, card_operations: int) -> None:
    """One line for a turn that ended: a warning where it failed or nobody knows how."""
    logger.log(
        logging.WARNING if phase in (RunPhase.FAILED, RunPhase.UNKNOWN) else logging.INFO,
        "a turn ended",
        extra={
            "action": "turn_ended",
            "turn": row.turn_id,
            "run": ending.view.run_id,
            "state": str(phase),
            "reason": str(ending.fault) if ending.fault else None,
            "card_operations": card_operations,
        },
    )
