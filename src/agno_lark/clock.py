"""Time and chance, passed in wherever they are needed, so that a test can hold them still."""

import time
import uuid
from typing import Protocol

__all__ = ["Clock", "Ids", "RandomIds", "SystemClock"]


class Clock(Protocol):
    """`now_ms()`: UTC epoch milliseconds (may step); `monotonic_s()`: seconds that only grow (for durations)."""

    def now_ms(self) -> int: ...

    def monotonic_s(self) -> float: ...


class Ids(Protocol):
    """`new()`: a text id nobody has had before."""

    def new(self) -> str: ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


class RandomIds:
    """Random UUIDs, as text."""

    def new(self) -> str:
        return str(uuid.uuid4())
