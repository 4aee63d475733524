"""Whoever answers, behind one protocol: an agent, a team or a workflow, on an AgentOS or in this process.

In: a `RunRequest` (or a run to resume or continue). Out: `RunEvent`s, folded by `fold` into a `RunView`; a
`RunSnapshot` where one looks a run up. Failures are `TargetError`s with a `FaultReason`. Nothing here is stored: what
survives a crash is the run on the AgentOS, found again by run id, or by `metadata.turn_id`, and resumed after the last
folded index.
"""

from agno_lark.targets.embedding import build_remote_target
from agno_lark.targets.follow import is_news
from agno_lark.targets.protocol import (
    SNAPSHOT_EVENT,
    TERMINAL_STATES,
    Attachment,
    CancelOutcome,
    Continuation,
    FaultReason,
    FollowLimits,
    FollowStart,
    RunEvent,
    RunRef,
    RunRequest,
    RunSnapshot,
    RunState,
    Target,
    TargetInfo,
    TargetType,
)
from agno_lark.targets.remote import RemoteTarget
from agno_lark.targets.run_view import RunFault, RunView, Step, StepKind, StepState, ending, fold
from agno_lark.targets.steps import close_running

__all__ = [
    "SNAPSHOT_EVENT",
    "TERMINAL_STATES",
    "Attachment",
    "CancelOutcome",
    "Continuation",
    "FaultReason",
    "FollowLimits",
    "FollowStart",
    "RemoteTarget",
    "RunEvent",
    "RunFault",
    "RunRef",
    "RunRequest",
    "RunSnapshot",
    "RunState",
    "RunView",
    "Step",
    "StepKind",
    "StepState",
    "Target",
    "TargetInfo",
    "TargetType",
    "build_remote_target",
    "close_running",
    "ending",
    "fold",
    "is_news",
]
