"""The state of the local Feishu and what people do in it.

One event loop owns a World. People's actions (`write`, `click`, ...) are coroutines and tell the bot; what the bot does
arrives through the OpenAPI modules, which call the plain `bot_*` methods. Everything seen is told to `changes()`.
"""

import copy
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from agno_lark.clock import Clock, Ids, RandomIds
from agno_lark.sandbox import events
from agno_lark.sandbox.changes import Changes
from agno_lark.sandbox.clicks import Clicks
from agno_lark.sandbox.content import received_post, received_text, shown_post, shown_text, visible_card_text
from agno_lark.sandbox.passing_time import AdvancingClock
from agno_lark.sandbox.records import (
    App,
    Card,
    Change,
    ChangeKind,
    Chat,
    ChatMode,
    Earlier,
    Json,
    Mention,
    Message,
    Person,
    Reaction,
    Resource,
    Shown,
)
from agno_lark.sandbox.refusals import NoAnswer, UnknownThing

__all__ = ["AdvancingClock", "BotLink", "Changes", "NoAnswer", "UnknownThing", "World"]

STREAMING_MS = 10 * 60 * 1000
"""Streaming mode closes itself this long after its last opening (cards/README.md, Limits)."""


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


def _stable(prefix: str, label: str) -> str:
    return prefix + hashlib.sha256(label.encode()).hexdigest()[:32]


def _people() -> list[Person]:
    rows: list[tuple[str, str, str, str]] = [
        ("林悦", "zh", "🦊", "#3370ff"),
        ("Marta Weiss", "en", "🐙", "#00a870"),
        ("Tom Okafor", "en", "🦉", "#d97706"),
    ]
    return [
        Person(
            open_id=_stable("ou_", name),
            union_id=_stable("on_", name),
            user_id=_stable("", name)[:8],
            name=name,
            language="zh" if language == "zh" else "en",
            avatar=avatar,
            colour=colour,
        )
        for name, language, avatar, colour in rows
    ]


class World:
    """People, chats, messages and cards, and what happens among them."""

    def __init__(self, clock: Clock | None = None, ids: Ids | None = None, *, keep_history: bool = True) -> None:
        self.clock = AdvancingClock(clock)
        self.ids: Ids = ids or RandomIds()
        self.keep_history = keep_history
        self.app = App()
        self.bot: BotLink = _NoBot()
        self.people: list[Person] = _people()
        self.chats: dict[str, Chat] = {}
        self.messages: dict[str, Message] = {}
        self.timeline: list[str] = []
        self.cards: dict[str, Card] = {}
        self.uploads: dict[str, Resource] = {}
        self.counts: Counter[str] = Counter()
        self.clicks = Clicks(self)
        self._listeners: set[Changes] = set()
        self._people_by_id = {person.open_id: person for person in self.people}
        everyone = [person.open_id for person in self.people]
        for person in self.people:
            self._add_chat(person.name, "p2p", [person.open_id])
        self._add_chat("Team", "group", everyone)
        self._add_chat("Topics", "topic", everyone)

    # -- looking things up -------------------------------------------------------------------------------------------

    def _add_chat(self, name: str, mode: ChatMode, members: list[str]) -> Chat:
        chat = Chat(chat_id=_stable("oc_", f"{mode}:{name}"), name=name, mode=mode, members=members)
        self.chats[chat.chat_id] = chat
        return chat

    def new_id(self, prefix: str) -> str:
        return prefix + self.ids.new().replace("-", "")

    def person(self, who: Person | str) -> Person:
        """By value, open_id or name. Raises UnknownThing."""
        if isinstance(who, Person):
            return who
        found = self._people_by_id.get(who) or next((p for p in self.people if p.name == who), None)
        if found is None:
            raise UnknownThing(f"no person {who!r}; there are {', '.join(p.name for p in self.people)}")
        return found

    def chat(self, chat_id: str) -> Chat:
        """By id, or by name (Team, Topics, a person's name for the direct chat). Raises UnknownThing."""
        found = self.chats.get(chat_id) or next((c for c in self.chats.values() if c.name == chat_id), None)
        if found is None:
            raise UnknownThing(f"no chat {chat_id!r}; there are {', '.join(c.name for c in self.chats.values())}")
        return found

    def direct_chat(self, who: Person | str) -> Chat:
        """The direct chat of this person and the bot."""
        person = self.person(who)
        return next(c for c in self.chats.values() if c.mode == "p2p" and c.members == [person.open_id])

    def message(self, message_id: str) -> Message:
        """Raises UnknownThing."""
        found = self.messages.get(message_id)
        if found is None:
            raise UnknownThing(f"no message {message_id!r}")
        return found

    def card_json(self, message: Message) -> Json | None:
        """The card a message shows now, entity or not; None for other kinds."""
        if message.msg_type != "interactive":
            return None
        if message.card_id:
            return self.cards[message.card_id].json
        return message.content

    def is_streaming(self, card: Card) -> bool:
        """Whether streaming mode is open; closes it first if its ten minutes are over."""
        if card.streaming and self.clock.now_ms() - card.streaming_since_ms >= STREAMING_MS:
            card.streaming = False
            card.streaming_timed_out = True
            card.json = {**card.json, "config": {**(card.json.get("config") or {}), "streaming_mode": False}}
        return card.streaming

    def name_of(self, open_id: str) -> str:
        if open_id in (self.app.app_id, self.app.bot_open_id):
            return self.app.bot_name
        person = self._people_by_id.get(open_id)
        return person.name if person else open_id

    def mention_of(self, who: str, key: str) -> Mention | None:
        """The mention of a person or of the bot (by open_id or app id) under `key`; None for strangers."""
        app = self.app
        if who in (app.bot_open_id, app.app_id):
            return Mention(key=key, open_id=app.bot_open_id, union_id=app.bot_union_id, name=app.bot_name, is_bot=True)
        person = self._people_by_id.get(who)
        if person is None:
            return None
        return Mention(key=key, open_id=who, union_id=person.union_id, name=person.name, is_bot=False)

    # -- watching ----------------------------------------------------------------------------------------------------

    def changes(self) -> Changes:
        """Everything that becomes visible from now on. Many may listen; `close()` it, or it gathers changes."""
        return Changes(self._listeners)

    def tell(self, kind: ChangeKind, message: Message, *, toast: Json | None = None, person: str = "") -> None:
        change = Change(kind=kind, message_id=message.message_id, chat_id=message.chat_id, toast=toast, person=person)
        for listener in self._listeners:
            listener.push(change)

    def close_listeners(self) -> None:
        """End every `changes()` stream (the server is going down)."""
        for listener in list(self._listeners):
            listener.close()

    def show(self, message: Message) -> Shown:
        """One message as a person sees it now."""
        card = self.card_json(message)
        content = message.content
        if card is not None:
            text = visible_card_text(card)
        elif message.msg_type == "post":
            text = shown_post(content, message.mentions)
        elif message.msg_type == "text":
            text = shown_text(str(content.get("text", "")), message.mentions)
        else:
            text = str(content.get("file_name") or f"[{message.msg_type}]")
        return Shown(
            message_id=message.message_id,
            chat_id=message.chat_id,
            thread_id=message.thread_id,
            parent_id=message.parent_id,
            author=self.name_of(message.sender_id),
            author_is_bot=message.sender_is_bot,
            kind=message.msg_type,
            text="" if message.recalled else text,
            card=None if message.recalled else copy.deepcopy(card),
            streaming=message.card_id is not None and self.is_streaming(self.cards[message.card_id]),
            reactions=tuple(reaction.emoji for reaction in message.reactions),
            recalled=message.recalled,
            edits=message.edits,
            created_ms=message.created_ms,
            updated_ms=message.updated_ms,
        )

    def screen(self, chat_id: str, thread_id: str | None = None) -> list[Shown]:
        """What a person sees in a chat, oldest first; with `thread_id` only that topic."""
        found = (self.messages[message_id] for message_id in self.chat(chat_id).timeline)
        return [self.show(m) for m in found if thread_id is None or m.thread_id == thread_id]

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
        """A person writes rich text: `{"title", "content": [[node]]}`; `at` nodes hold open_ids, `all` or a name."""
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
        message = self._place(
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

    # -- what is common to people and the bot ------------------------------------------------------------------------

    def keep(self, data: bytes, name: str, *, kind: str, content_type: str) -> Resource:
        """Store a file under a new key that looks like Feishu's."""
        stem = "img_v3_" if kind == "image" else "file_v3_"
        key = f"{stem}02sb_{self.ids.new()}g"
        resource = Resource(
            key=key, kind="image" if kind == "image" else "file", name=name, data=data, content_type=content_type
        )
        self.uploads[key] = resource
        return resource

    def _place(
        self,
        chat: Chat,
        sender_id: str,
        msg_type: str,
        content: Json,
        *,
        sent: Json | None = None,
        reply_to: str | None = None,
        in_thread: str | None = None,
        new_topic: bool = False,
    ) -> Message:
        """Put a new message at the end of a chat, with the ids of topic and quote worked out."""
        now_ms = self.clock.now_ms()
        message = Message(
            message_id=self.new_id("om_"),
            chat_id=chat.chat_id,
            sender_id=sender_id,
            sender_is_bot=sender_id == self.app.app_id,
            msg_type=msg_type,
            content=content,
            sent=sent if sent is not None else content,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        if in_thread is not None and reply_to is None:
            if in_thread not in chat.threads:
                raise UnknownThing(f"no topic {in_thread!r} in the chat {chat.name}")
            reply_to = chat.threads[in_thread]
        if reply_to is not None:
            target = self.message(reply_to)
            if new_topic and target.thread_id is None:
                self._open_topic(chat, target)
            if target.thread_id is not None:
                message.thread_id = target.thread_id
                message.root_id = message.parent_id = chat.threads[target.thread_id]
            else:
                message.root_id = target.root_id or target.message_id
                message.parent_id = target.message_id
        elif chat.mode == "topic":
            self._open_topic(chat, message)
        self.messages[message.message_id] = message
        self.timeline.append(message.message_id)
        chat.timeline.append(message.message_id)
        return message

    def _open_topic(self, chat: Chat, root: Message) -> None:
        root.thread_id = self.new_id("omt_")[:20]
        chat.threads[root.thread_id] = root.message_id

    def withdraw(self, message: Message) -> None:
        """The message is gone for everybody; its content stays in `history`."""
        self.remember(message)
        message.recalled = True
        self.tell("recall", message)

    def remember(self, message: Message) -> None:
        """Keep what the message says now as an earlier content, and count an edit."""
        now_ms = self.clock.now_ms()
        message.updated_ms = now_ms
        if self.keep_history:
            message.history.append(Earlier(until_ms=now_ms, content=message.content))

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
        message = self._place(
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
