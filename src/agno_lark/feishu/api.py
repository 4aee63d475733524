"""The OpenAPI calls the bridge makes, each with a typed result. How a call is sent, and sent again: `caller`.

Our own thin client, because the SDK's loses what we must know: it takes an HTTP 429 without a code for success, calls a
rate limit a missing permission, and swallows failures of streamed cards (feishu.md section 3).
"""

import json
import uuid as uuids
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, Literal, Self

from agno_lark.clock import Clock, SystemClock
from agno_lark.feishu.answers import (
    BotInfo,
    ChatInfo,
    Resource,
    SentMessage,
    StoredMessage,
    read_bot_info,
    read_chat_info,
    read_own_reaction,
    read_sent_message,
    read_stored_messages,
)
from agno_lark.feishu.caller import Call, Caller, path
from agno_lark.feishu.codes import CallRefused, ErrorKind
from agno_lark.feishu.downloads import open_resource
from agno_lark.feishu.limits import Limits
from agno_lark.feishu.retries import RetryRules
from agno_lark.feishu.transport import http_client

__all__ = ["OpenApi", "card_reference"]

ReceiveIdType = Literal["chat_id", "open_id", "union_id", "user_id", "email"]

_MESSAGES = "/open-apis/im/v1/messages"
_MESSAGE = "/open-apis/im/v1/messages/{}"
_CARDS = "/open-apis/cardkit/v1/cards"
_CARD = "/open-apis/cardkit/v1/cards/{}"
_CONTENT = "/open-apis/cardkit/v1/cards/{}/elements/{}/content"


def card_reference(card_id: str) -> str:
    """The `content` of an `interactive` message that shows a card entity (which can be sent once: cards/README.md)."""
    return _json({"type": "card", "data": {"card_id": card_id}})


class OpenApi:
    """One app's OpenAPI. Every call raises `CallRefused` (a `FeishuApiError` with a `kind`), nothing else of the net.

    Calls that carry a `uuid` may be repeated with the same one, also after a crash: Feishu carries them out once (for
    messages within an hour, at most 50 characters; longer ones are hashed). The same text under another uuid is another
    message.
    """

    def __init__(
        self,
        app_id: str,
        app_secret: str,
        base_url: str = "https://open.feishu.cn",
        *,
        timeout_s: float = 20.0,
        clock: Clock | None = None,
        limits: Limits | None = None,
        retries: RetryRules | None = None,
    ) -> None:
        self._app_id = app_id
        self.limits = limits or Limits()
        self._caller = Caller(
            client=http_client(base_url.rstrip("/"), timeout_s=timeout_s),
            app_id=app_id,
            app_secret=app_secret,
            clock=clock or SystemClock(),
            limits=self.limits,
            rules=retries or RetryRules(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the kept-alive connections."""
        await self._caller.close()

    async def bot_info(self) -> BotInfo:
        """The bot's own name and open_id."""
        return read_bot_info(await self._send("GET", "/open-apis/bot/v3/info"))

    async def get_chat(self, chat_id: str) -> ChatInfo:
        """What kind of chat this is."""
        return read_chat_info(chat_id, await self._send("GET", "/open-apis/im/v1/chats/{}", chat_id))

    async def send_message(
        self, receive_id: str, receive_id_type: ReceiveIdType, msg_type: str, content: str, uuid: str
    ) -> SentMessage:
        """A new message. `content` is Feishu's JSON string for `msg_type`."""
        answer = await self._send(
            "POST",
            _MESSAGES,
            params={"receive_id_type": receive_id_type},
            body={"receive_id": receive_id, "msg_type": msg_type, "content": content, "uuid": _short(uuid)},
        )
        return _sent(answer)

    async def reply_message(
        self, message_id: str, msg_type: str, content: str, uuid: str, in_thread: bool = False
    ) -> SentMessage:
        """An answer to `message_id`; in its topic where it is in one, opening one where `in_thread` asks for it."""
        body = {"msg_type": msg_type, "content": content, "reply_in_thread": in_thread, "uuid": _short(uuid)}
        return _sent(await self._send("POST", f"{_MESSAGE}/reply", message_id, body=body))

    async def patch_message(self, message_id: str, content: str) -> None:
        """Replace the whole card of a message we sent (not of a card entity); at most 14 days after sending."""
        await self._send("PATCH", _MESSAGE, message_id, body={"content": content})

    async def delete_message(self, message_id: str) -> None:
        """Recall a message we sent; one that is gone already counts as recalled."""
        try:
            await self._send("DELETE", _MESSAGE, message_id)
        except CallRefused as error:
            if error.kind is not ErrorKind.TARGET_GONE:
                raise

    async def get_message(self, message_id: str, *, sent_cards: bool = False) -> tuple[StoredMessage, ...]:
        """The message, and of a merged forward all it holds. `sent_cards`: cards as they were sent, not as rendered."""
        params = {"user_id_type": "open_id"}
        if sent_cards:
            params["card_msg_content_type"] = "user_card_content"
        return read_stored_messages(await self._send("GET", _MESSAGE, message_id, params=params))

    async def add_reaction(self, message_id: str, emoji_type: str) -> str:
        """Put an emoji under a message; the same one again changes nothing. Returns the reaction's id."""
        body = {"reaction_type": {"emoji_type": emoji_type}}
        answer = await self._send("POST", f"{_MESSAGE}/reactions", message_id, body=body)
        return _data_text(answer, "reaction_id")

    async def own_reaction(self, message_id: str, emoji_type: str) -> str | None:
        """The id of the emoji we have put under a message; None where it is not among the first fifty of its kind."""
        params = {"reaction_type": emoji_type, "page_size": "50"}
        answer = await self._send("GET", f"{_MESSAGE}/reactions", message_id, params=params)
        return read_own_reaction(answer, self._app_id)

    async def delete_reaction(self, message_id: str, reaction_id: str) -> None:
        """Take a reaction of ours away; one that is gone already counts as taken away."""
        try:
            await self._send("DELETE", f"{_MESSAGE}/reactions/{{}}", message_id, reaction_id)
        except CallRefused as error:
            if error.kind is not ErrorKind.TARGET_GONE and error.code != 231011:
                raise

    async def create_card(self, card: Mapping[str, Any]) -> str:
        """A card entity, sent to nobody yet. Returns its id. Repeating it makes another entity, which harms nobody."""
        answer = await self._send("POST", _CARDS, body={"type": "card_json", "data": _json(card)})
        return _data_text(answer, "card_id")

    async def update_card(
        self, card_id: str, card: Mapping[str, Any], sequence: int, *, uuid: str | None = None
    ) -> None:
        """Replace the whole card. `sequence` must be above every earlier one of this card, over all kinds of update."""
        body = {"card": {"type": "card_json", "data": _json(card)}, "sequence": sequence, "uuid": _once(uuid)}
        await self._send("PUT", _CARD, card_id, body=body)

    async def update_element_content(
        self, card_id: str, element_id: str, content: str, sequence: int, *, uuid: str | None = None
    ) -> None:
        """The whole text so far of a markdown element while the card streams; `sequence` as in `update_card`."""
        body = {"content": content, "sequence": sequence, "uuid": _once(uuid)}
        await self._send("PUT", _CONTENT, card_id, element_id, body=body)

    async def update_card_settings(
        self, card_id: str, settings: Mapping[str, Any], sequence: int, *, uuid: str | None = None
    ) -> None:
        """Change the card's settings, e.g. `{"config": {"streaming_mode": False}}`; `sequence` as in `update_card`."""
        body = {"settings": _json(settings), "sequence": sequence, "uuid": _once(uuid)}
        await self._send("PATCH", f"{_CARD}/settings", card_id, body=body)

    async def upload_image(self, data: bytes, name: str = "image") -> str:
        """Upload a picture (at most 10 MB) for messages and cards of this app. Returns its `image_key`."""
        answer = await self._send(
            "POST", "/open-apis/im/v1/images", form={"image_type": "message"}, files={"image": (name, data)}
        )
        return _data_text(answer, "image_key")

    async def upload_file(
        self, data: bytes, name: str, *, file_type: str = "stream", duration_ms: int | None = None
    ) -> str:
        """Upload a file (at most 30 MB, not empty). `file_type`: opus, mp4, pdf, doc, xls, ppt or stream. Its key."""
        form = {"file_type": file_type, "file_name": name}
        if duration_ms is not None:
            form["duration"] = str(duration_ms)
        answer = await self._send("POST", "/open-apis/im/v1/files", form=form, files={"file": (name, data)})
        return _data_text(answer, "file_key")

    @asynccontextmanager
    async def download_resource(
        self, message_id: str, key: str, kind: Literal["image", "file"], *, max_bytes: int
    ) -> AsyncIterator[Resource]:
        """A picture or file of that very message (audio and video are `file`), as it arrives.

        `async with api.download_resource(...) as resource: async for chunk in resource.chunks`. Raises
        `ResourceTooLarge` at the start or on the way, as soon as more than `max_bytes` are certain.
        """
        async with open_resource(self._caller, message_id, key, kind, max_bytes=max_bytes) as resource:
            yield resource

    async def _send(
        self,
        method: str,
        api: str,
        *ids: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        form: Mapping[str, str] | None = None,
        files: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> Mapping[str, Any]:
        # All calls here may be repeated: they read, carry a uuid, set a state, or make a thing nobody sees yet.
        return await self._caller.send(
            Call(method=method, api=api, path=path(api, *ids), params=params, json=body, form=form, files=files)
        )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _short(uuid: str) -> str:
    """Feishu takes 50 characters for a message's uuid."""
    return uuid if len(uuid) <= 50 else sha256(uuid.encode()).hexdigest()[:50]


def _once(uuid: str | None) -> str:
    """A card update's uuid, at most 64 characters: the caller's, else one that only this call's own retries share."""
    if uuid is None:
        return str(uuids.uuid4())
    return uuid if len(uuid) <= 64 else sha256(uuid.encode()).hexdigest()


def _sent(answer: Mapping[str, Any]) -> SentMessage:
    _data_text(answer, "message_id")
    return read_sent_message(answer)


def _data_text(answer: Mapping[str, Any], key: str) -> str:
    data = answer.get("data")
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, str) or not value:
        raise CallRefused(
            f"Feishu's answer holds no {key}", kind=ErrorKind.TRANSIENT, code=-1, http_status=200, uncertain=True
        )
    return value
