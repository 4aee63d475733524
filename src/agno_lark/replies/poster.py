"""Sends to where an answer belongs: a reply to the person's message, in its topic; where that is gone, to the chat."""

import json

from agno_lark.feishu.answers import SentMessage
from agno_lark.feishu.api import OpenApi, card_reference
from agno_lark.feishu.codes import CallRefused, ErrorKind
from agno_lark.replies.elements import Card
from agno_lark.replies.place import Place

__all__ = ["Poster"]


class Poster:
    """Every send carries a uuid: sent again with the same one within the hour, nothing new appears."""

    def __init__(self, api: OpenApi) -> None:
        self._api = api

    async def card(self, place: Place, card: Card, uuid: str) -> SentMessage:
        """Send a card that will not change. Raises `CallRefused`."""
        return await self._send(place, "interactive", json.dumps(card, ensure_ascii=False), uuid)

    async def card_entity(self, place: Place, card_id: str, uuid: str) -> SentMessage:
        """Send a card entity, which can be updated afterwards. Raises `CallRefused`."""
        return await self._send(place, "interactive", card_reference(card_id), uuid)

    async def text(self, place: Place, text: str, uuid: str) -> SentMessage:
        """Send plain text. Raises `CallRefused`."""
        return await self._send(place, "text", json.dumps({"text": text}, ensure_ascii=False), uuid)

    async def file(self, place: Place, file_key: str, uuid: str) -> SentMessage:
        """Send a file that was uploaded before. Raises `CallRefused`."""
        return await self._send(place, "file", json.dumps({"file_key": file_key}), uuid)

    async def _send(self, place: Place, msg_type: str, content: str, uuid: str) -> SentMessage:
        async with self._api.limits.chat(place.chat_id):
            pass
        try:
            return await self._api.reply_message(
                place.message_id, msg_type, content, uuid, in_thread=place.thread_id is not None
            )
        except CallRefused as error:
            if error.kind is not ErrorKind.TARGET_GONE:
                raise
        # Another message than the reply would have been: so another uuid.
        return await self._api.send_message(place.chat_id, "chat_id", msg_type, content, f"{uuid}-c")
