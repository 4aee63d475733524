"""Turns on a bad day: a run is never begun a second time on a guess, and a full disk does not end one that goes on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agno_lark.clock import SystemClock
from agno_lark.errors import StoreError, TargetError
from agno_lark.store import Tx
from agno_lark.targets import FaultReason, FollowLimits, FollowStart, RunEvent, RunRef, RunRequest, TargetInfo
from agno_lark.targets.follow import follow
from agno_lark.testing import FeishuSandbox
from agno_lark.turns import handle, rows
from tests.break_fixtures import MARTA, TOM, PlayedTarget, answer, bridge_on, hang
from tests.bridge_fixtures import answer_to


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


async def refused(*errors: TargetError) -> AsyncGenerator[RunEvent]:
    for error in errors:
        raise error
    for event in list[RunEvent]():
        yield event


async def test_a_run_that_had_begun_and_is_gone_after_a_restart_is_not_begun_again(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.01)
    target, chat = PlayedTarget(hang), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path) as bridge:
        await feishu.write(MARTA, chat, "book the flight")
        await feishu.until(lambda _: target.starts)
        await feishu.until(lambda _: feishu.from_bot(chat))
        store = bridge._store
        assert store is not None
        while not await store.read("SELECT 1 FROM runs WHERE state = 'running'"):
            pass
    target.play = answer
    async with bridge_on(feishu, target, tmp_path):
        shown = await answer_to(feishu, chat)
    assert len(target.submissions) == 1, "the flight would be booked twice"
    assert "cannot be picked up again" in shown.text
    assert len(feishu.from_bot(chat)) == 1


@pytest.mark.parametrize("noted", ["at the stop", "on the way"])
async def test_what_was_seen_of_a_run_stays_on_its_card_when_both_ends_of_it_die(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: str
) -> None:
    async def half(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        yield RunEvent(name="RunStarted", index=0, data={"run_id": start.run_id})
        for index, text in enumerate(("as far ", "as this"), 1):
            yield RunEvent(name="RunContent", index=index, data={"run_id": start.run_id, "content": text})
        await asyncio.sleep(600)

    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.01)
    if noted == "on the way":
        monkeypatch.setattr(handle, "SEEN_EVERY_S", 0.0)
    target, chat = PlayedTarget(half), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path) as bridge:
        await feishu.write(MARTA, chat, "tell me everything")
        await feishu.until(lambda _: any("as far as this" in shown.text for shown in feishu.from_bot(chat)))
        assert bridge._store is not None
        kept = "SELECT 1 FROM runs WHERE seen LIKE '%as far as this%'"
        async with asyncio.timeout(10):
            while noted == "on the way" and not await bridge._store.read(kept):
                await asyncio.sleep(0.01)
        assert bool(await bridge._store.read(kept)) is (noted == "on the way")
    async with bridge_on(feishu, target, tmp_path) as bridge:
        shown = await answer_to(feishu, chat)
        assert bridge._store is not None
        assert not await bridge._store.read("SELECT 1 FROM runs WHERE seen IS NOT NULL")
    assert "as far as this" in shown.text
    assert "cannot be picked up again" in shown.text


async def test_an_unknown_outcome_of_a_run_that_had_begun_keeps_its_words_also_when_it_is_decided(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KeepsNoRuns(PlayedTarget):
        async def describe(self) -> TargetInfo:
            return replace(await super().describe(), resumable=False)

    async def half(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        yield RunEvent(name="RunStarted", index=0, data={"run_id": start.run_id})
        yield RunEvent(name="RunContent", index=1, data={"run_id": start.run_id, "content": "as far as this"})
        await asyncio.sleep(600)

    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.01)
    target, chat = KeepsNoRuns(half), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "tell me everything")
        await feishu.until(lambda _: any("as far as this" in shown.text for shown in feishu.from_bot(chat)))
    async with bridge_on(feishu, target, tmp_path):
        asked = await answer_to(feishu, chat)
        await feishu.press(MARTA, asked.message_id, "Dismiss")
        await feishu.until(lambda _: "Left as it is." in feishu.from_bot(chat)[0].text)
        (decided,) = feishu.from_bot(chat)
    for shown in (asked, decided):
        assert "as far as this" in shown.text
        assert "had begun to answer" in shown.text
    assert len(target.submissions) == 1


@pytest.mark.parametrize(("times", "says"), [(2, "the answer"), (99, "cannot be reached")])
async def test_an_agentos_that_is_being_restarted_is_waited_for_a_moment(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, says: str
) -> None:
    monkeypatch.setattr(handle, "UNREACHABLE_AGAIN_S", 0.05)
    monkeypatch.setattr(handle, "UNREACHABLE_S", 0.5)
    away = [TargetError("away", reason=FaultReason.UNREACHABLE)] * times
    target = PlayedTarget(lambda start: refused(away.pop()) if away else answer(start))
    chat = feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        assert says in (await answer_to(feishu, chat)).text
    assert len({start.run_id for start in target.submissions}) == 1


async def test_a_turn_that_waits_for_its_agentos_can_be_stopped(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "UNREACHABLE_AGAIN_S", 0.05)
    target = PlayedTarget(lambda start: refused(TargetError("away", reason=FaultReason.UNREACHABLE)))
    chat = feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: feishu.from_bot(chat) and len(target.starts) >= 2)
        await feishu.press(MARTA, feishu.from_bot(chat)[0].message_id, "Stop")
        assert "Stopped before there was an answer" in (await answer_to(feishu, chat)).text


async def test_a_lost_submission_is_not_sent_again_under_another_persons_name(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    """In a shared conversation a 404 to the submission itself means "another one's session"; a later 404 does not."""
    target, chat = PlayedTarget(answer), feishu.world.chat("Team").chat_id

    class Lost(PlayedTarget):
        resumable = True

        async def attaches(self) -> bool:
            return False

        def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
            return refused(TargetError("cut", reason=FaultReason.INTERRUPTED, retryable=True))

        def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
            return refused(TargetError("gone", reason=FaultReason.NOT_FOUND, http_status=404))

    async with bridge_on(feishu, target, tmp_path, feishu_group_session_mode="shared"):
        await feishu.write(TOM, chat, "hello", mention_bot=True)
        await answer_to(feishu, chat)
        limits = FollowLimits(run_timeout_s=5, backoff_first_s=0.01, backoff_max_s=0.02, missing_grace_s=0.05)
        target.play = lambda start: follow(Lost(answer), start, limits=limits, clock=SystemClock())
        await feishu.write(MARTA, chat, "book the flight", mention_bot=True)
        shown = await answer_to(feishu, chat, after=1)
    assert [request.message for request in target.submissions] == ["hello", "book the flight"]
    assert "cannot tell whether" in shown.text, "and not that there is no such agent"


async def test_a_run_that_vanishes_in_the_middle_is_not_told_as_a_wrong_setting(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    async def vanish(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        yield RunEvent(name="RunContent", index=0, data={"run_id": start.run_id, "content": "The flight"})
        raise TargetError("gone", reason=FaultReason.NOT_FOUND, http_status=404)

    async with bridge_on(feishu, PlayedTarget(vanish), tmp_path):
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "book the flight")
        shown = await answer_to(feishu, feishu.direct_chat(MARTA))
    assert "The flight" in shown.text
    assert "AGENTOS_TARGET_ID" not in shown.text


async def test_a_disk_that_is_full_for_a_moment_does_not_end_a_run_that_goes_on(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    mark: Callable[[Tx, str, str], bool] = rows.mark_running

    def full_at_first(tx: Tx, turn_id: str, run_id: str) -> bool:
        told.append(run_id)
        if len(told) == 1:
            raise StoreError("the disk is full")
        return mark(tx, turn_id, run_id)

    monkeypatch.setattr(rows, "mark_running", full_at_first)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path):
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        shown = await answer_to(feishu, feishu.direct_chat(MARTA))
    assert "the answer" in shown.text
    assert "Done" in shown.text
    assert len(told) == 2


async def test_a_turn_that_was_being_stopped_says_so_after_a_restart(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, chat = PlayedTarget(hang), feishu.direct_chat(MARTA)

    async def found(run_id: str, session_id: str) -> Any:
        return RunRef(run_id=run_id, session_id=session_id)

    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: feishu.from_bot(chat))
        await feishu.press(MARTA, feishu.from_bot(chat)[0].message_id, "Stop")
        await feishu.until(lambda _: target.cancels)
    monkeypatch.setattr(target, "find", found)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.until(lambda _: len(target.starts) == 2)
        await feishu.until(lambda _: "Stopping" in feishu.from_bot(chat)[0].text)
        await feishu.until(lambda _: len(target.cancels) >= 2)
