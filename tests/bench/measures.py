"""Numbers from times. Pure: lists of seconds or milliseconds go in, rounded numbers come out."""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["best_of", "most_within", "percentile", "spread_ms"]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below or at which `share` (0..1) of the values lie, by nearest rank. Raises ValueError for none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread_ms(seconds: Iterable[float]) -> dict[str, float | int | None]:
    """`{"n", "p50", "p99", "max"}` in milliseconds, rounded to 0.01; None where there was nothing."""
    values = [value * 1000 for value in seconds]
    if not values:
        return {"n": 0, "p50": None, "p99": None, "max": None}
    return {
        "n": len(values),
        "p50": round(percentile(values, 0.5), 2),
        "p99": round(percentile(values, 0.99), 2),
        "max": round(max(values), 2),
    }


def most_within(times: Iterable[float], window: float) -> int:
    """The highest number of times in any half-open window of that length (both in one unit)."""
    most = 0
    inside: deque[float] = deque()
    for time in sorted(times):
        inside.append(time)
        while inside[0] <= time - window:
            inside.popleft()
        most = max(most, len(inside))
    return most


def best_of(rounds: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of several rounds of one measurement the one with the lowest event-to-POST median: the least disturbed one."""
    return min(rounds, key=lambda one: one["event_to_post_ms"]["p50"] or math.inf)
