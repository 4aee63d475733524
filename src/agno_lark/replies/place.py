"""Where an answer goes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Place"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The message that is answered, its chat, and its topic where it stands in one (`omt_…`, never a message id)."""

    chat_id: str
    message_id: str
    thread_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Place":
        return cls(chat_id=value["chat_id"], message_id=value["message_id"], thread_id=value.get("thread_id"))
