"""A turn: one message of a person, one run, one answer.

Enters: a job of kind `turn` and its row in `runs`, written when the message was accepted. Leaves: a run on the target
and a card that shows it. Survives a crash: the row tells how far the turn had come (design.md, "A turn, and where it
may die"); what had begun is looked up on the AgentOS and followed, never submitted blindly a second time.
"""

from agno_lark.turns.begin import TURN, Asked, begin_turn
from agno_lark.turns.handle import OpenCard, TurnHandler
from agno_lark.turns.resolve import (
    Decided,
    cancel_waiting,
    dismiss_turn,
    is_stale,
    retry_turn,
    set_aside,
    supersede,
    was_superseded,
)
from agno_lark.turns.rows import (
    RUN_TRANSITIONS,
    NewRun,
    RunPhase,
    RunRow,
    active_runs,
    find_run,
    last_language,
    newest_open,
    open_run,
    prefix_bounds,
    recent_runs,
    remember_reaction,
    request_cancel,
    run_of_turn,
    short_run_id,
)

__all__ = [
    "RUN_TRANSITIONS",
    "TURN",
    "Asked",
    "Decided",
    "NewRun",
    "OpenCard",
    "RunPhase",
    "RunRow",
    "TurnHandler",
    "active_runs",
    "begin_turn",
    "cancel_waiting",
    "dismiss_turn",
    "find_run",
    "is_stale",
    "last_language",
    "newest_open",
    "open_run",
    "prefix_bounds",
    "recent_runs",
    "remember_reaction",
    "request_cancel",
    "retry_turn",
    "run_of_turn",
    "set_aside",
    "short_run_id",
    "supersede",
    "was_superseded",
]
