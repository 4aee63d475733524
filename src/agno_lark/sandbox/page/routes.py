"""The routes of the web chat: the page at `/`, everything it needs under `/sandbox/page/`."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Request, UploadFile
from fastapi.params import Depends, Form, Header, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from agno_lark.sandbox.page.asks import BadAsk, SentenceRoute, body_of, flag, maybe, need
from agno_lark.sandbox.page.avatars import avatar
from agno_lark.sandbox.page.html import to_json
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.labels import examples_for, labels_for
from agno_lark.sandbox.page.live import bot_is_there, live
from agno_lark.sandbox.page.rows import clock_of, scene_for
from agno_lark.sandbox.page.view import chat_of, chats_of, conversation, person_of
from agno_lark.sandbox.records import Chat, Json, Person, Resource
from agno_lark.sandbox.world import UnknownThing, World

__all__ = ["CONTENT_POLICY", "page_router"]

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # Cards carry distances and colours, checked in looks.py; they become style attributes, never style sheets.
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data:",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
STATIC_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
SHOWN_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
LARGEST_FILE = 30 * 1024 * 1024
LARGEST_IMAGE = 10 * 1024 * 1024
IMAGE_HEADS = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8")


def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("agno_lark.sandbox.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def _static_files() -> Mapping[str, bytes]:
    """The page's own scripts and styles, read once; nothing else can be asked for."""
    folder = files("agno_lark.sandbox.page") / "static"
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


def page_router(world: World) -> APIRouter:
    """All routes of the page over this world."""
    router = APIRouter(route_class=SentenceRoute, include_in_schema=False)
    _add_views(router, world)
    _add_actions(router, world)
    return router


def _add_views(router: APIRouter, world: World) -> None:
    template = _templates().get_template("page.html")  # once: reading files would hold up the event loop
    static = _static_files()

    def who(person: str | None = None, accept_language: Annotated[str, Header()] = "") -> Person:
        return person_of(world, person, accept_language)

    def where(person: Annotated[Person, Depends(who)], chat: str | None = None) -> Chat:
        return chat_of(world, person, chat)

    @router.get("/")
    async def page(
        person: Annotated[Person, Depends(who)],
        chat: Annotated[Chat, Depends(where)],
        example: Annotated[list[str], Query()] = [],  # noqa: B006 - FastAPI copies it
    ) -> Response:
        """The whole page for one person and chat."""
        facts = page_facts(world, person, chat, example)
        return HTMLResponse(template.render(facts), headers=PAGE_HEADERS)

    @router.get("/sandbox/page/conversation")
    async def rows(person: Annotated[Person, Depends(who)], chat: Annotated[Chat, Depends(where)]) -> Response:
        """The rows of a chat as they are now (after a lost connection)."""
        return HTMLResponse(str(conversation(world, chat, person)), headers=PAGE_HEADERS)

    @router.get("/sandbox/page/live")
    async def stream(person: Annotated[Person, Depends(who)], chat: Annotated[Chat, Depends(where)]) -> Response:
        """Server-sent events: see live.py."""
        return StreamingResponse(
            live(world, chat, person), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    @router.get("/sandbox/page/resources/{key}")
    async def resource(key: str) -> Response:
        """A picture to show, or a file to take away."""
        held = world.uploads.get(key)
        if held is None:
            raise UnknownThing(f"no picture or file {key!r}")
        return _delivered(held)

    @router.get("/sandbox/page/static/{name}")
    async def static_file(name: str) -> Response:
        """A script or style of the page."""
        if name not in static:
            raise UnknownThing(f"no file {name!r}")
        kind = STATIC_TYPES.get(name[name.rfind(".") :], "application/octet-stream")
        return Response(
            static[name], media_type=kind, headers={"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
        )


def _add_actions(router: APIRouter, world: World) -> None:
    @router.post("/sandbox/page/write")
    async def write(request: Request) -> Response:
        """{person, chat, text, reply_to?, new_topic?}: text in which `@Name` mentions."""
        body = await body_of(request)
        person = person_of(world, need(body, "person"))
        chat = chat_of(world, person, need(body, "chat"))
        text = need(body, "text")
        message = await world.write(
            person,
            chat.chat_id,
            text,
            mention_bot=f"@{world.app.bot_name}" in text,
            mentions=[each.open_id for each in world.people if f"@{each.name}" in text],
            reply_to=maybe(body, "reply_to"),
            new_topic=flag(body, "new_topic"),
        )
        return JSONResponse({"message_id": message.message_id, "thread_id": message.thread_id})

    @router.post("/sandbox/page/upload")
    async def upload(
        file: UploadFile,
        person: Annotated[str, Form()],
        chat: Annotated[str, Form()],
        thread: Annotated[str, Form()] = "",
    ) -> Response:
        """A picture or file, as a multipart form."""
        writer = person_of(world, person)
        place = chat_of(world, writer, chat)
        data = await file.read(LARGEST_FILE + 1)
        if not data or len(data) > LARGEST_FILE:
            raise BadAsk("a file must have content, and 30 MB at most")
        name = (file.filename or "file").replace("\\", "/").rsplit("/", 1)[-1] or "file"
        is_image = (data.startswith(IMAGE_HEADS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")) and len(
            data
        ) <= LARGEST_IMAGE
        send = world.send_image if is_image else world.send_file
        message = await send(writer, place.chat_id, data, name, in_thread=thread or None)
        return JSONResponse({"message_id": message.message_id, "thread_id": message.thread_id})

    @router.post("/sandbox/page/recall")
    async def recall(request: Request) -> Response:
        """{person, message_id}: take one's own message back."""
        body = await body_of(request)
        await world.recall(person_of(world, need(body, "person")), need(body, "message_id"))
        return JSONResponse({})

    @router.post("/sandbox/page/react")
    async def react(request: Request) -> Response:
        """{person, message_id, emoji}: put an emoji under a message, or take it away."""
        body = await body_of(request)
        await world.react(person_of(world, need(body, "person")), need(body, "message_id"), need(body, "emoji")[:40])
        return JSONResponse({})

    @router.post("/sandbox/page/click")
    async def click(request: Request) -> Response:
        """{person, message_id, action}: use a control of a card. The answer is the bot's: {"toast"?: ...}."""
        body = await body_of(request)
        action = body.get("action")
        if not isinstance(action, Mapping) or not isinstance(action.get("tag"), str):
            raise BadAsk("action must be an object with a tag")
        person = person_of(world, need(body, "person"))
        answer: Json = await world.click(person, need(body, "message_id"), dict(action))
        return JSONResponse({"toast": answer.get("toast")})


def page_facts(world: World, person: Person, chat: Chat, example: list[str]) -> dict[str, Any]:
    """What the template shows."""
    labels = labels_for(person.language)
    scene = scene_for(world, person)
    bot = world.app.bot_name
    lines = chats_of(world, person)
    current = next(line for line in lines if line.chat_id == chat.chat_id)
    word = {"p2p": "direct", "group": "group", "topic": "topic"}[chat.mode]
    offered = examples_for(person.language, example, world)
    members = [each for each in world.people if each.open_id in chat.members and each.open_id != person.open_id]
    return {
        "t": labels,
        "person": person,
        "people": world.people,
        "chats": lines,
        "chat": current,
        "bot": bot,
        "bot_there": bot_is_there(world),
        "empty_title": labels[f"empty_{word}"].format(bot=bot),
        "empty_more": labels[f"empty_{word}_more"].format(bot=bot),
        "hint": labels["new_topic" if chat.mode == "topic" else "message_to"].format(name=current.name),
        "examples": offered if chat.mode == "p2p" else [f"@{bot} {text}" for text in offered],
        "rows": conversation(world, chat, person),
        "face": lambda open_id, size="medium": avatar(open_id, scene, size=size),
        "bot_id": world.app.bot_open_id,
        "icon": draw_icon,
        "clock": clock_of,
        "chat_icon": {"p2p": "chat", "group": "group", "topic": "thread"},
        "page_json": to_json(
            {
                "person": person.open_id,
                "language": person.language,
                "chat": chat.chat_id,
                "mode": chat.mode,
                "mentions": [bot, *(each.name for each in members)] if chat.mode != "p2p" else [],
                "labels": labels,
                "largest": LARGEST_FILE,
            }
        ),
    }


def _delivered(held: Resource) -> Response:
    shown = held.content_type in SHOWN_TYPES
    return Response(
        held.data,
        media_type=held.content_type if shown else "application/octet-stream",
        headers={
            "Content-Disposition": "inline" if shown else "attachment",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, max-age=3600",
        },
    )
