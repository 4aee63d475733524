"""How the sandbox delivers events: frames, acks, redelivery, faults on the way."""

import asyncio
import json
from typing import Any

import httpx
import pytest
import websockets

from agno_lark.testing import ClientConfig
from tests.sandbox_fixtures import sandbox_and_bot, until

MARTA = "Marta Weiss"


async def test_discovery_names_an_address_with_both_mandatory_parameters() -> None:
    async with sandbox_and_bot(client_config=ClientConfig(ping_interval_s=7)) as (_, bot):
        answer = await bot.discover()
        assert answer["code"] == 0
        query = httpx.URL(answer["data"]["URL"]).params
        assert query["device_id"]
        assert query["service_id"].isdigit()
        assert answer["data"]["ClientConfig"] == {
            "ReconnectCount": -1,
            "ReconnectInterval": 2,
            "ReconnectNonce": 1,
            "PingInterval": 7,
        }


async def test_discovery_refuses_wrong_credentials_with_514() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        answer = await bot.http.post("/callback/ws/endpoint", json={"AppID": feishu.app_id, "AppSecret": "no"})
        assert (answer.status_code, answer.json()["code"]) == (200, 514)


async def test_the_wrong_domain_code_comes_on_demand() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        feishu.faults.fail("/callback/ws/endpoint", status=200, code=1000040351)
        assert (await bot.discover())["code"] == 1000040351
        assert (await bot.discover())["code"] == 0


async def test_a_direct_message_arrives_with_all_five_headers_and_is_acked() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        message = await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        await until(lambda: line.events)
        headers = {h.key: h.value for h in line.frames[0].headers}
        assert headers.keys() == {"type", "message_id", "sum", "seq", "trace_id"}
        assert (headers["type"], headers["sum"], headers["seq"]) == ("event", "1", "0")
        event = line.events[0]
        assert event["schema"] == "2.0"
        assert event["header"]["event_type"] == "im.message.receive_v1"
        body = event["event"]["message"]
        assert body["message_id"] == message.message_id
        assert (body["chat_type"], json.loads(body["content"])) == ("p2p", {"text": "hello"})
        assert not {"root_id", "parent_id", "thread_id", "mentions"} & body.keys()
        await until(lambda: feishu.deliveries.counts["acks_200"] == 1)


async def test_an_event_acked_500_or_not_at_all_comes_again_by_the_schedule_with_the_same_id() -> None:
    answers: list[Any] = [(500, None), None, (200, None)]
    async with (
        sandbox_and_bot(redelivery_s=(0.02, 0.02), ack_s=0.3) as (feishu, bot),
        bot.line(lambda event: answers.pop(0)) as line,
    ):
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "again")
        await until(lambda: feishu.deliveries.counts["acks_200"] == 1)
        assert len({event["header"]["event_id"] for event in line.events}) == 1
        assert len(line.events) == 3


async def test_an_event_is_lost_when_its_schedule_is_used_up() -> None:
    async with sandbox_and_bot(redelivery_s=(0.01,), ack_s=0.02) as (feishu, bot), bot.line(lambda e: None) as line:
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "nobody listens")
        await until(lambda: feishu.deliveries.counts["lost"] == 1)
        assert len(line.events) == 2


async def test_what_was_written_while_nobody_was_connected_arrives_after_the_connection() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "one")
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "two")
        async with bot.line() as line:
            await until(lambda: len(line.events) == 2)
            texts = [json.loads(e["event"]["message"]["content"])["text"] for e in line.events]
            assert texts == ["one", "two"]


async def test_a_message_recalled_before_its_delivery_arrives_without_content() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        message = await feishu.write(MARTA, "Team", "a slip")
        await feishu.recall(MARTA, message.message_id)
        async with bot.line() as line:
            await until(lambda: len(line.events) == 2)
            assert line.events[0]["event"]["message"]["content"] == ""
            assert line.events[1]["header"]["event_type"] == "im.message.recalled_v1"


async def test_every_event_goes_to_one_of_the_connections() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as left, bot.line() as right:
        await feishu.until_connected(2)
        for n in range(40):
            await feishu.write(MARTA, feishu.direct_chat(MARTA), str(n))
        await until(lambda: len(left.events) + len(right.events) == 40)
        assert left.events
        assert right.events


async def test_a_ping_is_answered_with_the_client_config() -> None:
    async with sandbox_and_bot() as (_, bot), bot.line() as line:
        await line.ping()
        await until(lambda: line.pongs)
        assert json.loads(line.pongs[0])["PingInterval"] == 30


async def test_the_fifty_first_connection_is_refused_with_the_reason_in_headers() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        sockets = []
        for _ in range(50):
            url = (await bot.discover())["data"]["URL"]
            sockets.append(await websockets.connect(url, proxy=None))
        await feishu.until_connected(50)
        url = (await bot.discover())["data"]["URL"]
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(url, proxy=None)
        headers = refused.value.response.headers
        assert headers["handshake-status"] == "514"
        assert headers["handshake-autherrcode"] == "1000040350"
        assert headers["handshake-msg"]
        await asyncio.gather(*(socket.close() for socket in sockets))


async def test_a_handshake_is_refused_or_broken_on_demand() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        url = (await bot.discover())["data"]["URL"]
        feishu.faults.fail("/sandbox/ws", code=403, message="forbidden")
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(url, proxy=None)
        headers = refused.value.response.headers
        assert (headers["handshake-status"], headers["handshake-msg"]) == ("403", "forbidden")
        feishu.faults.reset("/sandbox/ws")
        with pytest.raises((OSError, websockets.InvalidMessage)):
            await websockets.connect(url, proxy=None)
        async with websockets.connect(url, proxy=None):
            await feishu.until_connected()


async def test_an_address_serves_for_one_connection_only() -> None:
    async with sandbox_and_bot() as (_, bot):
        url = (await bot.discover())["data"]["URL"]
        async with websockets.connect(url, proxy=None):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(url, proxy=None)
        assert refused.value.response.headers["handshake-status"] == "403"


async def test_an_event_comes_in_parts_and_twice_and_late_and_reordered_and_renamed_on_demand() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        chat = feishu.direct_chat(MARTA)
        feishu.faults.split_next(3)
        await feishu.write(MARTA, chat, "parts")
        await until(lambda: len(line.events) == 1)
        assert len(line.frames) == 3
        feishu.faults.duplicate_next(2)
        await feishu.write(MARTA, chat, "thrice")
        await until(lambda: len(line.events) == 4)
        assert len({e["header"]["event_id"] for e in line.events[1:]}) == 1
        feishu.faults.delay_next(0.1)
        await feishu.write(MARTA, chat, "late")
        await feishu.write(MARTA, chat, "early")
        await until(lambda: len(line.events) == 6)
        feishu.faults.reorder_next(2)
        await feishu.write(MARTA, chat, "first")
        await feishu.write(MARTA, chat, "second")
        await until(lambda: len(line.events) == 8)
        texts = [json.loads(e["event"]["message"]["content"])["text"] for e in line.events[4:]]
        assert texts == ["early", "late", "second", "first"]
        feishu.faults.new_event_id_next()
        await feishu.write(MARTA, chat, "renamed")
        await until(lambda: len(line.events) == 10)
        old, new = line.events[8:]
        assert old["header"]["event_id"] != new["header"]["event_id"]
        assert old["event"] == new["event"]


async def test_what_is_held_back_to_be_reordered_leaves_when_the_faults_are_cleared() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        feishu.faults.reorder_next(3)
        for text in ("first", "second"):
            await feishu.write(MARTA, feishu.direct_chat(MARTA), text)
        feishu.faults.clear()
        await until(lambda: len(line.events) == 2)
        texts = [json.loads(e["event"]["message"]["content"])["text"] for e in line.events]
        assert texts == ["second", "first"]


async def test_a_dropped_socket_breaks_without_goodbye_and_its_event_comes_over_the_next() -> None:
    async with sandbox_and_bot(redelivery_s=(0.02,)) as (feishu, bot):
        async with bot.line(lambda event: None) as line:
            await feishu.write(MARTA, feishu.direct_chat(MARTA), "hold the line")
            await until(lambda: line.events)
            assert feishu.faults.drop_sockets() == 1
            await until(lambda: line.socket.close_code is not None)
            assert line.socket.close_code == 1006
        async with bot.line() as line:
            await until(lambda: line.events)
            assert feishu.connection_count == 1


async def test_a_silent_socket_stays_open_and_says_nothing() -> None:
    async with sandbox_and_bot(ack_s=0.05, redelivery_s=(0.02,)) as (feishu, bot), bot.line() as line:
        assert feishu.faults.silence() == 1
        await line.ping()
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "anybody?")
        await until(lambda: feishu.deliveries.counts["lost"] == 1)
        assert (line.pongs, line.events, line.socket.close_code) == ([], [], None)


async def test_frames_that_are_none_do_not_end_the_connection() -> None:
    async with sandbox_and_bot() as (_, bot), bot.line() as line:
        await line.socket.send(b"\xff\xff\xff not a frame")
        await line.ping()
        await until(lambda: line.pongs)


async def test_the_sandbox_goes_down_quickly_with_clients_connected() -> None:
    loop = asyncio.get_running_loop()
    async with sandbox_and_bot() as (feishu, bot):
        url = (await bot.discover())["data"]["URL"]
        socket = await websockets.connect(url, proxy=None)
        await feishu.until_connected()
        started_s = loop.time()
    assert loop.time() - started_s < 2.5
    await socket.wait_closed()
    assert socket.close_code in (1001, 1012)


async def test_an_outage_refuses_connections_and_ends_with_the_same_world_at_the_same_address() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        await bot.send("Team")
        async with feishu.outage():
            with pytest.raises(httpx.ConnectError):
                await bot.discover()
            await feishu.write(MARTA, "Team", "anybody?")
        async with bot.line() as line:
            await until(lambda: line.events)
        assert [shown.author for shown in feishu.screen("Team")] == ["Helper", MARTA]


async def test_people_and_chats_have_other_ids_with_a_salt() -> None:
    async with sandbox_and_bot() as (plain, _), sandbox_and_bot(salt="s") as (salted, _):
        assert not plain.world.chats.keys() & salted.world.chats.keys()
        assert plain.world.person(MARTA).open_id != salted.world.person(MARTA).open_id


async def test_a_mention_in_a_group_is_a_key_and_the_bot_is_named_in_mentions() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        team = feishu.world.chat("Team")
        tom = feishu.world.person("Tom Okafor")
        await feishu.write(MARTA, "Team", "ask @Tom Okafor", mention_bot=True, mentions=[tom.open_id])
        await until(lambda: line.events)
        body = line.events[0]["event"]["message"]
        assert (body["chat_id"], body["chat_type"]) == (team.chat_id, "group")
        assert json.loads(body["content"])["text"] == "@_user_1 ask @_user_2"
        bot_mention, tom_mention = body["mentions"]
        assert (bot_mention["mentioned_type"], bot_mention["id"]["open_id"]) == ("bot", feishu.world.app.bot_open_id)
        assert (tom_mention["mentioned_type"], tom_mention["id"]["open_id"]) == ("user", tom.open_id)
        assert feishu.screen("Team")[0].text == "@Helper ask @Tom Okafor"


async def test_topics_and_quotes_carry_the_ids_the_platform_gives_them() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        first = await feishu.write(MARTA, "Team", "one")
        second = await feishu.write(MARTA, "Team", "two", reply_to=first.message_id)
        await feishu.write(MARTA, "Team", "three", reply_to=second.message_id)
        root = await feishu.write(MARTA, "Topics", "a topic")
        await feishu.write(MARTA, "Topics", "inside", in_thread=root.thread_id)
        await until(lambda: len(line.events) == 5)
        bodies = [event["event"]["message"] for event in line.events]
        ids = [(b.get("root_id"), b.get("parent_id"), b.get("thread_id")) for b in bodies]
        one, two, top = first.message_id, second.message_id, root.message_id
        assert ids == [(None, None, None), (one, one, None), (one, two, None), (None, None, root.thread_id),
                       (top, top, root.thread_id)]  # fmt: skip
        assert str(root.thread_id).startswith("omt_")


async def test_recalls_and_reactions_are_events_too() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        message = await feishu.write(MARTA, "Team", "oops")
        await feishu.world.react(MARTA, message.message_id, "DONE")
        await feishu.world.react(MARTA, message.message_id, "DONE")
        await feishu.recall(MARTA, message.message_id)
        await until(lambda: len(line.events) == 4)
        kinds = [event["header"]["event_type"] for event in line.events]
        assert kinds[1:] == [
            "im.message.reaction.created_v1",
            "im.message.reaction.deleted_v1",
            "im.message.recalled_v1",
        ]
        assert line.events[3]["event"]["message_id"] == message.message_id
        assert feishu.screen("Team")[0].recalled
