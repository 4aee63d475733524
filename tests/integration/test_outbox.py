"""The outbox on the sandbox: what was decided is seen, once, whatever Feishu says first, and over restarts."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from agno_lark.app import Bridge
from agno_lark.replies import outbox
from agno_lark.targets import FollowStart, RunEvent, RunRequest
from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import MARTA, LaterClock, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to

CARD = "/open-apis/cardkit/v1/cards/*"
CARDS = "/open-apis/cardkit/v1/cards"
REPLY = "/open-apis/im/v1/messages/*/reply"


@pytest.fixture
async def feishu(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FeishuSandbox]:
    monkeypatch.setattr(outbox, "WAITS_MS", (10, 20))
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


async def rows(bridge: Bridge, sql: str) -> list[tuple[object, ...]]:
    assert bridge._store is not None
    return [tuple(row) for row in await bridge._store.read(sql)]


async def emptied(bridge: Bridge) -> None:
    """Wait until nothing is left to be confirmed."""
    async with asyncio.timeout(10):
        while await rows(bridge, "SELECT 1 FROM outbox"):
            await asyncio.sleep(0.02)


async def echo(start: FollowStart) -> AsyncGenerator[RunEvent]:
    assert isinstance(start, RunRequest)
    async for event in answer(start, f"answer to {start.message}"):
        yield event


async def test_the_lane_does_not_wait_for_feishu_and_answers_keep_their_order(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    target, chat = PlayedTarget(echo), feishu.direct_chat(MARTA)
    feishu.faults.fail(REPLY, times=None, status=500, code=2200)
    async with bridge_on(feishu, target, tmp_path) as bridge:
        for number in range(3):
            await feishu.write(MARTA, chat, f"question {number}")
        await feishu.until(lambda _: len(target.submissions) == 3, within_s=10)
        async with asyncio.timeout(10):
            while len(await rows(bridge, "SELECT 1 FROM runs WHERE state = 'completed'")) < 3:
                await asyncio.sleep(0.02)
        assert len(await rows(bridge, "SELECT 1 FROM outbox")) == 3
        assert not feishu.from_bot(chat)
        feishu.faults.clear()
        await emptied(bridge)
        texts = [shown.text for shown in feishu.from_bot(chat)]
        assert [text.splitlines()[0] for text in texts] == [f"answer to question {number}" for number in range(3)]
        confirmed = await rows(bridge, "SELECT replied_ms FROM runs ORDER BY seq")
        assert confirmed == sorted(confirmed), "one conversation's answers are completed in their order"


async def test_the_card_of_the_next_turn_does_not_stand_above_an_answer_that_was_refused_for_a_while(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    chat = feishu.direct_chat(MARTA)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path):
        one = await feishu.write(MARTA, chat, "one")
        feishu.faults.fail(f"/open-apis/im/v1/messages/{one.message_id}/reply", times=6, status=500)
        asked = [one.message_id, (await feishu.write(MARTA, chat, "two")).message_id]
        await answer_to(feishu, chat, after=1, within_s=30)
    assert [shown.parent_id for shown in feishu.from_bot(chat)] == asked


async def test_an_answer_waits_as_long_as_feishu_asks_for(feishu: FeishuSandbox, tmp_path: Path) -> None:
    chat = feishu.direct_chat(MARTA)
    rule = feishu.faults.fail(REPLY, times=9, status=429, code=99991400, headers={"x-ogw-ratelimit-reset": "1"})
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: rule.left is not None and rule.left <= 7, within_s=10)
        feishu.faults.clear()
        assert "the answer" in (await answer_to(feishu, chat)).text
        await emptied(bridge)


async def test_an_app_that_lacks_the_right_to_write_shows_its_answer_once_it_has_it(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    chat = feishu.direct_chat(MARTA)
    for path in (REPLY, CARDS, "/open-apis/im/v1/messages"):
        feishu.faults.fail(path, times=None, status=400, code=99991672)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        async with asyncio.timeout(10):
            while not await rows(bridge, "SELECT 1 FROM jobs WHERE kind = 'reply' AND attempts >= 2"):
                await asyncio.sleep(0.02)
        feishu.faults.clear()
        assert "the answer" in (await answer_to(feishu, chat)).text


async def test_where_the_bot_may_not_write_for_good_it_ends_as_failed_and_can_be_sent_again(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    from agno_lark.operate import retry_job
    from agno_lark.store import write_once

    chat = feishu.direct_chat(MARTA)
    feishu.faults.fail(REPLY, times=None, status=400, code=230002)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        message = await feishu.write(MARTA, chat, "hello")
        async with asyncio.timeout(10):
            while (found := await bridge.whereabouts(message.message_id)) is None or found["where"] != "failed":
                await asyncio.sleep(0.02)
        assert "could not be shown" in found["why"]
        reply = found["replies"][0]["id"]
    feishu.faults.clear()
    assert write_once(tmp_path / "state.sqlite3", 0, retry_job, reply, "once-more").startswith("done")
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await emptied(bridge)
        assert "the answer" in (await answer_to(feishu, chat)).text


async def test_a_send_whose_answer_was_lost_more_than_an_hour_ago_says_that_it_may_be_a_repetition(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    chat = feishu.direct_chat(MARTA)
    feishu.faults.fail(CARDS, times=None, status=400, code=200220)  # so that the answer is a message of its own
    feishu.faults.reset(REPLY, after_effect=True, times=None)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: feishu.from_bot(chat))
    feishu.faults.clear()
    feishu.advance(4000)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path, clock=LaterClock(4000)) as bridge:
        await emptied(bridge)
    first, second = feishu.from_bot(chat)
    assert "may have seen it already" not in first.text
    assert "may have seen it already" in second.text
    assert "the answer" in second.text


@pytest.mark.parametrize("after_effect", [False, True])
async def test_a_send_whose_answer_was_lost_is_repeated_within_the_hour_and_seen_once(
    feishu: FeishuSandbox, tmp_path: Path, after_effect: bool
) -> None:
    chat = feishu.direct_chat(MARTA)
    feishu.faults.fail(CARDS, times=None, status=400, code=200220)
    feishu.faults.reset(REPLY, after_effect=after_effect, times=6)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        await answer_to(feishu, chat)
        await emptied(bridge)
    assert len(feishu.from_bot(chat)) == 1


async def test_a_fault_of_our_own_in_rendering_still_lets_the_words_through(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agno_lark.jobs import runner
    from agno_lark.replies import writer

    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(writer, "final_parts", broken)
    monkeypatch.setattr(runner, "BACK_OFF_MS", (5,))
    chat = feishu.direct_chat(MARTA)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: any("the answer" in shown.text for shown in feishu.from_bot(chat)), within_s=10)
        await emptied(bridge)


async def test_commands_are_answered_through_it_too_and_in_order(feishu: FeishuSandbox, tmp_path: Path) -> None:
    chat = feishu.direct_chat(MARTA)
    feishu.faults.fail(REPLY, times=None, status=500, code=2200)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        for command in ("/help", "/new", "/cancel"):
            await feishu.write(MARTA, chat, command)
        async with asyncio.timeout(10):
            while len(await rows(bridge, "SELECT 1 FROM outbox")) < 3:
                await asyncio.sleep(0.02)
    feishu.faults.clear()
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await emptied(bridge)
    help_card, new_card, cancel_card = (shown.text for shown in feishu.from_bot(chat))
    assert "What you can do here" in help_card
    assert "new conversation begins" in new_card
    assert "Nothing is running here" in cancel_card


async def test_what_ends_while_the_bridge_stops_is_still_shown(feishu: FeishuSandbox, tmp_path: Path) -> None:
    chat, go_on = feishu.direct_chat(MARTA), asyncio.Event()

    async def waits(start: FollowStart) -> AsyncGenerator[RunEvent]:
        await go_on.wait()
        async for event in answer(start):
            yield event

    target = PlayedTarget(waits)
    async with bridge_on(feishu, target, tmp_path, bridge_drain_timeout=5):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: target.starts)
        asyncio.get_running_loop().call_later(0.2, go_on.set)
    (shown,) = feishu.from_bot(chat)
    assert "the answer" in shown.text
    assert not shown.streaming
