"""What the local Feishu knows: people, chats, messages, cards. Mutable where Feishu lets a thing change."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

__all__ = [
    "App",
    "Card",
    "CardEdit",
    "Change",
    "Chat",
    "Earlier",
    "Json",
    "Mention",
    "Message",
    "Person",
    "Reaction",
    "Resource",
    "Shown",
]

type Json = dict[str, Any]
type ChatMode = Literal["p2p", "group", "topic"]
type ChangeKind = Literal["message", "card", "reaction", "recall", "toast"]


@dataclass(kw_only=True, slots=True)
class App:
    """The bot's app. `sees_all_group_messages`: whether it holds im:message.group_msg, or only hears its mentions."""

    app_id: str = "cli_sandbox"
    app_secret: str = "sandbox-secret"  # noqa: S105 - the sandbox's well-known secret, worth nothing elsewhere
    bot_open_id: str = "ou_b07b07b07b07b07b07b07b07b07b07b0"
    bot_union_id: str = "on_b07b07b07b07b07b07b07b07b07b07b0"
    bot_name: str = "Helper"
    tenant_key: str = "7e9a97000000ca5e"
    sees_all_group_messages: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """Somebody who writes. `language` is zh or en; `avatar` an emoji and `colour` a CSS colour, for the page."""

    open_id: str
    union_id: str
    user_id: str
    name: str
    language: Literal["zh", "en"]
    avatar: str
    colour: str


@dataclass(kw_only=True, slots=True)
class Chat:
    """A conversation the bot is in. `timeline`: message ids in order; `threads`: thread id to its root message id."""

    chat_id: str
    name: str
    mode: ChatMode
    members: list[str]
    timeline: list[str] = field(default_factory=list)
    threads: dict[str, str] = field(default_factory=dict)
    has_bot: bool = True

    @property
    def wire_type(self) -> Literal["p2p", "group"]:
        """`chat_type` of an event: topic groups call themselves group there (feishu.md section 6)."""
        return "p2p" if self.mode == "p2p" else "group"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """Who hides behind a key such as `@_user_1` in a message's text."""

    key: str
    open_id: str
    union_id: str
    name: str
    is_bot: bool
    user_id: str | None = None


class Reaction(NamedTuple):
    """An emoji under a message; the operator is a person's open_id, or the app's own id."""

    reaction_id: str
    emoji: str
    operator_open_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """An image or file, as uploaded or sent."""

    key: str
    kind: Literal["image", "file"]
    name: str
    data: bytes
    content_type: str
    by_bot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """What a message said until `until_ms`."""

    until_ms: int
    content: Json


@dataclass(kw_only=True, slots=True)
class Message:
    """A message as Feishu stores it.

    `content` is the received form (mention keys, no locale wrapper); for cards it is the card JSON, or
    `{"type": "card", "data": {"card_id"}}`. `sent` is what the sender wrote. `history`: earlier contents, oldest first.
    `children`: ids inside a merged forward; a child's files are `forwarded`, to be had by the container's id only.
    """

    message_id: str
    chat_id: str
    sender_id: str
    sender_is_bot: bool
    msg_type: str
    content: Json
    sent: Json
    created_ms: int
    updated_ms: int
    thread_id: str | None = None
    root_id: str | None = None
    parent_id: str | None = None
    mentions: list[Mention] = field(default_factory=list)
    recalled: bool = False
    reactions: list[Reaction] = field(default_factory=list)
    card_id: str | None = None
    children: list[str] = field(default_factory=list)
    history: list[Earlier] = field(default_factory=list)
    resources: dict[str, Resource] = field(default_factory=dict)
    forwarded: dict[str, Resource] = field(default_factory=dict)
    edits: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CardEdit:
    """One change of a card. `text`: the new text of a content call, else a few words on what changed."""

    at_ms: int
    kind: str
    sequence: int
    element_id: str
    text: str


@dataclass(kw_only=True, slots=True)
class Card:
    """A card entity (CardKit). `json` is the card as it is now; `sequence` the last one accepted."""

    card_id: str
    json: Json
    created_ms: int
    sequence: int = 0
    streaming: bool = False
    streaming_since_ms: int = 0
    streaming_timed_out: bool = False
    message_id: str | None = None
    history: list[CardEdit] = field(default_factory=list)
    uuids: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Something a person could see happen. `toast` is set for kind toast only; `person` is who sees that toast."""

    kind: ChangeKind
    message_id: str
    chat_id: str
    toast: Json | None = None
    person: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """One message as a person sees it: `text` is all visible text (of a card, too), `card` its JSON or None."""

    message_id: str
    chat_id: str
    thread_id: str | None
    parent_id: str | None
    author: str
    author_is_bot: bool
    kind: str
    text: str
    card: Json | None
    streaming: bool
    reactions: tuple[str, ...]
    recalled: bool
    edits: int
    created_ms: int
    updated_ms: int
