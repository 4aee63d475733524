"""A target that does as a test says, and bridges on it: for what a real AgentOS does only on a bad day."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from agno_lark.app import Bridge
from agno_lark.clock import Clock, SystemClock
from agno_lark.settings import Settings
from agno_lark.targets import (
    CancelOutcome,
    FollowStart,
    RunEvent,
    RunRef,
    RunRequest,
    RunSnapshot,
    TargetInfo,
    TargetType,
)
from agno_lark.testing import FeishuSandbox

MARTA, TOM = "Marta Weiss", "Tom Okafor"

type Script = Callable[[FollowStart], AsyncGenerator[RunEvent]]


class LaterClock(SystemClock):
    """The machine's clock, so many seconds later: what Feishu dates now was long ago for the bridge."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def now_ms(self) -> int:
        return super().now_ms() + int(self.seconds * 1000)


class PlayedTarget:
    """`play(start)` makes each run's events; `starts` are the follows asked for, `cancels` the run ids."""

    type = TargetType.AGENT
    id = "played"

    def __init__(self, play: Script) -> None:
        self.play = play
        self.starts: list[FollowStart] = []
        self.cancels: list[str] = []
        self.cancel_answer: Callable[[], CancelOutcome] = lambda: CancelOutcome.REQUESTED

    @property
    def submissions(self) -> list[RunRequest]:
        return [start for start in self.starts if isinstance(start, RunRequest)]

    async def follow(self, start: FollowStart) -> AsyncGenerator[RunEvent]:
        self.starts.append(start)
        async for event in self.play(start):
            yield event

    def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
        return self.follow(request)

    def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
        return self.follow(RunRef(run_id=run_id, session_id=session_id, after_index=after_index))

    def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]:
        raise NotImplementedError

    async def cancel(self, run_id: str, session_id: str) -> CancelOutcome:
        self.cancels.append(run_id)
        return self.cancel_answer()

    async def find(self, run_id: str, session_id: str) -> RunSnapshot | None:
        return None

    async def find_by_turn(self, session_id: str, turn_id: str) -> RunSnapshot | None:
        return None

    async def describe(self) -> TargetInfo:
        return TargetInfo(type=self.type, id=self.id, name="Played", address="here", reachable=True)

    async def aclose(self) -> None:
        return None


async def answer(start: FollowStart, text: str = "the answer") -> AsyncGenerator[RunEvent]:
    """A run that answers at once."""
    run_id = start.run_id if isinstance(start, RunRequest | RunRef) else ""
    yield RunEvent(name="RunStarted", index=0, data={"run_id": run_id})
    yield RunEvent(name="RunCompleted", index=1, data={"run_id": run_id, "content": text})


async def hang(start: FollowStart) -> AsyncGenerator[RunEvent]:
    """A run that begins and never ends."""
    run_id = start.run_id if isinstance(start, RunRequest | RunRef) else ""
    yield RunEvent(name="RunStarted", index=0, data={"run_id": run_id})
    await asyncio.sleep(600)


def played_settings(feishu: FeishuSandbox, folder: Path, **more: Any) -> Settings:
    values: dict[str, Any] = {
        "feishu_app_id": feishu.app_id,
        "feishu_app_secret": feishu.app_secret,
        "lark_api_base_url": feishu.url,
        "feishu_state_db": folder / "state.sqlite3",
        "bridge_drain_timeout": 0.1,
    }
    return Settings.given(**values | more)


@contextlib.asynccontextmanager
async def bridge_on(
    feishu: FeishuSandbox, target: PlayedTarget, folder: Path, *, clock: Clock | None = None, **more: Any
) -> AsyncIterator[Bridge]:
    """A running bridge that is connected."""
    bridge = Bridge(played_settings(feishu, folder, **more), target, clock=clock)
    async with bridge.running():
        await feishu.until(lambda _: bridge.is_ready(), within_s=10)
        yield bridge
