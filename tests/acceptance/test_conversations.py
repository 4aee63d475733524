"""Conversations stay apart, /new forgets, runs can be stopped, and only those who are let in are answered."""

from pathlib import Path
from typing import Any

import pytest

from agno_lark.app import Bridge
from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to, bridge_between

MARTA, TOM, LIN = "Marta Weiss", "Tom Okafor", "林悦"
RECALL = "what did I say?"


async def ask(feishu: FeishuSandbox, who: str, chat: str, text: str, **more: Any) -> str:
    """Write, wait for the answer, return its text."""
    before = len(feishu.from_bot(chat))
    await feishu.write(who, chat, text, **more)
    return (await answer_to(feishu, chat, after=before)).text


async def test_direct_chats_of_two_people_are_two_conversations(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        await ask(feishu, MARTA, feishu.direct_chat(MARTA), "the pear is blue")
        await ask(feishu, TOM, feishu.direct_chat(TOM), "the plum is red")
        told = await ask(feishu, MARTA, feishu.direct_chat(MARTA), RECALL)
        assert "pear" in told
        assert "plum" not in told


@pytest.mark.parametrize(("mode", "shared"), [("user", False), ("shared", True)])
async def test_a_group_has_a_conversation_per_member_or_one_for_all(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path, mode: str, shared: bool
) -> None:
    async with bridge_between(feishu, agentos, tmp_path, feishu_group_session_mode=mode):
        group = feishu.world.chat("Team").chat_id
        await ask(feishu, MARTA, group, "the pear is blue", mention_bot=True)
        told = await ask(feishu, TOM, group, RECALL, mention_bot=True)
        assert ("pear" in told) is shared
        direct = await ask(feishu, MARTA, feishu.direct_chat(MARTA), RECALL)
        assert "pear" not in direct


async def test_topics_of_a_group_are_conversations_of_their_own(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path, feishu_group_session_mode="shared"):
        chat = feishu.world.chat("Topics").chat_id
        first = await feishu.write(MARTA, chat, "the pear is blue", mention_bot=True, new_topic=True)
        shown = await answer_to(feishu, chat)
        assert feishu.world.message(shown.message_id).thread_id == first.thread_id, "the answer stays in the topic"
        second = await feishu.write(MARTA, chat, RECALL, mention_bot=True, new_topic=True)
        other = await answer_to(feishu, chat, after=1)
        assert feishu.world.message(other.message_id).thread_id == second.thread_id
        assert "pear" not in other.text
        await feishu.write(TOM, chat, RECALL, mention_bot=True, in_thread=first.thread_id)
        assert "pear" in (await answer_to(feishu, chat, after=2)).text


async def test_talk_in_a_group_that_does_not_mention_the_bot_is_left_alone(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path) as bridge:
        group = feishu.world.chat("Team").chat_id
        await feishu.write(MARTA, group, "lunch anyone?")
        await feishu.until(lambda _: feishu.deliveries.counts["acks_200"])
        assert (await bridge.status())["intake"] == {"message.not_addressed": 1}
        assert not feishu.from_bot(group)


async def test_new_forgets_and_a_text_behind_it_is_the_first_of_the_new_conversation(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        chat = feishu.direct_chat(MARTA)
        await ask(feishu, MARTA, chat, "the pear is blue")
        assert "new conversation" in await ask(feishu, MARTA, chat, "/new")
        assert "pear" not in await ask(feishu, MARTA, chat, RECALL)
        told = await ask(feishu, MARTA, chat, f"／NEW {RECALL}")
        assert "first message" in told


async def test_the_stop_button_ends_a_slow_run(feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path) -> None:
    async with bridge_between(feishu, agentos, tmp_path) as bridge:
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "count slowly to 60")
        card = await feishu.until(lambda _: next((s for s in feishu.from_bot(chat) if "1 2 " in s.text), None))
        assert card is not None
        stop = stop_action(card.card)
        answer = await feishu.press(MARTA, card.message_id, "Stop")
        assert answer["toast"]["content"] == "Stopping…"
        shown = await answer_to(feishu, chat)
        assert "Stopped" in shown.text
        assert "1 2 " in shown.text, "what was said is kept"
        await feishu.until(lambda _: closed(bridge, 1))
        late = await feishu.click(MARTA, card.message_id, stop)
        assert "already ended" in late["toast"]["content"], "a client that has not caught up"


def stop_action(card: Any) -> dict[str, Any]:
    """What a press of the card's Stop button sends."""
    button = next(element for element in card["body"]["elements"] if element["tag"] == "button")
    return {"tag": "button", "value": button["behaviors"][0]["value"]}


@pytest.mark.parametrize("kind", ["agent", "team", "workflow"])
async def test_cancel_ends_a_slow_run_of_each_kind(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path, kind: str
) -> None:
    async with bridge_between(feishu, agentos, tmp_path, agentos_target_type=kind) as bridge:
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "count slowly to 60")
        await feishu.until(lambda _: any("1 2 " in shown.text for shown in feishu.from_bot(chat)), within_s=10)
        status = await ask(feishu, MARTA, chat, "/status")
        assert "running" in status
        assert "Stopping run" in await ask(feishu, MARTA, chat, "/cancel")
        shown = await answer_to(feishu, chat)
        assert "Stopped" in shown.text
        await feishu.until(lambda _: closed(bridge, 1))
        assert "Nothing is running here." in await ask(feishu, MARTA, chat, "/stop")


async def test_a_run_is_cancelled_by_its_id_in_its_own_conversation_only(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        group = feishu.world.chat("Team").chat_id
        await feishu.write(MARTA, group, "count slowly to 60", mention_bot=True)
        card = await feishu.until(lambda _: next((s for s in feishu.from_bot(group) if "1 2 " in s.text), None))
        assert card is not None
        foreign = await feishu.press(TOM, card.message_id, "Stop")
        assert "somebody else" in foreign["toast"]["content"]
        status = await ask(feishu, MARTA, group, "/status", mention_bot=True)
        run = status.split("`")[1] if "`" in status else ""
        assert "no active run" in await ask(feishu, TOM, group, f"/cancel {run}", mention_bot=True)
        assert "Stopping run" in await ask(feishu, MARTA, group, f"/cancel {run}", mention_bot=True)
        assert "Stopped" in (await answer_to(feishu, group)).text


async def test_allowlists_hold_for_messages_and_clicks(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    marta = feishu.world.person(MARTA).open_id
    tom = feishu.world.person(TOM).open_id
    team, topics = feishu.world.chat("Team").chat_id, feishu.world.chat("Topics").chat_id
    lists: dict[str, Any] = {
        "feishu_allowed_user_ids": frozenset({marta}),
        "feishu_allowed_chat_ids": frozenset({team}),
    }
    async with bridge_between(feishu, agentos, tmp_path, feishu_group_session_mode="shared", **lists) as bridge:
        assert "good morning" in await ask(feishu, MARTA, feishu.direct_chat(MARTA), "good morning")
        denied = await ask(feishu, TOM, feishu.direct_chat(TOM), "good morning")
        assert "no access" in denied
        assert tom.split("_")[1] in denied, "they are told the id to hand on"
        await feishu.write(MARTA, topics, "hello", mention_bot=True, new_topic=True)
        await feishu.write(TOM, team, "hello", mention_bot=True)
        await feishu.until(lambda _: bridge_count(bridge, "message.foreign_user") == 1)
        assert bridge_count(bridge, "message.foreign_chat") == 1
        assert not feishu.from_bot(team)
        assert not feishu.from_bot(topics)
        await feishu.write(MARTA, team, "count slowly to 60", mention_bot=True)
        card = await feishu.until(lambda _: next((s for s in feishu.from_bot(team) if "1 2 " in s.text), None))
        assert card is not None
        refused = await feishu.press(TOM, card.message_id, "Stop")
        assert refused["toast"]["type"] != "success", "who is not on the list cannot press either"
        await feishu.press(MARTA, card.message_id, "Stop")
        assert "Stopped" in (await answer_to(feishu, team)).text


def closed(bridge: Bridge, turns: int) -> bool:
    """That many turns are over, also in the database."""
    done = bridge._runner.finished if bridge._runner else {}
    return sum(count for name, count in done.items() if name.startswith("turn.")) >= turns


def bridge_count(bridge: Bridge, name: str) -> int:
    return int((bridge._intake.counts if bridge._intake else {}).get(name, 0))


async def test_a_message_delivered_twice_and_under_a_new_event_id_is_answered_once(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path) as bridge:
        chat = feishu.direct_chat(MARTA)
        feishu.faults.duplicate_next(2)
        await feishu.write(MARTA, chat, "once")
        await answer_to(feishu, chat)
        await feishu.until(lambda _: bridge_count(bridge, "message.duplicate") >= 1)
        assert len(feishu.from_bot(chat)) == 1


async def test_sentences_are_in_the_persons_language(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        assert "使用说明" in await ask(feishu, LIN, feishu.direct_chat(LIN), "/help")
        assert "What you can do" in await ask(feishu, MARTA, feishu.direct_chat(MARTA), "/help")
        assert "/status" in await ask(feishu, MARTA, feishu.direct_chat(MARTA), "/stauts")
        assert "已完成" in await ask(feishu, LIN, feishu.direct_chat(LIN), "早上好")
