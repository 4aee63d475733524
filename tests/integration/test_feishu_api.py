"""The OpenAPI client against a server that misbehaves on purpose."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from agno_lark.errors import FeishuApiError
from agno_lark.feishu import (
    CallRefused,
    ErrorKind,
    Limits,
    OpenApi,
    Rate,
    ResourceTooLarge,
    RetryRules,
    SentMessage,
    card_reference,
    kind_of,
)
from agno_lark.feishu.limits import API_MINUTE, API_SECOND, CARD, CHAT, MESSAGE
from tests.feishu_server import HttpServer, Reply, Seen

TOKEN_PATH = "/open-apis/auth/v3/tenant_access_token/internal"
QUICK = RetryRules(first_wait_s=0.01, max_wait_s=0.2)
SENT = {"code": 0, "data": {"message_id": "om_1", "chat_id": "oc_1"}}


def refused(code: int, status: int = 400, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status=status, json={"code": code, "msg": "no"}, headers=headers or {})


class Script:
    """Tokens as Feishu gives them; other calls get the scripted replies in turn, then `otherwise`."""

    def __init__(self, *replies: Reply, otherwise: Reply | None = None, expires_in_s: float = 7200) -> None:
        self.replies = list(replies)
        self.otherwise = otherwise or Reply(json={"code": 0, "data": {}})
        self.expires_in_s = expires_in_s
        self.tokens: list[str] = []
        self.token_reply: Callable[[], Reply | None] = lambda: None

    def __call__(self, seen: Seen) -> Reply:
        if seen.path == TOKEN_PATH:
            odd = self.token_reply()
            if odd is not None:
                return odd
            self.tokens.append(f"t-{len(self.tokens) + 1}")
            body = {"code": 0, "tenant_access_token": self.tokens[-1], "expire": self.expires_in_s}
            return Reply(json=body, wait_s=0.02)
        return self.replies.pop(0) if self.replies else self.otherwise


@asynccontextmanager
async def api(script: Script, **options: Any) -> AsyncIterator[tuple[OpenApi, HttpServer]]:
    async with HttpServer(script) as server:
        options = {"retries": QUICK, "timeout_s": 2.0, **options}
        async with OpenApi("cli_1", "hush-secret", server.url, **options) as client:
            yield client, server


def calls(server: HttpServer) -> list[Seen]:
    return [seen for seen in server.seen if seen.path != TOKEN_PATH]


async def test_a_message_is_sent_with_its_token_and_uuid() -> None:
    async with api(Script(Reply(json=SENT))) as (client, server):
        sent = await client.send_message("oc_1", "chat_id", "text", '{"text":"hi"}', "turn-1")
    assert sent == SentMessage(message_id="om_1", chat_id="oc_1", thread_id=None)
    token, call = server.seen
    assert token.json == {"app_id": "cli_1", "app_secret": "hush-secret"}
    assert (call.method, call.path) == ("POST", "/open-apis/im/v1/messages?receive_id_type=chat_id")
    assert call.headers["authorization"] == "Bearer t-1"
    assert call.json == {"receive_id": "oc_1", "msg_type": "text", "content": '{"text":"hi"}', "uuid": "turn-1"}


async def test_a_long_uuid_is_shortened_the_same_way_each_time() -> None:
    async with api(Script(otherwise=Reply(json=SENT))) as (client, server):
        for uuid in ("x" * 60, "x" * 60, "x" * 61):
            await client.reply_message("om_0", "text", "{}", uuid, in_thread=True)
    first, second, third = (call.json["uuid"] for call in calls(server))
    assert first == second != third
    assert len(first) == 50
    assert calls(server)[0].json["reply_in_thread"] is True


async def test_a_call_blocks_the_event_loop_at_no_time() -> None:
    async with HttpServer(Script(otherwise=Reply(json=SENT))) as server:
        with blockbuster_ctx():
            async with OpenApi("cli_1", "s", server.url) as client:
                await client.send_message("oc_1", "chat_id", "text", "{}", "u1")


async def test_many_waiters_share_one_token_and_one_pool() -> None:
    script = Script()
    async with api(script) as (client, server):
        await asyncio.gather(*(client.patch_message(f"om_{number}", "{}") for number in range(20)))
        connections = server.connections
        for sequence in range(1, 21):
            await client.update_element_content("c1", "md", "text", sequence)
        assert server.connections == connections  # kept alive
    assert script.tokens == ["t-1"]


async def test_a_waiter_that_is_cancelled_takes_no_token_from_the_others() -> None:
    script = Script()
    async with api(script) as (client, _server):
        first = asyncio.create_task(client.bot_info())
        second = asyncio.create_task(client.patch_message("om_1", "{}"))
        await asyncio.sleep(0.01)
        first.cancel()
        await second
    assert script.tokens == ["t-1"]


async def test_a_dead_token_is_replaced_once_with_the_same_uuid() -> None:
    script = Script(refused(99991663), Reply(json=SENT))
    async with api(script) as (client, server):
        await client.send_message("oc_1", "chat_id", "text", "{}", "u1")
    assert [call.headers["authorization"] for call in calls(server)] == ["Bearer t-1", "Bearer t-2"]
    assert {call.json["uuid"] for call in calls(server)} == {"u1"}


async def test_a_token_that_is_never_accepted_is_an_error_after_two_tries() -> None:
    async with api(Script(otherwise=refused(99991663))) as (client, server):
        with pytest.raises(FeishuApiError, match="FEISHU_APP_SECRET") as caught:
            await client.bot_info()
        assert kind_of(caught.value) is ErrorKind.TOKEN_INVALID
        assert len(calls(server)) == 2


async def test_a_token_is_fetched_anew_before_it_expires() -> None:
    script = Script(expires_in_s=1.0)
    async with api(script) as (client, _server):
        await client.patch_message("om_1", "{}")
        await client.patch_message("om_1", "{}")
        assert script.tokens == ["t-1"]
        await asyncio.sleep(1.01)
        await client.patch_message("om_1", "{}")
    assert script.tokens == ["t-1", "t-2"]


async def test_a_wrong_secret_is_told_without_it_and_tried_no_further() -> None:
    script = Script()
    script.token_reply = lambda: Reply(json={"code": 10015, "msg": "wrong app secret"})
    async with api(script) as (client, server):
        with pytest.raises(CallRefused, match="FEISHU_APP_SECRET") as caught:
            await client.bot_info()
        assert caught.value.kind is ErrorKind.PERMISSION
        assert "hush-secret" not in str(caught.value)
        assert len(server.seen) == 1


async def test_a_token_answer_without_a_token_is_an_error() -> None:
    script = Script()
    script.token_reply = lambda: Reply(json={"code": 0, "tenant_access_token": ""})
    async with api(script) as (client, server):
        with pytest.raises(CallRefused, match="tenant access token"):
            await client.bot_info()
        assert calls(server) == []


async def test_a_rate_limit_halts_every_call_of_the_app_for_the_time_asked() -> None:
    script = Script(refused(99991400, 429, {"x-ogw-ratelimit-reset": "0.15"}))
    async with api(script) as (client, server):
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(client.add_reaction("om_1", "OK"))
        await asyncio.sleep(0.06)
        script.otherwise = Reply(json={"code": 0, "data": {"reaction_id": "r1"}})
        began_s = loop.time()
        await client.patch_message("om_2", "{}")
        assert loop.time() - began_s > 0.05
        assert await first == "r1"
    assert len(calls(server)) == 3


async def test_one_chats_rate_limit_halts_no_other_call() -> None:
    slow = Script(refused(230020, headers={"retry-after": "0.2"}), otherwise=Reply(json=SENT))
    async with api(slow) as (client, _server):
        first = asyncio.create_task(client.send_message("oc_1", "chat_id", "text", "{}", "u1"))
        await asyncio.sleep(0.06)
        await asyncio.wait_for(client.patch_message("om_2", "{}"), 0.1)
        assert not first.done()
        await first


async def test_patience_with_limits_has_an_end() -> None:
    async with api(Script(otherwise=refused(99991400, 429))) as (client, server):
        with pytest.raises(CallRefused) as caught:
            await client.bot_info()
        assert caught.value.kind is ErrorKind.RATE_LIMITED
        assert caught.value.retryable
        assert len(calls(server)) == 1 + QUICK.max_rate_retries


async def test_a_wait_longer_than_our_patience_is_handed_to_the_caller() -> None:
    async with api(Script(otherwise=refused(99991400, 429, {"x-ogw-ratelimit-reset": "60"}))) as (client, server):
        with pytest.raises(CallRefused) as caught:
            await client.bot_info()
        assert caught.value.retry_after_s == 60
        assert len(calls(server)) == 1


async def test_a_429_without_a_code_is_no_success() -> None:
    async with api(Script(Reply(status=429, json={"ok": True}), Reply(json=SENT))) as (client, server):
        await client.send_message("oc_1", "chat_id", "text", "{}", "u1")
        assert len(calls(server)) == 2


@pytest.mark.parametrize(
    "stumble", [Reply(cut=True), Reply(status=502, content=b"<html>"), Reply(json={"code": 2200, "msg": "internal"})]
)
async def test_a_stumble_is_repeated_with_the_same_uuid(stumble: Reply) -> None:
    async with api(Script(stumble, Reply(json=SENT))) as (client, server):
        await client.send_message("oc_1", "chat_id", "text", "{}", "u1")
        assert [call.json["uuid"] for call in calls(server)] == ["u1", "u1"]


async def test_a_call_that_gets_no_answer_is_uncertain() -> None:
    async with api(Script(otherwise=Reply(cut=True))) as (client, server):
        with pytest.raises(CallRefused) as caught:
            await client.send_message("oc_1", "chat_id", "text", "{}", "u1")
        assert (caught.value.kind, caught.value.uncertain) == (ErrorKind.TRANSIENT, True)
        assert (caught.value.code, caught.value.http_status) == (-1, 0)
        assert len(calls(server)) == 1 + QUICK.max_transient_retries


async def test_doubt_about_an_earlier_try_is_not_forgotten() -> None:
    async with api(Script(Reply(cut=True), refused(230011))) as (client, _server):
        with pytest.raises(CallRefused) as caught:
            await client.reply_message("om_1", "text", "{}", "u1")
        assert (caught.value.kind, caught.value.code, caught.value.uncertain) == (ErrorKind.TARGET_GONE, 230011, True)


async def test_a_call_that_never_got_its_token_never_left() -> None:
    script = Script()
    script.token_reply = lambda: Reply(cut=True)
    async with api(script) as (client, server):
        with pytest.raises(CallRefused) as caught:
            await client.send_message("oc_1", "chat_id", "text", "{}", "u1")
        assert (caught.value.kind, caught.value.uncertain) == (ErrorKind.TRANSIENT, False)
        assert calls(server) == []


async def test_an_answer_without_the_message_it_promises_is_an_error() -> None:
    async with api(Script()) as (client, _server):
        with pytest.raises(CallRefused, match="message_id"):
            await client.send_message("oc_1", "chat_id", "text", "{}", "u1")


async def test_a_server_that_is_not_there_is_certain_not_to_have_been_reached() -> None:
    async with OpenApi("cli_1", "s", "http://127.0.0.1:1", retries=QUICK) as client:
        with pytest.raises(CallRefused) as caught:
            await client.bot_info()
    assert (caught.value.kind, caught.value.uncertain) == (ErrorKind.TRANSIENT, False)


async def test_a_slow_answer_is_given_up_in_time() -> None:
    async with api(Script(otherwise=Reply(wait_s=5)), timeout_s=0.1) as (client, _server):
        with pytest.raises(CallRefused, match="ReadTimeout"):
            await asyncio.wait_for(client.bot_info(), 2)


async def test_a_card_update_whose_first_try_arrived_after_all_is_done() -> None:
    async with api(Script(Reply(cut=True), refused(200770), Reply(cut=True), refused(300317))) as (client, server):
        await client.update_card("c1", {"schema": "2.0"}, 3)
        await client.update_element_content("c1", "md", "text", 4)
        uuids = [call.json["uuid"] for call in calls(server)]
    assert uuids[0] == uuids[1] != uuids[2] == uuids[3]


async def test_a_sequence_refused_at_the_first_try_is_an_error() -> None:
    async with api(Script(refused(300317))) as (client, _server):
        with pytest.raises(CallRefused) as caught:
            await client.update_card_settings("c1", {"config": {"streaming_mode": False}}, 3)
        assert caught.value.kind is ErrorKind.SEQUENCE


async def test_a_missing_scope_is_told_and_not_repeated() -> None:
    body = {"code": 99991672, "msg": "x", "error": {"permission_violations": [{"subject": "im:chat:read"}]}}
    async with api(Script(otherwise=Reply(status=400, json=body))) as (client, server):
        with pytest.raises(CallRefused, match="im:chat:read"):
            await client.get_chat("oc_1")
        assert len(calls(server)) == 1


async def test_what_is_gone_already_counts_as_deleted() -> None:
    async with api(Script(refused(230110), refused(231011), refused(230026))) as (client, _server):
        await client.delete_message("om_1")
        await client.delete_reaction("om_1", "r1")
        with pytest.raises(CallRefused):
            await client.delete_message("om_1")


async def test_cards_are_created_and_referred_to() -> None:
    async with api(Script(Reply(json={"code": 0, "data": {"card_id": "c1"}}))) as (client, server):
        card_id = await client.create_card({"schema": "2.0", "body": {"elements": []}})
        (call,) = calls(server)
    assert json.loads(call.json["data"]) == {"schema": "2.0", "body": {"elements": []}}
    assert json.loads(card_reference(card_id)) == {"type": "card", "data": {"card_id": "c1"}}


async def test_chats_bots_and_stored_messages_are_read() -> None:
    chat = {"code": 0, "data": {"chat_mode": "group", "group_message_type": "thread", "name": "Hafenrunde"}}
    item = {
        "message_id": "om_2", "msg_type": "text",
        "body": {"content": '{"text":"@_user_1"}'}, "upper_message_id": "om_1",
        "sender": {"id": "cli_x", "sender_type": "app"}, "create_time": "1780382900000",
        "mentions": [{"key": "@_user_1", "id": "ou_1", "id_type": "open_id", "name": "Lotse"}],
    }  # fmt: skip
    script = Script(
        Reply(json={"code": 0, "bot": {"open_id": "ou_bot", "app_name": "Lotse"}}),
        Reply(json=chat),
        Reply(json={"code": 0, "data": {"items": [{"message_id": "om_1", "deleted": True}, item]}}),
    )
    async with api(script) as (client, server):
        assert (await client.bot_info()).open_id == "ou_bot"
        assert (await client.get_chat("oc_1")).has_topics
        container, child = await client.get_message("om_1", sent_cards=True)
        assert "card_msg_content_type=user_card_content" in calls(server)[2].path
    assert container.deleted
    assert (child.upper_message_id, child.mentions[0].open_id, child.created_ms) == ("om_1", "ou_1", 1780382900000)


async def test_an_image_and_a_file_are_uploaded_under_their_names() -> None:
    image, file = {"code": 0, "data": {"image_key": "img_1"}}, {"code": 0, "data": {"file_key": "file_1"}}
    async with api(Script(Reply(json=image), refused(99991663), Reply(json=file))) as (client, server):
        assert await client.upload_image(b"\x89PNG") == "img_1"
        assert await client.upload_file(b"data", "季度报表（终稿）.xlsx", file_type="xls") == "file_1"
        first, _, last = calls(server)
    assert b"\x89PNG" in first.body
    assert "季度报表（终稿）.xlsx".encode() in last.body
    assert b'name="file_type"\r\n\r\nxls' in last.body


async def test_a_download_is_streamed_and_bounded() -> None:
    binary = {"Content-Type": "application/pdf"}
    script = Script(
        refused(99991663),
        refused(99991400, 429),
        Reply(cut=True),
        Reply(content=b"x" * 1000, headers=binary),
        Reply(content=b"x" * 1000, headers=binary),
        refused(234003),
        Reply(json={"code": 234003, "msg": "File not in msg"}),
        Reply(content=b'{"a":1}', headers={"Content-Disposition": "attachment"}),
        Reply(json={"code": 0}),
    )
    async with api(script) as (client, server):

        async def take(max_bytes: int) -> bytes:
            async with client.download_resource("om_1", "file/../1", "file", max_bytes=max_bytes) as resource:
                return b"".join([chunk async for chunk in resource.chunks])

        assert await take(1000) == b"x" * 1000
        with pytest.raises(ResourceTooLarge):
            await take(999)
        for _ in range(2):
            with pytest.raises(CallRefused) as caught:
                await take(10)
            assert caught.value.code == 234003
        assert await take(10) == b'{"a":1}'  # a person's own JSON file
        with pytest.raises(CallRefused, match="without a file"):
            await take(10)
        assert calls(server)[0].path == "/open-apis/im/v1/messages/om_1/resources/file%2F..%2F1?type=file"


async def test_a_download_that_lies_about_its_length_is_cut_off() -> None:
    headers = {"Content-Type": "application/pdf", "Content-Encoding": "gzip"}
    script = Script(Reply(content=gzip.compress(b"\0" * 1_000_000), headers=headers))
    async with (
        api(script) as (client, _server),
        client.download_resource("om_1", "f1", "file", max_bytes=50_000) as resource,
    ):
        with pytest.raises(ResourceTooLarge):
            async for _chunk in resource.chunks:
                pass


async def test_the_gates_let_no_window_exceed_the_limit() -> None:
    loop = asyncio.get_running_loop()
    limits = Limits(card=Rate(burst=2, per_s=40))
    began_s, times = loop.time(), []
    for _ in range(8):
        async with limits.card("c1"):
            times.append(loop.time() - began_s)
    assert times[1] < 0.02
    for index, at_s in enumerate(times):
        assert index + 1 <= 2 + at_s * 40 + 0.01
    async with limits.card("c2"):
        assert loop.time() - began_s < times[-1] + 0.02  # another card does not wait


@pytest.mark.parametrize(
    ("rate", "limit", "window_s"),
    [(CARD, 10, 1), (CHAT, 5, 1), (MESSAGE, 5, 1), (API_SECOND, 50, 1), (API_MINUTE, 1000, 60)],
)
def test_no_rate_of_ours_can_exceed_feishus(rate: Rate, limit: int, window_s: int) -> None:
    assert rate.burst + rate.per_s * window_s <= 0.97 * limit


async def test_quiet_cards_leave_nothing_behind() -> None:
    limits = Limits(card=Rate(burst=2, per_s=100_000))
    for number in range(5000):
        async with limits.card(f"c{number}"):
            pass
    assert limits.tracked <= 512
