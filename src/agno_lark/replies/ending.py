"""How a turn ended, as far as the person is to see it. A value that survives a restart: the outbox keeps it as JSON."""

import json
from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from agno_lark.feishu.jsontext import whole_text
from agno_lark.targets import FaultReason, RunView

__all__ = ["Ending", "Resolution", "ending_from_json", "ending_to_json", "kept_ending", "view_from_json"]


class Resolution(StrEnum):
    """What somebody decided about a turn that was left open: an unknown one, or one that came too late."""

    RETRIED = "retried"
    DISMISSED = "dismissed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a turn ended.

    `unknown`: the run was handed over, and nobody can tell whether it arrived, or, where it had `begun` to answer, how
    it ended. `superseded`: it was stopped for a newer message. `stale`: the message came so late that nothing was
    begun. An unknown or stale one asks the person what to do, with buttons that name `turn_id`, until it is
    `resolved`. `taken_back`: an operator did, before it was begun. `again`: Feishu never confirmed a first sending.
    """

    view: RunView
    elapsed_ms: int
    fault: FaultReason | str | None = None
    details: str = ""
    turn_id: str = ""
    unknown: bool = False
    begun: bool = False
    superseded: bool = False
    stale: bool = False
    taken_back: bool = False
    resolved: Resolution | None = None
    again: bool = False

    @property
    def asks(self) -> bool:
        """Whether the person has something to decide."""
        return (self.unknown or self.stale) and self.resolved is None and bool(self.turn_id)


_ADAPTER = TypeAdapter(Ending)


def ending_to_json(ending: Ending) -> str:
    """What an AgentOS says may hold half a character, which nothing could store."""
    return whole_text(json.dumps(_ADAPTER.dump_python(ending, mode="json", exclude_defaults=True), ensure_ascii=False))


def ending_from_json(text: str) -> Ending:
    """Raises `ValueError` for what another version wrote; its message repeats nobody's words."""
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        raise ValueError(f"an ending with {error.error_count()} parts that cannot be read") from None


def kept_ending(text: str | None) -> Ending | None:
    """An ending that was kept; None where there is none, or none that can be read."""
    try:
        return ending_from_json(text) if text else None
    except ValueError:
        return None


def view_from_json(text: str | None) -> RunView | None:
    """The view of an ending that was kept, as `kept_ending`."""
    ending = kept_ending(text)
    return ending.view if ending else None
