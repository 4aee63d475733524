"""What goes wrong on demand: in HTTP answers (rules over paths) and on the way of events (counters)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol

from agno_lark.sandbox.records import Json

__all__ = ["Faults", "HttpFault", "Sockets"]


class Sockets(Protocol):
    """The connections faults can act upon at once."""

    def drop_all(self) -> int: ...

    def silence_all(self) -> int: ...

    def release_held(self) -> None: ...


@dataclass(kw_only=True, slots=True)
class HttpFault:
    """One rule. `left` None means for ever. Exactly one of status (an answer), reset, latency_s is meant."""

    pattern: str
    left: int | None
    status: int | None = None
    code: int | None = None
    message: str = "sandbox fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    latency_s: float = 0.0
    reset: bool = False
    after_effect: bool = False

    def matches(self, method: str, path: str) -> bool:
        """A pattern is a path or `METHOD path`; `*` matches anything, `:name` one segment."""
        pattern = re.sub(r":[a-z_]+", "*", self.pattern)
        return fnmatchcase(f"{method} {path}" if " " in pattern else path, pattern)


class Faults:
    """Rules and counters; all of them empty is a healthy platform."""

    def __init__(self) -> None:
        self.rules: list[HttpFault] = []
        self.sockets: Sockets | None = None
        self.duplicates = 0
        self.delay_s = 0.0
        self.parts = 1
        self.reorder = 0
        self.new_event_ids = 0

    # -- HTTP --------------------------------------------------------------------------------------------------------

    def fail(
        self,
        path: str,
        *,
        times: int | None = 1,
        status: int = 500,
        code: int | None = None,
        message: str = "sandbox fault",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
        after_effect: bool = False,
    ) -> HttpFault:
        """The next `times` calls of `path` answer `status` with `code` (or with `body` as it is, or with no JSON).

        `after_effect`: the call is carried out first, so its effect is there though the answer says otherwise.
        The path `/sandbox/ws` is the long connection's handshake, which is refused with `code` in its headers.
        """
        rule = HttpFault(
            pattern=path,
            left=times,
            status=status,
            code=code,
            message=message,
            headers=dict(headers or {}),
            body=body,
            after_effect=after_effect,
        )
        self.rules.append(rule)
        return rule

    def latency(self, path: str, seconds: float, *, times: int | None = None) -> HttpFault:
        """Calls of `path` wait before anything happens; for ever unless `times` is given."""
        rule = HttpFault(pattern=path, left=times, latency_s=seconds)
        self.rules.append(rule)
        return rule

    def reset(self, path: str, *, after_effect: bool = False, times: int | None = 1) -> HttpFault:
        """The connection breaks without an answer: before anything happened, or after it was carried out."""
        rule = HttpFault(pattern=path, left=times, reset=True, after_effect=after_effect)
        self.rules.append(rule)
        return rule

    def take(self, method: str, path: str) -> list[HttpFault]:
        """The rules for this call, used up by it: every latency, and the oldest other rule."""
        taken: list[HttpFault] = []
        if not self.rules:
            return taken
        ended = False
        for rule in list(self.rules):
            if not rule.matches(method, path) or (ended and not rule.latency_s):
                continue
            ended = ended or not rule.latency_s
            taken.append(rule)
            if rule.left is not None:
                rule.left -= 1
                if rule.left <= 0:
                    self.rules.remove(rule)
        return taken

    # -- events ------------------------------------------------------------------------------------------------------

    def duplicate_next(self, times: int = 1) -> None:
        """The next event arrives `times` more times, under the same event id."""
        self.duplicates = times

    def delay_next(self, seconds: float) -> None:
        """The next event leaves that much later; those after it do not wait for it."""
        self.delay_s = seconds

    def split_next(self, parts: int = 2) -> None:
        """The next event comes in parts, shuffled."""
        self.parts = parts

    def reorder_next(self, count: int = 2) -> None:
        """The next `count` events are held and leave in reverse order."""
        self.reorder = count

    def new_event_id_next(self, times: int = 1) -> None:
        """The next event arrives again `times` times, each under a new event id (the message id stays)."""
        self.new_event_ids = times

    # -- sockets -----------------------------------------------------------------------------------------------------

    def drop_sockets(self) -> int:
        """Break every open WebSocket at once, without a closing handshake; returns how many."""
        return self.sockets.drop_all() if self.sockets else 0

    def silence(self) -> int:
        """Every WebSocket now open stays open and says nothing more; new ones are healthy. Returns how many."""
        return self.sockets.silence_all() if self.sockets else 0

    def clear(self) -> None:
        """Nothing goes wrong any more (silent sockets stay silent); events held back for reordering leave."""
        self.rules.clear()
        self.duplicates = self.reorder = self.new_event_ids = 0
        self.delay_s = 0.0
        self.parts = 1
        if self.sockets:
            self.sockets.release_held()

    def as_json(self) -> Json:
        """What is armed."""
        return {
            "rules": [
                {
                    "path": rule.pattern,
                    "left": rule.left,
                    "status": rule.status,
                    "code": rule.code,
                    "latency_s": rule.latency_s,
                    "reset": rule.reset,
                    "after_effect": rule.after_effect,
                }
                for rule in self.rules
            ],
            "next_event": {
                "duplicates": self.duplicates,
                "delay_s": self.delay_s,
                "parts": self.parts,
                "reorder": self.reorder,
                "new_event_ids": self.new_event_ids,
            },
        }
