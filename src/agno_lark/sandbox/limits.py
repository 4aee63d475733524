"""Rates, as sliding windows over real time: stricter than any bucket, so what passes here passes there."""

from collections import deque
from dataclasses import dataclass

__all__ = ["Limits", "Rates"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Calls allowed (feishu.md section 5). 0 means unlimited; `Limits.none()` is for benchmarks."""

    api_per_s: int = 50
    api_per_min: int = 1000
    sends_per_chat_per_s: int = 5
    patches_per_message_per_s: int = 5
    operations_per_card_per_s: int = 10

    @classmethod
    def none(cls) -> "Limits":
        """Everything is allowed but the rates of a single card, message and chat."""
        return cls(api_per_s=0, api_per_min=0)


class Rates:
    """Who called what, lately."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], deque[float]] = {}
        self._swept_s = 0.0

    def wait_s(self, kind: str, key: str, *, limit: int, window_s: float, now_s: float) -> float:
        """0 if one more is allowed (it is counted), else how long until it would be. A refused call is not counted."""
        if not limit:
            return 0.0
        self._sweep(now_s)
        window = self._windows.setdefault((kind, key), deque())
        while window and window[0] <= now_s - window_s:
            window.popleft()
        if len(window) >= limit:
            return window[0] + window_s - now_s
        window.append(now_s)
        return 0.0

    def _sweep(self, now_s: float) -> None:
        """Forget windows nobody used for two minutes, so that keys do not pile up."""
        if now_s - self._swept_s < 120:
            return
        self._swept_s = now_s
        for key in [key for key, window in self._windows.items() if not window or window[-1] < now_s - 120]:
            del self._windows[key]
