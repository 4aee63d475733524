"""How fast are jobs? `python tests/bench/jobs.py [--json]`: our store and runner beside what people would take instead.

Parts, all by default: `rate` (enqueue → claim → complete with dedup, session and run rows, beside one transaction per
call through aiosqlite and beside SqliteHuey), `table` (a claim beside a million finished jobs and fifty thousand
waiting), `cleaning` (commits while old rows are forgotten), `restart` (a daemon that finds ten thousand queued jobs).
Everything is durable: `synchronous=FULL`. What each number means stands below the table. The JSON is a contract: keys
are added, never renamed.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.contest import describe_machine
from tests.bench.jobs_cleaning import cleaning
from tests.bench.jobs_rate import rate
from tests.bench.jobs_report import aims, text
from tests.bench.jobs_restart import restart
from tests.bench.jobs_table import table

PARTS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]] = {
    "rate": lambda options: rate(jobs=options.jobs, lanes=options.lanes, rounds=options.repeat),
    "table": lambda options: table(finished=options.finished, waiting=options.waiting),
    "cleaning": lambda options: cleaning(old=options.old),
    "restart": lambda options: restart(queued=options.queued, lanes=options.queued // 20),
}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="jobs.py", description="Jobs a second, and where their time goes.")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2_000, help="rate: how many (%(default)s)")
    parser.add_argument("--lanes", type=int, default=100, help="rate: over how many lanes (%(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="rate: rounds, the quickest of each is shown (%(default)s)"
    )
    parser.add_argument("--finished", type=int, default=1_000_000, help="table: finished jobs (%(default)s)")
    parser.add_argument("--waiting", type=int, default=50_000, help="table: waiting in one lane (%(default)s)")
    parser.add_argument("--old", type=int, default=200_000, help="cleaning: old rows, of all kinds (%(default)s)")
    parser.add_argument("--queued", type=int, default=10_000, help="restart: queued jobs, 20 a lane (%(default)s)")
    return parser.parse_args(argv)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that was asked for, as the JSON says it."""
    report: dict[str, Any] = {"machine": describe_machine()}
    for name, part in PARTS.items():
        if name in options.parts.split(","):
            sys.stderr.write(f"{name} …\n")
            report[name] = await part(options)
    report["aims"] = aims(report)
    return report


def main(argv: Sequence[str] | None = None) -> int:
    """0 when no job was lost; the aims are told, not enforced (they depend on the machine)."""
    options = arguments(argv)
    report = asyncio.run(measure(options))
    sys.stdout.write(json.dumps(report, indent=2) + "\n" if options.json else text(report))
    return int(any(part.get("lost") for part in report.values() if isinstance(part, dict)))


if __name__ == "__main__":
    sys.exit(main())
