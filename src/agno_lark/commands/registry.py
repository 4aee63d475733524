"""The commands, by name: what each decides in the transaction that accepts it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agno_lark.commands import conversation, runs
from agno_lark.store import Tx

__all__ = ["CommandContext", "decide"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandContext:
    """Where a command was given. `rest` is what followed its name, `job_id` the job that will answer it."""

    scope: str
    rest: str
    job_id: str


type Decide = Callable[[Tx, CommandContext], Mapping[str, Any]]

_DECISIONS: Mapping[str, Decide] = {
    "new": lambda tx, given: conversation.decide_new(tx, given.scope),
    "status": lambda tx, given: {},
    "help": lambda tx, given: {},
    "cancel": lambda tx, given: runs.decide_cancel(tx, given.scope, given.rest),
    "retry": lambda tx, given: runs.decide_retry(tx, given.scope, given.rest, f"{given.job_id}-turn"),
    "dismiss": lambda tx, given: runs.decide_dismiss(tx, given.scope, given.rest),
}


def decide(tx: Tx, name: str, given: CommandContext) -> Mapping[str, Any]:
    """Fix what the command means, and do its part in the database; the result goes into the control job as JSON."""
    return _DECISIONS[name](tx, given)
