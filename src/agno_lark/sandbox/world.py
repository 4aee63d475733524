"""What people do in the local Feishu, and what the bot does.

People's actions (`write`, `click`, ...) are coroutines and tell the bot; what the bot does arrives through the OpenAPI
modules, which call the plain `bot_*` methods once they have checked everything.
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from agno_lark.clock import Clock, Ids
from agno_lark.sandbox import events
from agno_lark.sandbox.changes import Changes
from agno_lark.sandbox.clicks import Clicks
from agno_lark.sandbox.content import received_post, received_text
from agno_lark.sandbox.passing_time import AdvancingClock
from agno_lark.sandbox.records import Card, Chat, Json, Mention, Message, Person, Reaction, Resource
from agno_lark.sandbox.refusals import NoAnswer, UnknownThing
from agno_lark.sandbox.stage import Stage

__all__ = ["AdvancingClock", "BotLink", "Changes", "NoAnswer", "UnknownThing", "World"]


class BotLink(Protocol):
    """How events reach the bot: `post` hands one over for delivery, `ask` waits for a card callback's answer."""

    def post(self, event_type: str, event: Json) -> str: ...

    async def ask(self, event_type: str, event: Json) -> Json: ...


class _NoBot:
    """Nobody listens: events vanish, clicks find no address."""

    def post(self, event_type: str, event: Json) -> str:
        return ""

    async def ask(self, event_type: str, event: Json) -> Json:
        raise NoAnswer(200340, "the bot is not connected")


class World(Stage):
    """People, chats, messages and cards, and what happens among them."""

    def __init__(
        self, clock: Clock | None = None, ids: Ids | None = None, *, keep_history: bool = True, salt: str = ""
    ) -> None:
        super().__init__(clock, ids, keep_history=keep_history, salt=salt)
        self.bot: BotLink = _NoBot()
        self.clicks = Clicks(self)

    # -- what people do ----------------------------------------------------------------------------------------------

    async def write(
        self,
        person: Person | str,
        chat_id: str,
        text: str,
        *,
        mention_bot: bool = False,
        mentions: Sequence[str] = (),
        reply_to: str | None = None,
        in_thread: str | None = None,
        new_topic: bool = False,
    ) -> Message:
        """A person writes text. `@Name` of a mentioned one becomes its key; others are put in front.

        `mentions`: open_ids. `reply_to`: a message id (a quote; in a topic it stays there). `in_thread`: a topic.
        `new_topic` with `reply_to`: the quoted message becomes a topic's root.
        """
        keyed, found = self._with_mentions(text, mention_bot=mention_bot, mentions=mentions)
        return await self.post(
            person,
            chat_id,
            "text",
            {"text": keyed},
            mentions=found,
            reply_to=reply_to,
            in_thread=in_thread,
            new_topic=new_topic,
        )

    def _with_mentions(self, text: str, *, mention_bot: bool, mentions: Sequence[str]) -> tuple[str, list[Mention]]:
        wanted = ([self.app.bot_open_id] if mention_bot else []) + list(mentions)
        found: list[Mention] = []
        prefix = ""
        for open_id in wanted:
            mention = self.mention_of(open_id, f"@_user_{len(found) + 1}")
            if mention is None:
                raise UnknownThing(f"nobody has the open_id {open_id!r}")
            found.append(mention)
            if f"@{mention.name}" in text:
                text = text.replace(f"@{mention.name}", mention.key)
            else:
                prefix += mention.key + " "
        return prefix + text, found

    async def write_post(
        self,
        person: Person | str,
        chat_id: str,
        post: Json,
        *,
        reply_to: str | None = None,
        in_thread: str | None = None,
        new_topic: bool = False,
    ) -> Message:
        """A person writes rich text: `{"title", "content": [[node]]}`; `at` nodes hold open_ids or `all`."""
        content, mentions = received_post(post, self.mention_of)
        return await self.post(
            person,
            chat_id,
            "post",
            content,
            mentions=mentions,
            reply_to=reply_to,
            in_thread=in_thread,
            new_topic=new_topic,
        )

    async def send_image(
        self, person: Person | str, chat_id: str, data: bytes, name: str = "image.png", *, in_thread: str | None = None
    ) -> Message:
        """A person sends a picture."""
        resource = self.keep(data, name, kind="image", content_type=_image_type(data))
        return await self.post(
            person, chat_id, "image", {"image_key": resource.key}, resources=[resource], in_thread=in_thread
        )

    async def send_file(
        self, person: Person | str, chat_id: str, data: bytes, name: str, *, in_thread: str | None = None
    ) -> Message:
        """A person sends a file."""
        resource = self.keep(data, name, kind="file", content_type="application/octet-stream")
        content = {"file_key": resource.key, "file_name": name}
        return await self.post(person, chat_id, "file", content, resources=[resource], in_thread=in_thread)

    async def post(
        self,
        person: Person | str,
        chat_id: str,
        msg_type: str,
        content: Json,
        *,
        mentions: Sequence[Mention] = (),
        resources: Sequence[Resource] = (),
        children: Sequence[str] = (),
        reply_to: str | None = None,
        in_thread: str | None = None,
        new_topic: bool = False,
    ) -> Message:
        """A person sends a message of any kind, its content as Feishu would store it."""
        sender = self.person(person)
        chat = self.chat(chat_id)
        if sender.open_id not in chat.members:
            raise UnknownThing(f"{sender.name} is not in the chat {chat.name}")
        message = self.place(
            chat, sender.open_id, msg_type, content, reply_to=reply_to, in_thread=in_thread, new_topic=new_topic
        )
        message.mentions = list(mentions)
        message.resources = {resource.key: resource for resource in resources}
        message.children = list(children)
        self.tell("message", message)
        mentioned = any(mention.is_bot for mention in message.mentions)
        if chat.has_bot and (chat.mode == "p2p" or mentioned or self.app.sees_all_group_messages):
            event = events.message_received(self.app, chat, sender, message)
            self.bot.post("im.message.receive_v1", event)
        return message

    async def merge_forward(self, person: Person | str, chat_id: str, message_ids: Sequence[str]) -> Message:
        """A person forwards several messages as one; the copies inside have ids of their own."""
        children = [self._copy(self.message(message_id)) for message_id in message_ids]
        return await self.post(person, chat_id, "merge_forward", {}, children=children)

    def _copy(self, source: Message) -> str:
        """A message inside a forward: in no timeline, but with a copy of everything below it."""
        copied = dataclasses.replace(
            source,
            message_id=self.new_id("om_"),
            thread_id=None,
            root_id=None,
            parent_id=None,
            reactions=[],
            history=[],
            resources={},
            children=[self._copy(self.message(child)) for child in source.children],
            forwarded=dict(source.resources),
        )
        self.messages[copied.message_id] = copied
        return copied.message_id

    async def recall(self, person: Person | str, message_id: str) -> Message:
        """A person takes a message of theirs back."""
        message = self.message(message_id)
        if message.sender_id != self.person(person).open_id:
            raise UnknownThing("only one's own messages can be recalled")
        if not message.recalled:
            self.withdraw(message)
            self.bot.post("im.message.recalled_v1", events.message_recalled(message, now_ms=self.clock.now_ms()))
        return message

    async def react(self, person: Person | str, message_id: str, emoji: str) -> Reaction:
        """A person puts an emoji under a message; a second time takes it away again."""
        who = self.person(person)
        message = self.message(message_id)
        now_ms = self.clock.now_ms()
        body = events.reaction_changed(who, message, emoji, now_ms=now_ms)
        for reaction in message.reactions:
            if reaction.emoji == emoji and reaction.operator_open_id == who.open_id:
                message.reactions.remove(reaction)
                self.tell("reaction", message)
                self.bot.post("im.message.reaction.deleted_v1", body)
                return reaction
        reaction = Reaction(self.new_id("re_"), emoji, who.open_id)
        message.reactions.append(reaction)
        self.tell("reaction", message)
        self.bot.post("im.message.reaction.created_v1", body)
        return reaction

    async def click(self, person: Person | str, message_id: str, action: Json) -> Json:
        """A person uses a card's control; returns the bot's answer, e.g. `{"toast": {...}}`. See `clicks`."""
        return await self.clicks.click(self.person(person), self.message(message_id), action)

    async def press(self, person: Person | str, message_id: str, label: str, *, form_value: Json | None = None) -> Json:
        """A person presses the button that reads `label`. Raises UnknownThing where there is none."""
        return await self.clicks.press(self.person(person), self.message(message_id), label, form_value=form_value)

    # -- what the bot does (called by the OpenAPI modules, which have checked everything) ------------------------------

    def bot_message(
        self,
        chat: Chat,
        msg_type: str,
        sent: Json,
        *,
        card: Card | None = None,
        reply_to: str | None = None,
        in_thread: bool = False,
    ) -> Message:
        """The bot's message appears."""
        content, mentions = sent, list[Mention]()
        if msg_type == "text":
            content, mentions = received_text(sent, self.mention_of)
        elif msg_type == "post":
            content, mentions = received_post(sent, self.mention_of)
        message = self.place(
            chat, self.app.app_id, msg_type, content, sent=sent, reply_to=reply_to, new_topic=in_thread
        )
        message.mentions = mentions
        for name in ("image_key", "file_key"):
            resource = self.uploads.get(str(content.get(name, "")))
            if resource is not None:
                message.resources[resource.key] = resource
        if card is not None:
            message.card_id = card.card_id
            card.message_id = message.message_id
        self.tell("message", message)
        return message

    def bot_edit(self, message: Message, sent: Json) -> None:
        """The bot's message says something else now (text, post or a card that is no entity)."""
        self.remember(message)
        message.edits += 1
        message.sent = message.content = sent
        if message.msg_type == "text":
            message.content, message.mentions = received_text(sent, self.mention_of)
        elif message.msg_type == "post":
            message.content, message.mentions = received_post(sent, self.mention_of)
        self.tell("card" if message.msg_type == "interactive" else "message", message)

    def card_changed(self, card: Card) -> None:
        """An entity looks different now; its message, if sent, counts an edit."""
        message = self.messages.get(card.message_id or "")
        if message is not None:
            message.edits += 1
            message.updated_ms = self.clock.now_ms()
            self.tell("card", message)


def _image_type(data: bytes) -> str:
    heads = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
    return next((kind for head, kind in heads.items() if data.startswith(head)), "application/octet-stream")
