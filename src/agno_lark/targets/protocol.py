"""What the bridge asks of whatever answers: an agent, a team or a workflow, on an AgentOS or in this process.

Events travel as AgentOS sends them (`RunEvent`); `run_view.fold` turns them into what a person sees. Source of the
rules about background runs, run ids and keys: agentos.md, "Exactly once".
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "SNAPSHOT_EVENT",
    "TERMINAL_STATES",
    "Attachment",
    "CancelOutcome",
    "Continuation",
    "FaultReason",
    "FollowLimits",
    "FollowStart",
    "RunEvent",
    "RunRef",
    "RunRequest",
    "RunSnapshot",
    "RunState",
    "Target",
    "TargetInfo",
    "TargetType",
]

SNAPSHOT_EVENT = "RunSnapshot"
"""Name of the one event we make ourselves: the run as AgentOS stores it, where its stream can't be replayed any more.

Its data: `run_id`, `status` (agno's word, upper case), `content`, `reasoning_content`, `requirements`, `metrics`; and
`queue_ticket`, its status in a durable queue, where that still has it in hand.
"""


class TargetType(StrEnum):
    """What kind of thing answers; also the word in the session scope and in AGENTOS_TARGET_TYPE."""

    AGENT = "agent"
    TEAM = "team"
    WORKFLOW = "workflow"


class RunState(StrEnum):
    """Where a run stands."""

    SUBMITTED = "submitted"  # sent, or about to be; no event seen yet
    RUNNING = "running"  # at least one event seen
    PAUSED = "paused"  # waits for a person; RunView.requirements says for what
    COMPLETED = "completed"  # terminal: an answer
    FAILED = "failed"  # terminal: RunView.error says why
    CANCELLED = "cancelled"  # terminal: stopped by someone


TERMINAL_STATES = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})


class FaultReason(StrEnum):
    """`TargetError.reason`, and `RunView.error.reason`: what went wrong, in one word."""

    UNREACHABLE = "unreachable"  # no connection could be made: nothing was submitted
    UNAUTHORIZED = "unauthorized"  # 401 or 403: the token is wrong, missing, or may not use this target
    NOT_FOUND = "not_found"  # 404: no such target, or no such run
    INVALID = "invalid"  # another 4xx: AgentOS refuses the request as it is
    APPROVAL_PENDING = "approval_pending"  # 403 to a continuation: an admin has to decide first
    CONFLICT = "conflict"  # 409: somebody else owns, continues or has ended this run
    BUSY = "busy"  # 429: too many requests, or a full queue; try again later
    SERVER_ERROR = "server_error"  # 5xx
    TIMEOUT = "timeout"  # no event for run_timeout_s: AgentOS is gone, or the run hangs
    LOST = "lost"  # AgentOS has the run as going on, but nothing of it is alive: it was restarted in the middle
    BACKGROUND_UNSUPPORTED = "background_unsupported"  # the target has no database: no background run, no resume
    INTERRUPTED = "interrupted"  # the stream broke after the request went out: the run may go on
    PROTOCOL = "protocol"  # what answered does not speak as an AgentOS does
    MODEL_ERROR = "model_error"  # the run itself ended with an error event


class CancelOutcome(StrEnum):
    """What a request to cancel came to; the true end is the run's terminal event, not this."""

    REQUESTED = "requested"  # AgentOS took the request
    NOT_FOUND = "not_found"  # AgentOS knows no such run (any more)
    ALREADY_OVER = "already_over"  # the run had ended before


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes with a message. Workflows take none (agentos.md, "Runs")."""

    name: str
    mime_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One turn's input.

    `run_id` is ours, minted before the submission; an AgentOS with a durable queue answers under another one, which the
    first event tells. `turn_id` goes out as Idempotency-Key (at most 512 characters) and as `metadata.turn_id`.
    """

    message: str = field(repr=False)
    session_id: str
    user_id: str
    run_id: str
    turn_id: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """A run that is known to exist. `after_index`: index of the last event already folded, -1 for none."""

    run_id: str
    session_id: str
    user_id: str = ""
    after_index: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A paused run to be continued; `ref.after_index` is at least its pause's.

    `payload`: form fields of `/continue` (values that are no strings go as JSON).
    """

    ref: RunRef
    payload: Mapping[str, Any] = field(repr=False)


FollowStart = RunRequest | RunRef | Continuation


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One event of a run. `index` is AgentOS's event_index (background runs), None where there is none.

    `data` is the JSON object as it came; nothing in it can be relied on.
    """

    name: str
    index: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSnapshot:
    """A run as AgentOS stores it. `state` is RUNNING for a pending run too; `content` is "" while there is none."""

    run_id: str
    session_id: str
    state: RunState
    content: str = field(default="", repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo:
    """For /status and the log. None means: not known (yet).

    `durable_queue`: a second submission under the same key attaches to the first run. `resumable`: False once the
    target had to fall back to the plain stream; then a cut connection ends the run. `note`: what is lost by it.
    """

    type: TargetType
    id: str
    name: str
    address: str
    durable_queue: bool | None = None
    resumable: bool | None = None
    reachable: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLimits:
    """How long `follow` believes in a run. All in seconds.

    `silence_s`: no byte for so long → ask again with /resume. `run_timeout_s`: no event for so long, over all
    reconnections → TargetError(timeout). `lost_s`: AgentOS has answered for so long that the run goes on, with nothing
    of it to follow → TargetError(lost). `backoff_first_s`, `backoff_max_s`: pauses between reconnections, doubled.
    `missing_grace_s`: a run AgentOS does not know is looked for that long before it counts as gone.
    """

    silence_s: float = 60.0
    run_timeout_s: float = 900.0
    lost_s: float = 60.0
    backoff_first_s: float = 0.25
    backoff_max_s: float = 10.0
    missing_grace_s: float = 3.0


@runtime_checkable
class Target(Protocol):
    """Something that answers. All methods may be called side by side; none keeps state of a run between calls.

    Every failure is a `TargetError` whose `reason` is a FaultReason; asyncio.CancelledError passes through. Closing a
    generator (or leaving its loop and calling `aclose`) stops listening and never stops a background run.
    """

    @property
    def type(self) -> TargetType: ...

    @property
    def id(self) -> str: ...

    def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
        """Start a run; yield its events until this connection ends (which need not be the run's end).

        NOT idempotent, but on an AgentOS with a durable queue. UNREACHABLE means nothing was sent; INTERRUPTED means
        it may have been.
        """
        ...

    def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
        """Yield the events after `after_index`, then live ones, until this connection ends. Idempotent.

        NOT_FOUND: AgentOS does not know the run. A run known from the database alone comes as one SNAPSHOT_EVENT.
        """
        ...

    def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]:
        """Continue a paused run; yield events as `submit` does. NOT idempotent: look with `find` before a second try.

        CONFLICT: owned elsewhere; APPROVAL_PENDING: an admin has to decide first; NOT_FOUND: gone.
        """
        ...

    def follow(self, start: FollowStart) -> AsyncGenerator[RunEvent]:
        """Submit, continue or resume, and stay with the run over cuts and silence.

        Ends after the run's terminal event or its pause. A submission or a continuation goes out exactly once, but for
        a submission whose answer was lost where a second one attaches to the first run (durable queue). Raises
        TIMEOUT (no event for run_timeout_s), LOST (its AgentOS was restarted, and that for lost_s), NOT_FOUND (the run
        is really gone), INTERRUPTED (cut, and can't be resumed; or a continuation's answer was lost, and the run is
        still paused), and whatever the first request is refused with.
        """
        ...

    async def cancel(self, run_id: str, session_id: str) -> CancelOutcome:
        """Ask for the run to be stopped. Idempotent. The terminal event comes through `follow`."""
        ...

    async def find(self, run_id: str, session_id: str) -> RunSnapshot | None:
        """The run as stored, or None when AgentOS answers that there is none. Idempotent."""
        ...

    async def find_by_turn(self, session_id: str, turn_id: str) -> RunSnapshot | None:
        """The session's newest run whose metadata.turn_id is `turn_id`, or None. Idempotent.

        AgentOS 3.1.10 does not tell the metadata of runs in a durable queue before they end, nor ever that of workflow
        runs outside of one: None is no proof there. Our own run_id is, where there is no durable queue.
        """
        ...

    async def describe(self) -> TargetInfo:
        """Who answers, and what it promises. Never raises TargetError: `reachable` tells."""
        ...

    async def aclose(self) -> None:
        """Let go of connections that this object opened itself. Idempotent."""
        ...
