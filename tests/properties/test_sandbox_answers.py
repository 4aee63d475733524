"""Whatever a bot sends, the sandbox answers with a Feishu code and never fails itself."""

import asyncio
import json
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agno_lark.sandbox.cards import check
from agno_lark.sandbox.limits import Limits
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.server import build_app

NAMES = """tag elements columns content markdown button table rows schema 2.0 body config streaming_mode element_id
answer append text interactive type card data card_json options selected_values value name header text_tag_list
i18n_content zh_cn at md title select_static"""
ASKED = """receive_id msg_type content uuid reply_in_thread reaction_type type data sequence card settings actions
elements element partial_element target_element_id token user_ids"""
WORDS = st.sampled_from(NAMES.split())
SCALARS = st.none() | st.booleans() | st.integers(-2, 2**33) | WORDS | st.text(max_size=8)
JSON = st.recursive(SCALARS, lambda x: st.lists(x, max_size=3) | st.dictionaries(WORDS, x, max_size=4), max_leaves=12)
FIELDS = st.sampled_from(ASKED.split())
VALUE = JSON | JSON.map(json.dumps)
BODY = st.dictionaries(FIELDS, VALUE, max_size=6)
CARD: dict[str, Any] = {
    "schema": "2.0",
    "config": {"streaming_mode": True},
    "body": {"elements": [{"tag": "markdown", "content": "x", "element_id": "answer"}]},
}
PATHS = [
    ("POST", "im/v1/messages?receive_id_type=chat_id"),
    ("POST", "im/v1/messages/{message}/reply"),
    ("POST", "im/v1/messages/{message}/forward?receive_id_type=chat_id"),
    ("PUT", "im/v1/messages/{own}"),
    ("PATCH", "im/v1/messages/{shown}"),
    ("POST", "im/v1/messages/{message}/reactions"),
    ("POST", "cardkit/v1/cards"),
    ("PUT", "cardkit/v1/cards/{card}"),
    ("PATCH", "cardkit/v1/cards/{card}/settings"),
    ("POST", "cardkit/v1/cards/{card}/batch_update"),
    ("POST", "cardkit/v1/cards/{card}/elements"),
    ("PUT", "cardkit/v1/cards/{card}/elements/answer"),
    ("PATCH", "cardkit/v1/cards/{card}/elements/answer"),
    ("PUT", "cardkit/v1/cards/{card}/elements/answer/content"),
    ("POST", "interactive/v1/card/update"),
    ("POST", "contact/v3/users/basic_batch"),
    ("POST", "im/v1/images"),
]


async def answers(bodies: list[tuple[tuple[str, str], dict[str, Any]]]) -> list[dict[str, Any]]:
    feishu = LocalFeishu.build(limits=Limits.none())
    world = feishu.world
    asked = await world.write("Marta Weiss", "Team", "?")
    own = world.bot_message(world.chat("Team"), "text", {"text": "mine"})
    shown = world.bot_message(world.chat("Team"), "interactive", CARD)
    token, _ = feishu.tokens.issue()
    transport = httpx.ASGITransport(build_app(feishu))
    got: list[dict[str, Any]] = []
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", verify=False) as http:
        made = await http.post(
            "/open-apis/cardkit/v1/cards", json={"type": "card_json", "data": json.dumps(CARD)}, headers=headers
        )
        ids = {"message": asked.message_id, "own": own.message_id, "shown": shown.message_id}
        ids["card"] = made.json()["data"]["card_id"]
        for sequence, ((method, path), body) in enumerate(bodies, start=1):
            body = {"receive_id": world.chat("Team").chat_id, "sequence": sequence, **body}
            answer = await http.request(
                method, "/open-apis/" + path.format(**ids), content=json.dumps(body), headers=headers
            )
            got.append(answer.json())
        for chat in world.chats:
            world.screen(chat)
    return got


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PATHS), BODY), min_size=1, max_size=6))
def test_any_body_gets_a_feishu_code_and_no_bug(bodies: list[tuple[tuple[str, str], dict[str, Any]]]) -> None:
    for answer in asyncio.run(answers(bodies)):
        assert isinstance(answer["code"], int)
        assert answer["code"] != 2200, answer


@settings(max_examples=50, deadline=None)
@given(JSON, JSON)
def test_any_json_as_a_card_is_judged_without_an_exception(element: Any, other: Any) -> None:
    check(element)
    check({"schema": "2.0", "config": other, "header": other, "body": {"elements": [element, other]}})
    check(
        {
            "schema": "2.0",
            "body": {"elements": [{"tag": "table", "columns": element, "rows": other, "options": element}]},
        }
    )
