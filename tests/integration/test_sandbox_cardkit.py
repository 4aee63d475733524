"""CardKit in the sandbox: entities, sequences, streaming, elements, refusals with the platform's codes."""

import asyncio
import json
from typing import Any

import pytest

from agno_lark.testing import Limits
from tests.sandbox_fixtures import Bot, Json, StillSeconds, sandbox_and_bot, stream_card, until

TEXT = {"tag": "markdown", "content": "one", "element_id": "answer"}
BUTTON: Json = {
    "tag": "button",
    "element_id": "stop",
    "text": {"tag": "plain_text", "content": "Stop"},
    "behaviors": [{"type": "callback", "value": {"act": "stop"}}],
}


async def content(bot: Bot, card_id: str, text: str, sequence: Any, **more: Any) -> int:
    element = more.pop("element", "answer")
    body = {"content": text, "sequence": sequence, **more}
    return await bot.code("PUT", f"/cardkit/v1/cards/{card_id}/elements/{element}/content", body)


async def settings(bot: Bot, card_id: str, config: Json, sequence: int) -> int:
    body = {"settings": json.dumps({"config": config}), "sequence": sequence}
    return await bot.code("PATCH", f"/cardkit/v1/cards/{card_id}/settings", body)


async def replace(bot: Bot, card_id: str, card: Any, sequence: int) -> int:
    body = {"card": {"type": "card_json", "data": json.dumps(card)}, "sequence": sequence}
    return await bot.code("PUT", f"/cardkit/v1/cards/{card_id}", body)


async def test_a_streamed_card_grows_before_peoples_eyes_and_closes() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, message_id = await bot.show_card(stream_card(TEXT))
        assert feishu.screen("Team")[0].streaming
        assert await content(bot, card_id, "one two", 1) == 0
        assert await content(bot, card_id, "one two three", 2) == 0
        assert feishu.screen("Team")[0].text == "one two three"
        assert await settings(bot, card_id, {"streaming_mode": False}, 3) == 0
        assert await replace(bot, card_id, stream_card(TEXT, BUTTON, streaming=False), 4) == 0
        shown = feishu.screen("Team")[0]
        assert (shown.message_id, shown.text, shown.streaming, shown.edits) == (message_id, "one\nStop", False, 4)
        card = feishu.card_of(message_id)
        assert card is not None
        assert [edit.text for edit in card.history if edit.kind == "content"] == ["one two", "one two three"]


async def test_the_sequence_must_grow_over_all_calls_and_a_refused_call_takes_none() -> None:
    async with sandbox_and_bot() as (_, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        assert await content(bot, card_id, "a", 5) == 0
        assert await content(bot, card_id, "b", 5) == 300317
        assert await content(bot, card_id, "b", 4) == 300317
        assert await settings(bot, card_id, {"streaming_mode": True}, 0) == 300317
        assert await content(bot, card_id, "b", 6, element="nowhere") == 300313
        assert await content(bot, card_id, "b", 6) == 0
        assert [await content(bot, card_id, "c", wrong) for wrong in ("7", None, True, 2**31)] == [10002] * 4


async def test_streaming_calls_need_streaming_mode_and_a_text() -> None:
    async with sandbox_and_bot() as (_, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT, BUTTON))
        assert await content(bot, card_id, "x", 1, element="stop") == 300310
        assert await content(bot, card_id, "x", 1, element="gone") == 300313
        assert await content(bot, card_id, "", 1) == 10002
        assert await settings(bot, card_id, {"streaming_mode": False}, 2) == 0
        assert await content(bot, card_id, "x", 3) == 300309


async def test_streaming_closes_itself_ten_minutes_after_its_last_opening() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        feishu.advance(9 * 60)
        assert await settings(bot, card_id, {"streaming_mode": True}, 1) == 0
        feishu.advance(9 * 60)
        assert await content(bot, card_id, "still open", 2) == 0
        feishu.advance(61)
        assert await content(bot, card_id, "too late", 3) == 200850
        assert not feishu.screen("Team")[0].streaming
        assert await settings(bot, card_id, {"streaming_mode": True}, 3) == 0
        assert await content(bot, card_id, "open again", 4) == 0


async def test_a_card_takes_ten_operations_a_second() -> None:
    async with sandbox_and_bot(clock=StillSeconds()) as (_, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        for n in range(1, 11):
            assert await content(bot, card_id, f"{n}", n) == 0
        answer = await bot.raw(
            "PUT", f"/cardkit/v1/cards/{card_id}/elements/answer/content", {"content": "11", "sequence": 11}
        )
        assert (answer.status_code, answer.json()["code"]) == (429, 99991400)
        assert answer.headers["x-ogw-ratelimit-reset"] == "1"


async def test_an_entity_is_sent_once_and_must_exist_and_be_young() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        team = feishu.world.chat("Team").chat_id
        card_id, _ = await bot.show_card(stream_card(TEXT))
        old = await bot.new_card(stream_card(TEXT))

        async def send(card: str) -> Json:
            body = {"receive_id": team, "msg_type": "interactive"}
            body["content"] = json.dumps({"type": "card", "data": {"card_id": card}})
            return (await bot.call("POST", "/im/v1/messages?receive_id_type=chat_id", body))[1]

        for refused in (await send(card_id), await send("1234567890123456789")):
            assert refused["code"] == 230099
            assert "ErrCode: 11310; ErrMsg: cardid is invalid" in refused["msg"]
        feishu.advance(14 * 24 * 3600 + 1)
        await bot.log_in()
        assert "ErrCode: 200750" in (await send(old))["msg"]
        assert await content(bot, card_id, "x", 1) == 200750
        assert await content(bot, "42", "x", 1) == 200740


async def test_a_bare_card_id_is_a_card_with_an_unknown_property() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id = await bot.new_card(stream_card(TEXT))
        body = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": "interactive"}
        body["content"] = json.dumps({"card_id": card_id})
        _, answer = await bot.call("POST", "/im/v1/messages?receive_id_type=chat_id", body)
        assert answer["code"] == 230099
        assert "ErrCode: 200621" in answer["msg"]


@pytest.mark.parametrize(
    ("card", "code"),
    [
        ({}, 300307),
        ({"body": {"elements": []}}, 300303),
        (stream_card(TEXT, TEXT), 300301),
        (stream_card(*({"tag": "hr"} for _ in range(201))), 300305),
        (stream_card({"tag": "markdown", "content": "x" * 31_000}), 200860),
        ({"schema": "2.0", "config": {"update_multi": False}, "body": {"elements": []}}, 300302),
        (stream_card({"tag": "markdown", "content": "x", "colour": "red"}), 200220),
        (stream_card({"tag": "note", "elements": []}), 200220),
    ],
    ids=["empty", "schema", "twice", "many", "big", "private", "unknown", "removed"],
)
async def test_a_bad_card_is_refused_when_made_with_the_platforms_code(card: Json, code: int) -> None:
    async with sandbox_and_bot() as (_, bot):
        assert await bot.code("POST", "/cardkit/v1/cards", {"type": "card_json", "data": json.dumps(card)}) == code


async def test_a_whole_card_update_is_judged_too_and_changes_nothing_when_refused() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        assert await replace(bot, card_id, stream_card({"tag": "markdown", "content": "汉" * 10_500}), 1) == 200860
        assert await replace(bot, card_id, stream_card({"tag": "markdown", "text": "x"}), 1) == 300121
        assert feishu.screen("Team")[0].text == "one"


async def test_streamed_text_may_not_make_the_card_too_big_nor_full_of_tables_nor_show_urls() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        assert await content(bot, card_id, "汉" * 10_500, 1) == 200860
        assert await content(bot, card_id, "\n\n|a|b|\n|-|-|\n|1|2|\n\n" * 6, 1) == 200220
        assert await content(bot, card_id, "![x](https://example.org/x.png)", 1) == 200220
        assert feishu.screen("Team")[0].text == "one"


async def test_a_uuid_is_taken_once_and_a_refused_call_leaves_it_free() -> None:
    async with sandbox_and_bot() as (_, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        assert await content(bot, card_id, "x", 1, element="gone", uuid="u1") == 300313
        assert await content(bot, card_id, "x", 1, uuid="u1") == 0
        assert await content(bot, card_id, "y", 2, uuid="u1") == 200770
        assert await content(bot, card_id, "y", 2, uuid="u" * 65) == 10002


async def test_elements_are_added_replaced_patched_and_deleted() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        base = f"/cardkit/v1/cards/{card_id}/elements"
        add = {"type": "insert_after", "target_element_id": "answer", "elements": json.dumps([BUTTON]), "sequence": 1}
        await bot.ok("POST", base, add)
        new = {"tag": "markdown", "content": "two", "element_id": "answer"}
        await bot.ok("PUT", f"{base}/answer", {"element": json.dumps(new), "sequence": 2})
        text = {"text": {"tag": "plain_text", "content": "Halt"}}
        await bot.ok("PATCH", f"{base}/stop", {"partial_element": json.dumps(text), "sequence": 3})
        assert feishu.screen("Team")[0].text == "two\nHalt"
        tag = json.dumps({"tag": "hr"})
        assert await bot.code("PATCH", f"{base}/stop", {"partial_element": tag, "sequence": 4}) == 300312
        assert await bot.code("DELETE", f"{base}/nobody", {"sequence": 4}) == 300314
        assert await bot.code("PUT", f"{base}/nobody", {"element": json.dumps(new), "sequence": 4}) == 300313
        await bot.ok("DELETE", f"{base}/stop", {"sequence": 4})
        assert feishu.screen("Team")[0].text == "two"


async def test_a_batch_is_carried_out_whole_or_not_at_all() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card_id, _ = await bot.show_card(stream_card(TEXT))
        good: list[Json] = [
            {"action": "add_elements", "params": {"type": "append", "elements": [BUTTON]}},
            {
                "action": "partial_update_element",
                "params": {"element_id": "answer", "partial_element": {"content": "2"}},
            },
            {"action": "partial_update_setting", "params": {"settings": {"config": {"streaming_mode": False}}}},
        ]
        bad = [*good, {"action": "delete_elements", "params": {"element_ids": ["nobody"]}}]
        path = f"/cardkit/v1/cards/{card_id}/batch_update"
        assert await bot.code("POST", path, {"actions": json.dumps(bad), "sequence": 1}) == 300314
        assert feishu.screen("Team")[0].text == "one"
        assert await bot.code("POST", path, {"actions": json.dumps(good), "sequence": 1}) == 0
        shown = feishu.screen("Team")[0]
        assert (shown.text, shown.streaming) == ("2\nStop", False)


async def test_a_click_reaches_the_bot_and_its_toast_reaches_the_person() -> None:
    def reply(event: Json) -> tuple[int, Json | None]:
        return 200, {"toast": {"type": "success", "content": "stopping"}}

    async with sandbox_and_bot() as (feishu, bot), bot.line(reply) as line:
        _, message_id = await bot.show_card(stream_card(TEXT, BUTTON))
        changes = feishu.world.changes()
        answer = await feishu.press("Marta Weiss", message_id, "Stop")
        assert answer["toast"]["content"] == "stopping"
        event = line.events[0]
        assert event["header"]["event_type"] == "card.action.trigger"
        assert len(event["header"]["create_time"]) == 16
        assert event["event"]["action"]["value"] == {"act": "stop"}
        assert event["event"]["context"]["open_message_id"] == message_id
        assert "user_id" not in event["event"]["operator"]
        change = await anext(changes)
        assert (change.kind, change.person) == ("toast", feishu.world.person("Marta Weiss").open_id)


async def test_an_answered_card_replaces_the_old_one_unless_it_is_bad_or_streaming() -> None:
    cards = [
        stream_card({"tag": "markdown", "content": "done"}, streaming=False),
        stream_card({"tag": "markdown", "text": "bad"}),
    ]

    def reply(event: Json) -> tuple[int, Json | None]:
        return 200, {"card": {"type": "raw", "data": cards[event["event"]["action"]["value"]]}}

    async with sandbox_and_bot() as (feishu, bot), bot.line(reply):
        _, message_id = await bot.show_card(stream_card(TEXT, BUTTON, streaming=False))
        refused = await feishu.click("Marta Weiss", message_id, {"tag": "button", "value": 1})
        assert (refused["code"], refused["toast"]["type"]) == (200673, "error")
        await feishu.click("Marta Weiss", message_id, {"tag": "button", "value": 0})
        assert feishu.screen("Team")[0].text == "done"
        _, streaming_id = await bot.show_card(stream_card(TEXT, BUTTON))
        await feishu.click("Marta Weiss", streaming_id, {"tag": "button", "value": 0})
        assert feishu.screen("Team")[1].text == "one\nStop"


async def test_a_click_without_an_answer_in_time_shows_an_error_and_is_never_sent_again() -> None:
    async with sandbox_and_bot(ack_s=0.3, redelivery_s=(0.01,)) as (feishu, bot):
        _, message_id = await bot.show_card(stream_card(TEXT, BUTTON))
        assert (await feishu.press("Marta Weiss", message_id, "Stop"))["code"] == 200340
        async with bot.line(lambda event: None) as line:
            assert (await feishu.press("Marta Weiss", message_id, "Stop"))["code"] == 200341
            await asyncio.sleep(0.05)
            assert len(line.events) == 1
        async with bot.line(lambda event: (500, None)) as line:
            assert (await feishu.press("Marta Weiss", message_id, "Stop"))["code"] == 200671
            assert len(line.events) == 1


async def test_there_must_be_a_card_to_click_in_a_chat_of_ones_own() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        _, message_id = await bot.show_card(stream_card(BUTTON), chat="Tom Okafor")
        with pytest.raises(LookupError, match="Marta Weiss is not in the chat"):
            await feishu.press("Marta Weiss", message_id, "Stop")
        with pytest.raises(LookupError, match="no button 'Go'; it has 'Stop'"):
            await feishu.press("Tom Okafor", message_id, "Go")
        plain = await bot.send("Team")
        with pytest.raises(LookupError, match="shows no card"):
            await feishu.click("Tom Okafor", plain["message_id"], {"tag": "button"})
        await bot.ok("DELETE", f"/im/v1/messages/{message_id}")
        with pytest.raises(LookupError, match="shows no card"):
            await feishu.press("Tom Okafor", message_id, "Stop")


async def test_during_a_click_the_card_may_not_be_updated() -> None:
    async with sandbox_and_bot(ack_s=3) as (feishu, bot), bot.line(lambda event: None) as line:
        card_id, message_id = await bot.show_card(stream_card(TEXT, BUTTON))
        click = asyncio.create_task(feishu.press("Marta Weiss", message_id, "Stop"))
        await until(lambda: line.events)
        assert await content(bot, card_id, "meanwhile", 1) == 200810
        feishu.faults.drop_sockets()
        assert (await click)["code"] == 200342
        assert await content(bot, card_id, "afterwards", 1) == 0


async def test_a_click_token_updates_the_card_twice_within_half_an_hour() -> None:
    async with sandbox_and_bot() as (feishu, bot), bot.line() as line:
        _, message_id = await bot.show_card(stream_card(TEXT, BUTTON, streaming=False))
        await feishu.press("Marta Weiss", message_id, "Stop")
        token = line.events[0]["event"]["token"]
        path = "/interactive/v1/card/update"
        cards = [stream_card({"tag": "markdown", "content": str(n)}, streaming=False) for n in range(3)]
        assert await bot.code("POST", path, {"token": token, "card": cards[0]}) == 0
        assert await bot.code("POST", path, {"token": token, "card": {"schema": "2.0", "x": 1}}) == 11311
        assert await bot.code("POST", path, {"token": token, "card": cards[1]}) == 0
        assert feishu.screen("Team")[0].text == "1"
        assert await bot.code("POST", path, {"token": token, "card": cards[2]}) == 300040
        assert await bot.code("POST", path, {"token": "x", "card": cards[2]}) == 300020
        feishu.advance(31 * 60)
        assert await bot.code("POST", path, {"token": token, "card": cards[2]}) == 300030


async def test_what_a_token_changed_before_the_answer_is_undone_by_it() -> None:
    async with sandbox_and_bot(ack_s=3) as (feishu, bot), bot.line(lambda event: None) as line:
        _, message_id = await bot.show_card(stream_card(TEXT, BUTTON, streaming=False))
        click = asyncio.create_task(feishu.press("Marta Weiss", message_id, "Stop"))
        await until(lambda: line.events)
        card = stream_card({"tag": "markdown", "content": "early"}, streaming=False)
        token = line.events[0]["event"]["token"]
        await bot.ok("POST", "/interactive/v1/card/update", {"token": token, "card": card})
        assert feishu.screen("Team")[0].text == "early"
        frame = line.frames[0]
        frame.payload = b'{"code":200}'
        await line.socket.send(frame.SerializeToString())
        assert await click == {}
        assert feishu.screen("Team")[0].text == "one\nStop"


async def test_counts_tell_operations_per_api_and_per_card() -> None:
    async with sandbox_and_bot(limits=Limits.none()) as (feishu, bot):
        card_id, message_id = await bot.show_card(stream_card(TEXT))
        await content(bot, card_id, "a", 1)
        await content(bot, card_id, "b", 1)
        await settings(bot, card_id, {"streaming_mode": False}, 2)
        counts = feishu.world.counts
        assert (counts["card.create"], counts["card.element.content"], counts["message.create"]) == (1, 2, 1)
        assert counts["card.element.content!300317"] == 1
        card = feishu.card_of(message_id)
        assert card is not None
        assert dict(card.counts) == {"calls": 3, "content": 1, "settings": 1}
