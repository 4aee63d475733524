"""The page's parts as values: who there is, which chats a person has, and a conversation as HTML."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from agno_lark.sandbox.page.html import el, join
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.labels import labels_for
from agno_lark.sandbox.page.rows import draw_row, preview, scene_for
from agno_lark.sandbox.records import Chat, Message, Person
from agno_lark.sandbox.world import UnknownThing, World

__all__ = ["ChatLine", "chat_of", "chats_of", "conversation", "person_of"]


MOST_ROWS = 300
"""Older messages are not drawn: a benchmark's chat would be too long for a browser."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatLine:
    """A chat in the list. `last_ms` is 0 where nothing was written; `kind` is a sentence (direct, group, topics)."""

    chat_id: str
    name: str
    mode: str
    kind: str
    last: str
    last_ms: int


def person_of(world: World, who: str | None, accepted: str = "") -> Person:
    """The person asked for, by open_id or name; otherwise the first one who speaks what the browser's reader does.

    `accepted`: the Accept-Language header. Raises UnknownThing.
    """
    if who:
        return world.person(who)
    language = language_of(accepted)
    return next((each for each in world.people if each.language == language), world.people[0])


def language_of(accepted: str) -> Literal["zh", "en"]:
    """The one of our languages that an Accept-Language header likes best; English where it names neither."""
    liked: tuple[float, str] = (0.0, "en")
    for each in accepted.split(","):
        tag, _, quality = each.partition(";")
        found = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", quality)
        weight = float(found[1]) if found else 0.0 if quality else 1.0
        language = tag.strip().lower().partition("-")[0]
        if weight > liked[0] and language in ("zh", "en"):
            liked = (weight, language)
    return "zh" if liked[1] == "zh" else "en"


def chat_of(world: World, person: Person, which: str | None) -> Chat:
    """The chat asked for, by id, name or mode (p2p, group, topic); the direct chat otherwise. Raises UnknownThing."""
    if not which or which == "p2p":
        return world.direct_chat(person)
    found = next((chat for chat in world.chats.values() if chat.mode == which), None) or world.chat(which)
    if person.open_id not in found.members:
        raise UnknownThing(f"{person.name} is not in the chat {found.name!r}")
    return found


def chats_of(world: World, person: Person) -> list[ChatLine]:
    """The person's chats: the direct one first."""
    labels = labels_for(person.language)
    scene = scene_for(world, person)
    found = []
    for chat in sorted(world.chats.values(), key=lambda each: ("p2p", "group", "topic").index(each.mode)):
        if person.open_id not in chat.members:
            continue
        last = world.messages[chat.timeline[-1]] if chat.timeline else None
        word = {"p2p": "direct", "group": "group", "topic": "topic_group"}[chat.mode]
        found.append(
            ChatLine(
                chat_id=chat.chat_id,
                name=world.app.bot_name if chat.mode == "p2p" else chat.name,
                mode=chat.mode,
                kind=labels[word].format(count=len(chat.members)),
                last=preview(world, last, person, scene) if last else "",
                last_ms=last.updated_ms if last else 0,
            )
        )
    return found


def conversation(world: World, chat: Chat, person: Person) -> Markup:
    """The newest rows of a chat, oldest first; a topic group's rows stand under their topics."""
    scene = scene_for(world, person)
    messages = [world.messages[message_id] for message_id in chat.timeline[-MOST_ROWS:]]
    if chat.mode == "topic":
        return join(_topic(world, thread_id, found, person) for thread_id, found in _by_topic(messages))
    return join(draw_row(world, message, person, scene) for message in messages)


def _by_topic(messages: Sequence[Message]) -> list[tuple[str, list[Message]]]:
    topics: dict[str, list[Message]] = {}
    for message in messages:
        topics.setdefault(message.thread_id or message.message_id, []).append(message)
    return list(topics.items())


def _topic(world: World, thread_id: str, messages: Sequence[Message], person: Person) -> Markup:
    labels = labels_for(person.language)
    scene = scene_for(world, person)
    rows = [draw_row(world, message, person, scene) for message in messages]
    reply = el(
        "button",
        {"type": "button", "class": "topic-reply", "data-tool": "reply", "data-reply-to": messages[0].message_id},
        draw_icon("reply"),
        labels["reply_topic"],
    )
    return el(
        "li",
        {"class": "topic", "data-key": thread_id, "data-thread": thread_id},
        el("ol", {"class": "rows", "aria-label": labels["topic"]}, *rows),
        reply,
    )
