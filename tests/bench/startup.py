"""How fast does it start? `python tests/bench/startup.py [--json]`: `agno-lark --help`, and the daemon until ready.

Bytecode is compiled: each command runs once before it is measured. Ready means that /readyz says 200: the database is
migrated and the long connection to a local Feishu is open. The JSON is a contract: keys are added, never renamed.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agno_lark.testing import FeishuSandbox
from tests.bench.contest import describe_machine
from tests.bench.processes import HERE, bridge_settings, environment, free_port, spawn, until_ready

AIMS_S = {"help_s": 0.5, "ready_s": 4.0}


def help_times_s(runs: int) -> list[float]:
    """Seconds `agno-lark --help` takes, from nothing to the end of the process."""
    script = Path(sys.executable).with_name("agno-lark")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "agno_lark.cli"]
    times: list[float] = []
    for _ in range(runs + 1):
        started_s = time.monotonic()
        subprocess.run([*command, "--help"], env=environment(), stdout=subprocess.DEVNULL, check=True, timeout=60)
        times.append(time.monotonic() - started_s)
    return times[1:]


async def ready_times_s(runs: int) -> list[float]:
    """Seconds from starting the daemon's process, with a new database, until it is ready."""
    times: list[float] = []
    async with FeishuSandbox() as feishu, spawn(str(HERE / "agentos.py"), "stub") as agentos:
        for _ in range(runs + 1):
            with tempfile.TemporaryDirectory(prefix="agno-lark-bench-") as folder:
                port = free_port()
                env = bridge_settings(feishu, agentos.told, Path(folder), port)
                started_s = time.monotonic()
                async with spawn("-m", "agno_lark.cli", "--env-file", "", env=env):
                    times.append(await until_ready(port) - started_s)
    return times[1:]


def summary(times_s: Sequence[float], aim_s: float) -> dict[str, Any]:
    """Median, best and all of them, rounded to milliseconds, and whether the median meets the aim."""
    median_s = statistics.median(times_s)
    return {
        "median": round(median_s, 3),
        "best": round(min(times_s), 3),
        "all": [round(value, 3) for value in times_s],
        "aim": aim_s,
        "met": median_s <= aim_s,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="startup.py", description="Seconds until the command line answers.")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else")
    parser.add_argument("--runs", type=int, default=5, help="of each kind (%(default)s)")
    options = parser.parse_args(argv)
    report: dict[str, Any] = {
        "machine": describe_machine(),
        "help_s": summary(help_times_s(options.runs), AIMS_S["help_s"]),
        "ready_s": summary(asyncio.run(ready_times_s(options.runs)), AIMS_S["ready_s"]),
    }
    if options.json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
        return 0
    for name, told in (("help_s", "agno-lark --help"), ("ready_s", "daemon until /readyz is 200")):
        one = report[name]
        word = "met" if one["met"] else "NOT MET"
        sys.stdout.write(f"{told}: median {one['median']} s, best {one['best']} s (aim {one['aim']} s: {word})\n")
    sys.stdout.write(f"machine: {report['machine']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
