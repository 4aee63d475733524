"""Staying with a run: over cuts, silence and restarts of AgentOS, until it ends or pauses.

A submission or a continuation goes out once; after that only `/resume` is asked, which changes nothing. Only where a
second submission attaches to the first run (a durable queue) a lost answer is asked for by submitting again: the run
has another id than ours there, and no metadata until it ends. A run that AgentOS does not know is looked for a while,
and so is one that is still paused after the answer to its continuation was lost: whether that arrived, nobody can say.

A run whose AgentOS died stays RUNNING in its database for ever, or PENDING where it came through a queue: /resume then
ends at once, with no event and nothing to wait for (3.1.10, all kinds of targets). Answered so for `lost_s`, the run
counts as lost. Any event, any live stream, a change of the stored run, or its ticket in a durable queue says that it
lives; time in which AgentOS does not answer does not count. The limit: of several replicas that share no event stream
only one has the run live, so whoever is led past it, ask after ask for all that time, takes the run for lost.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from agno_lark.clock import Clock
from agno_lark.errors import TargetError
from agno_lark.targets.event_data import state_of
from agno_lark.targets.protocol import (
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
from agno_lark.targets.run_view import ending, told_run_id

__all__ = ["Source", "follow", "is_news"]

logger = logging.getLogger(__name__)

_LIVE = frozenset({"catch_up", "subscribed"})
_ABOUT_THE_STREAM = frozenset({"replay", *_LIVE, SNAPSHOT_EVENT})
_ASKS_BEFORE_LOST = 24  # at least: with two replicas, one chance in millions to miss the live one each time
_GO_ON = frozenset({FaultReason.INTERRUPTED, FaultReason.UNREACHABLE, FaultReason.SERVER_ERROR, FaultReason.BUSY})


def is_news(event: RunEvent) -> bool:
    """Whether the run itself has moved: not only its stream has begun anew, or been told from the database."""
    return event.name not in _ABOUT_THE_STREAM


class Source(Protocol):
    """The part of a Target that `follow` needs; whether a cut can be healed; whether a second submission attaches."""

    @property
    def resumable(self) -> bool | None: ...

    def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]: ...

    def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]: ...

    def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]: ...

    async def attaches(self) -> bool: ...


@dataclass(slots=True, kw_only=True)
class _Stillness:
    """For how long AgentOS has answered, again and again, that the run goes on, with nothing of it to follow."""

    run: Mapping[str, Any] | None = None  # as it was told the last time
    since_s: float | None = None  # when that was; None after a failure: the time in between is not counted
    total_s: float = 0.0

    def note(self, run: Mapping[str, Any] | None, now_s: float, *, failed: bool) -> None:
        """A connection has failed, or has ended after telling of `run` so (None: not so)."""
        if failed:
            self.since_s = None
            return
        if run is None or run != self.run:
            self.total_s = 0.0
        elif self.since_s is not None:
            self.total_s += now_s - self.since_s
        self.run, self.since_s = run, None if run is None else now_s


@dataclass(slots=True, kw_only=True)
class _Pursuit:
    """How far one `follow` has come."""

    run_id: str
    session_id: str
    after_index: int = -1
    confirmed: bool  # AgentOS has named this run id itself
    first_request: bool  # the submission or continuation is still to go out
    submit_again: bool = False  # it may have gone out, and a second one attaches to it
    last_event_s: float
    missing_since_s: float | None = None
    unheard: bool = False  # nothing of what follows the continuation was heard yet
    unmoved: bool = False  # this connection told the run as it was before the continuation: paused
    unmoved_since_s: float | None = None
    reconnections: int = 0
    stuck: Mapping[str, Any] | None = None  # the run as this connection told it: going on, and nothing to follow
    stillness: _Stillness = field(default_factory=_Stillness)

    def take(self, event: RunEvent, now_s: float) -> bool:
        """Note an event; False for one that was seen before."""
        if not self.confirmed and (told := told_run_id(event)):
            self.run_id, self.confirmed = told, True
        if event.index is not None:
            if event.index <= self.after_index:
                return False
            self.after_index = event.index
        self.missing_since_s = None
        if event.name == SNAPSHOT_EVENT:
            self.unmoved = self.unheard and _state(event) is RunState.PAUSED
            self.stuck = event.data if _is_stuck(event) else None
        elif event.name in _LIVE:
            self.stillness = _Stillness()
        elif event.name not in _ABOUT_THE_STREAM:
            self.last_event_s, self.reconnections = now_s, 0
            self.stillness = _Stillness()
            self.unheard = False
        return not self.unmoved

    def verdict(self, fault: TargetError | None, resumable: bool | None, limits: FollowLimits, now_s: float) -> None:
        """A stream has ended (`fault` None) or broken: return to ask again, raise what the person is to hear."""
        silent_s = now_s - self.last_event_s
        self.stillness.note(self.stuck, now_s, failed=fault is not None)
        self.stuck = None
        if fault is not None and self.first_request and fault.reason != FaultReason.INTERRUPTED:
            raise fault
        if resumable is False:
            raise fault or _cut(FaultReason.INTERRUPTED, "the stream ended before the run did, and can't be resumed")
        if fault is not None and fault.reason == FaultReason.NOT_FOUND:
            self.missing_since_s = now_s if self.missing_since_s is None else self.missing_since_s
            if now_s - self.missing_since_s >= limits.missing_grace_s:
                # A submission whose answer was lost may still have arrived: that is no "there is no such agent".
                raise fault if self.confirmed else _cut(FaultReason.INTERRUPTED, f"the answer was lost; {fault}")
        elif fault is not None and fault.reason not in _GO_ON:
            raise fault
        if self.unmoved:
            self.unmoved, since_s = False, self.unmoved_since_s or now_s
            self.unmoved_since_s = since_s
            if now_s - since_s >= limits.missing_grace_s:
                raise _cut(FaultReason.INTERRUPTED, "the answer to the continuation was lost; the run is still paused")
        if fault is None and (still_s := self.stillness.total_s) >= limits.lost_s:
            raise _cut(FaultReason.LOST, f"AgentOS has had nothing of the run to follow for {still_s:.0f} s")
        if silent_s >= limits.run_timeout_s:
            raise _cut(FaultReason.TIMEOUT, f"no event of the run for {silent_s:.0f} s; last: {fault or 'silence'}")

    def pause_s(self, limits: FollowLimits, chance: float) -> float:
        """How long to wait before asking again; `chance` in 0..1 keeps many followers from coming back as one."""
        longest = min(limits.backoff_max_s, limits.backoff_first_s * 2.0 ** min(self.reconnections, 20))
        if self.stillness.since_s is not None:
            longest = min(longest, limits.lost_s / _ASKS_BEFORE_LOST)
        return longest * (0.5 + chance / 2)


async def follow(source: Source, start: FollowStart, *, limits: FollowLimits, clock: Clock) -> AsyncGenerator[RunEvent]:
    """See `Target.follow`."""
    pursuit = _begin(start, clock.monotonic_s())
    while True:
        fault: TargetError | None = None
        async with aclosing(_open(source, start, pursuit)) as events:
            while True:
                try:
                    event = await _next(events, pursuit.last_event_s + limits.run_timeout_s - clock.monotonic_s())
                except TargetError as error:
                    fault = error
                    break
                if event is None:
                    break
                pursuit.first_request = pursuit.submit_again = False
                if not pursuit.take(event, clock.monotonic_s()):
                    continue
                yield event
                if ending(event, pursuit.run_id) is not None:
                    return
        pursuit.verdict(fault, source.resumable, limits, clock.monotonic_s())
        pursuit.first_request = False
        logger.log(
            logging.DEBUG if pursuit.reconnections else logging.INFO,  # the first time is enough to be told of
            "following a run again",
            extra={
                "action": "run.resume",
                "run_id": pursuit.run_id,
                "after_index": pursuit.after_index,
                "reason": fault.reason if fault else "ended",
            },
        )
        await asyncio.sleep(pursuit.pause_s(limits, random.random()))
        pursuit.reconnections += 1
        if not pursuit.confirmed and isinstance(start, RunRequest) and not start.attachments:
            pursuit.submit_again = await _attaches(source)


def _begin(start: FollowStart, now_s: float) -> _Pursuit:
    match start:
        case RunRequest(run_id=run_id, session_id=session_id):
            return _Pursuit(
                run_id=run_id, session_id=session_id, confirmed=False, first_request=True, last_event_s=now_s
            )
        case Continuation(ref=ref):
            first_request = True
        case RunRef() as ref:
            first_request = False
    return _Pursuit(
        run_id=ref.run_id,
        session_id=ref.session_id,
        after_index=ref.after_index,
        confirmed=not first_request,  # continuing a run that is over forks it, under a new id
        first_request=first_request,
        unheard=first_request,
        last_event_s=now_s,
    )


def _open(source: Source, start: FollowStart, pursuit: _Pursuit) -> AsyncGenerator[RunEvent]:
    if (pursuit.first_request or pursuit.submit_again) and isinstance(start, RunRequest):
        return source.submit(start)
    if pursuit.first_request and isinstance(start, Continuation):
        return source.continue_run(start.ref.run_id, start.ref.session_id, start.ref.user_id, start.payload)
    return source.resume(pursuit.run_id, pursuit.session_id, pursuit.after_index)


async def _next(events: AsyncGenerator[RunEvent], left_s: float) -> RunEvent | None:
    """The next event, None at the stream's end. Raises TargetError."""
    try:
        async with asyncio.timeout(max(left_s, 0.0)):
            return await anext(events, None)
    except TimeoutError:
        return None  # time is up: the verdict says so


async def _attaches(source: Source) -> bool:
    try:
        return await source.attaches()
    except TargetError as error:
        logger.debug(
            "a target does not say whether it has a queue", extra={"action": "run.ask", "reason": error.reason}
        )
        return False


def _is_stuck(snapshot: RunEvent) -> bool:
    """AgentOS stores the run as going on, and has nothing live of it, nor a ticket for it."""
    return _state(snapshot) is RunState.RUNNING and not snapshot.data.get("queue_ticket")


def _state(snapshot: RunEvent) -> RunState | None:
    return state_of(snapshot.data.get("status"))


def _cut(reason: FaultReason, message: str) -> TargetError:
    return TargetError(message, reason=reason, retryable=False)
