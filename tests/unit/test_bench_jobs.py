"""The jobs benchmark measures what it says: small runs of it, and its report."""

from pathlib import Path

import pytest

from tests.bench.jobs_rate import SYSTEMS
from tests.bench.jobs_report import HOW, aims, text
from tests.bench.jobs_table import table

SPREAD = {"n": 1, "p50": 1.0, "p99": 2.0, "max": 3.0}
ROW = {
    "jobs_per_s": 1000.0,
    "enqueue_ms": SPREAD,
    "claim_ms": SPREAD,
    "complete_ms": SPREAD,
    "end_to_end_ms": SPREAD,
    "commits": 1,
    "cpu_ms_per_job": 1.0,
    "size_mb": 1.0,
    "fsync_ms": SPREAD,
    "load_average": [0.1, 0.2],
}


@pytest.mark.parametrize("system", SYSTEMS)
async def test_every_system_does_all_of_the_work(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.jobs_rivals.WITHIN_S", 30.0)
    row = await SYSTEMS[system](tmp_path, 30, 5)
    assert row["end_to_end_ms"]["n"] == row["enqueue_ms"]["n"] == 30
    assert row["jobs_per_s"] > 0


async def test_a_full_table_is_claimed_from_in_the_middle_of_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.jobs_table.CLAIMS", 5)
    measured = await table(finished=50, waiting=20)
    assert [row["left"] for row in measured["rows"]] == [0, 15]
    assert [row["claim_ms"]["n"] for row in measured["rows"]] == [5, 5]


def test_the_aims_are_told_with_what_was_seen() -> None:
    slow = {"system": "aiosqlite", "times_as_fast": 4.9, **ROW}
    quick = {"system": "huey", "times_as_fast": 7.0, **ROW}
    other = {"system": "huey-queue-only", "times_as_fast": 1.0, **ROW}
    rows = [slow, quick, other]
    report = {
        "machine": {"cpus": 2},
        "rate": {"jobs": 1, "lanes": 1, "rows": rows},
        "restart": {"first_running_after_ready_s": 1.1, "lost": 0, "doubled": 1, "rss_mb": {"10%": 90.0, "100%": 95.0}},
    }
    assert [aim["met"] for aim in aims(report)] == [False, False, False, True]
    rows[0] = slow | {"times_as_fast": 5.0}
    assert aims(report)[0]["met"]
    told = text(report | {"aims": aims(report)})
    assert "NOT MET  none lost, none doubled: {'lost': 0, 'doubled': 1}" in told
    assert all(name in told for name in HOW)
