"""What a run of the jobs benchmark came to, for people. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["HOW", "aims", "text"]

HOW = {
    "jobs_per_s": "jobs over the time from the first message accepted to the last completion committed",
    "enqueue/claim/complete ms": "one transaction, from the call to the answer, its commit included; each lane writes "
    "its next message once the one before is committed; a claim takes up to 16 jobs",
    "end_to_end_ms": "from accepting a message to its completion committed: with all written at once mostly waiting",
    "aiosqlite": "the very same functions and the same runner (claims of 16), each call one transaction, each "
    "statement awaited on an aiosqlite connection",
    "huey": "SqliteHuey (fsync on, 8 threads write, 4 work) with our dedup, session and run rows beside it, in "
    "transactions of their own; it knows no lanes, no leases, no dedup",
    "huey-queue-only": "the same without any rows: not the same work, for comparison",
    "cpu_ms_per_job": "processor time of the whole process: what a busy machine distorts least",
    "claim_in_transaction_ms": "the claim with what a turn records in it, without the commit",
    "commit_before/during_ms": "accepting a message, fifty a second, with its commit, before and during the cleaning",
    "first_running_after_ready_s": "negative: the first job ran before the long connection was open",
    "rss_mb": "resident memory of the daemon once that share of the answers was shown",
    "fsync_ms": "4 KiB appended and made durable in the same folder, before and after: the floor of a commit",
    "load_average": "of the machine, before and after",
}
TIMES_AS_FAST = 5.0
CLAIM_RATIO = 1.5
FIRST_RUNNING_S = 1.0
FLAT_MB = 30.0


def aims(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The issue's aims, each with what was seen and whether it was met; only of the parts that were measured."""
    found = []
    if part := report.get("rate"):
        seen = {row["system"]: row["times_as_fast"] for row in part["rows"] if row["system"] in ("aiosqlite", "huey")}
        met = bool(seen) and min(seen.values()) >= TIMES_AS_FAST
        found.append({"aim": f"at least {TIMES_AS_FAST:g} times as fast as either", "seen": seen, "met": met})
    if part := report.get("table"):
        ratio = part["claim_ms_ratio"]
        aim = f"claim p50 beside a full table within {CLAIM_RATIO:g} times the empty one's"
        found.append({"aim": aim, "seen": ratio, "met": ratio <= CLAIM_RATIO})
    if part := report.get("restart"):
        first = part["first_running_after_ready_s"]
        found.append(
            {"aim": f"first job running within {FIRST_RUNNING_S:g} s of ready", "seen": first, "met": first <= 1}
        )
        lost = {"lost": part["lost"], "doubled": part["doubled"]}
        found.append({"aim": "none lost, none doubled", "seen": lost, "met": not any(lost.values())})
        rss = part["rss_mb"]
        grown = round(rss["100%"] - rss["10%"], 1)
        aim = f"memory flat: at most {FLAT_MB:g} MB more after the last job than after the first tenth"
        found.append({"aim": aim, "seen": grown, "met": grown <= FLAT_MB})
    return found


RATE = ("system", "jobs_per_s", "times_as_fast", "enqueue_ms", "claim_ms", "complete_ms", "end_to_end_ms")
RATE_MORE = ("commits", "cpu_ms_per_job", "size_mb", "fsync_ms", "load_average")
TABLE = ("table", "finished", "waiting", "claim_ms", "claim_in_transaction_ms", "size_mb", "fsync_ms", "load_average")


def text(report: Mapping[str, Any]) -> str:
    """The report as text: tables, then the aims, then what the columns mean. Times are milliseconds, p50/p99."""
    lines: list[str] = []
    if part := report.get("rate"):
        lines += [f"{part['jobs']} jobs over {part['lanes']} lanes", *_grid(RATE + RATE_MORE, part["rows"]), ""]
    if part := report.get("table"):
        lines += ["claims, one by one", *_grid(TABLE, part["rows"]), ""]
    for name in ("cleaning", "restart"):
        if part := report.get(name):
            lines += [name, *(f"  {key}: {_cell(value)}" for key, value in part.items()), ""]
    lines += [f"{'met    ' if aim['met'] else 'NOT MET'}  {aim['aim']}: {aim['seen']}" for aim in report["aims"]]
    lines += ["", f"machine: {report['machine']}", *(f"{name}: {told}" for name, told in HOW.items())]
    return "\n".join(lines) + "\n"


def _grid(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> list[str]:
    cells = [[*columns], *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[number]) for line in cells) for number in range(len(columns))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]


def _cell(value: Any) -> str:
    if isinstance(value, Mapping) and "p50" in value:
        return "–" if value["p50"] is None else f"{value['p50']:.2f}/{value['p99']:.2f}"
    if isinstance(value, list):
        return "→".join(f"{item:g}" for item in value)
    return f"{value}"
