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
    """The machine's own clock, which never goes back: set back, it goes on from where it was until this process ends.
    So nothing that waits, and no lease, waits longer for it."""

    def __init__(self) -> None:
        self._ahead = (time.monotonic_ns(), time.time_ns())

    def now_ms(self) -> int:
        steady_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        since_ns, at_ns = self._ahead  # one tuple: read and written whole, from several threads
        wall_ns = max(wall_ns, at_ns + steady_ns - since_ns)
        self._ahead = (steady_ns, wall_ns)
        return wall_ns // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


class RandomIds:
    """Random UUIDs, as text."""

    def new(self) -> str:
        return str(uuid.uuid4())
