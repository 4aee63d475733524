"""Runs whose end nobody will ever tell: the person is told so, and the conversation goes on."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from agno_lark.targets import FollowStart, RunEvent, RunRequest, TargetInfo
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


class Forgetful(PlayedTarget):
    """A target that keeps no runs, as an agent without a database does."""

    async def describe(self) -> TargetInfo:
        return replace(await super().describe(), resumable=False)


async def silent(start: FollowStart) -> AsyncGenerator[RunEvent]:
    await asyncio.sleep(600)
    yield RunEvent(name="never")


async def test_what_was_handed_to_a_target_that_keeps_no_runs_is_not_handed_over_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.05)
    async with FeishuSandbox() as feishu:
        target = Forgetful(silent)
        chat = feishu.direct_chat(MARTA)
        async with bridge_on(feishu, target, tmp_path):
            await feishu.write(MARTA, chat, "first")
            await feishu.until(lambda _: target.submissions and feishu.from_bot(chat))
        async with bridge_on(feishu, target, tmp_path):
            shown = await answer_to(feishu, chat)
    assert "Outcome unknown" in shown.text
    assert len(target.submissions) == 1
