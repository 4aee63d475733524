"""A gateway before the AgentOS that loses a submission's answer: the run is looked for, never begun twice."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from agno_lark.errors import TargetError
from agno_lark.targets import FaultReason, FollowStart, RunEvent, RunRef, RunSnapshot, RunState, TargetInfo
from agno_lark.testing import FeishuSandbox
from agno_lark.turns import handle
from tests.break_fixtures import MARTA, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to


@pytest.fixture
async def feishu(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FeishuSandbox]:
    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.01)
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


class Behind(PlayedTarget):
    """Behind a gateway that answers so many submissions with `status`; `knows` says what it tells of the run."""

    def __init__(self, status: int, *, knows: str, durable: bool = False, times: int = 99) -> None:
        super().__init__(self.through)
        self.status, self.knows, self.durable, self.times = status, knows, durable, times

    async def through(self, start: FollowStart) -> AsyncGenerator[RunEvent]:
        if not isinstance(start, RunRef) and self.times > 0:
            self.times -= 1
            raise TargetError(f"HTTP {self.status}", reason=FaultReason.SERVER_ERROR, http_status=self.status)
        async for event in answer(start):
            yield event

    async def find(self, run_id: str, session_id: str) -> RunSnapshot | None:
        if self.knows == "cannot be asked":
            raise TargetError("HTTP 502", reason=FaultReason.SERVER_ERROR, http_status=502, retryable=True)
        run = RunSnapshot(run_id=run_id, session_id=session_id, state=RunState.RUNNING)
        return run if self.knows == "the run" else None

    async def describe(self) -> TargetInfo:
        return TargetInfo(
            type=self.type, id=self.id, name="x", address="here", reachable=True, durable_queue=self.durable
        )


@pytest.mark.parametrize(("times", "says"), [(1, "the answer"), (2, "had an internal error")])
async def test_what_twice_is_not_there_has_not_arrived_and_is_sent_once_more_and_no_further(
    feishu: FeishuSandbox, tmp_path: Path, times: int, says: str
) -> None:
    target, chat = Behind(502, knows="nothing", times=times), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        shown = await answer_to(feishu, chat)
    assert says in shown.text
    assert len({(start.run_id, start.turn_id) for start in target.submissions}) == 1
    assert len(target.submissions) == 2


@pytest.mark.parametrize(
    ("status", "knows", "durable", "says"),
    [
        (504, "the run", False, "the answer"),
        (504, "nothing", True, "cannot tell whether the agent got it"),
        (502, "cannot be asked", False, "cannot tell whether the agent got it"),
        (500, "the run", False, "had an internal error"),
        (503, "the run", False, "had an internal error"),
    ],
)
async def test_what_a_gateway_lost_is_looked_for_and_never_sent_twice(
    feishu: FeishuSandbox, tmp_path: Path, status: int, knows: str, durable: bool, says: str
) -> None:
    target, chat = Behind(status, knows=knows, durable=durable), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        shown = await answer_to(feishu, chat)
    assert says in shown.text
    assert len(target.submissions) == 1
    assert len(feishu.from_bot(chat)) == 1
