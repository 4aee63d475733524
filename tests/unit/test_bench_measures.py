"""The benchmark's own arithmetic, and the words it reports in."""

from typing import Any

import pytest

from tests.bench.measures import best_of, most_within, percentile, spread_ms
from tests.bench.report import HOW, aims, table


def row(**more: Any) -> dict[str, Any]:
    times = dict.fromkeys(("ack_ms", "event_to_post_ms", "event_to_card_ms", "event_to_answer_ms", "fsync_ms"))
    spreads = {name: {"n": 4, "p50": 2.0, "p99": 9.0, "max": 9.0} for name in times}
    plain = {"rules": "feishu", "system": "bridge", "chats": 1, "turns": 4, "unanswered": 0, "pause_s": 0.0}
    counts = {"card_operations_per_turn": 3.0, "most_operations_on_a_card_in_a_second": 4, "rate_refusals": 0}
    counts["turns_per_s"] = 3.5
    return {**spreads, **plain, **counts, "peak_rss_mb": 80.1, "load_average": [0.5, 0.75], **more}


def report(*rows: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"rows": list(rows), "machine": {"cpus": 2}, "agentos": "stub", "how": HOW, "rules": {}}
    return {**made, "aims": aims(made)}


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([5, 1, 4, 2, 3], 0.5) == 3
    assert percentile([5, 1, 4, 2, 3], 0.99) == 5
    assert percentile(list(range(1, 101)), 0.99) == 99
    assert percentile([7], 0.0) == 7


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_times_are_told_in_milliseconds_and_nothing_is_told_as_nothing() -> None:
    assert spread_ms([0.001, 0.003, 0.002]) == {"n": 3, "p50": 2.0, "p99": 3.0, "max": 3.0}
    assert spread_ms([]) == {"n": 0, "p50": None, "p99": None, "max": None}


def test_the_busiest_second_is_found_wherever_it_begins() -> None:
    assert most_within([0, 900, 950, 1000, 1800, 5000], 1000) == 4
    assert most_within([3000, 0, 1000, 2000], 1000) == 1
    assert most_within([], 1000) == 0


def test_the_least_disturbed_round_is_the_one_with_the_quickest_post() -> None:
    quick, slow = row(turns_per_s=1.0), row(event_to_post_ms={"n": 4, "p50": 30.0, "p99": 31.0, "max": 31.0})
    nothing = row(event_to_post_ms=spread_ms([]))
    assert best_of([slow, nothing, quick]) is quick


def test_an_aim_is_met_only_where_every_row_of_the_bridge_meets_it() -> None:
    slow = row(chats=100, ack_ms={"n": 4, "p50": 2.0, "p99": 10.5, "max": 11.0})
    other = row(system="sdk", ack_ms={"n": 4, "p50": 90.0, "p99": 99.0, "max": 99.0})
    assert [aim["met"] for aim in aims(report(row(), other))] == [True, True, True]
    assert [aim["met"] for aim in aims(report(row(), slow))] == [False, True, True]


@pytest.mark.parametrize(
    "wrong", [{"most_operations_on_a_card_in_a_second": 11}, {"rate_refusals": 1}], ids=["too many", "refused"]
)
def test_one_card_over_its_limit_misses_the_aim(wrong: dict[str, int]) -> None:
    assert aims(report(row(), row(chats=10, **wrong)))[2]["met"] is False


def test_the_table_has_a_line_for_each_row_and_says_what_is_not_met() -> None:
    text = table(report(row(), row(system="sdk", event_to_post_ms=spread_ms([])), row(rate_refusals=3)))
    lines = text.splitlines()
    assert len({len(line) for line in lines[:4]}) == 1
    assert "2.0/9.0" in lines[1]
    assert "–" in lines[2]
    assert "NOT MET  no update over the card limit" in text
