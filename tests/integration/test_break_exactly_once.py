"""One message, one answer: on rows nobody can read, hostile letters, long sleeps and cards of a former life."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agno_lark.app import Bridge
from agno_lark.jobs import runner
from agno_lark.replies import outbox
from agno_lark.targets import FollowStart, RunEvent, RunRequest
from agno_lark.testing import FeishuSandbox
from agno_lark.turns import handle
from tests.break_fixtures import MARTA, TOM, LaterClock, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to

CARD = "/open-apis/cardkit/v1/cards/*"
CARDS = "/open-apis/cardkit/v1/cards"
REPLY = "/open-apis/im/v1/messages/*/reply"
MESSAGES = "/open-apis/im/v1/messages"
HOUR_S = 3600


@pytest.fixture
async def feishu(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FeishuSandbox]:
    monkeypatch.setattr(outbox, "WAITS_MS", (10, 20))
    monkeypatch.setattr(runner, "BACK_OFF_MS", (5,))
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


async def rows(bridge: Bridge, sql: str) -> list[tuple[object, ...]]:
    assert bridge._store is not None
    return [tuple(row) for row in await bridge._store.read(sql)]


async def until_none(bridge: Bridge, sql: str) -> None:
    async with asyncio.timeout(15):
        while await rows(bridge, sql):
            await asyncio.sleep(0.02)


def write(folder: Path, *statements: str) -> None:
    """Into the state file, as another program would."""
    with closing(sqlite3.connect(folder / "state.sqlite3", isolation_level=None, timeout=10)) as connection:
        for statement in statements:
            connection.execute(statement)


async def left_behind(feishu: FeishuSandbox, folder: Path, chat: str, person: str) -> None:
    """A bridge that ended with an answer in its outbox."""
    feishu.faults.fail(REPLY, times=None, status=500, code=2200)
    async with bridge_on(feishu, PlayedTarget(answer), folder) as bridge:
        await feishu.write(person, chat, "hello")
        async with asyncio.timeout(10):
            while not await rows(bridge, "SELECT 1 FROM outbox"):
                await asyncio.sleep(0.02)
    feishu.faults.clear()


@pytest.mark.parametrize("where", ["text", "details"])
async def test_half_a_letter_in_what_an_agentos_says_costs_nobody_an_answer(
    feishu: FeishuSandbox, tmp_path: Path, where: str
) -> None:
    async def half(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        run = {"run_id": start.run_id}
        yield RunEvent(name="RunStarted", index=0, data=run)
        if where == "text":
            yield RunEvent(name="RunCompleted", index=1, data=run | {"content": "good \ud83d morning"})
        else:
            yield RunEvent(name="RunError", index=1, data=run | {"content": "bad \ud83d morning"})

    chat = feishu.direct_chat(MARTA)
    async with bridge_on(feishu, PlayedTarget(half), tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        shown = await answer_to(feishu, chat)
        await until_none(bridge, "SELECT 1 FROM jobs WHERE state IN ('queued', 'running')")
    assert "morning" in shown.text


@pytest.mark.parametrize("content", ['{"view": {"text": "the answer", "steps": 7}, "elapsed_ms": "x"}', "nothing", "7"])
async def test_an_answer_of_another_version_is_shown_as_far_as_it_can_be_read(
    feishu: FeishuSandbox, tmp_path: Path, content: str
) -> None:
    chat = feishu.direct_chat(MARTA)
    await left_behind(feishu, tmp_path, chat, MARTA)
    write(tmp_path, f"UPDATE outbox SET content = '{content}'")
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await until_none(bridge, "SELECT 1 FROM outbox")
    (shown,) = feishu.from_bot(chat)
    assert ("the answer" if "view" in content else "can no longer read it") in shown.text


@pytest.mark.parametrize("place", ["{}", "nothing"])
async def test_a_reply_nobody_can_read_keeps_nobody_else_waiting(
    feishu: FeishuSandbox, tmp_path: Path, place: str
) -> None:
    marta, tom = feishu.direct_chat(MARTA), feishu.direct_chat(TOM)
    await left_behind(feishu, tmp_path, marta, MARTA)
    write(tmp_path, f"UPDATE outbox SET place = '{place}'")
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await feishu.write(TOM, tom, "and me?")
        assert "the answer" in (await answer_to(feishu, tom)).text
        await until_none(bridge, "SELECT 1 FROM jobs WHERE state IN ('queued', 'running')")
        assert bridge.failure is None


@pytest.mark.parametrize(
    "damage",
    ["UPDATE runs SET state = 'dreaming'", "UPDATE jobs SET payload = '{\"text'", "UPDATE jobs SET payload = '[]'"],
)
async def test_a_turn_nobody_can_read_keeps_nobody_else_waiting(
    feishu: FeishuSandbox, tmp_path: Path, damage: str
) -> None:
    marta, tom = feishu.direct_chat(MARTA), feishu.direct_chat(TOM)
    target = PlayedTarget(answer)
    async with bridge_on(feishu, target, tmp_path) as bridge:
        assert bridge._runner is not None
        bridge._runner._stopping = True  # nothing is begun any more
        await feishu.write(MARTA, marta, "hello")
        async with asyncio.timeout(10):
            while not await rows(bridge, "SELECT 1 FROM runs"):
                await asyncio.sleep(0.02)
    write(tmp_path, damage)
    async with bridge_on(feishu, target, tmp_path) as bridge:
        await feishu.write(TOM, tom, "and me?")
        assert "the answer" in (await answer_to(feishu, tom)).text
        await until_none(bridge, "SELECT 1 FROM jobs WHERE state IN ('queued', 'running')")
    assert len(target.submissions) == 1


async def test_a_row_of_another_version_ends_no_bridge_that_tidies_up(feishu: FeishuSandbox, tmp_path: Path) -> None:
    chats = [feishu.direct_chat(person) for person in (MARTA, TOM)]
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        for person, chat in zip((MARTA, TOM), chats, strict=True):
            await feishu.write(person, chat, "hello")
            await answer_to(feishu, chat)
        await until_none(bridge, "SELECT 1 FROM runs WHERE replied_ms IS NULL OR reaction_id IS NOT NULL")
    write(tmp_path, "UPDATE runs SET reaction_id = 'r'", "UPDATE runs SET state = 'dreaming' WHERE seq > 1")
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await until_none(bridge, "SELECT 1 FROM runs WHERE state = 'completed' AND reaction_id IS NOT NULL")
        assert bridge.failure is None


async def test_an_answer_that_waited_for_days_is_not_given_up_at_the_first_refusal(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = feishu.direct_chat(MARTA)
    await left_behind(feishu, tmp_path, chat, MARTA)
    feishu.advance(50 * HOUR_S)
    monkeypatch.setattr(outbox, "WAITS_MS", (10,) * 8)
    rule = feishu.faults.fail(REPLY, times=8, status=500, code=2200)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path, clock=LaterClock(50 * HOUR_S)) as bridge:
        await feishu.until(lambda _: rule.left == 0, within_s=15)
        await until_none(bridge, "SELECT 1 FROM outbox")
    assert "the answer" in (await answer_to(feishu, chat)).text


@pytest.mark.parametrize("command", ["/help", "/status", "/new", "/cancel", "/retry", "/dismiss a b"])
async def test_a_command_is_answered_in_words_where_its_card_is_refused(
    feishu: FeishuSandbox, tmp_path: Path, command: str
) -> None:
    chat = feishu.direct_chat(MARTA)
    feishu.faults.fail(REPLY, times=1, status=400, code=230099)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        await feishu.write(MARTA, chat, command)
        await feishu.until(lambda _: feishu.from_bot(chat), within_s=10)
        await until_none(bridge, "SELECT 1 FROM outbox")
    (shown,) = feishu.from_bot(chat)
    assert shown.kind == "text"
    assert shown.text.strip()
    assert "&#" not in shown.text


async def test_a_card_whose_message_was_never_noted_does_not_run_for_ever_beside_its_answer(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    chat, go_on = feishu.direct_chat(MARTA), asyncio.Event()

    async def waits(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        run = {"run_id": start.run_id}
        yield RunEvent(name="RunStarted", index=0, data=run)
        await go_on.wait()
        yield RunEvent(name="RunCompleted", index=1, data=run | {"content": "the answer"})

    async with bridge_on(feishu, PlayedTarget(waits), tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: feishu.from_bot(chat))
    write(tmp_path, "UPDATE runs SET card_message_id = NULL")  # it died before Feishu's answer to the send
    feishu.advance(2 * HOUR_S)
    go_on.set()
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path, clock=LaterClock(2 * HOUR_S)) as bridge:
        await until_none(bridge, "SELECT 1 FROM jobs WHERE state IN ('queued', 'running')")
        await until_none(bridge, "SELECT 1 FROM outbox")
    assert not any(shown.streaming for shown in feishu.from_bot(chat))
    assert not any("Stop" in shown.text.split() for shown in feishu.from_bot(chat))


async def test_at_a_stop_no_card_is_written_to_any_more(feishu: FeishuSandbox, tmp_path: Path) -> None:
    chat = feishu.direct_chat(MARTA)
    await left_behind(feishu, tmp_path, chat, MARTA)
    cards = [task for task in asyncio.all_tasks() if task.get_name().startswith("card-")]
    assert not cards


async def test_whoever_lost_a_turn_writes_nothing_over_its_answer(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event that superseded it was given up by its connection just after the commit."""
    chat, chatty = feishu.direct_chat(MARTA), asyncio.Event()

    async def talks(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        if start.message != "slow":
            async for event in answer(start):
                yield event
            return
        run = {"run_id": start.run_id}
        yield RunEvent(name="RunStarted", index=0, data=run)
        for index in range(1, 400):
            yield RunEvent(name="RunContent", index=index, data=run | {"content": f"word{index} "})
            chatty.set()
            await asyncio.sleep(0.02)

    async with bridge_on(feishu, PlayedTarget(talks), tmp_path, feishu_private_interrupt=True) as bridge:
        assert bridge._intake is not None
        monkeypatch.setattr(bridge._intake, "_superseded", lambda turn_id: None)
        await feishu.write(MARTA, chat, "slow")
        await asyncio.wait_for(chatty.wait(), 10)
        await feishu.until(lambda _: any("word1" in shown.text for shown in feishu.from_bot(chat)), within_s=10)
        await feishu.write(MARTA, chat, "quick")
        await until_none(bridge, "SELECT 1 FROM outbox")
        await until_none(bridge, "SELECT 1 FROM runs WHERE replied_ms IS NULL")
        first = feishu.from_bot(chat)[0]
        assert "Stopped for your newer message." in first.text
        await asyncio.sleep(0.6)  # as long as the writer would need for two more
        assert feishu.from_bot(chat)[0].text == first.text


@pytest.mark.parametrize("heard", [False, True])
async def test_what_another_agent_may_have_begun_is_not_begun_again_by_the_one_the_settings_name_now(
    feishu: FeishuSandbox, tmp_path: Path, heard: bool
) -> None:
    async def hangs(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        if heard:
            yield RunEvent(name="RunStarted", index=0, data={"run_id": start.run_id})
        await asyncio.sleep(600)

    chat, before, after = feishu.direct_chat(MARTA), PlayedTarget(hangs), PlayedTarget(answer)
    after.id = "another"
    async with bridge_on(feishu, before, tmp_path) as bridge:
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: before.starts and feishu.from_bot(chat))
        state = "running" if heard else "submitted"
        await until_none(bridge, f"SELECT 1 FROM runs WHERE state <> '{state}'")
    async with bridge_on(feishu, after, tmp_path) as bridge:
        await until_none(bridge, "SELECT 1 FROM jobs WHERE state IN ('queued', 'running')")
        await feishu.until(lambda _: "Ask again" in feishu.from_bot(chat)[0].text)
    assert not after.starts


async def test_who_asked_may_decide_also_after_the_groups_mode_was_changed(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    target = PlayedTarget(answer)
    async with bridge_on(feishu, target, tmp_path, clock=LaterClock(9 * HOUR_S)):
        question = await feishu.write(MARTA, "Team", "hello", mention_bot=True)
        asked = await feishu.until(lambda _: next(iter(feishu.from_bot(question.chat_id)), None))
    async with bridge_on(feishu, target, tmp_path, feishu_group_session_mode="shared"):
        assert asked is not None
        await feishu.press(TOM, asked.message_id, "Answer now")
        assert not target.starts
        await feishu.press(MARTA, asked.message_id, "Answer now")
        await feishu.until(lambda _: target.starts, within_s=10)


async def test_answers_that_cannot_be_shown_for_a_while_are_not_kept_in_memory(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    async def slowly(start: FollowStart) -> AsyncGenerator[RunEvent]:
        await feishu.until(lambda _: feishu.from_bot(chat))
        feishu.faults.fail(CARD, times=None, status=500, code=2200)
        async for event in answer(start):
            yield event

    chat = feishu.direct_chat(MARTA)
    async with bridge_on(feishu, PlayedTarget(slowly), tmp_path) as bridge:
        turns = bridge._turns
        assert turns is not None
        await feishu.write(MARTA, chat, "hello")
        await feishu.until(lambda _: turns._ended, within_s=10)
        await feishu.until(lambda _: not turns._ended, within_s=10)
        feishu.faults.clear()
        write(tmp_path, "UPDATE jobs SET available_ms = 0", "UPDATE lanes SET ready_ms = 0 WHERE ready_ms > 0")
        await until_none(bridge, "SELECT 1 FROM outbox")
    (shown,) = feishu.from_bot(chat)
    assert "the answer" in shown.text


@pytest.mark.parametrize("readable", [True, False])
async def test_what_was_seen_of_a_superseded_run_stays_over_a_restart(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    async def talks(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        if start.message != "slow":
            async for event in answer(start):
                yield event
            return
        run = {"run_id": start.run_id}
        yield RunEvent(name="RunStarted", index=0, data=run)
        yield RunEvent(name="RunContent", index=1, data=run | {"content": "as far as this"})
        await asyncio.sleep(600)

    monkeypatch.setattr(handle, "SEEN_EVERY_S", 0)
    chat, target = feishu.direct_chat(MARTA), PlayedTarget(talks)
    async with bridge_on(feishu, target, tmp_path, feishu_private_interrupt=True) as bridge:
        await feishu.write(MARTA, chat, "slow")
        await feishu.until(lambda _: any("as far as this" in shown.text for shown in feishu.from_bot(chat)))
        await until_none(bridge, "SELECT 1 FROM runs WHERE seen IS NULL")
        if not readable:
            write(tmp_path, "UPDATE runs SET seen = '[]'")
        feishu.faults.fail(CARD, times=None, status=500, code=2200)
        feishu.faults.fail("/open-apis/im/v1/*", times=None, status=500, code=2200)
        await feishu.write(MARTA, chat, "quick")
        await feishu.until(lambda _: target.cancels)
    feishu.faults.clear()
    async with bridge_on(feishu, target, tmp_path) as bridge:
        await until_none(bridge, "SELECT 1 FROM outbox")
        await until_none(bridge, "SELECT 1 FROM runs WHERE replied_ms IS NULL")
    first = feishu.from_bot(chat)[0].text
    assert "Stopped for your newer message." in first
    assert ("as far as this" in first) is readable
