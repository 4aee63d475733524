"""What calls give back, as values. Read leniently: a key Feishu leaves out is empty or `None`, never an error."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agno_lark.feishu.events import Mention, epoch_ms, read_mentions

__all__ = [
    "BotInfo",
    "ChatInfo",
    "Resource",
    "SentMessage",
    "StoredMessage",
    "read_bot_info",
    "read_chat_info",
    "read_own_reaction",
    "read_sent_message",
    "read_stored_messages",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class BotInfo:
    """The bot itself. `open_id` is what mentions of it carry in this app."""

    open_id: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SentMessage:
    """A message we sent; `thread_id` where it landed in a topic."""

    message_id: str
    chat_id: str
    thread_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatInfo:
    """A chat. `mode`: p2p, group or topic, empty where the bot is no member; `group_message_type`: chat or thread."""

    chat_id: str
    mode: str
    group_message_type: str
    name: str

    @property
    def has_topics(self) -> bool:
        """Whether every message there starts or continues a topic (payloads/README.md)."""
        return self.mode == "topic" or self.group_message_type == "thread"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredMessage:
    """A message as the history holds it. Of a merged forward the container comes first, then all it holds, flat:
    `upper_message_id` builds the tree."""

    message_id: str
    chat_id: str
    message_type: str
    content: str = field(repr=False)
    sender_id: str
    sender_type: str
    thread_id: str | None
    root_id: str | None
    parent_id: str | None
    upper_message_id: str | None
    mentions: tuple[Mention, ...]
    created_ms: int
    deleted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A download under way: iterate `chunks` once, inside the `async with` that gave it."""

    content_type: str
    size_bytes: int | None
    chunks: AsyncIterator[bytes] = field(repr=False)


def read_bot_info(answer: Mapping[str, Any]) -> BotInfo:
    """From `bot` at the top level (payloads: bot_info)."""
    bot = _object(answer, "bot")
    return BotInfo(open_id=_text(bot, "open_id"), name=_text(bot, "app_name"))


def read_sent_message(answer: Mapping[str, Any]) -> SentMessage:
    data = _object(answer, "data")
    return SentMessage(
        message_id=_text(data, "message_id"), chat_id=_text(data, "chat_id"), thread_id=_text(data, "thread_id") or None
    )


def read_chat_info(chat_id: str, answer: Mapping[str, Any]) -> ChatInfo:
    data = _object(answer, "data")
    return ChatInfo(
        chat_id=chat_id,
        mode=_text(data, "chat_mode"),
        group_message_type=_text(data, "group_message_type"),
        name=_text(data, "name"),
    )


def read_stored_messages(answer: Mapping[str, Any]) -> tuple[StoredMessage, ...]:
    items = _object(answer, "data").get("items")
    return tuple(_stored(item) for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def read_own_reaction(answer: Mapping[str, Any], app_id: str) -> str | None:
    """The id of the first reaction that is this app's (payloads: reaction_list)."""
    items = _object(answer, "data").get("items")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and _text(_object(item, "operator"), "operator_id") == app_id:
            return _text(item, "reaction_id") or None
    return None


def _stored(item: Mapping[str, Any]) -> StoredMessage:
    sender = _object(item, "sender")
    return StoredMessage(
        message_id=_text(item, "message_id"),
        chat_id=_text(item, "chat_id"),
        message_type=_text(item, "msg_type"),
        content=_text(_object(item, "body"), "content"),
        sender_id=_text(sender, "id"),
        sender_type=_text(sender, "sender_type"),
        thread_id=_text(item, "thread_id") or None,
        root_id=_text(item, "root_id") or None,
        parent_id=_text(item, "parent_id") or None,
        upper_message_id=_text(item, "upper_message_id") or None,
        mentions=read_mentions(item.get("mentions")),
        created_ms=epoch_ms(item.get("create_time")),
        deleted=item.get("deleted") is True,
    )


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
