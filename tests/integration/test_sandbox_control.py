"""The control endpoint and the faults it arms, seen from another process's side: HTTP only."""

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest

from agno_lark.sandbox.control_asks import VERBS
from agno_lark.sandbox.server import build_app
from agno_lark.testing import FeishuSandbox
from tests.sandbox_fixtures import Bot, Json, sandbox_and_bot, stream_card, until

MARTA = "Marta Weiss"


async def ask(bot: Bot, verb: str, **fields: Any) -> Json:
    answer = await bot.http.post(f"/sandbox/control/{verb}", json=fields)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    assert body["ok"]
    return body


async def test_people_write_click_react_and_recall_over_the_control_endpoint() -> None:
    def reply(event: Json) -> tuple[int, Json | None]:
        return 200, {"toast": {"type": "info", "content": "ok"}}

    async with sandbox_and_bot() as (feishu, bot), bot.line(reply) as line:
        team = feishu.world.chat("Team").chat_id
        made = await ask(bot, "write", person=MARTA, chat_id=team, text="hello", mention_bot=True)
        await ask(
            bot, "write_post", person=MARTA, chat_id="Team", post={"content": [[{"tag": "text", "text": "rich"}]]}
        )
        data = base64.b64encode(b"\x89PNG").decode()
        await ask(bot, "send_file", person=MARTA, chat_id="Team", data=data, name="a.png", kind="image")
        await ask(bot, "merge_forward", person=MARTA, chat_id="Team", message_ids=[made["message_id"]])
        await ask(bot, "react", person=MARTA, message_id=made["message_id"], emoji="OK")
        await ask(bot, "recall", person=MARTA, message_id=made["message_id"])
        button = {"tag": "button", "text": {"tag": "plain_text", "content": "Go"}}
        _, message_id = await bot.show_card(stream_card(button))
        assert (await ask(bot, "press", person=MARTA, message_id=message_id, label="Go"))["answer"]["toast"]
        clicked = await ask(bot, "click", person=MARTA, message_id=message_id, action={"tag": "button", "value": {}})
        assert clicked["answer"]["toast"]["content"] == "ok"
        screen = (await bot.http.get("/sandbox/screen", params={"chat_id": team})).json()["screen"]
        assert [s["kind"] for s in screen] == ["text", "post", "image", "merge_forward", "interactive"]
        assert screen[0]["recalled"]
        await until(lambda: len(line.events) == 8)


async def test_the_state_names_people_chats_connections_and_counts_but_no_secret() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line():
        await feishu.until_connected()
        await bot.send("Team")
        answer = await bot.http.get("/sandbox/state")
        state = answer.json()
        assert state["connections"] == 1
        assert {chat["name"] for chat in state["chats"]} >= {"Team", "Topics"}
        assert state["counts"]["message.create"] == 1
        assert feishu.app_secret not in answer.text


async def test_a_message_is_told_with_its_whole_history() -> None:
    async with sandbox_and_bot() as (_, bot):
        card_id, message_id = await bot.show_card(stream_card())
        path = f"/cardkit/v1/cards/{card_id}/elements/answer/content"
        await bot.ok("PUT", path, {"content": "more", "sequence": 3})
        told = (await bot.http.get(f"/sandbox/message/{message_id}")).json()
        assert told["shown"]["text"] == "more"
        assert [(edit["kind"], edit["sequence"]) for edit in told["card"]["history"]] == [("content", 3)]


@pytest.mark.parametrize(
    ("verb", "fields", "status", "said"),
    [
        ("wrote", {}, 404, "no verb 'wrote'; there are add_group"),
        ("write", {"person": MARTA, "chat_id": "Team"}, 400, "write: text: Field required"),
        ("write", {"person": "Nobody", "chat_id": "Team", "text": "x"}, 404, "no person 'Nobody'"),
        ("write", {"person": MARTA, "chat_id": "Nowhere", "text": "x"}, 404, "no chat 'Nowhere'"),
        ("write", {"person": MARTA, "chat_id": "Team", "text": "x", "loud": True}, 400, "loud"),
        ("recall", {"person": MARTA, "message_id": "om_none"}, 404, "no message"),
        ("send_file", {"person": MARTA, "chat_id": "Team", "data": "%"}, 400, "base64"),
        ("fail", {"path": "*", "times": 0}, 400, "times"),
        ("recall", {"person": MARTA, "message": "om_1"}, 400, "It takes: person, message_id"),
        ("send_file", {"person": MARTA}, 400, "It takes: person, chat_id, data, [name], [kind], [in_thread]"),
        ("clear_faults", {"path": "*"}, 400, "It takes: no fields"),
    ],
)
async def test_a_wrong_ask_is_answered_with_a_clear_error(verb: str, fields: Json, status: int, said: str) -> None:
    async with sandbox_and_bot() as (_, bot):
        answer = await bot.http.post(f"/sandbox/control/{verb}", json=fields)
        assert answer.status_code == status
        assert said in answer.json()["error"]


@pytest.mark.parametrize("arrived", [[], [b'{"content": "half'], [b'{"content": "x", "sequence": 2}']])
async def test_a_call_whose_caller_left_before_its_end_is_not_carried_out(arrived: list[bytes]) -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, _ = await bot.show_card(stream_card())
        path = f"/open-apis/cardkit/v1/cards/{card_id}/elements/answer/content"
        counted, answered = dict(feishu.world.counts), list[Any]()
        coming = [{"type": "http.request", "body": piece, "more_body": True} for piece in arrived]
        coming.append({"type": "http.disconnect"})

        async def receive() -> Any:
            return coming.pop(0)

        async def send(message: Any) -> None:
            answered.append(message)

        token = f"Bearer {bot.token}".encode()
        scope = {
            "type": "http",
            "method": "PUT",
            "path": path,
            "query_string": b"",
            "headers": [(b"authorization", token)],
        }
        await build_app(feishu._feishu)(scope, receive, send)
        assert (answered, dict(feishu.world.counts)) == ([], counted)


async def test_other_sites_forms_cannot_ask() -> None:
    async with sandbox_and_bot() as (_, bot):
        body = json.dumps({"seconds": 5})
        answer = await bot.http.post("/sandbox/control/advance", content=body, headers={"Content-Type": "text/plain"})
        assert answer.status_code == 415
        answer = await bot.http.post(
            "/sandbox/control/advance", content="{", headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["error"]) == (400, "advance: the body is not JSON")


async def test_the_next_answers_of_a_path_fail_as_told_and_then_no_more() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        path = "POST /open-apis/im/v1/messages"
        await ask(bot, "fail", path=path, times=2, status=429, code=99991400, headers={"x-ogw-ratelimit-reset": "7"})
        body = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": "text", "content": '{"text":"x"}'}
        answers = [await bot.raw("POST", "/im/v1/messages?receive_id_type=chat_id", body) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [429, 429, 200]
        assert (answers[0].json()["code"], answers[0].headers["x-ogw-ratelimit-reset"]) == (99991400, "7")
        assert len(feishu.screen("Team")) == 1


async def test_an_answer_may_fail_after_its_effect() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        await ask(bot, "fail", path="/open-apis/im/v1/messages", status=502, body="bad gateway", after_effect=True)
        body = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": "text", "content": '{"text":"x"}'}
        answer = await bot.raw("POST", "/im/v1/messages?receive_id_type=chat_id", body)
        assert (answer.status_code, answer.text) == (502, "bad gateway")
        assert len(feishu.screen("Team")) == 1


@pytest.mark.parametrize("after_effect", [False, True])
async def test_a_connection_is_reset_before_or_after_the_effect(after_effect: bool) -> None:
    async with sandbox_and_bot() as (feishu, bot):
        await bot.log_in()
        await ask(bot, "reset", path="/open-apis/im/v1/messages", after_effect=after_effect)
        body = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": "text", "content": '{"text":"x"}'}
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await bot.raw("POST", "/im/v1/messages?receive_id_type=chat_id", body)
        assert len(feishu.screen("Team")) == int(after_effect)
        await bot.raw("POST", "/im/v1/messages?receive_id_type=chat_id", body)
        assert len(feishu.screen("Team")) == 1 + int(after_effect)


async def test_latency_delays_a_path_and_no_other() -> None:
    async with sandbox_and_bot() as (_, bot):
        await bot.log_in()
        await ask(bot, "latency", path="/open-apis/bot/*", seconds=0.5)
        slow = asyncio.create_task(bot.ok("GET", "/bot/v3/info"))
        await bot.send("Team")
        assert not slow.done()
        assert (await slow)["bot"]
        assert (await ask(bot, "clear_faults"))["rules"] == []


async def test_a_path_with_a_named_part_matches_any_id() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        asked = await feishu.write(MARTA, "Team", "?")
        feishu.faults.fail("/open-apis/im/v1/messages/:message_id/reply", status=400, code=230020)
        path = f"/im/v1/messages/{asked.message_id}/reply"
        codes = [await bot.code("POST", path, {"msg_type": "text", "content": '{"text":"x"}'}) for _ in range(2)]
        assert codes == [230020, 0]


async def test_time_tokens_rates_and_schedule_are_set_from_outside() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        await bot.log_in()
        now_ms = feishu.world.clock.now_ms()
        assert (await ask(bot, "advance", seconds=60))["now_ms"] >= now_ms + 60_000
        assert (await ask(bot, "expire_tokens"))["tokens"] == 1
        assert await bot.code("GET", "/bot/v3/info") == 99991663
        await ask(bot, "limits", api_per_s=0, api_per_min=0)
        assert feishu.limits.api_per_s == 0
        schedule = await ask(bot, "redelivery", ack_s=1.5, redelivery_s=[1, 2])
        assert (schedule["ack_s"], feishu.deliveries.redelivery_s) == (1.5, (1.0, 2.0))
        assert (await ask(bot, "client_config", ping_interval_s=3))["PingInterval"] == 3
        assert (await bot.discover())["data"]["ClientConfig"]["PingInterval"] == 3


async def test_sockets_and_next_events_are_disturbed_from_outside() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        async with bot.line() as line:
            await feishu.until_connected()
            await ask(bot, "next_events", duplicate=1, parts=2)
            await feishu.write(MARTA, "Team", "x")
            await until(lambda: len(line.events) == 2)
            envelope = {"schema": "2.0", "header": {"event_id": "e-1", "event_type": "new.kind_v9"}, "event": {}}
            assert (await ask(bot, "emit", envelope=envelope))["event_id"] == "e-1"
            await until(lambda: line.events[-1] == envelope)
            assert (await ask(bot, "drop_sockets"))["sockets"] == 1
        async with bot.line():
            await feishu.until_connected()
            assert (await ask(bot, "silence"))["sockets"] == 1


async def test_more_people_and_groups_may_join() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        made = await ask(bot, "add_person", name="Ada 1")
        group = await ask(bot, "add_group", name="Second", topics=True)
        await ask(bot, "write", person="Ada 1", chat_id=made["chat_id"], text="direct")
        await ask(bot, "write", person="Ada 1", chat_id="Team", text="in the old group")
        await ask(bot, "write", person=made["open_id"], chat_id=group["chat_id"], text="in the new one")
        await until(lambda: len(line.events) == 3)
        assert feishu.world.chat("Second").mode == "topic"
        members = feishu.world.chat("Team").members
        assert len(members) == len(set(members)) == 4
        again = await bot.http.post("/sandbox/control/add_person", json={"name": "Ada 1"})
        assert (again.status_code, again.json()["error"]) == (404, "the name 'Ada 1' is taken")


async def test_a_host_name_of_somebodys_own_is_refused() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        port = httpx.URL(feishu.url).port
        for host, status in (("evil.example", 403), (f"localhost:{port}", 200), (f"127.0.0.1:{port}", 200)):
            answer = await bot.http.get("/sandbox/state", headers={"Host": host})
            assert answer.status_code == status


def test_every_verb_says_what_it_does() -> None:
    assert all((ask.__doc__ or "").strip() for ask in VERBS.values())


async def test_waiting_in_vain_tells_what_people_see() -> None:
    async with FeishuSandbox() as feishu:
        await feishu.write(MARTA, "Team", "anybody there?")
        with pytest.raises(
            AssertionError, match=r"not within 0.05 s.*\n.*\[Team\] Marta Weiss: text 'anybody there\?'"
        ):
            await feishu.until(lambda world: False, within_s=0.05)
