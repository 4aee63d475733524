"""A clock that can be pushed forward, so that ten minutes or two hours pass in a test at once."""

from agno_lark.clock import Clock, SystemClock

__all__ = ["AdvancingClock"]


class AdvancingClock:
    """`now_ms` can be pushed; `monotonic_s` (rates) keeps to the real time."""

    def __init__(self, inner: Clock | None = None) -> None:
        self._inner: Clock = inner or SystemClock()
        self._ahead_ms = 0

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once for tokens, streaming modes, uuids and times of messages."""
        self._ahead_ms += int(seconds * 1000)

    def now_ms(self) -> int:
        return self._inner.now_ms() + self._ahead_ms

    def monotonic_s(self) -> float:
        return self._inner.monotonic_s()
