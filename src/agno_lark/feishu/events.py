"""What Feishu delivers, as values: the envelope of every event, and the three kinds the bridge acts on.

Pure and total: any bytes give a value or `MalformedEvent`, nothing else (shapes: feishu.md section 6). Keys that Feishu
leaves out are `None` here; ids that must be there and are not make the event malformed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from agno_lark.errors import FeishuError
from agno_lark.feishu.jsontext import read_object, whole_text

__all__ = [
    "CARD_CLICK",
    "MESSAGE_RECALLED",
    "MESSAGE_RECEIVED",
    "CardClick",
    "Event",
    "IncomingMessage",
    "MalformedEvent",
    "Mention",
    "Recall",
    "epoch_ms",
    "parse_click",
    "parse_event",
    "parse_message",
    "parse_recall",
    "read_mentions",
]

MESSAGE_RECEIVED = "im.message.receive_v1"
MESSAGE_RECALLED = "im.message.recalled_v1"
CARD_CLICK = "card.action.trigger"

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class MalformedEvent(FeishuError):
    """The bytes are no event, or lack what its kind must have. Another delivery would bring the same bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One delivery. `created_ms` is 0 where Feishu gave no time; `body` is the `event` object, `raw` all of it."""

    event_id: str
    event_type: str
    app_id: str
    tenant_key: str
    created_ms: int
    body: Mapping[str, Any] = field(repr=False)
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """Somebody named in a message: `key` (`@_user_1`, `@_all`) is what the text holds in the name's place."""

    key: str
    open_id: str
    union_id: str
    name: str
    is_bot: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingMessage:
    """A message as received. `content` is Feishu's own string: JSON for most kinds, empty after an early recall."""

    event_id: str
    app_id: str
    tenant_key: str
    message_id: str
    chat_id: str
    chat_type: Literal["p2p", "group"]
    thread_id: str | None
    root_id: str | None
    parent_id: str | None
    sender_open_id: str
    sender_union_id: str | None
    sender_user_id: str | None
    sender_type: str
    sender_tenant_key: str
    message_type: str
    content: str = field(repr=False)
    mentions: tuple[Mention, ...]
    created_ms: int
    language: Literal["zh", "en"] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CardClick:
    """A person used a control of a card.

    `value` is the control's own object, empty where it was none; a bare string (which Feishu's clients refuse, but some
    cards carry) is in `value_text`. `message_id` and `chat_id` are empty where the context was left out.
    """

    event_id: str
    app_id: str
    tenant_key: str
    operator_open_id: str
    operator_union_id: str | None
    operator_user_id: str | None
    token: str = field(repr=False)
    message_id: str
    chat_id: str
    host: str
    tag: str
    name: str
    value: Mapping[str, Any]
    value_text: str | None
    form_value: Mapping[str, Any] = field(repr=False)
    input_value: str | None = field(repr=False)
    option: str | None
    options: tuple[str, ...]
    checked: bool | None
    timezone: str | None
    created_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall:
    """A message was taken back; `by` is Feishu's word for who did it (`message_owner`, `group_manager`, ...)."""

    event_id: str
    app_id: str
    tenant_key: str
    message_id: str
    chat_id: str
    recalled_ms: int
    by: str


def parse_event(payload: bytes | str) -> Event:
    """The envelope, schema 2.0 or the older one (`uuid`, `event.type`). Raises `MalformedEvent`."""
    try:
        raw = read_object(payload)
    except ValueError as error:
        raise MalformedEvent("the event is not a JSON object") from error
    header = _object(raw.get("header"))
    body = _object(raw.get("event"))
    event_id = _text(header.get("event_id")) or _text(raw.get("uuid"))
    event_type = _text(header.get("event_type")) or _text(body.get("type"))
    if not event_id or not event_type:
        raise MalformedEvent("the event has no event_id or no event_type")
    return Event(
        event_id=event_id,
        event_type=event_type,
        app_id=_text(header.get("app_id")) or _text(body.get("app_id")),
        tenant_key=_text(header.get("tenant_key")) or _text(body.get("tenant_key")),
        created_ms=epoch_ms(header.get("create_time") or raw.get("ts")),
        body=body,
        raw=raw,
    )


def parse_message(event: Event) -> IncomingMessage:
    """The message of an `im.message.receive_v1`. Raises `MalformedEvent` without a message id, chat id or kind."""
    message = _object(event.body.get("message"))
    sender = _object(event.body.get("sender"))
    sender_id = _object(sender.get("sender_id"))
    message_id, chat_id = _text(message.get("message_id")), _text(message.get("chat_id"))
    message_type = _text(message.get("message_type"))
    if not message_id or not chat_id or not message_type:
        raise MalformedEvent("the message has no message_id, chat_id or message_type")
    content = message.get("content")
    return IncomingMessage(
        event_id=event.event_id,
        app_id=event.app_id,
        tenant_key=event.tenant_key,
        message_id=message_id,
        chat_id=chat_id,
        # Only these two exist (payloads/README.md); what is not certainly a direct chat gets a group's caution.
        chat_type="p2p" if message.get("chat_type") == "p2p" else "group",
        thread_id=_text(message.get("thread_id")) or None,
        root_id=_text(message.get("root_id")) or None,
        parent_id=_text(message.get("parent_id")) or None,
        sender_open_id=_text(sender_id.get("open_id")),
        sender_union_id=_text(sender_id.get("union_id")) or None,
        sender_user_id=_text(sender_id.get("user_id")) or None,
        sender_type=_text(sender.get("sender_type")) or "unknown",
        sender_tenant_key=_text(sender.get("tenant_key")) or event.tenant_key,
        message_type=message_type,
        content=content if isinstance(content, str) else "",
        mentions=read_mentions(message.get("mentions")),
        created_ms=epoch_ms(message.get("create_time")) or event.created_ms,
        language=_language(_text(message.get("user_agent"))),
    )


def parse_click(event: Event) -> CardClick:
    """The click of a `card.action.trigger`. Raises `MalformedEvent` where nobody is said to have clicked."""
    body = event.body
    operator = _object(body.get("operator"))
    operator_open_id = _text(operator.get("open_id"))
    if not operator_open_id:
        raise MalformedEvent("the card click names no operator")
    action = _object(body.get("action"))
    # Some documented samples put context and host beside `event` (cards/README.md, "Callback").
    context = _object(body.get("context")) or _object(event.raw.get("context"))
    value = action.get("value")
    options = action.get("options")
    if isinstance(options, str):  # an image picker's one choice (cards/README.md)
        options = [options]
    checked = action.get("checked")
    return CardClick(
        event_id=event.event_id,
        app_id=event.app_id,
        tenant_key=_text(operator.get("tenant_key")) or event.tenant_key,
        operator_open_id=operator_open_id,
        operator_union_id=_text(operator.get("union_id")) or None,
        operator_user_id=_text(operator.get("user_id")) or None,
        token=_text(body.get("token")),
        message_id=_text(context.get("open_message_id")) or _text(body.get("open_message_id")),
        chat_id=_text(context.get("open_chat_id")) or _text(body.get("open_chat_id")),
        host=_text(body.get("host")) or _text(event.raw.get("host")),
        tag=_text(action.get("tag")),
        name=_text(action.get("name")),
        value=_object(value),
        value_text=value if isinstance(value, str) else None,
        form_value=_object(action.get("form_value")),
        input_value=_text_or_none(action.get("input_value")),
        option=_text_or_none(action.get("option")),
        options=tuple(item for item in options if isinstance(item, str)) if isinstance(options, list) else (),
        checked=checked if isinstance(checked, bool) else None,
        timezone=_text_or_none(action.get("timezone")),
        created_ms=event.created_ms,
    )


def parse_recall(event: Event) -> Recall:
    """The recall of an `im.message.recalled_v1`. Raises `MalformedEvent` without a message id."""
    message_id = _text(event.body.get("message_id"))
    if not message_id:
        raise MalformedEvent("the recall has no message_id")
    return Recall(
        event_id=event.event_id,
        app_id=event.app_id,
        tenant_key=event.tenant_key,
        message_id=message_id,
        chat_id=_text(event.body.get("chat_id")),
        recalled_ms=epoch_ms(event.body.get("recall_time")) or event.created_ms,
        by=_text(event.body.get("recall_type")),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _NOTHING


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def epoch_ms(value: Any) -> int:
    """UTC epoch milliseconds, 0 for what is no time.

    Messages count milliseconds, card events microseconds, some others seconds (payloads/README.md). Between the years
    1974 and 5138 the three never overlap, so the size tells them apart whatever the event.
    """
    if isinstance(value, str):
        if not (value.isascii() and value.isdecimal() and len(value) <= 19):
            return 0
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return 0
    if value >= 10**17:  # nanoseconds and nonsense: nothing documented counts so
        return 0
    if value >= 10**14:
        return value // 1000
    return value * 1000 if value < 10**11 else value


def read_mentions(value: Any) -> tuple[Mention, ...]:
    """The `mentions` list of an event or of an answer; entries without a key are left out."""
    found: list[Mention] = []
    for item in value if isinstance(value, list) else ():
        mention = _object(item)
        key = _text(mention.get("key"))
        if not key:
            continue
        who = mention.get("id")  # an object in events, a bare open_id in answers (payloads/README.md)
        ids = _object(who)
        found.append(
            Mention(
                key=key,
                open_id=_text(ids.get("open_id")) or _text(who),
                union_id=_text(ids.get("union_id")),
                name=whole_text(_text(mention.get("name"))),
                is_bot=mention.get("mentioned_type") == "bot",
            )
        )
    return tuple(found)


def _language(user_agent: str) -> Literal["zh", "en"] | None:
    """From a client's `... LarkLocale/en_US`; `None` where it says nothing or a language we do not speak."""
    _, found, locale = user_agent.partition("LarkLocale/")
    if not found:
        return None
    tag = locale[:2].lower()
    if tag == "zh":
        return "zh"
    return "en" if tag == "en" else None
