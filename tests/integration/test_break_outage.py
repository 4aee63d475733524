"""Feishu is away when an answer is ready: the answer waits for it, and across a restart."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from agno_lark.replies import outbox
from agno_lark.targets import FollowStart, RunEvent
from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import MARTA, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to

CARD = "/open-apis/cardkit/v1/cards/*"
CARDS = "/open-apis/cardkit/v1/cards"


@pytest.fixture
async def feishu(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FeishuSandbox]:
    monkeypatch.setattr(outbox, "WAITS_MS", (10, 20))
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


async def test_an_answer_outlives_an_outage_that_is_longer_than_the_first_tries(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    chat = feishu.direct_chat(MARTA)

    async def then_feishu_fails(start: FollowStart) -> AsyncGenerator[RunEvent]:
        await feishu.until(lambda _: feishu.from_bot(chat))
        feishu.faults.fail(CARD, times=10, status=500, code=2200)
        async for event in answer(start):
            yield event

    async with bridge_on(feishu, PlayedTarget(then_feishu_fails), tmp_path):
        await feishu.write(MARTA, chat, "hello")
        shown = await answer_to(feishu, chat, within_s=40)
    assert "the answer" in shown.text
    assert len(feishu.from_bot(chat)) == 1


async def test_an_answer_that_could_not_be_shown_before_a_stop_is_shown_after_the_start(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    chat, target = feishu.direct_chat(MARTA), PlayedTarget(answer)
    feishu.faults.fail(CARDS, times=999, status=500, code=2200)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: target.starts)
    feishu.faults.clear()
    assert not feishu.from_bot(chat)
    async with bridge_on(feishu, target, tmp_path):
        shown = await answer_to(feishu, chat)
    assert "the answer" in shown.text
    assert len(target.starts) == 1, "the answer was kept: nobody has to ask the AgentOS again"


async def test_a_stop_while_the_card_is_on_its_way_leaves_nothing_waiting(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    feishu.faults.latency(CARDS, 30)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path):
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        await feishu.until(lambda _: waiting())
    await asyncio.sleep(0)
    assert not waiting()


def waiting() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("card-opened")]
