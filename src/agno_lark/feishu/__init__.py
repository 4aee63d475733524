"""The wire to Feishu/Lark: events come in over the long connection, calls go out over the OpenAPI.

Enters: frames and answers as Feishu sends them. Leaves: frozen values (`Event`, `IncomingMessage`, ...), results of
calls, and `CallRefused`/`ConnectionRefused`. An event is acknowledged only after `accept` has returned, so what was not
accepted comes again; nothing here is written to disk and nothing survives a crash but Feishu's own redelivery.
Reading (pure): events, text, frames, codes, answers. Holding the line: discovery, link, deliveries, connection, status.
Calling: api, caller, retries, tokens, limits, downloads. Names here are imported on first use, so that the command
line starts without httpx and websockets.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agno_lark.feishu.answers import BotInfo, ChatInfo, Resource, SentMessage, StoredMessage
    from agno_lark.feishu.api import OpenApi, card_reference
    from agno_lark.feishu.codes import CallRefused, ErrorKind, kind_of
    from agno_lark.feishu.connection import Connection, ConnectionLimits
    from agno_lark.feishu.deliveries import Accept
    from agno_lark.feishu.downloads import ResourceTooLarge
    from agno_lark.feishu.events import (
        CARD_CLICK,
        MESSAGE_RECALLED,
        MESSAGE_RECEIVED,
        CardClick,
        Event,
        IncomingMessage,
        MalformedEvent,
        Mention,
        Recall,
        parse_click,
        parse_event,
        parse_message,
        parse_recall,
    )
    from agno_lark.feishu.limits import Gate, Limits, Rate
    from agno_lark.feishu.proxy import proxy_for
    from agno_lark.feishu.retries import RetryRules
    from agno_lark.feishu.status import ConnectionState, ConnectionStatus
    from agno_lark.feishu.text import MeantText, meant_text

__all__ = [
    "CARD_CLICK",
    "MESSAGE_RECALLED",
    "MESSAGE_RECEIVED",
    "Accept",
    "BotInfo",
    "CallRefused",
    "CardClick",
    "ChatInfo",
    "Connection",
    "ConnectionLimits",
    "ConnectionState",
    "ConnectionStatus",
    "ErrorKind",
    "Event",
    "Gate",
    "IncomingMessage",
    "Limits",
    "MalformedEvent",
    "MeantText",
    "Mention",
    "OpenApi",
    "Rate",
    "Recall",
    "Resource",
    "ResourceTooLarge",
    "RetryRules",
    "SentMessage",
    "StoredMessage",
    "card_reference",
    "kind_of",
    "meant_text",
    "parse_click",
    "parse_event",
    "parse_message",
    "parse_recall",
    "proxy_for",
]

_HOMES = {
    "answers": ("BotInfo", "ChatInfo", "Resource", "SentMessage", "StoredMessage"),
    "api": ("OpenApi", "card_reference"),
    "codes": ("CallRefused", "ErrorKind", "kind_of"),
    "connection": ("Connection", "ConnectionLimits"),
    "deliveries": ("Accept",),
    "downloads": ("ResourceTooLarge",),
    "events": (
        *("CARD_CLICK", "MESSAGE_RECALLED", "MESSAGE_RECEIVED", "CardClick", "Event", "IncomingMessage", "Mention"),
        *("MalformedEvent", "Recall", "parse_click", "parse_event", "parse_message", "parse_recall"),
    ),
    "limits": ("Gate", "Limits", "Rate"),
    "proxy": ("proxy_for",),
    "retries": ("RetryRules",),
    "status": ("ConnectionState", "ConnectionStatus"),
    "text": ("MeantText", "meant_text"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
