"""The page's routes: what they answer, how they refuse, and what browsers are told to forbid."""

import asyncio
import html
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from agno_lark.sandbox.page import page_router
from agno_lark.sandbox.page.live import live, sse
from agno_lark.sandbox.world import World
from tests.page_fixtures import LIN, MARTA, TOM, ScriptedBot, button, markdown_card
from tests.page_reading import read_html

PAGE = "/sandbox/page"
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bot(world: World) -> ScriptedBot:
    return ScriptedBot(world)


@pytest_asyncio.fixture
async def client(world: World, bot: ScriptedBot) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(page_router(world))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sandbox") as found:
        yield found


async def test_the_page_is_complete_and_forbids_what_it_does_not_need(client: httpx.AsyncClient) -> None:
    answer = await client.get("/", params={"person": LIN})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe-inline" not in "".join(part for part in policy if not part.startswith("style-src-attr"))
    assert answer.headers["x-content-type-options"] == "nosniff"
    text = read_html(answer.text).text
    for word in ("当前身份", LIN, MARTA, TOM, "Helper", "Team", "Topics", "/help"):
        assert word in text


@pytest.mark.parametrize(
    ("accepted", "who"),
    [
        ("en-GB,en;q=0.9", MARTA),
        ("zh-CN,zh;q=0.9,en;q=0.8", LIN),
        ("zh", LIN),
        ("zh-TW,en", LIN),
        ("en,zh", MARTA),
        ("de-DE,de;q=0.9,en;q=0.5,zh;q=0.6", LIN),
        ("de", MARTA),
        ("zh;q=0", MARTA),
        ("zh;q=nan, *", MARTA),
        ("", MARTA),
    ],
)
async def test_the_page_opens_as_somebody_who_speaks_the_browsers_language(
    client: httpx.AsyncClient, world: World, accepted: str, who: str
) -> None:
    page = await client.get("/", headers={"Accept-Language": accepted})
    language = {LIN: "zh", MARTA: "en"}[who]
    assert f'<html lang="{language}' in page.text
    assert f'"person":"{world.person(who).open_id}"' in html.unescape(page.text)
    asked = await client.get("/", params={"person": TOM}, headers={"Accept-Language": accepted})
    assert f'"person":"{world.person(TOM).open_id}"' in html.unescape(asked.text), "whoever is asked for is shown"


async def test_everything_the_page_names_is_served_here(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    named = [part.split('"')[0] for part in page.replace('src="', 'href="').split('href="')[1:]]
    static = [name for name in named if name.startswith(f"{PAGE}/static/")]
    assert len(static) == 5
    assert all(name.startswith("/") for name in named)
    scripts = ["page.js"]
    for name in scripts:
        source = (await client.get(f"{PAGE}/static/{name}")).text
        scripts.extend(part.split('"')[0] for part in source.split('from "./')[1:] if part.split('"')[0] not in scripts)
    for name in [*static, *(f"{PAGE}/static/{script}" for script in scripts)]:
        answer = await client.get(name)
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] in ("text/javascript", "text/css", "image/svg+xml")
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text


async def test_a_message_is_written_with_its_mentions(
    client: httpx.AsyncClient, world: World, bot: ScriptedBot
) -> None:
    team = world.chat("Team")
    body = {"person": MARTA, "chat": "group", "text": f"@Helper ask @{TOM}"}
    answer = await client.post(f"{PAGE}/write", json=body)
    message = world.message(answer.json()["message_id"])
    assert message.chat_id == team.chat_id
    assert message.content["text"] == "@_user_1 ask @_user_2"
    reply = await client.post(f"{PAGE}/write", json={**body, "text": "ok", "reply_to": message.message_id})
    assert world.message(reply.json()["message_id"]).parent_id == message.message_id
    assert [kind for kind, _ in bot.events] == ["im.message.receive_v1"] * 2


async def test_a_click_returns_the_bots_toast(client: httpx.AsyncClient, world: World, bot: ScriptedBot) -> None:
    message, _ = bot.send(world.direct_chat(MARTA), markdown_card("x", more=[button("Go", {"a": 1})]))
    bot.answer = {"toast": {"type": "success", "content": "Done"}}
    action = {"tag": "button", "value": {"a": 1}}
    body = {"person": MARTA, "message_id": message.message_id, "action": action}
    answer = await client.post(f"{PAGE}/click", json=body)
    assert answer.json() == {"toast": {"type": "success", "content": "Done"}}
    assert bot.clicks == [action]


async def test_uploads_become_pictures_or_files(client: httpx.AsyncClient, world: World) -> None:
    where = {"person": MARTA, "chat": "p2p"}
    picture = await client.post(f"{PAGE}/upload", data=where, files={"file": ("../a.png", PNG, "image/png")})
    sent = world.message(picture.json()["message_id"])
    assert sent.msg_type == "image"
    shown = await client.get(f"{PAGE}/resources/{sent.content['image_key']}")
    assert shown.content == PNG
    assert shown.headers["content-type"] == "image/png"
    evil = b"<script>alert(1)</script>"
    file = await client.post(f"{PAGE}/upload", data=where, files={"file": ("..\\x/e.html", evil, "text/html")})
    sent = world.message(file.json()["message_id"])
    assert sent.content["file_name"] == "e.html"
    taken = await client.get(f"{PAGE}/resources/{sent.content['file_key']}")
    assert taken.headers["content-type"] == "application/octet-stream"
    assert taken.headers["content-disposition"] == "attachment"
    assert "sandbox" in taken.headers["content-security-policy"]


async def test_reactions_come_and_go_and_recalls_happen(client: httpx.AsyncClient, world: World) -> None:
    message = await world.write(MARTA, world.direct_chat(MARTA).chat_id, "hi")
    body = {"person": MARTA, "message_id": message.message_id}
    for count in (1, 0):
        await client.post(f"{PAGE}/react", json={**body, "emoji": "HEART"})
        assert len(message.reactions) == count
    assert (await client.post(f"{PAGE}/recall", json={**body, "person": TOM})).status_code == 404
    assert (await client.post(f"{PAGE}/recall", json=body)).status_code == 200
    assert message.recalled


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("write", {"person": "Nobody", "chat": "p2p", "text": "x"}, 404, "no person 'Nobody'"),
        ("write", {"person": MARTA, "chat": "nowhere", "text": "x"}, 404, "no chat 'nowhere'"),
        ("write", {"person": MARTA, "chat": "p2p", "text": "  "}, 400, "text is missing"),
        ("write", {"person": MARTA, "chat": "p2p"}, 400, "text is missing"),
        ("write", {"person": MARTA, "chat": "p2p", "text": "x" * 160_000}, 400, "text is longer than 150 KB"),
        ("write", {"person": MARTA, "chat": "p2p", "text": "x", "reply_to": 3}, 400, "reply_to must be a text"),
        ("write", {"person": MARTA, "chat": "p2p", "text": "x", "reply_to": "om_no"}, 404, "no message 'om_no'"),
        ("write", [1], 400, "the request must be a JSON object"),
        ("click", {"person": MARTA, "message_id": "om_no", "action": {}}, 400, "action must be an object with a tag"),
        ("click", {"person": MARTA, "message_id": "om_no", "action": {"tag": "button"}}, 404, "no message 'om_no'"),
        ("recall", {"person": MARTA, "message_id": "om_no"}, 404, "no message 'om_no'"),
        ("react", {"person": MARTA, "message_id": "om_no", "emoji": "OK"}, 404, "no message 'om_no'"),
        ("upload", {}, 400, "missing or wrong: file, person, chat"),
    ],
)
async def test_a_mistake_is_answered_with_a_sentence(
    client: httpx.AsyncClient, path: str, body: Any, status: int, sentence: str
) -> None:
    answer = await client.post(f"{PAGE}/{path}", json=body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/?person=Nobody",
        "/?chat=nowhere",
        f"{PAGE}/static/no.js",
        f"{PAGE}/static/..%2Froutes.py",
        f"{PAGE}/resources/img_no",
    ],
)
async def test_what_is_not_there_is_said_so(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 404


async def test_another_site_can_not_act_in_a_persons_name(client: httpx.AsyncClient, world: World) -> None:
    body = json.dumps({"person": MARTA, "chat": "p2p", "text": "x"})
    foreign = {"sec-fetch-site": "cross-site", "content-type": "application/json"}
    assert (await client.post(f"{PAGE}/write", content=body, headers=foreign)).status_code == 403
    simple = {"content-type": "text/plain"}
    assert (await client.post(f"{PAGE}/write", content=body, headers=simple)).status_code == 400
    assert (
        await client.post(f"{PAGE}/write", content="{", headers={"content-type": "application/json"})
    ).status_code == 400
    assert world.messages == {}


async def test_the_live_stream_tells_rows_here_and_news_elsewhere(world: World, bot: ScriptedBot) -> None:
    chat, marta = world.direct_chat(MARTA), world.person(MARTA)
    stream = live(world, chat, marta)
    assert await anext(stream) == 'retry: 1000\nevent: bot\ndata: {"connected":true}\n\n'
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    _, entity = bot.send(chat, markdown_card("a", streaming=True))
    for text in ("ab", "abc", "abcd"):
        bot.change(entity, markdown_card(text, streaming=True))
    await world.write(TOM, world.direct_chat(TOM).chat_id, "not for Marta")
    await world.write(TOM, world.chat("Team").chat_id, "elsewhere")
    kind, data = (await waiting).strip().split("\n")
    assert kind == "event: row"
    told = json.loads(data.removeprefix("data: "))
    assert "abcd" in told["html"]
    assert told["mine"] is False
    kind, data = (await anext(stream)).strip().split("\n")
    assert kind == "event: other"
    news = json.loads(data.removeprefix("data: "))
    assert (news["chat_id"], news["last"]) == (world.chat("Team").chat_id, "elsewhere")
    ending = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    world.close_listeners()
    with pytest.raises(StopAsyncIteration):
        await ending


async def test_the_live_stream_tells_when_the_bot_comes(world: World) -> None:
    world.bot.connections = {}  # type: ignore[attr-defined]
    stream = live(world, world.direct_chat(MARTA), world.person(MARTA))
    assert '"connected":false' in await anext(stream)
    world.bot.connections = {"line": object()}  # type: ignore[attr-defined]
    assert await anext(stream) == sse("bot", {"connected": True})
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_browser_that_goes_away_is_forgotten(world: World) -> None:
    stream = live(world, world.direct_chat(MARTA), world.person(MARTA))
    await anext(stream)
    assert len(world._listeners) == 1
    await stream.aclose()  # type: ignore[attr-defined]
    assert len(world._listeners) == 0
