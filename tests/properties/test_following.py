"""Whatever is cut, refused, lost or told twice on the way: each event once, in order, and nothing handed over twice."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from agno_lark.clock import SystemClock
from agno_lark.errors import TargetError
from agno_lark.targets import (
    SNAPSHOT_EVENT,
    Continuation,
    FaultReason,
    FollowLimits,
    FollowStart,
    RunEvent,
    RunRef,
    RunRequest,
    RunState,
)
from agno_lark.targets.follow import follow
from tests.targets_fixtures import event, folded

LIMITS = FollowLimits(run_timeout_s=1e6, lost_s=100.0, backoff_first_s=0.0, missing_grace_s=50.0)
REQUEST = RunRequest(message="hi", session_id="s", user_id="u", run_id="r", turn_id="t")
PAUSED_AT = 4
CONTINUATION = Continuation(ref=RunRef(run_id="r", session_id="s", after_index=PAUSED_AT), payload={})
CUT = TargetError("cut", reason=FaultReason.INTERRUPTED, retryable=True)
FAILURES = {
    "unreachable": FaultReason.UNREACHABLE,
    "server error": FaultReason.SERVER_ERROR,
    "busy": FaultReason.BUSY,
}


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How one connection goes: refused; or `again` events are told once more, `new` ones come, and then it is cut, or
    ends, or AgentOS has only its database to answer from."""

    end: str
    new: int = 0
    again: int = 0
    passed_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Script:
    """A run: the gaps between its indices, what becomes of the first request, and how the connections after it go."""

    gaps: list[int]
    arrives: str
    durable: bool
    connections: list[Connection]


CONNECTIONS = st.builds(
    Connection,
    end=st.sampled_from(["cut", "cut", "ends", "stored", "silent", *FAILURES]),
    new=st.integers(0, 4),
    again=st.integers(0, 6),
    passed_s=st.floats(0, 200),
)
SCRIPTS = st.builds(
    Script,
    gaps=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    arrives=st.sampled_from(["heard", "unheard", "late", "never"]),
    durable=st.booleans(),
    connections=st.lists(CONNECTIONS, max_size=8),
)


@dataclass
class World(SystemClock):
    """An AgentOS that plays a script, then behaves. `runs` counts how often the model was set to work."""

    script: Script
    first: int = 0
    runs: int = 0
    submissions: int = 0
    continuations: int = 0
    told: int = 0
    asked: int = 0
    passed_s: float = 0.0
    resumable: bool | None = True
    events: list[RunEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.ways = iter(self.script.connections)
        index = self.first - 1
        for n, gap in enumerate(self.script.gaps):
            index += gap
            self.events.append(event("RunContent", index, content=f"{n} "))
        self.events.append(event("RunCompleted", index + 1))

    def monotonic_s(self) -> float:
        return self.passed_s

    async def attaches(self) -> bool:
        return self.script.durable

    def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
        self.submissions += 1
        return self._handed_over()

    def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]:
        self.continuations += 1
        return self._handed_over()

    def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
        self.asked += 1
        if self.script.arrives == "late" and self.asked == 2:
            self.runs = 1  # or it attaches to what was submitted again meanwhile
        return self._connection(after_index)

    async def _handed_over(self) -> AsyncGenerator[RunEvent]:
        first = self.submissions + self.continuations == 1
        if first and self.script.arrives in ("late", "never"):
            raise CUT
        self.runs += 1 if first or not self.runs else 0  # a second one attaches
        if first and self.script.arrives == "unheard":
            raise CUT
        async for one in self._connection(self.first - 1):
            yield one

    async def _connection(self, after_index: int) -> AsyncGenerator[RunEvent]:
        way = next(self.ways, Connection(end="", new=len(self.events), passed_s=10.0))
        self.passed_s += min(way.passed_s, 20.0) if not self.runs or way.end == "stored" else way.passed_s
        if way.end in FAILURES:
            raise TargetError(way.end, reason=FAILURES[way.end], retryable=True)
        if not self.runs:
            if self.continuations:  # it is as it was: paused
                yield event("replay")
                yield event(SNAPSHOT_EVENT, status="PAUSED")
                return
            raise TargetError("no such run", reason=FaultReason.NOT_FOUND)
        if way.end == "stored":
            yield event("replay")
            yield event(SNAPSHOT_EVENT, status="RUNNING", content="")
            return
        at = sum(1 for one in self.events if one.index is not None and one.index <= after_index)
        yield event("catch_up")
        for one in self.events[max(0, at - way.again) : at + way.new]:
            yield one
        if way.end in ("cut", "silent"):  # silence reaches the follower as a cut
            raise CUT


def play(world: World, start: FollowStart) -> tuple[list[RunEvent], TargetError | None]:
    heard: list[RunEvent] = []

    async def listen() -> None:
        async for one in follow(world, start, limits=LIMITS, clock=world):
            heard.append(one)  # noqa: PERF401 - what was heard before an error counts

    try:
        asyncio.run(listen())
    except TargetError as error:
        return heard, error
    return heard, None


def check_what_was_heard(world: World, heard: list[RunEvent], error: TargetError | None) -> None:
    indexed = [one for one in heard if one.index is not None]
    assert indexed == world.events[: len(indexed)], "each once, in order, none left out"
    note(f"{'whole' if error is None else error.reason}, {world.script.arrives}")
    if error is None:
        assert indexed == world.events
        assert folded(heard).state is RunState.COMPLETED
        assert folded(heard).text == "".join(f"{n} " for n in range(len(world.script.gaps)))
    else:
        assert error.reason in (FaultReason.INTERRUPTED, FaultReason.LOST) or not world.asked


@settings(deadline=None, max_examples=150)
@given(script=SCRIPTS)
def test_a_submission_goes_out_once_and_its_events_come_once_each(script: Script) -> None:
    world = World(script)
    heard, error = play(world, REQUEST)
    check_what_was_heard(world, heard, error)
    assert world.runs <= 1
    assert world.submissions == 1 or script.durable
    if script.arrives == "never" and not script.durable:
        assert error is not None


@settings(deadline=None, max_examples=150)
@given(script=SCRIPTS)
def test_a_continuation_goes_out_once_and_its_events_come_once_each(script: Script) -> None:
    world = World(script, first=PAUSED_AT + 1)
    heard, error = play(world, CONTINUATION)
    check_what_was_heard(world, heard, error)
    assert (world.continuations, world.submissions) == (1, 0)
    assert world.runs <= 1
    if script.arrives == "never":
        assert error is not None
        assert not heard or all(one.index is None for one in heard)
