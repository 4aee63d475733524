"""A turn: one message of a person, one run, one answer.

Enters: a job of kind `turn` and its row in `runs`, written when the message was accepted. Leaves: a run on the target
and a card that shows it. Survives a crash: the row tells how far the turn had come (design.md, "A turn, and where it
may die"); what had begun is looked up on the AgentOS and followed, never submitted blindly a second time.
"""

from agno_lark.turns.handle import TURN, OpenCard, TurnHandler
from agno_lark.turns.rows import (
    RUN_TRANSITIONS,
    NewRun,
    RunPhase,
    RunRow,
    active_runs,
    find_run,
    last_language,
    open_run,
    recent_runs,
    remember_reaction,
    request_cancel,
    run_of_turn,
    short_run_id,
)

__all__ = [
    "RUN_TRANSITIONS",
    "TURN",
    "NewRun",
    "OpenCard",
    "RunPhase",
    "RunRow",
    "TurnHandler",
    "active_runs",
    "find_run",
    "last_language",
    "open_run",
    "recent_runs",
    "remember_reaction",
    "request_cancel",
    "run_of_turn",
    "short_run_id",
]
