"""Whether a message's content may be sent: its JSON, its size, its files, its card (payloads/README.md, Sending)."""

import json
from dataclasses import dataclass, replace
from typing import Any

from agno_lark.sandbox.cards import Finding, refusal
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Card, Json
from agno_lark.sandbox.refusals import Refused

__all__ = ["CARD_LIFE_MS", "Sendable", "read_card", "read_sendable", "wrapped"]

TEXT_BYTES = 150 * 1024
POST_BYTES = 30 * 1024
CARD_LIFE_MS = 14 * 24 * 3600 * 1000
_KINDS = frozenset(
    ["text", "post", "image", "file", "audio", "media", "sticker", "interactive", "share_chat", "share_user", "system"]
)
_FILES = {"image": "image_key", "file": "file_key", "audio": "file_key", "media": "file_key"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sendable:
    """Content that passed; `card` is set where it names a card entity."""

    msg_type: str
    content: Json
    card: Card | None


def _bad(why: str) -> Refused:
    return Refused(230001, f"Your request contains an invalid request parameter, ext={why}.")


def read_sendable(feishu: LocalFeishu, msg_type: str, content: str) -> Sendable:
    """Raises Refused: 230001, 230025 (length), 230017 (foreign file), 230099 (card)."""
    if msg_type not in _KINDS:
        raise _bad(f"msg_type {msg_type!r} is unknown")
    if msg_type == "interactive":
        body, card = read_card(feishu, content)
        return Sendable(msg_type=msg_type, content=body, card=card)
    limit = TEXT_BYTES if msg_type == "text" else POST_BYTES
    if len(content.encode("utf-8", "surrogatepass")) > limit:
        raise Refused(230025, "The length of the message content reaches its limit.")
    body = _object(content)
    if msg_type == "text" and not (isinstance(body.get("text"), str) and body["text"]):
        raise _bad("text is empty")
    if msg_type == "post":
        _check_post(feishu, body)
    key_name = _FILES.get(msg_type)
    if key_name is not None:
        _check_file(feishu, msg_type, body.get(key_name))
    return Sendable(msg_type=msg_type, content=body, card=None)


def _object(content: str) -> Json:
    try:
        body: Any = json.loads(content)
    except ValueError:
        raise _bad("content is not a string in json format") from None
    if not isinstance(body, dict):
        raise _bad("content is no JSON object")
    return body


def _check_file(feishu: LocalFeishu, msg_type: str, key: Any) -> None:
    if not isinstance(key, str) or not key:
        raise _bad(f"{_FILES[msg_type]} is missing")
    resource = feishu.world.uploads.get(key)
    if resource is None or not resource.by_bot:
        raise Refused(230017, "The bot is not the owner of the resource.")
    if (resource.kind == "image") != (msg_type == "image"):
        raise _bad(f"{key} is no {msg_type}")
    opus, mp4 = resource.content_type == "opus", resource.content_type == "mp4"
    if (msg_type == "audio") != opus or (msg_type == "media") != mp4:
        raise Refused(230055, "The file type does not match the msg_type.")


def _check_post(feishu: LocalFeishu, body: Json) -> None:
    locales = [value for value in body.values() if isinstance(value, dict)]
    if not locales:
        raise _bad("a post needs a locale such as zh_cn")
    for post in locales:
        rows = post.get("content")
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise _bad("a post's content is a list of lists")
        for node in (node for row in rows for node in row):
            if not isinstance(node, dict) or not isinstance(node.get("tag"), str):
                raise _bad("a post's node needs a tag")
            if node["tag"] == "img":
                _check_file(feishu, "image", node.get("image_key"))


def wrapped(found: Finding) -> str:
    """The inner error of a card as IM and CardKit tell it."""
    return f"ErrCode: {found.code}; ErrPath: {found.path}; ErrMsg: {found.message}; "


def read_card(feishu: LocalFeishu, content: str) -> tuple[Json, Card | None]:
    """A card's JSON, or the entity it names. Raises Refused 230025 for size, 230099 around the card's own code."""
    body = _object(content)
    if body.get("type") == "card":
        return body, _entity(feishu, body)
    if body.get("type") == "template" and isinstance(body.get("data"), dict):
        return body, None
    if "schema" not in body and "body" not in body and isinstance(body.get("elements"), list):
        if len(content.encode("utf-8", "surrogatepass")) > POST_BYTES:
            raise Refused(230025, "The length of the message content reaches its limit.")
        return body, None  # a 1.0 card: no schema means 1.0 on IM, and there is no checker for those
    found = refusal(body, strict=feishu.strict_cards)
    if found is not None and found.code == 300303:  # IM reads it as 1.0, where body and others are unknown
        found = replace(
            found, code=200621, message="parse card json err, please check whether the card json is correct"
        )
    if found is not None and found.code == 230025:
        raise Refused(230025, "The length of the message content reaches its limit.")
    if found is not None:
        raise Refused(230099, f"Failed to create card content, ext={wrapped(found)}")
    return body, None


def _entity(feishu: LocalFeishu, body: Json) -> Card:
    """Sent once, by its own app, within 14 days."""
    data = body.get("data")
    card_id = data.get("card_id") if isinstance(data, dict) else None
    card = feishu.world.cards.get(card_id) if isinstance(card_id, str) else None
    if card is None:
        raise Refused(230099, "Failed to create card content, ext=ErrCode: 11310; ErrMsg: cardid is invalid; ")
    if card.message_id is not None:
        reason = "cardid is invalid: this card was sent before"
        raise Refused(230099, f"Failed to create card content, ext=ErrCode: 11310; ErrMsg: {reason}; ")
    if feishu.world.clock.now_ms() - card.created_ms > CARD_LIFE_MS:
        reason = "The card entity has expired (14 days)"
        raise Refused(230099, f"Failed to create card content, ext=ErrCode: 200750; ErrMsg: {reason}; ")
    return card
