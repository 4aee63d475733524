"""The wire against the local Feishu, which keeps the platform's rules: the same things, with a strict judge."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agno_lark.errors import ConnectionRefused
from agno_lark.feishu import (
    CallRefused,
    Connection,
    ConnectionLimits,
    ConnectionState,
    ErrorKind,
    Event,
    OpenApi,
    RetryRules,
    card_reference,
    meant_text,
    parse_click,
    parse_message,
    parse_recall,
)
from agno_lark.testing import ClientConfig, FeishuSandbox, Limits
from tests.feishu_server import running

QUICK = ClientConfig(reconnect_interval_s=1, reconnect_nonce_s=1, ping_interval_s=1)
PACE = ConnectionLimits(pace=0.05)
CARD = {
    "schema": "2.0",
    "config": {"streaming_mode": True, "update_multi": True},
    "body": {"elements": [{"tag": "markdown", "content": "...", "element_id": "answer"}]},
}
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Inbox:
    """An `accept` with a to-do list: what to raise or answer next."""

    def __init__(self, *plan: BaseException | Mapping[str, Any] | float | None) -> None:
        self.plan = list(plan)
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    async def __call__(self, event: Event) -> Mapping[str, Any] | None:
        await self.events.put(event)
        step = self.plan.pop(0) if self.plan else None
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, float):
            await asyncio.sleep(step)
            return None
        return step

    async def next(self, within_s: float = 5.0) -> Event:
        return await asyncio.wait_for(self.events.get(), within_s)


def person(feishu: FeishuSandbox) -> str:
    return feishu.world.people[0].name


@asynccontextmanager
async def connected(feishu: FeishuSandbox, inbox: Inbox, limits: ConnectionLimits = PACE) -> AsyncIterator[Connection]:
    connection = Connection(feishu.app_id, feishu.app_secret, feishu.url, inbox, limits=limits)
    async with running(connection.run):
        await feishu.until_connected()
        yield connection


def api(feishu: FeishuSandbox) -> OpenApi:
    return OpenApi(feishu.app_id, feishu.app_secret, feishu.url, retries=RetryRules(first_wait_s=0.02))


async def test_a_persons_words_arrive_and_are_answered() -> None:
    inbox = Inbox()
    async with FeishuSandbox() as feishu, connected(feishu, inbox), api(feishu) as calls:
        bot = await calls.bot_info()
        chat_id = feishu.world.chat("Team").chat_id
        await feishu.write(person(feishu), chat_id, "hello", mention_bot=True)
        message = parse_message(await inbox.next())
        meant = meant_text(message.message_type, message.content, message.mentions, bot_open_id=bot.open_id)
        assert (meant.text, meant.mentions_bot, message.chat_id) == ("hello", True, chat_id)
        assert (await calls.get_chat(chat_id)).mode == "group"
        reaction_id = await calls.add_reaction(message.message_id, "OK")
        await calls.delete_reaction(message.message_id, reaction_id)
        sent = await calls.reply_message(message.message_id, "text", json.dumps({"text": "hi"}), "turn-1")
        again = await calls.reply_message(message.message_id, "text", json.dumps({"text": "hi"}), "turn-1")
        assert again.message_id == sent.message_id
        assert [shown.text for shown in feishu.from_bot(chat_id)] == ["hi"]
        (stored,) = await calls.get_message(sent.message_id)
        assert stored.parent_id == message.message_id
        await calls.delete_message(sent.message_id)
        await calls.delete_message(sent.message_id)
        assert feishu.from_bot(chat_id) == []


async def test_an_event_that_was_not_accepted_comes_again() -> None:
    inbox = Inbox(RuntimeError("disk full"))
    async with FeishuSandbox(redelivery_s=(0.05, 0.05)) as feishu, connected(feishu, inbox) as connection:
        await feishu.write(person(feishu), feishu.direct_chat(person(feishu)), "hello")
        first, second = await inbox.next(), await inbox.next()
        assert first.event_id == second.event_id
        await asyncio.sleep(0.15)
        assert inbox.events.empty()
        assert connection.snapshot().failures == 1


async def test_a_slow_accept_is_asked_for_again_and_not_stopped() -> None:
    inbox = Inbox(0.3)
    limits = ConnectionLimits(pace=0.05, answer_within_s=0.1)
    async with FeishuSandbox(redelivery_s=(0.05,)) as feishu, connected(feishu, inbox, limits) as connection:
        await feishu.write(person(feishu), feishu.direct_chat(person(feishu)), "hello")
        assert (await inbox.next()).event_id == (await inbox.next()).event_id
        assert connection.snapshot().late == 1


async def test_a_click_gets_its_answer_and_a_recall_is_told() -> None:
    inbox = Inbox({"toast": {"type": "success", "content": "done"}})
    card = {
        "schema": "2.0",
        "body": {
            "elements": [
                {
                    "tag": "button",
                    "text": {"tag": "plain_text", "content": "Stop"},
                    "behaviors": [{"type": "callback", "value": {"op": "stop"}}],
                }
            ]
        },
    }
    async with FeishuSandbox() as feishu, connected(feishu, inbox), api(feishu) as calls:
        chat_id = feishu.direct_chat(person(feishu))
        sent = await calls.send_message(chat_id, "chat_id", "interactive", json.dumps(card), "u1")
        answer = await feishu.press(person(feishu), sent.message_id, "Stop")
        assert answer["toast"]["content"] == "done"
        click = parse_click(await inbox.next())
        assert (click.value, click.message_id, click.chat_id) == ({"op": "stop"}, sent.message_id, chat_id)
        written = await feishu.write(person(feishu), chat_id, "never mind")
        await inbox.next()
        await feishu.recall(person(feishu), written.message_id)
        assert parse_recall(await inbox.next()).message_id == written.message_id


async def test_parts_in_disorder_and_doubles_are_events_like_others() -> None:
    inbox = Inbox()
    async with FeishuSandbox() as feishu, connected(feishu, inbox):
        feishu.faults.split_next(7)
        await feishu.write(person(feishu), feishu.direct_chat(person(feishu)), "in pieces")
        assert "in pieces" in parse_message(await inbox.next()).content
        feishu.faults.duplicate_next()
        await feishu.write(person(feishu), feishu.direct_chat(person(feishu)), "twice")
        assert (await inbox.next()).event_id == (await inbox.next()).event_id


async def test_a_dropped_socket_is_replaced() -> None:
    inbox = Inbox()
    async with FeishuSandbox(client_config=QUICK) as feishu, connected(feishu, inbox) as connection:
        feishu.faults.drop_sockets()
        await feishu.until(lambda _: connection.snapshot().reconnects == 1)
        await feishu.write(person(feishu), feishu.direct_chat(person(feishu)), "still there?")
        await inbox.next()


async def test_a_silent_socket_is_replaced() -> None:
    inbox = Inbox()
    async with FeishuSandbox(client_config=QUICK) as feishu, connected(feishu, inbox) as connection:
        feishu.faults.silence()
        await feishu.until(lambda _: connection.snapshot().reconnects == 1)
        await feishu.write(person(feishu), feishu.direct_chat(person(feishu)), "still there?")
        await inbox.next()


@pytest.mark.parametrize(
    ("code", "names"), [(None, "FEISHU_APP_SECRET"), (1000040351, "LARK_API_BASE_URL"), (1000040343, None)]
)
async def test_refusals_end_it_and_stumbles_do_not(code: int | None, names: str | None) -> None:
    async with FeishuSandbox(client_config=QUICK) as feishu:
        secret = "wrong" if code is None else feishu.app_secret
        if code is not None:
            feishu.faults.fail("POST /callback/ws/endpoint", status=200, code=code)
        connection = Connection(feishu.app_id, secret, feishu.url, Inbox(), limits=PACE)
        if names is None:
            async with running(connection.run):
                await feishu.until_connected()
            return
        with pytest.raises(ConnectionRefused, match=names):
            await asyncio.wait_for(connection.run(), 5)
        assert connection.snapshot().state is ConnectionState.REFUSED


async def test_two_apps_of_two_feishus_run_in_one_loop() -> None:
    one, two = Inbox(), Inbox()
    async with FeishuSandbox() as first, FeishuSandbox() as second, connected(first, one), connected(second, two):
        await first.write(person(first), first.direct_chat(person(first)), "to the first")
        await second.write(person(second), second.direct_chat(person(second)), "to the second")
        assert "first" in parse_message(await one.next()).content
        assert "second" in parse_message(await two.next()).content
        assert one.events.empty()
        assert two.events.empty()


async def test_a_card_streams_and_ends_whole() -> None:
    async with FeishuSandbox() as feishu, api(feishu) as calls:
        card_id = await calls.create_card(CARD)
        chat_id = feishu.direct_chat(person(feishu))
        sent = await calls.send_message(chat_id, "chat_id", "interactive", card_reference(card_id), "u1")
        text = ""
        for sequence, word in enumerate(("哈", "哈", "哈", "1", "1", "0") * 2, start=1):
            text += word
            async with calls.limits.card(card_id):
                await calls.update_element_content(card_id, "answer", text, sequence)
        await calls.update_card_settings(card_id, {"config": {"streaming_mode": False}}, 50)
        with pytest.raises(CallRefused) as caught:
            await calls.update_element_content(card_id, "answer", "late", 51)
        assert caught.value.kind is ErrorKind.STREAMING_CLOSED
        final = {**CARD, "config": {"update_multi": True}}
        with pytest.raises(CallRefused) as caught:
            await calls.update_card(card_id, final, 50)
        assert caught.value.kind is ErrorKind.SEQUENCE
        feishu.faults.reset("PUT /open-apis/cardkit/v1/cards/:card_id", after_effect=True)
        await calls.update_card(card_id, final, 60)
        card = feishu.card_of(sent.message_id)
        assert card is not None
        assert [edit.text for edit in card.history if edit.kind == "content"][-1] == "哈哈哈110哈哈哈110"
        assert (card.sequence, card.streaming) == (60, False)


async def test_a_send_whose_answer_was_lost_is_not_sent_twice() -> None:
    async with FeishuSandbox() as feishu, api(feishu) as calls:
        feishu.faults.reset("POST /open-apis/im/v1/messages", after_effect=True)
        chat_id = feishu.direct_chat(person(feishu))
        await calls.send_message(chat_id, "chat_id", "text", '{"text":"once"}', "u1")
        assert [shown.text for shown in feishu.from_bot(chat_id)] == ["once"]


async def test_tokens_that_expire_are_replaced_under_way() -> None:
    async with FeishuSandbox() as feishu, api(feishu) as calls:
        chat_id = feishu.direct_chat(person(feishu))
        for number in range(2):
            sent = await calls.send_message(chat_id, "chat_id", "text", '{"text":"x"}', f"u{number}")
            feishu.expire_tokens()
        await calls.add_reaction(sent.message_id, "OK")
        feishu.expire_tokens()
        assert (await calls.upload_image(PICTURE, "x.png")).startswith("img_")


async def test_a_wrong_secret_is_told_by_the_first_call() -> None:
    async with FeishuSandbox() as feishu, OpenApi(feishu.app_id, "wrong", feishu.url) as calls:
        with pytest.raises(CallRefused, match="FEISHU_APP_SECRET"):
            await calls.bot_info()


async def test_rate_limits_are_waited_out() -> None:
    async with FeishuSandbox(limits=Limits(sends_per_chat_per_s=2)) as feishu, api(feishu) as calls:
        chat_id = feishu.direct_chat(person(feishu))
        for number in range(3):
            await calls.send_message(chat_id, "chat_id", "text", '{"text":"x"}', f"u{number}")
        assert len(feishu.from_bot(chat_id)) == 3


async def test_a_burst_of_everything_gets_through() -> None:
    async with FeishuSandbox() as feishu, api(feishu) as calls:
        chat_id = feishu.direct_chat(person(feishu))

        async def send(number: int) -> None:
            async with calls.limits.chat(chat_id):
                await calls.send_message(chat_id, "chat_id", "text", '{"text":"x"}', f"u{number}")

        await asyncio.gather(*(send(number) for number in range(8)), *(calls.create_card(CARD) for _ in range(60)))
        assert len(feishu.from_bot(chat_id)) == 8


async def test_media_comes_down_as_it_went_up() -> None:
    inbox = Inbox()
    async with FeishuSandbox() as feishu, connected(feishu, inbox), api(feishu) as calls:
        await feishu.world.send_file(
            person(feishu), feishu.direct_chat(person(feishu)), b"0123456789" * 1000, "季度报表（终稿）.xlsx"
        )
        message = parse_message(await inbox.next())
        content = json.loads(message.content)
        async with calls.download_resource(
            message.message_id, content["file_key"], "file", max_bytes=100_000
        ) as resource:
            assert b"".join([chunk async for chunk in resource.chunks]) == b"0123456789" * 1000
        with pytest.raises(CallRefused) as caught:
            async with calls.download_resource(message.message_id, "file_unknown", "file", max_bytes=10):
                pass
        assert caught.value.code == 234003
