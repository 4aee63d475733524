"""The state of the local Feishu: who and what is there, where a new message goes, what a person sees.

`World` (world.py) adds what people and the bot do. One event loop owns it; everything seen is told to `changes()`.
"""

import copy
import hashlib
from collections import Counter
from typing import Literal

from agno_lark.clock import Clock, Ids, RandomIds
from agno_lark.sandbox.changes import Changes
from agno_lark.sandbox.content import shown_post, shown_text, visible_card_text
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
    Resource,
    Shown,
)
from agno_lark.sandbox.refusals import UnknownThing

__all__ = ["Stage"]

STREAMING_MS = 10 * 60 * 1000
"""Streaming mode closes itself this long after its last opening (cards/README.md, Limits)."""


def _stable(prefix: str, label: str) -> str:
    return prefix + hashlib.sha256(label.encode()).hexdigest()[:32]


def _person(name: str, language: Literal["zh", "en"], avatar: str, colour: str, salt: str) -> Person:
    return Person(
        open_id=_stable("ou_", salt + name),
        union_id=_stable("on_", salt + name),
        user_id=_stable("", salt + name)[:8],
        name=name,
        language=language,
        avatar=avatar,
        colour=colour,
    )


def _people(salt: str) -> list[Person]:
    return [
        _person("林悦", "zh", "🦊", "#3370ff", salt),
        _person("Marta Weiss", "en", "🐙", "#00a870", salt),
        _person("Tom Okafor", "en", "🦉", "#d97706", salt),
    ]


class Stage:
    """People, chats, messages and cards. `salt` changes the ids of people and chats, which else are always the same."""

    def __init__(
        self, clock: Clock | None = None, ids: Ids | None = None, *, keep_history: bool = True, salt: str = ""
    ) -> None:
        self._salt = salt
        self.clock = AdvancingClock(clock)
        self.ids: Ids = ids or RandomIds()
        self.keep_history = keep_history
        self.app = App()
        self.people: list[Person] = _people(salt)
        self.chats: dict[str, Chat] = {}
        self.messages: dict[str, Message] = {}
        self.timeline: list[str] = []
        self.cards: dict[str, Card] = {}
        self.uploads: dict[str, Resource] = {}
        self.counts: Counter[str] = Counter()
        self._listeners: set[Changes] = set()
        self._people_by_id = {person.open_id: person for person in self.people}
        everyone = [person.open_id for person in self.people]
        for person in self.people:
            self._add_chat(person.name, "p2p", [person.open_id])
        self._add_chat("Team", "group", list(everyone))
        self._add_chat("Topics", "topic", list(everyone))

    # -- looking things up -------------------------------------------------------------------------------------------

    def _add_chat(self, name: str, mode: ChatMode, members: list[str]) -> Chat:
        chat = Chat(chat_id=_stable("oc_", f"{self._salt}{mode}:{name}"), name=name, mode=mode, members=members)
        self.chats[chat.chat_id] = chat
        return chat

    def add_person(self, name: str, *, language: Literal["zh", "en"] = "en") -> Person:
        """One more person, with a direct chat and a place in every group. Raises UnknownThing for a name taken."""
        if any(person.name == name for person in self.people) or any(c.name == name for c in self.chats.values()):
            raise UnknownThing(f"the name {name!r} is taken")
        person = _person(name, language, "🙂", "#8f959e", self._salt)
        self.people.append(person)
        self._people_by_id[person.open_id] = person
        for chat in self.chats.values():
            if chat.mode != "p2p":
                chat.members.append(person.open_id)
        self._add_chat(name, "p2p", [person.open_id])
        return person

    def add_group(self, name: str, *, topics: bool = False) -> Chat:
        """One more group of everybody and the bot. Raises UnknownThing for a name taken."""
        if any(chat.name == name for chat in self.chats.values()):
            raise UnknownThing(f"the name {name!r} is taken")
        return self._add_chat(name, "topic" if topics else "group", [person.open_id for person in self.people])

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
        return Mention(
            key=key, open_id=who, union_id=person.union_id, name=person.name, is_bot=False, user_id=person.user_id
        )

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

    # -- how messages come and go ------------------------------------------------------------------------

    def keep(self, data: bytes, name: str, *, kind: str, content_type: str, by_bot: bool = False) -> Resource:
        """Store a file under a new key that looks like Feishu's. Only what the bot uploaded can the bot send."""
        stem = "img_v3_" if kind == "image" else "file_v3_"
        key = f"{stem}02sb_{self.ids.new()}g"
        resource = Resource(
            key=key,
            kind="image" if kind == "image" else "file",
            name=name,
            data=data,
            content_type=content_type,
            by_bot=by_bot,
        )
        self.uploads[key] = resource
        return resource

    def place(
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
                self.open_topic(chat, target)
            if target.thread_id is not None:
                message.thread_id = target.thread_id
                message.root_id = message.parent_id = chat.threads[target.thread_id]
            else:
                message.root_id = target.root_id or target.message_id
                message.parent_id = target.message_id
        elif chat.mode == "topic":
            self.open_topic(chat, message)
        self.messages[message.message_id] = message
        self.timeline.append(message.message_id)
        chat.timeline.append(message.message_id)
        return message

    def open_topic(self, chat: Chat, root: Message) -> None:
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
