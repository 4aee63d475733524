"""What a run of the benchmark came to, for people. Pure."""

from collections.abc import Mapping
from typing import Any

__all__ = ["AGENTOS_KINDS", "HOW", "aims", "table"]

AGENTOS_KINDS = {
    "stub": "a stub on a bare asyncio server (tests/bench/agentos.py), which answers at once and notes arrivals",
    "demo": "agno's own AgentOS, the demo agent with instant answers, behind a recorder",
}
HOW = {
    "processes": "sandbox with the load (one process), bot, AgentOS: three, on the CPUs told above, and nobody else of "
    "ours; the systems run one after the other. At 100 chats the sandbox is the busiest of them: see sandbox_lag_ms",
    "pause_s": "mean pause of a person before each message; 0: all write at once, and again once they are answered",
    "ack_ms": "frame handed to the sandbox's socket → its ack read there",
    "ack_as_told_by_the_bot_ms": "the same as the bot itself told it (header biz_rt, whole milliseconds)",
    "event_to_post_ms": "frame handed to the sandbox's socket → head of the run's POST read by the AgentOS",
    "event_to_card_ms": "… → the bot's first message seen (the bridge's card; the SDK's whole answer)",
    "event_to_answer_ms": "… → the answer complete",
    "turns_per_s": "answers over the time from the first message written to the last answer complete",
    "peak_rss_mb": "highest resident memory of the bot's process during the row",
    "fsync_ms": "4 KiB appended and made durable in the same folder, before and after the row: the floor of a commit",
    "sandbox_lag_ms": "how late the sandbox's event loop was (it is part of every time above)",
}
ACK_P99_MS = 10.0
POST_P50_MS = 10.0
CARD_OPERATIONS = 10


def aims(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The issue's aims, each with what was seen for the bridge, worst row first, and whether it was met."""
    rows = [row for row in report["rows"] if row["system"] == "bridge"]
    by_chats = {f"{row['rules']}/{row['chats']}{' paced' * bool(row['pause_s'])}": row for row in rows}
    with_streams = [*rows, *([report["streams"]] if "streams" in report else [])]
    acks = {name: row["ack_ms"]["p99"] for name, row in by_chats.items()}
    posts = {name: row["event_to_post_ms"]["p50"] for name, row in by_chats.items()}
    busiest = max((row["most_operations_on_a_card_in_a_second"] for row in with_streams), default=0)
    refused = sum(row["rate_refusals"] for row in with_streams)
    return [
        {"aim": f"ack p99 <= {ACK_P99_MS:g} ms with the commit on disk", "seen": acks, "met": _all(acks, ACK_P99_MS)},
        {"aim": f"event to POST p50 <= {POST_P50_MS:g} ms", "seen": posts, "met": _all(posts, POST_P50_MS)},
        {
            "aim": f"no update over the card limit of {CARD_OPERATIONS} a second, no refusal for rate or sequence",
            "seen": {"most_operations_on_a_card_in_a_second": busiest, "refusals": refused},
            "met": busiest <= CARD_OPERATIONS and refused == 0,
        },
    ]


def _all(seen: Mapping[str, float | None], most: float) -> bool:
    return bool(seen) and all(value is not None and value <= most for value in seen.values())


COLUMNS = (
    ("rates", "rules"),
    ("system", "system"),
    ("chats", "chats"),
    ("pause s", "pause_s"),
    ("turns", "turns"),
    ("no answer", "unanswered"),
    ("ack p50/p99", "ack_ms"),
    ("→ POST p50/p99", "event_to_post_ms"),
    ("→ card p50/p99", "event_to_card_ms"),
    ("→ answer p50/p99", "event_to_answer_ms"),
    ("turns/s", "turns_per_s"),
    ("card ops/turn", "card_operations_per_turn"),
    ("card ops/s", "most_operations_on_a_card_in_a_second"),
    ("refused", "rate_refusals"),
    ("MB", "peak_rss_mb"),
    ("fsync p50/p99", "fsync_ms"),
    ("load", "load_average"),
)


def table(report: Mapping[str, Any]) -> str:
    """The report as text: a row a measurement, then the aims, then what the columns mean. Times are milliseconds."""
    rows = [*report["rows"], *([{**report["streams"], "rules": "streams"}] if "streams" in report else [])]
    cells = [[title for title, _ in COLUMNS], *([_cell(row[key]) for _, key in COLUMNS] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    lines += ["", *(f"{'met    ' if aim['met'] else 'NOT MET'}  {aim['aim']}: {aim['seen']}" for aim in report["aims"])]
    lines += ["", f"machine: {report['machine']}", f"AgentOS: {AGENTOS_KINDS[report['agentos']]}"]
    lines += [f"{name} rates: {told}" for name, told in report["rules"].items()]
    lines += [f"{name}: {told}" for name, told in report["how"].items()]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return "–" if value["p50"] is None else f"{value['p50']:.1f}/{value['p99']:.1f}"
    if isinstance(value, list):
        return "→".join(f"{item:g}" for item in value)
    return f"{value}"
