"""im/v1 in the sandbox: sending, replying, reading, changing; tokens, rates, uuids; refusals with real codes."""

import json

import pytest

from agno_lark.testing import Limits
from tests.sandbox_fixtures import Bot, Json, StillSeconds, sandbox_and_bot, stream_card

CREATE = "/im/v1/messages?receive_id_type=chat_id"
MARTA = "Marta Weiss"
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40


def text(content: str = "hi") -> Json:
    return {"msg_type": "text", "content": json.dumps({"text": content})}


async def reply(bot: Bot, message_id: str, **more: object) -> int:
    return await bot.code("POST", f"/im/v1/messages/{message_id}/reply", {**text("yes"), **more})


async def test_a_sent_text_is_answered_and_shown_with_mentions_resolved() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        marta = feishu.world.person(MARTA)
        sent = {"text": f'<at user_id="{marta.open_id}">x</at> <b>hello</b> <at user_id="all"></at>'}
        data = await bot.send("Team", "text", sent)
        assert json.loads(data["body"]["content"]) == {"text": "@_user_1 hello @_all"}
        assert data["sender"] == {
            "id": feishu.app_id,
            "id_type": "app_id",
            "sender_type": "app",
            "tenant_key": feishu.world.app.tenant_key,
        }
        assert data["mentions"][0]["id"] == marta.open_id
        assert (data["deleted"], data["updated"]) == (False, False)
        shown = feishu.screen("Team")[0]
        assert (shown.author, shown.text) == ("Helper", "@Marta Weiss hello @all")


async def test_a_person_is_reached_by_open_id_and_the_answer_names_the_direct_chat() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        body = {"receive_id": feishu.world.person(MARTA).open_id, **text()}
        data = await bot.ok("POST", "/im/v1/messages?receive_id_type=open_id", body)
        assert data["chat_id"] == feishu.direct_chat(MARTA)


@pytest.mark.parametrize(
    ("kind", "receive_id", "code"),
    [
        ("chat_id", "oc_nobody", 230002),
        ("chat_id", "om_x", 230034),
        ("chat_id", "omt_x", 230034),
        ("open_id", "oc_x", 230034),
        ("open_id", "ou_nobody", 99992351),
        ("thread_id", "omt_x", 99992402),
        ("chat_id", "", 99992402),
    ],
)
async def test_a_wrong_receive_id_is_refused(kind: str, receive_id: str, code: int) -> None:
    async with sandbox_and_bot() as (_, bot):
        body = {"receive_id": receive_id, **text()}
        assert await bot.code("POST", f"/im/v1/messages?receive_id_type={kind}", body) == code


@pytest.mark.parametrize(
    ("msg_type", "content", "code"),
    [
        ("text", "plain words", 230001),
        ("text", '{"text":""}', 230001),
        ("text", json.dumps({"text": "x" * 160_000}), 230025),
        ("post", json.dumps({"zh_cn": {"title": "x", "content": [[{"tag": "text", "text": "汉" * 11_000}]]}}), 230025),
        ("post", '{"title":"no locale"}', 230001),
        ("image", '{"image_key":"img_v3_unknown"}', 230017),
        ("nonsense", "{}", 230001),
        ("interactive", json.dumps(stream_card({"tag": "markdown", "content": "汉" * 10_500})), 230025),
        ("interactive", json.dumps(stream_card({"tag": "markdown", "content": "x", "nope": 1})), 230099),
    ],
    ids=["no-json", "empty", "long", "long-post", "post", "image", "kind", "long-card", "bad-card"],
)
async def test_wrong_content_is_refused(msg_type: str, content: str, code: int) -> None:
    async with sandbox_and_bot() as (feishu, bot):
        body = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": msg_type, "content": content}
        assert await bot.code("POST", CREATE, body) == code
        assert feishu.screen("Team") == []


async def test_a_refused_card_names_code_path_and_reason_inside_230099() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        card = stream_card({"tag": "markdown", "content": "x", "nope": 1})
        body = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": "interactive", "content": json.dumps(card)}
        _, answer = await bot.call("POST", CREATE, body)
        path = "ROOT -> body -> elements -> [0](tag: markdown)"
        assert f"ErrCode: 200621; ErrPath: {path}; ErrMsg: unknown property, property: nope" in answer["msg"]
        assert answer["error"]["log_id"]


async def test_the_same_uuid_sends_once_within_an_hour_and_again_after_it() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        first = await bot.send("Team", uuid="u-1")
        again = await bot.send("Team", uuid="u-1")
        assert again["message_id"] == first["message_id"]
        feishu.advance(3601)
        later = await bot.send("Team", uuid="u-1")
        assert later["message_id"] != first["message_id"]
        assert len(feishu.screen("Team")) == 2
        body = {"receive_id": feishu.world.chat("Team").chat_id, **text(), "uuid": "u" * 51}
        assert await bot.code("POST", CREATE, body) == 99992402


async def test_a_reply_with_the_same_uuid_is_one_message_even_if_the_question_was_recalled_since() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        asked = await feishu.write(MARTA, "Team", "?")
        assert await reply(bot, asked.message_id, uuid="u-2") == 0
        await feishu.recall(MARTA, asked.message_id)
        assert await reply(bot, asked.message_id, uuid="u-2") == 0
        assert await reply(bot, asked.message_id, uuid="u-3") == 230011
        assert len(feishu.from_bot("Team")) == 1


async def test_a_reply_quotes_in_a_group_and_stays_inside_a_topic() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        asked = await feishu.write(MARTA, "Team", "?")
        data = await bot.ok("POST", f"/im/v1/messages/{asked.message_id}/reply", text())
        assert (data["root_id"], data["parent_id"]) == (asked.message_id, asked.message_id)
        assert "thread_id" not in data
        threaded = {**text(), "reply_in_thread": True}
        data = await bot.ok("POST", f"/im/v1/messages/{asked.message_id}/reply", threaded)
        assert data["thread_id"].startswith("omt_")
        assert feishu.world.message(asked.message_id).thread_id == data["thread_id"]
        topic = await feishu.write(MARTA, "Topics", "a topic")
        data = await bot.ok("POST", f"/im/v1/messages/{topic.message_id}/reply", text())
        assert data["thread_id"] == topic.thread_id
        assert [shown.text for shown in feishu.screen("Topics", topic.thread_id)] == ["a topic", "hi"]


@pytest.mark.parametrize("wrong", ["omt_1234", "oc_1234", "om_unknown"])
async def test_replying_to_what_is_no_message_is_refused(wrong: str) -> None:
    async with sandbox_and_bot() as (_, bot):
        assert await reply(bot, wrong) == 99992354


async def test_a_token_is_needed_checked_and_expires() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        first = await bot.log_in()
        assert await bot.log_in() == first
        path = "/open-apis/bot/v3/info"
        assert (await bot.http.get(path)).json()["code"] == 99991661
        for token, code in ((first, 0), ("t-wrong", 99991663), ("wrong", 99991671)):
            answer = await bot.http.get(path, headers={"Authorization": f"Bearer {token}"})
            assert answer.json()["code"] == code
        assert feishu.expire_tokens() == 1
        assert await bot.code("GET", "/bot/v3/info") == 99991663
        second = await bot.log_in()
        assert second != first
        feishu.advance(7201)
        assert await bot.code("GET", "/bot/v3/info") == 99991663
        await bot.log_in()
        assert (await bot.ok("GET", "/bot/v3/info"))["bot"]["open_id"] == feishu.world.app.bot_open_id


async def test_the_token_call_needs_no_content_type_and_refuses_wrong_secrets() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        path = "/open-apis/auth/v3/tenant_access_token/internal"
        raw = json.dumps({"app_id": feishu.app_id, "app_secret": feishu.app_secret}).encode()
        answer = (await bot.http.post(path, content=raw)).json()
        assert (answer["code"], answer["expire"]) == (0, 7200)
        assert answer["tenant_access_token"].startswith("t-")
        wrong = {"app_id": feishu.app_id, "app_secret": "x"}
        assert (await bot.http.post(path, json=wrong)).json()["code"] == 10015


async def test_a_sixth_message_in_a_second_to_one_chat_waits_as_told() -> None:
    async with sandbox_and_bot(clock=StillSeconds()) as (feishu, bot):
        for _ in range(5):
            await bot.send("Team")
        body = {"receive_id": feishu.world.chat("Team").chat_id, **text()}
        answer = await bot.raw("POST", CREATE, body)
        assert (answer.status_code, answer.json()["code"]) == (429, 230020)
        assert answer.headers["x-ogw-ratelimit-reset"] == "1"
        await bot.send("Topics")
        assert len(feishu.from_bot()) == 6


async def test_an_api_takes_so_many_calls_a_second_and_a_minute() -> None:
    async with sandbox_and_bot(clock=StillSeconds(), limits=Limits(api_per_s=3, api_per_min=4)) as (feishu, bot):
        codes = [await bot.code("GET", "/bot/v3/info") for _ in range(4)]
        assert codes == [0, 0, 0, 99991400]
        feishu.limits = Limits(api_per_s=0, api_per_min=4)
        answers = [await bot.raw("GET", "/bot/v3/info") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 429]
        assert int(answers[1].headers["x-ogw-ratelimit-reset"]) > 50


async def test_texts_and_posts_are_edited_up_to_twenty_times_and_only_by_their_sender() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        mine = (await bot.send("Team"))["message_id"]
        data = await bot.ok("PUT", f"/im/v1/messages/{mine}", text("better"))
        assert data["updated"]
        assert (feishu.screen("Team")[0].text, feishu.screen("Team")[0].edits) == ("better", 1)
        for n in range(19):
            await bot.ok("PUT", f"/im/v1/messages/{mine}", text(str(n)))
        assert await bot.code("PUT", f"/im/v1/messages/{mine}", text("21")) == 230072
        theirs = await feishu.write(MARTA, "Team", "x")
        assert await bot.code("PUT", f"/im/v1/messages/{theirs.message_id}", text()) == 230071


async def test_a_card_sent_as_json_is_patched_but_a_card_entity_is_not() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        old, new = (stream_card({"tag": "markdown", "content": c}, streaming=False) for c in ("old", "new"))
        card = (await bot.send("Team", "interactive", old))["message_id"]
        await bot.ok("PATCH", f"/im/v1/messages/{card}", {"content": json.dumps(new)})
        assert feishu.screen("Team")[0].text == "new"
        assert feishu.world.message(card).history[0].content == old
        bad = {"content": json.dumps({"schema": "2.0", "elements": []})}
        assert await bot.code("PATCH", f"/im/v1/messages/{card}", bad) == 230099
        _, entity = await bot.show_card(old)
        assert await bot.code("PATCH", f"/im/v1/messages/{entity}", {"content": json.dumps(new)}) == 230001
        plain = (await bot.send("Team"))["message_id"]
        assert await bot.code("PATCH", f"/im/v1/messages/{plain}", {"content": json.dumps(new)}) == 230001
        feishu.advance(14 * 24 * 3600 + 1)
        await bot.log_in()
        assert await bot.code("PATCH", f"/im/v1/messages/{card}", {"content": json.dumps(new)}) == 230031


async def test_the_bot_recalls_its_own_message_once() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        mine = (await bot.send("Team"))["message_id"]
        await bot.ok("DELETE", f"/im/v1/messages/{mine}")
        assert feishu.screen("Team")[0].recalled
        assert await bot.code("DELETE", f"/im/v1/messages/{mine}") == 230110
        assert await bot.code("PUT", f"/im/v1/messages/{mine}", text()) == 230011
        data = await bot.ok("GET", f"/im/v1/messages/{mine}")
        assert data["items"][0]["deleted"]
        assert data["items"][0]["body"]["content"] == "This message was recalled"
        theirs = await feishu.write(MARTA, "Team", "x")
        assert await bot.code("DELETE", f"/im/v1/messages/{theirs.message_id}") == 230026


async def test_a_card_is_read_degraded_unless_its_json_is_asked_for() -> None:
    async with sandbox_and_bot() as (_, bot):
        card = stream_card({"tag": "markdown", "content": "secret"})
        _, message_id = await bot.show_card(card)
        item = (await bot.ok("GET", f"/im/v1/messages/{message_id}"))["items"][0]
        assert "secret" not in item["body"]["content"]
        path = f"/im/v1/messages/{message_id}?card_msg_content_type=user_card_content"
        item = (await bot.ok("GET", path))["items"][0]
        assert json.loads(item["body"]["content"]) == card


async def test_a_mentioned_bot_is_its_app_when_the_id_type_is_asked_for() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        asked = await feishu.write(MARTA, "Team", "?", mention_bot=True)
        plain = (await bot.ok("GET", f"/im/v1/messages/{asked.message_id}"))["items"][0]
        typed = (await bot.ok("GET", f"/im/v1/messages/{asked.message_id}?user_id_type=open_id"))["items"][0]
        assert plain["mentions"][0]["id"] == feishu.world.app.bot_open_id
        assert (typed["mentions"][0]["id"], typed["mentions"][0]["id_type"]) == (feishu.app_id, "app_id")


async def test_a_merged_forward_comes_with_all_its_descendants() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        picture = await feishu.world.send_image(MARTA, "Team", PNG)
        words = await feishu.write(MARTA, "Team", "look")
        inner = await feishu.world.merge_forward(MARTA, "Team", [words.message_id])
        outer = await feishu.world.merge_forward(MARTA, "Team", [picture.message_id, inner.message_id])
        items = (await bot.ok("GET", f"/im/v1/messages/{outer.message_id}"))["items"]
        assert items[0]["body"]["content"] == "Merged and Forwarded Message"
        uppers = [item.get("upper_message_id") for item in items]
        assert uppers == [None, outer.message_id, outer.message_id, items[2]["message_id"]]
        assert json.loads(items[3]["body"]["content"]) == {"text": "look"}
        key = json.loads(items[1]["body"]["content"])["image_key"]
        child = items[1]["message_id"]
        assert await bot.code("GET", f"/im/v1/messages/{child}/resources/{key}?type=image") == 234003
        answer = await bot.raw("GET", f"/im/v1/messages/{outer.message_id}/resources/{key}?type=image")
        assert answer.content == PNG


async def test_a_chat_lists_thread_roots_and_a_thread_its_messages() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        topic = await feishu.write(MARTA, "Topics", "root")
        await feishu.write(MARTA, "Topics", "inside", in_thread=topic.thread_id)
        chat = f"/im/v1/messages?container_id_type=chat&container_id={topic.chat_id}&page_size=50"
        thread = f"/im/v1/messages?container_id_type=thread&container_id={topic.thread_id}&page_size=1"
        assert [i["message_id"] for i in (await bot.ok("GET", chat))["items"]] == [topic.message_id]
        page = await bot.ok("GET", thread)
        assert page["has_more"]
        page = await bot.ok("GET", f"{thread}&page_token={page['page_token']}")
        assert json.loads(page["items"][0]["body"]["content"]) == {"text": "inside"}
        assert not page["has_more"]
        assert await bot.code("GET", thread + "&start_time=1") == 230001


async def test_reactions_come_and_go() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        asked = await feishu.write(MARTA, "Team", "?")
        path = f"/im/v1/messages/{asked.message_id}/reactions"
        made = await bot.ok("POST", path, {"reaction_type": {"emoji_type": "Typing"}})
        assert made["operator"] == {"operator_id": feishu.app_id, "operator_type": "app"}
        assert feishu.screen("Team")[0].reactions == ("Typing",)
        hers = await feishu.world.react(MARTA, asked.message_id, "DONE")
        assert len((await bot.ok("GET", path))["items"]) == 2
        assert await bot.code("DELETE", f"{path}/{hers.reaction_id}") == 231007
        await bot.ok("DELETE", f"{path}/{made['reaction_id']}")
        assert await bot.code("DELETE", f"{path}/{made['reaction_id']}") == 231011
        assert feishu.screen("Team")[0].reactions == ("DONE",)
        assert await bot.code("POST", path, {"reaction_type": {"emoji_type": ""}}) == 231001
        gone = "/im/v1/messages/om_gone/reactions"
        assert await bot.code("POST", gone, {"reaction_type": {"emoji_type": "OK"}}) == 231003
        await feishu.recall(MARTA, asked.message_id)
        assert await bot.code("POST", path, {"reaction_type": {"emoji_type": "OK"}}) == 231003


async def test_files_go_up_and_down_with_their_names() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        up = {"files": {"image": ("x.png", PNG, "image/png")}, "data": {"image_type": "message"}}
        image_key = (await bot.ok("POST", "/im/v1/images", None, **up))["image_key"]
        up = {"files": {"file": ("x", b"%PDF", "application/pdf")}}
        up["data"] = {"file_type": "pdf", "file_name": "季度报表（终稿）.pdf"}
        file_key = (await bot.ok("POST", "/im/v1/files", None, **up))["file_key"]
        assert image_key.startswith("img_")
        await bot.send("Team", "image", {"image_key": image_key})
        assert (await bot.raw("GET", f"/im/v1/images/{image_key}")).content == PNG
        sent = await bot.send("Team", "file", {"file_key": file_key})
        path = f"/im/v1/messages/{sent['message_id']}/resources/{file_key}?type=file"
        answer = await bot.raw("GET", path)
        assert (answer.content, answer.headers["content-type"]) == (b"%PDF", "application/pdf")
        assert "季度报表（终稿）.pdf".encode() in dict(answer.headers.raw)[b"content-disposition"]
        assert await bot.code("GET", path.replace("type=file", "type=image")) == 234003
        assert await bot.code("GET", path.replace("type=file", "type=video")) == 234001
        wrong = {"receive_id": feishu.world.chat("Team").chat_id, "msg_type": "audio"}
        wrong["content"] = json.dumps({"file_key": file_key})
        assert await bot.code("POST", CREATE, wrong) == 230055


async def test_what_people_sent_is_not_the_bots_to_send_or_to_fetch_by_its_key() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        picture = await feishu.world.send_image(MARTA, "Team", PNG)
        key = picture.content["image_key"]
        body = {"receive_id": picture.chat_id, "msg_type": "image", "content": json.dumps({"image_key": key})}
        assert await bot.code("POST", CREATE, body) == 230017
        assert await bot.code("GET", f"/im/v1/images/{key}") == 234008
        answer = await bot.raw("GET", f"/im/v1/messages/{picture.message_id}/resources/{key}?type=image")
        assert answer.content == PNG


async def test_bad_uploads_are_refused() -> None:
    async with sandbox_and_bot() as (_, bot):

        async def image(data: bytes, kind: str = "message") -> int:
            files = {"image": ("x.png", data, "image/png")}
            return await bot.code("POST", "/im/v1/images", None, files=files, data={"image_type": kind})

        assert await image(b"") == 234010
        assert await image(b"no picture") == 234011
        assert await image(PNG, "wallpaper") == 234001
        assert await image(PNG + bytes(10 * 1024 * 1024)) == 234006
        unnamed = {"files": {"file": ("x", b"x", "text/plain")}, "data": {"file_type": "pdf"}}
        assert await bot.code("POST", "/im/v1/files", None, **unnamed) == 234001


async def test_chats_and_members_and_people_are_told_as_the_platform_does() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        ids = {name: feishu.world.chat(name).chat_id for name in ("Team", "Topics")}
        team = await bot.ok("GET", f"/im/v1/chats/{ids['Team']}")
        assert (team["chat_mode"], team["group_message_type"], team["user_count"]) == ("group", "chat", "3")
        topics = await bot.ok("GET", f"/im/v1/chats/{ids['Topics']}")
        assert topics["chat_mode"] == "topic"
        assert "group_message_type" not in topics
        assert (await bot.ok("GET", f"/im/v1/chats/{feishu.direct_chat(MARTA)}"))["chat_mode"] == "p2p"
        assert await bot.code("GET", "/im/v1/chats/oc_nobody") == 232006
        members = await bot.ok("GET", f"/im/v1/chats/{ids['Team']}/members?member_id_type=open_id")
        assert (members["member_total"], members["items"][1]["name"]) == (3, MARTA)
        bots = await bot.ok("GET", f"/im/v1/chats/{ids['Team']}/members/bots")
        assert bots["items"][0]["bot_name"] == "Helper"
        marta = feishu.world.person(MARTA)
        path = f"/contact/v3/users/batch?user_ids={marta.open_id}&user_ids=ou_nobody"
        assert [user["name"] for user in (await bot.ok("GET", path))["items"]] == [MARTA]
        assert await bot.ok("GET", "/contact/v3/users/batch?user_ids=ou_nobody") == {}


async def test_a_message_is_forwarded_with_its_content() -> None:
    async with sandbox_and_bot() as (feishu, bot):
        asked = await feishu.write(MARTA, "Team", "pass it on")
        body = {"receive_id": feishu.world.chat("Topics").chat_id}
        path = f"/im/v1/messages/{asked.message_id}/forward?receive_id_type=chat_id"
        await bot.ok("POST", path, body)
        assert feishu.last_from_bot("Topics").text == "pass it on"  # type: ignore[union-attr]


async def test_an_unknown_path_is_no_json_and_404() -> None:
    async with sandbox_and_bot() as (_, bot):
        answer = await bot.raw("GET", "/no/such/thing")
        assert (answer.status_code, answer.text) == (404, "404 page not found")


async def test_a_body_that_is_no_json_object_is_refused() -> None:
    async with sandbox_and_bot() as (_, bot):
        for raw in (b"{", b"[]", b'"x"'):
            answer = await bot.raw("POST", CREATE, None, content=raw)
            assert answer.json()["code"] == 99992402
