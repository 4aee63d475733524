"""A stop of a run whose AgentOS never tells an end: the person is told, and the conversation goes on."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agno_lark.targets import FollowStart, RunEvent, RunRequest
from agno_lark.testing import FeishuSandbox
from agno_lark.turns import handle
from tests.break_fixtures import MARTA, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to


async def test_a_stop_that_nobody_confirms_ends_after_a_while_and_the_next_message_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "STOP_GRACE_S", 0.4)
    async with FeishuSandbox() as feishu:
        target = PlayedTarget(dead_then_well)
        async with bridge_on(feishu, target, tmp_path):
            chat = feishu.direct_chat(MARTA)
            await feishu.write(MARTA, chat, "first")
            card = await feishu.until(lambda _: next((s for s in feishu.from_bot(chat) if "so far" in s.text), None))
            assert card is not None
            await feishu.write(MARTA, chat, "second")
            await asyncio.sleep(0.6)
            assert len(feishu.from_bot(chat)) == 1, "without a stop it is waited for"
            await feishu.press(MARTA, card.message_id, "Stop")
            shown = await answer_to(feishu, chat)
            assert "so far" in shown.text
            assert "may still be going on" in shown.text
            assert "the answer" in (await answer_to(feishu, chat, after=1)).text
            assert target.cancels


async def dead_then_well(start: FollowStart) -> AsyncGenerator[RunEvent]:
    if isinstance(start, RunRequest) and start.message == "first":
        yield RunEvent(name="RunStarted", index=0, data={"run_id": start.run_id})
        yield RunEvent(name="RunContent", index=1, data={"run_id": start.run_id, "content": "so far"})
        await asyncio.sleep(600)
    async for event in answer(start):
        yield event
