"""Commands while the AgentOS is down: they are answered, and the wish to stop is not forgotten."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agno_lark.commands import handle
from agno_lark.errors import TargetError
from agno_lark.targets import CancelOutcome, FaultReason
from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import MARTA, PlayedTarget, bridge_on, hang
from tests.bridge_fixtures import answer_to


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


def down() -> CancelOutcome:
    raise TargetError("down", reason=FaultReason.UNREACHABLE, retryable=True)


async def test_a_command_behind_cancel_is_answered_while_the_agentos_is_down(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    target, chat = PlayedTarget(hang), feishu.direct_chat(MARTA)
    target.cancel_answer = down
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: feishu.from_bot(chat))
        await feishu.write(MARTA, chat, "/cancel")
        await answer_to(feishu, chat, after=1)
        await feishu.write(MARTA, chat, "/status")
        assert "Status" in str((await answer_to(feishu, chat, after=2, within_s=3)).card)


async def test_the_wish_to_stop_is_kept_until_the_agentos_can_be_asked(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "CANCEL_WAIT_S", 0.001)
    monkeypatch.setattr(handle, "CANCEL_AGAIN_MS", 50)
    target, chat = PlayedTarget(hang), feishu.direct_chat(MARTA)
    target.cancel_answer = down
    async with bridge_on(feishu, target, tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: feishu.from_bot(chat))
        await feishu.press(MARTA, feishu.from_bot(chat)[0].message_id, "Stop")
        await feishu.until(lambda _: len(target.cancels) > handle.CANCEL_TRIES)
        target.cancel_answer = lambda: CancelOutcome.REQUESTED
        assert bridge._runner is not None
        finished = bridge._runner.finished
        await feishu.until(lambda _: finished.get("stop_run.done"))
