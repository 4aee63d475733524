"""Turns that were left open ask the person: an unknown one, one that came too late; by button and by command."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from agno_lark.app import Bridge
from agno_lark.errors import TargetError
from agno_lark.sandbox.records import Shown
from agno_lark.store import Store
from agno_lark.targets import FaultReason, FollowStart, RunEvent, RunSnapshot
from agno_lark.testing import FeishuSandbox
from agno_lark.turns import handle
from tests.break_fixtures import MARTA, TOM, LaterClock, PlayedTarget, answer, bridge_on, hang
from tests.bridge_fixtures import answer_to

HOUR_S = 3600


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


class Unsure(PlayedTarget):
    """Hangs, and later cannot be asked whether it knows a run."""

    lost = False

    async def find(self, run_id: str, session_id: str) -> RunSnapshot | None:
        if self.lost:
            raise TargetError("no rights", reason=FaultReason.UNAUTHORIZED)
        return None


async def left_unknown(
    feishu: FeishuSandbox, target: Unsure, folder: Path, chat: str, *, mention_bot: bool = False
) -> Shown:
    """A run was handed over, the bridge stopped, and after its start nobody can tell what became of it."""
    target.play = never_heard
    async with bridge_on(feishu, target, folder):
        await feishu.write(MARTA, chat, "book the flight", mention_bot=mention_bot)
        await feishu.until(lambda _: target.starts)
    target.lost = True
    async with bridge_on(feishu, target, folder):
        return await answer_to(feishu, chat)


async def never_heard(start: FollowStart) -> AsyncGenerator[RunEvent]:
    async for event in hang(start):
        if event.index:
            yield event


@pytest.fixture
async def unknown(feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Unsure, str, Shown]:
    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.01)
    target, chat = Unsure(answer), feishu.direct_chat(MARTA)
    shown = await left_unknown(feishu, target, tmp_path, chat)
    target.play = answer
    return target, chat, shown


async def test_asking_again_is_a_new_turn_that_says_so_and_happens_once(
    feishu: FeishuSandbox, tmp_path: Path, unknown: tuple[Unsure, str, Shown]
) -> None:
    target, chat, shown = unknown
    assert "cannot tell whether the agent got it" in shown.text
    async with bridge_on(feishu, target, tmp_path):
        toasts = [await feishu.press(MARTA, shown.message_id, "Ask again")]
        again = await answer_to(feishu, chat, after=1)
        asked = await saw(feishu, chat, "Asked again: see the newer answer.")
        value = {"tag": "button", "value": {"op": "turn.retry", "turn": target.submissions[0].turn_id}}
        toasts.append(await feishu.click(MARTA, shown.message_id, value))
    assert [toast["toast"]["content"] for toast in toasts] == ["Asked again", "That has been decided already."]
    assert "the answer" in again.text
    assert "Asked again; what came of it" in again.text
    assert "Ask again" not in asked.text.replace("Asked again", "")
    assert len(feishu.from_bot(chat)) == 2
    one, two = target.submissions
    assert (one.message, two.message) == ("book the flight", "book the flight")
    assert two.metadata["retry_of"] == one.turn_id
    assert two.turn_id != one.turn_id
    assert two.run_id != one.run_id


async def test_dismissing_leaves_it_and_nothing_is_asked_again(
    feishu: FeishuSandbox, tmp_path: Path, unknown: tuple[Unsure, str, Shown]
) -> None:
    target, chat, shown = unknown
    async with bridge_on(feishu, target, tmp_path) as bridge:
        await feishu.press(MARTA, shown.message_id, "Dismiss")
        left = await saw(feishu, chat, "Left as it is.")
        assert "Ask again" not in left.text
        found = await bridge.whereabouts(target.submissions[0].turn_id)
    assert found is not None
    assert found["where"] == "cancelled"
    assert "dismissed" in found["why"]
    assert len(target.submissions) == 1


async def test_somebody_else_cannot_decide(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "LOOK_AGAIN_S", 0.01)
    target, group = Unsure(answer), feishu.world.chat("Team").chat_id
    shown = await left_unknown(feishu, target, tmp_path, group, mention_bot=True)
    value = {"tag": "button", "value": {"op": "turn.retry", "turn": target.submissions[0].turn_id}}
    async with bridge_on(feishu, target, tmp_path):
        toast = await feishu.click(TOM, shown.message_id, value)
    assert "somebody else's conversation" in toast["toast"]["content"]
    assert len(target.submissions) == 1


@pytest.mark.parametrize(("command", "says", "runs"), [("/retry", "Asked again", 2), ("/dismiss", "Left as it is", 1)])
async def test_a_command_does_what_the_button_does(
    feishu: FeishuSandbox, tmp_path: Path, unknown: tuple[Unsure, str, Shown], command: str, says: str, runs: int
) -> None:
    target, chat, _ = unknown
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, command)
        await feishu.until(lambda _: len(feishu.from_bot(chat)) == 1 + runs and len(target.submissions) == runs)
        texts = "\n".join(shown.text for shown in feishu.from_bot(chat))
        assert says in texts
        await feishu.write(MARTA, chat, command)
        await saw(feishu, chat, "nothing to decide here")
    assert len(target.submissions) == runs


async def test_a_lane_goes_on_behind_a_turn_nobody_knows_the_end_of(
    feishu: FeishuSandbox, tmp_path: Path, unknown: tuple[Unsure, str, Shown]
) -> None:
    target, chat, _ = unknown
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "and the hotel?")
        assert "the answer" in (await answer_to(feishu, chat, after=1)).text


async def test_a_message_of_nine_hours_ago_is_asked_about_and_runs_only_when_wanted(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    """cases.md no. 2."""
    target, chat = PlayedTarget(answer), feishu.direct_chat(MARTA)
    await feishu.write(MARTA, chat, "what is for lunch?")
    async with bridge_on(feishu, target, tmp_path, clock=LaterClock(9 * HOUR_S)):
        notice = await answer_to(feishu, chat)
        assert "You wrote this 9 h ago" in notice.text
        assert not target.starts
        await feishu.press(MARTA, notice.message_id, "Answer now")
        assert "the answer" in (await answer_to(feishu, chat, after=1)).text
        decided = await saw(feishu, chat, "Answered below.")
        assert "Answer now" not in decided.text
        assert "Shall I" not in decided.text
    assert [submission.message for submission in target.submissions] == ["what is for lunch?"]


async def test_dismissing_a_late_message_leaves_no_words_behind(feishu: FeishuSandbox, tmp_path: Path) -> None:
    target, chat = PlayedTarget(answer), feishu.direct_chat(MARTA)
    await feishu.write(MARTA, chat, "what is for lunch?")
    async with bridge_on(feishu, target, tmp_path, clock=LaterClock(9 * HOUR_S)) as bridge:
        notice = await answer_to(feishu, chat)
        await feishu.press(MARTA, notice.message_id, "Dismiss")
        await saw(feishu, chat, "Left as it is.")
        assert bridge._store is not None
        assert not await bridge._store.read("SELECT 1 FROM jobs WHERE payload LIKE '%lunch%'")
        toast = await feishu.click(
            MARTA,
            notice.message_id,
            {"tag": "button", "value": {"op": "turn.retry", "turn": await only_turn(bridge._store)}},
        )
    assert toast["toast"]["content"] == "That has been decided already."
    assert not target.starts


async def only_turn(store: Store) -> str:
    (row,) = await store.read("SELECT turn_id FROM runs")
    return str(row["turn_id"])


async def test_what_was_sent_while_the_bridge_was_down_runs_but_an_old_stop_does_nothing(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    """cases.md no. 2: both written 90 s before the start."""
    target, chat = PlayedTarget(answer), feishu.direct_chat(MARTA)
    await feishu.write(MARTA, chat, "hello")
    await feishu.write(MARTA, chat, "/stop")
    async with bridge_on(feishu, target, tmp_path, clock=LaterClock(90)) as bridge:
        assert "the answer" in (await answer_to(feishu, chat)).text
        await feishu.until(lambda _: passed(bridge) == 1)
        await feishu.write(MARTA, chat, "/help")
        await answer_to(feishu, chat, after=1)
    assert not target.cancels
    assert len(feishu.from_bot(chat)) == 2


def passed(bridge: Bridge) -> int:
    assert bridge._intake is not None
    return bridge._intake.counts["message.passed"]


async def saw(feishu: FeishuSandbox, chat: str, text: str) -> Shown:
    """The bot's first message that holds this text, as soon as there is one."""

    def first(_: object) -> Shown | None:
        return next((shown for shown in feishu.from_bot(chat) if text in shown.text), None)

    found = await feishu.until(first)
    assert found is not None
    return found
