"""The sandbox's events and answers have the very keys and types of the samples in ../shared/payloads."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_fixtures import Bot, Json, sandbox_and_bot, stream_card, until

DATA = Path(__file__).parent.parent / "data" / "payloads"
MARTA = "Marta Weiss"
TEXT = {"msg_type": "text", "content": '{"text":"x"}'}
# Fields of the samples that depend on scopes or on the tenant, and that nothing of ours reads.
IGNORED = {"restricted_mode_setting", "urgent_setting", "video_conference_setting", "hide_member_count_setting"}
IGNORED |= {"department_ids", "leader_user_id", "city", "country", "work_station", "join_time", "is_tenant_manager"}
IGNORED |= {"employee_no", "employee_type", "job_title"}
IGNORED |= {"user_agent"}  # only some samples have it


def shape(value: Any) -> Any:
    """The value with its leaves replaced by their types; lists by the shape of their first item."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in sorted(value.items()) if name not in IGNORED}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def sample_event(name: str) -> Json:
    event: Json = json.loads((DATA / "events" / f"{name}.json").read_text("utf-8"))
    return event


def sample_answer(file: str, name: str) -> Json:
    told = json.loads((DATA / "responses" / f"{file}.json").read_text("utf-8"))
    answer: Json = next(one["body"] for one in told["responses"] if one["name"] == name)
    return answer


async def do_text(feishu: Any) -> None:
    await feishu.write(MARTA, feishu.direct_chat(MARTA), "x")


async def do_group(feishu: Any) -> None:
    await feishu.write(MARTA, "Team", "x", mention_bot=True)


async def do_reply(feishu: Any) -> None:
    first = await feishu.write(MARTA, "Team", "x")
    await feishu.write(MARTA, "Team", "y", reply_to=first.message_id)


async def do_topic(feishu: Any) -> None:
    await feishu.write(MARTA, "Topics", "x", mention_bot=True)


async def do_topic_reply(feishu: Any) -> None:
    root = await feishu.write(MARTA, "Topics", "x")
    await feishu.write(MARTA, "Topics", "y", in_thread=root.thread_id, mention_bot=True)


async def do_image(feishu: Any) -> None:
    await feishu.world.send_image(MARTA, feishu.direct_chat(MARTA), b"\x89PNG")


async def do_file(feishu: Any) -> None:
    await feishu.world.send_file(MARTA, feishu.direct_chat(MARTA), b"x", "x.pdf")


async def do_recall(feishu: Any) -> None:
    message = await feishu.write(MARTA, "Team", "x")
    await feishu.recall(MARTA, message.message_id)


async def do_reaction(feishu: Any) -> None:
    message = await feishu.write(MARTA, "Team", "x")
    await feishu.world.react(MARTA, message.message_id, "DONE")


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        ("text", do_text),
        ("text_group_at_bot", do_group),
        ("reply_to_reply", do_reply),
        ("topic_group_root", do_topic),
        ("topic_group_reply", do_topic_reply),
        ("image", do_image),
        ("file", do_file),
        ("message_recalled", do_recall),
        ("reaction_created", do_reaction),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
async def test_an_event_has_the_shape_of_its_sample(name: str, deed: Any) -> None:
    sample = sample_event(name)
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        await deed(feishu)
        wanted = sample["header"]["event_type"]
        await until(lambda: line.events and line.events[-1]["header"]["event_type"] == wanted)
        got = line.events[-1]
        assert shape(got) == shape(sample)
        if "message" in sample["event"]:
            inner = shape(json.loads(got["event"]["message"]["content"]))
            assert inner == shape(json.loads(sample["event"]["message"]["content"]))


async def test_a_click_has_the_shape_of_its_sample() -> None:
    sample = sample_event("card_button")
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        _, message_id = await bot.show_card(stream_card())
        await feishu.click(MARTA, message_id, sample["event"]["action"])
        assert shape(line.events[0]) == shape(sample)


class Asked:
    """What the answers below are about: a chat with a question, a topic, the bot's own messages and card."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self.world = bot.feishu.world

    async def prepare(self) -> None:
        self.team = self.world.chat("Team").chat_id
        self.topics = self.world.chat("Topics").chat_id
        self.question = (await self.bot.feishu.write(MARTA, "Team", "?", mention_bot=True)).message_id
        self.topic = (await self.bot.feishu.write(MARTA, "Topics", "?")).message_id
        self.mine = (await self.bot.send("Team"))["message_id"]
        self.card_id, self.card_message = await self.bot.show_card(stream_card())

    async def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        path = path.format(**vars(self), open_id=self.world.person(MARTA).open_id)
        return (await self.bot.call(method, path, body))[1]


@pytest.mark.parametrize(
    ("file", "name", "method", "path", "body"),
    [
        ("bot_info", "ok", "GET", "/bot/v3/info", None),
        ("chat_get", "ok_group", "GET", "/im/v1/chats/{team}", None),
        ("chat_get", "ok_topic_group", "GET", "/im/v1/chats/{topics}", None),
        ("chat_members", "ok", "GET", "/im/v1/chats/{team}/members", None),
        ("contact_users_batch", "ok", "GET", "/contact/v3/users/batch?user_ids={open_id}", None),
        ("message_get", "ok_text", "GET", "/im/v1/messages/{question}", None),
        ("message_reply", "ok", "POST", "/im/v1/messages/{question}/reply", TEXT),
        ("message_reply", "ok_in_thread", "POST", "/im/v1/messages/{topic}/reply", TEXT),
        ("message_update", "ok", "PUT", "/im/v1/messages/{mine}", TEXT),
        ("message_delete", "ok", "DELETE", "/im/v1/messages/{mine}", None),
        (
            "reaction_create",
            "ok",
            "POST",
            "/im/v1/messages/{question}/reactions",
            {"reaction_type": {"emoji_type": "OK"}},
        ),
        (
            "cardkit_element_content",
            "ok",
            "PUT",
            "/cardkit/v1/cards/{card_id}/elements/answer/content",
            {"content": "y", "sequence": 1},
        ),
        (
            "cardkit_settings",
            "ok",
            "PATCH",
            "/cardkit/v1/cards/{card_id}/settings",
            {"settings": '{"config":{"streaming_mode":false}}', "sequence": 1},
        ),
        (
            "cardkit_create",
            "ok",
            "POST",
            "/cardkit/v1/cards",
            {"type": "card_json", "data": json.dumps(stream_card())},
        ),
        ("card_delay_update", "token_format", "POST", "/interactive/v1/card/update", {"token": "x", "card": {}}),
    ],
    ids=lambda v: v if isinstance(v, str) and v.isidentifier() else "",
)
async def test_an_answer_has_the_shape_of_its_sample(
    file: str, name: str, method: str, path: str, body: Json | None
) -> None:
    async with sandbox_and_bot() as (_, bot):
        asked = Asked(bot)
        await asked.prepare()
        got = await asked.ask(method, path, body)
        got.pop("error", None)
        sample = sample_answer(file, name)
        assert got["code"] == sample["code"]
        assert shape(got) == shape(sample)


async def test_an_error_has_the_shape_of_its_sample() -> None:
    async with sandbox_and_bot() as (_, bot):
        answer = (await bot.http.get("/open-apis/bot/v3/info")).json()
        assert shape(answer) == shape(sample_answer("_generic_errors", "no_token"))
        assert answer["msg"] == "Need a token"
