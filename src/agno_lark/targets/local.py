"""An agent, team or workflow of agno's in this very process, for `LarkInterface(target=...)` in an AgentOS.

A run is a task of its own here too: whoever listens may go and come back while this process lives. Resuming works from
memory (the last 200 runs); after a restart a run is only found in the object's database, if it has one.
"""

import asyncio
import inspect
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from agno_lark.clock import Clock, SystemClock
from agno_lark.errors import TargetError
from agno_lark.targets.embedding import token_of
from agno_lark.targets.event_data import mapping, text_of
from agno_lark.targets.follow import follow
from agno_lark.targets.local_media import agno_media, continue_arguments
from agno_lark.targets.protocol import (
    TERMINAL_STATES,
    CancelOutcome,
    FaultReason,
    FollowLimits,
    FollowStart,
    RunEvent,
    RunRequest,
    RunSnapshot,
    RunState,
    Target,
    TargetInfo,
    TargetType,
)
from agno_lark.targets.remote import RemoteTarget
from agno_lark.targets.run_view import RunView, ending, fold
from agno_lark.targets.snapshots import run_snapshot, snapshot_event

__all__ = ["LocalTarget", "target_for", "type_of"]

logger = logging.getLogger(__name__)

_KEPT_RUNS = 200


def type_of(component: object) -> TargetType:
    """What kind of agno object this is. Raises TypeError for anything else. Imports agno."""
    from agno.agent import Agent, RemoteAgent
    from agno.team import RemoteTeam, Team
    from agno.workflow import RemoteWorkflow, Workflow

    kinds: tuple[tuple[tuple[type, ...], TargetType], ...] = (
        ((Agent, RemoteAgent), TargetType.AGENT),
        ((Team, RemoteTeam), TargetType.TEAM),
        ((Workflow, RemoteWorkflow), TargetType.WORKFLOW),
    )
    for classes, target_type in kinds:
        if isinstance(component, classes):
            return target_type
    raise TypeError(f"an Agent, Team or Workflow of agno (or a Remote one) is needed, not {type(component).__name__}")


def target_for(component: Any, *, token: str = "", limits: FollowLimits | None = None) -> Target:
    """The Target for an agno object. A Remote* one on an AgentOS is spoken to over HTTP, so that it can be resumed;
    `token` is presented where it brings none of its own."""
    from agno.remote.base import BaseRemote

    target_type = type_of(component)
    if isinstance(component, BaseRemote) and getattr(component, "protocol", "agentos") == "agentos":
        return RemoteTarget(
            base_url=component.base_url,
            target_type=target_type,
            target_id=str(getattr(component, f"{target_type.value}_id")),
            token=token_of(component) or token,
            limits=limits,
        )
    return LocalTarget(component, limits=limits)


@dataclass(slots=True, kw_only=True)
class _Run:
    """A run of this process: what it has said so far, and who waits for more."""

    view: RunView
    session_id: str
    turn_id: str
    metadata: Mapping[str, Any]
    events: list[RunEvent] = field(default_factory=list)
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def rests(self) -> bool:
        """Nothing more comes unless somebody continues it."""
        return self.task is None or self.task.done()

    def say(self, name: str, data: Mapping[str, Any]) -> None:
        event = RunEvent(name=name, index=len(self.events), data=data)
        self.events.append(event)
        self.view = fold(self.view, event)
        self.wake()

    def wake(self) -> None:
        self.grown.set()
        self.grown = asyncio.Event()


class LocalTarget:
    """A `Target` around an agno object. All calls must come from one event loop."""

    def __init__(
        self,
        component: Any,
        *,
        limits: FollowLimits | None = None,
        clock: Clock | None = None,
        kept_runs: int = _KEPT_RUNS,
    ) -> None:
        self._component = component
        self._type = type_of(component)
        self._limits = limits or FollowLimits()
        self._clock = clock or SystemClock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._kept_runs = kept_runs

    @property
    def type(self) -> TargetType:
        return self._type

    @property
    def id(self) -> str:
        return text_of(getattr(self._component, "id", None)) or text_of(getattr(self._component, "name", None))

    @property
    def resumable(self) -> bool | None:
        return True

    async def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
        if request.attachments and self._type is TargetType.WORKFLOW:
            raise TargetError("workflows take no attachments", reason=FaultReason.INVALID)
        metadata = {**request.metadata, "turn_id": request.turn_id}
        source = self._fresh().arun(
            request.message,
            run_id=request.run_id,
            session_id=request.session_id,
            user_id=request.user_id,
            metadata=metadata,
            stream=True,
            stream_events=True,
            **agno_media(request.attachments),
        )
        run = _Run(
            view=RunView(run_id=request.run_id),
            session_id=request.session_id,
            turn_id=request.turn_id,
            metadata=metadata,
        )
        self._keep(request.run_id, run)
        self._start(run, source)
        async with aclosing(_tail(run, -1)) as events:
            async for event in events:
                yield event

    async def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
        run = self._runs.get(run_id)
        if run is not None:
            async with aclosing(_tail(run, after_index)) as events:
                async for event in events:
                    yield event
            return
        snapshot = await self.find(run_id, session_id)
        if snapshot is None:
            raise TargetError("this process knows no such run", reason=FaultReason.NOT_FOUND)
        if snapshot.state is RunState.RUNNING:
            raise TargetError("the run ended with the process it ran in", reason=FaultReason.LOST)
        yield snapshot_event(snapshot)

    async def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]:
        run = self._runs.get(run_id)
        if run is not None and not run.rests:
            raise TargetError("the run goes on already", reason=FaultReason.CONFLICT)
        arguments = continue_arguments(self._type, payload)
        if self._type is not TargetType.WORKFLOW:
            arguments["user_id"] = user_id
        source = self._fresh().acontinue_run(
            run_id=run_id, session_id=session_id, stream=True, stream_events=True, **arguments
        )
        if run is None:
            run = _Run(view=RunView(run_id=run_id), session_id=session_id, turn_id="", metadata={})
            self._keep(run_id, run)
        before = len(run.events) - 1
        self._start(run, source)
        async with aclosing(_tail(run, before)) as events:
            async for event in events:
                yield event

    async def follow(self, start: FollowStart) -> AsyncGenerator[RunEvent]:
        async with aclosing(follow(self, start, limits=self._limits, clock=self._clock)) as events:
            async for event in events:
                yield event

    async def cancel(self, run_id: str, session_id: str) -> CancelOutcome:
        run = self._runs.get(run_id)
        if run is None:
            known = await self.find(run_id, session_id)
            over = known is not None and known.state in TERMINAL_STATES
            return CancelOutcome.ALREADY_OVER if over else CancelOutcome.NOT_FOUND
        if run.view.is_over:
            return CancelOutcome.ALREADY_OVER
        await self._component.acancel_run(run_id)
        return CancelOutcome.REQUESTED

    async def find(self, run_id: str, session_id: str) -> RunSnapshot | None:
        run = self._runs.get(run_id)
        if run is not None:
            return _snapshot(run)
        if getattr(self._component, "db", None) is None:
            return None
        stored = await self._component.aget_run_output(run_id=run_id, session_id=session_id)
        return None if stored is None else run_snapshot(stored.to_dict(), session_id)

    async def find_by_turn(self, session_id: str, turn_id: str) -> RunSnapshot | None:
        for run in reversed(self._runs.values()):
            if run.session_id == session_id and run.turn_id == turn_id:
                return _snapshot(run)
        if getattr(self._component, "db", None) is None:
            return None
        session = await self._component.aget_session(session_id=session_id)
        for stored in reversed(getattr(session, "runs", None) or []):
            if mapping(getattr(stored, "metadata", None)).get("turn_id") == turn_id:
                return run_snapshot(stored.to_dict(), session_id)
        return None

    async def attaches(self) -> bool:
        """Never: a second submission is a second run."""
        return False

    async def describe(self) -> TargetInfo:
        return TargetInfo(
            type=self._type,
            id=self.id,
            name=text_of(getattr(self._component, "name", None)) or self.id,
            address="this process",
            durable_queue=False,
            resumable=True,
            reachable=True,
            note="a run ends with this process",
        )

    async def aclose(self) -> None:
        """Ends the runs that are still going."""
        tasks = [run.task for run in self._runs.values() if run.task is not None and not run.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _fresh(self) -> Any:
        """A copy for one run, as AgentOS makes one for each request: runs side by side must not share state."""
        copy = getattr(self._component, "deep_copy", None)
        return self._component if copy is None else copy()

    def _keep(self, run_id: str, run: _Run) -> None:
        self._runs[run_id] = run
        resting = [key for key, kept in self._runs.items() if kept.rests and kept is not run]
        for key in resting[: max(0, len(self._runs) - self._kept_runs)]:
            del self._runs[key]

    def _start(self, run: _Run, source: Any) -> None:
        run.task = asyncio.create_task(self._carry(run, source), name=f"local-run-{run.view.run_id}")

    async def _carry(self, run: _Run, source: Any) -> None:
        try:
            if inspect.isawaitable(source):
                source = await source
            async for event in source:
                name = text_of(getattr(event, "event", None))
                if name:
                    run.say(name, event.to_dict())
            if not run.view.is_over and run.view.state is not RunState.PAUSED:
                run.say("RunError", {"run_id": run.view.run_id, "content": "the run ended without a result"})
        except asyncio.CancelledError:
            run.say("RunCancelled", {"run_id": run.view.run_id, "reason": "this process is stopping"})
            raise
        except Exception as error:  # noqa: BLE001 - whatever a foreign agent raises is the run's error, not ours
            logger.warning("a local run failed", extra={"action": "run.failed", "error": type(error).__name__})
            run.say("RunError", {"run_id": run.view.run_id, "content": str(error), "error_type": type(error).__name__})
        finally:
            run.task = None
            run.wake()


async def _tail(run: _Run, after_index: int) -> AsyncGenerator[RunEvent]:
    """What the run has said after `after_index`, and what it says until it rests."""
    at = after_index + 1
    while True:
        grown = run.grown
        while at < len(run.events):
            event = run.events[at]
            at += 1
            yield event
            if ending(event, run.view.run_id) is not None and at == len(run.events):
                return
        if run.rests:
            return
        if at >= len(run.events):
            await grown.wait()


def _snapshot(run: _Run) -> RunSnapshot:
    view = run.view
    return RunSnapshot(
        run_id=view.run_id, session_id=run.session_id, state=view.state, content=view.text, metadata=run.metadata
    )
