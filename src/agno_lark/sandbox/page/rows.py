"""One message as a row of the conversation: face, name, quote, body, reactions, and what may be done to it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from markupsafe import Markup

from agno_lark.sandbox.page.avatars import avatar
from agno_lark.sandbox.page.bodies import draw_body
from agno_lark.sandbox.page.cards import is_streaming, summary_of
from agno_lark.sandbox.page.emoji import REACTIONS, emoji
from agno_lark.sandbox.page.html import clip, el
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.labels import labels_for
from agno_lark.sandbox.page.scene import Face, Scene
from agno_lark.sandbox.records import Chat, Message, Person
from agno_lark.sandbox.world import World

__all__ = ["clock_of", "draw_row", "face_id", "preview", "scene_for"]

PREVIEW_CHARS = 80


def scene_for(world: World, person: Person) -> Scene:
    """What this person sees the world through."""
    app = world.app
    bot = Face(open_id=app.bot_open_id, name=app.bot_name, is_bot=True)
    faces = {
        each.open_id: Face(open_id=each.open_id, name=each.name, mark=each.avatar, colour=each.colour)
        for each in world.people
    }
    faces |= {app.bot_open_id: bot, app.app_id: bot}

    def picture(key: str) -> str | None:
        return f"/sandbox/page/resources/{key}" if key in world.uploads else None

    return Scene(language=person.language, faces=faces, picture=picture)


def face_id(world: World, message: Message) -> str:
    """Whose face stands beside the message."""
    return world.app.bot_open_id if message.sender_is_bot else message.sender_id


def preview(world: World, message: Message, person: Person, scene: Scene) -> str:
    """A message in one line, for the list of chats and for quotes."""
    labels = labels_for(person.language)
    name = world.name_of(message.sender_id)
    if message.recalled:
        mine = message.sender_id == person.open_id
        return labels["recalled_mine"] if mine else labels["recalled_other"].format(name=name)
    card = world.card_json(message)
    if card is not None:
        return clip(summary_of(card, scene) or "…", PREVIEW_CHARS)
    return clip(world.show(message).text, PREVIEW_CHARS)


def clock_of(at_ms: int) -> Markup:
    """A time of day; page.js writes it in the browser's zone."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return el("time", {"class": "clock", "datetime": at.isoformat(timespec="seconds")}, f"{at:%H:%M}")


def draw_row(world: World, message: Message, person: Person, scene: Scene) -> Markup:
    """The message as this person sees it now."""
    labels = labels_for(person.language)
    mine = message.sender_id == person.open_id
    about: dict[str, str | bool | None] = {
        "class": "row mine" if mine else "row",
        "data-key": message.message_id,
        "data-message": message.message_id,
        "data-author": world.name_of(message.sender_id),
    }
    if message.recalled:
        return el(
            "li",
            {**about, "class": "row notice"},
            el("span", {"class": "notice-text"}, preview(world, message, person, scene)),
        )
    card = world.card_json(message)
    entity = world.cards.get(message.card_id or "")
    streaming = card is not None and (world.is_streaming(entity) if entity else is_streaming(card))
    chat = world.chats[message.chat_id]
    body = draw_body(message, card, replace(scene, card_id=message.message_id), streaming=streaming)
    bubble = "carded" if card is not None else "pictured" if message.msg_type in ("image", "file") else "bubble"
    return el(
        "li",
        about,
        avatar(face_id(world, message), scene),
        el(
            "div",
            {"class": "row-main"},
            _head(message, person, world, card is None),
            _quote(world, message, chat, person, scene),
            el(
                "div",
                {"class": "row-line"},
                el("div", {"class": bubble}, body),
                _tools(message, chat, labels, mine=mine),
            ),
            _reactions(message, person, scene),
        ),
    )


def _head(message: Message, person: Person, world: World, says_edited: bool) -> Markup:
    labels = labels_for(person.language)
    return el(
        "div",
        {"class": "row-head"},
        el("span", {"class": "author"}, world.name_of(message.sender_id)),
        el("span", {"class": "badge"}, labels["bot"]) if message.sender_is_bot else None,
        clock_of(message.created_ms),
        el("span", {"class": "edited"}, labels["edited"]) if message.edits and says_edited else None,
    )


def _quote(world: World, message: Message, chat: Chat, person: Person, scene: Scene) -> Markup | None:
    quoted = world.messages.get(message.parent_id or "")
    if quoted is None or (chat.mode == "topic" and quoted.message_id == message.root_id):
        return None
    name = world.name_of(quoted.sender_id)
    return el(
        "button",
        {"type": "button", "class": "quote", "data-goto": quoted.message_id},
        el("span", {"class": "quote-name"}, f"{name}: "),
        preview(world, quoted, person, scene),
    )


def _reactions(message: Message, person: Person, scene: Scene) -> Markup | None:
    if not message.reactions:
        return None
    people: dict[str, list[str]] = {}
    for reaction in message.reactions:
        people.setdefault(reaction.emoji, []).append(reaction.operator_open_id)
    chips = []
    for key, ids in people.items():
        names = ", ".join(scene.name_of(open_id) for open_id in ids)
        mine = person.open_id in ids
        about = {
            "type": "button",
            "class": "reaction mine" if mine else "reaction",
            "data-react": key,
            "data-key": f"reaction-{key}",
            "aria-pressed": "true" if mine else "false",
            "aria-label": f"{key}: {names}",
            "title": names,
        }
        chips.append(el("button", about, el("span", {"class": "mark"}, emoji(key)), el("span", None, names)))
    return el("div", {"class": "reactions"}, *chips)


def _tools(message: Message, chat: Chat, labels: Mapping[str, str], *, mine: bool) -> Markup:
    """What may be done to the message. Opened by hovering, focus, or a touch."""
    marks = [
        el("button", {"type": "button", "data-react": key, "aria-label": key, "title": key}, emoji(key))
        for key in REACTIONS
    ]
    tools = [
        el(
            "details",
            {"class": "menu react", "data-key": "react"},
            el("summary", {"aria-label": labels["react"], "title": labels["react"]}, draw_icon("emoji")),
            el("div", {"class": "menu-list marks"}, *marks),
        ),
        _tool("reply", "reply", labels["reply_topic" if chat.mode == "topic" else "reply"]),
    ]
    if chat.mode == "group" and message.thread_id is None:
        tools.append(_tool("topic", "thread", labels["open_topic"]))
    if mine:
        tools.append(_tool("recall", "recall", labels["recall"]))
    return el("div", {"class": "tools", "role": "group", "aria-label": labels["more"]}, *tools)


def _tool(what: str, mark: str, name: str) -> Markup:
    return el("button", {"type": "button", "data-tool": what, "aria-label": name, "title": name}, draw_icon(mark))
