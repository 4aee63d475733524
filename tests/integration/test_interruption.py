"""FEISHU_PRIVATE_INTERRUPT: in a direct chat a newer message stops the run that still answers an older one."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agno_lark.sandbox.records import Shown
from agno_lark.targets import FollowStart, RunEvent, RunRequest
from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import MARTA, PlayedTarget, answer, bridge_on, hang

MESSAGES = "im.message.receive_v1"


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


class Slow(PlayedTarget):
    """Begins to answer "slow …" and goes on only when it is let; answers all else at once."""

    def __init__(self) -> None:
        super().__init__(self.by_words)
        self.let = asyncio.Event()
        self.silent = False  # nothing at all is heard of a slow one

    async def by_words(self, start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        if not start.message.startswith("slow"):
            async for event in answer(start, f"answer to {start.message}"):
                yield event
            return
        if self.silent:
            await self.let.wait()
        yield RunEvent(name="RunStarted", index=0, data={"run_id": start.run_id})
        yield RunEvent(name="RunContent", index=1, data={"run_id": start.run_id, "content": "as far as this"})
        await self.let.wait()
        yield RunEvent(name="RunContent", index=2, data={"run_id": start.run_id, "content": ", too late"})
        yield RunEvent(name="RunCompleted", index=3, data={"run_id": start.run_id})


def shown(feishu: FeishuSandbox, chat: str, text: str) -> Shown | None:
    return next((each for each in feishu.from_bot(chat) if text in each.text and not each.streaming), None)


async def test_the_newer_message_is_answered_and_the_older_card_says_why_it_stopped(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    target, chat = Slow(), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True) as bridge:
        await feishu.write(MARTA, chat, "slow one")
        await feishu.until(lambda _: any("as far as this" in each.text for each in feishu.from_bot(chat)))
        await feishu.write(MARTA, chat, "quick one")
        await feishu.until(lambda _: shown(feishu, chat, "answer to quick one"))
        old = await saw(feishu, chat, "Stopped for your newer message.")
        assert "as far as this" in old.text, "what was shown stays"
        assert "Stop" not in old.text.split()
        await feishu.until(lambda _: target.cancels == [target.submissions[0].run_id])
        target.let.set()  # its end comes too late: nobody listens any more
        await asyncio.sleep(0.1)
        assert not shown(feishu, chat, "too late")
        found = await bridge.whereabouts(target.submissions[0].turn_id)
    assert found is not None
    assert (found["where"], found["job"]["error"]) == ("cancelled", "superseded")
    assert len(feishu.from_bot(chat)) == 2


async def test_a_run_nobody_has_heard_of_yet_becomes_unknown_never_queued(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    target, chat = Slow(), feishu.direct_chat(MARTA)
    target.silent = True
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True) as bridge:
        await feishu.write(MARTA, chat, "slow one")
        await feishu.until(lambda _: target.starts)
        await feishu.write(MARTA, chat, "quick one")
        await feishu.until(lambda _: shown(feishu, chat, "answer to quick one"))
        old = await saw(feishu, chat, "before it could be told whether")
        assert "Ask again" in old.text
        found = await bridge.whereabouts(target.submissions[0].turn_id)
        assert found is not None
        assert found["where"] == "unknown"
        await feishu.press(MARTA, old.message_id, "Dismiss")
        await feishu.until(lambda _: shown(feishu, chat, "Left as it is."))
    assert len(target.submissions) == 2


async def test_without_the_setting_nothing_is_interrupted(feishu: FeishuSandbox, tmp_path: Path) -> None:
    target, chat = Slow(), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "slow one")
        await feishu.until(lambda _: target.starts)
        await feishu.write(MARTA, chat, "quick one")
        await feishu.until(lambda _: jobs_of(feishu))
        target.let.set()
        await feishu.until(lambda _: shown(feishu, chat, "answer to quick one"))
    assert shown(feishu, chat, "too late")
    assert not target.cancels


async def test_what_an_app_sends_waits_for_its_turn(feishu: FeishuSandbox, tmp_path: Path) -> None:
    target, chat = Slow(), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True, feishu_allow_bots=True):
        await feishu.write(MARTA, chat, "slow one")
        await feishu.until(lambda _: target.starts)
        feishu.deliveries.post_raw(by_an_app(feishu, chat, "quick one"))
        await feishu.until(lambda _: jobs_of(feishu) >= 2)
        target.let.set()
        await feishu.until(lambda _: len(target.submissions) == 2)
    assert shown(feishu, chat, "too late")
    assert not target.cancels


async def test_a_restart_in_between_shows_both_ends_once(feishu: FeishuSandbox, tmp_path: Path) -> None:
    target, chat = Slow(), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True):
        await feishu.write(MARTA, chat, "slow one")
        await feishu.until(lambda _: any("as far as this" in each.text for each in feishu.from_bot(chat)))
        feishu.faults.fail("/open-apis/cardkit/v1/cards/*", times=None, status=500, code=2200)
        feishu.faults.fail("/open-apis/im/v1/*", times=None, status=500, code=2200)
        await feishu.write(MARTA, chat, "quick one")
        await feishu.until(lambda _: target.cancels)
    feishu.faults.clear()
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True):
        await feishu.until(lambda _: shown(feishu, chat, "answer to quick one"), within_s=15)
        await feishu.until(lambda _: shown(feishu, chat, "Stopped for your newer message."), within_s=15)
    assert len(feishu.from_bot(chat)) == 2
    assert len(target.submissions) == 2


async def test_a_hanging_run_does_not_hold_the_stop_up(feishu: FeishuSandbox, tmp_path: Path) -> None:
    target, chat = PlayedTarget(hang), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True):
        for number in range(1, 6):
            await feishu.write(MARTA, chat, f"question {number}")
            await submitted(feishu, target, number)
        target.play = answer
        await feishu.write(MARTA, chat, "the last one")
        await feishu.until(lambda _: shown(feishu, chat, "the answer"))
        await feishu.until(
            lambda _: sum("for your newer message" in each.text for each in feishu.from_bot(chat)) == 5, within_s=10
        )
    assert [each.message for each in target.submissions][-1] == "the last one"


async def saw(feishu: FeishuSandbox, chat: str, text: str) -> Shown:
    found = await feishu.until(lambda _: shown(feishu, chat, text))
    assert found is not None
    return found


async def submitted(feishu: FeishuSandbox, target: PlayedTarget, count: int) -> None:
    await feishu.until(lambda _: len(target.submissions) == count)


def jobs_of(feishu: FeishuSandbox) -> int:
    """How many messages were acknowledged."""
    parcels = [parcel for parcel in feishu.deliveries.parcels.values() if parcel.event_type == MESSAGES]
    return sum(str(parcel.state) == "acked" for parcel in parcels)


def by_an_app(feishu: FeishuSandbox, chat: str, text: str) -> dict[str, Any]:
    (parcel, *_) = [each for each in feishu.deliveries.parcels.values() if each.event_type == MESSAGES]
    body: dict[str, Any] = json.loads(parcel.payload)
    body["header"]["event_id"] = "by-an-app"
    body["event"]["sender"]["sender_type"] = "app"
    body["event"]["message"] |= {"message_id": "om_of_an_app", "content": json.dumps({"text": text})}
    return body
