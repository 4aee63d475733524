"""Jobs a second: ours, and what people would take instead, in one run."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agno_lark.store import Store
from tests.bench.jobs_rivals import OnePerCall, huey_jobs
from tests.bench.jobs_work import run_jobs, size_mb
from tests.bench.measures import spread_ms
from tests.bench.processes import fsync_times_s

__all__ = ["SYSTEMS", "rate"]

type Measured = Callable[[Path, int, int], Awaitable[dict[str, Any]]]


async def _ours(folder: Path, jobs: int, lanes: int) -> dict[str, Any]:
    path = folder / "state.sqlite3"
    async with Store.open(path) as store:
        before = store.commits
        row = await run_jobs(store, jobs=jobs, lanes=lanes)
        return {**row, "commits": store.commits - before, "size_mb": size_mb(path)}


async def _one_per_call(folder: Path, jobs: int, lanes: int) -> dict[str, Any]:
    path = await _made(folder)
    async with OnePerCall.open(path) as store:
        row = await run_jobs(store, jobs=jobs, lanes=lanes)
        return {**row, "commits": store.commits, "size_mb": size_mb(path)}


async def _huey_with_rows(folder: Path, jobs: int, lanes: int) -> dict[str, Any]:
    path = await _made(folder)
    row = await asyncio.to_thread(huey_jobs, folder, path, jobs=jobs, lanes=lanes)
    return {**row, "commits": 6 * jobs, "size_mb": size_mb(path)}


async def _huey_alone(folder: Path, jobs: int, lanes: int) -> dict[str, Any]:
    row = await asyncio.to_thread(huey_jobs, folder, None, jobs=jobs, lanes=lanes)
    return {**row, "commits": 3 * jobs, "size_mb": size_mb(folder / "huey.sqlite3")}


async def _made(folder: Path) -> Path:
    path = folder / "state.sqlite3"
    async with Store.open(path):
        return path


SYSTEMS: Mapping[str, Measured] = {
    "agno-lark": _ours,
    "aiosqlite": _one_per_call,
    "huey": _huey_with_rows,
    "huey-queue-only": _huey_alone,
}


async def rate(*, jobs: int, lanes: int, rounds: int) -> dict[str, Any]:
    """`rounds` times one system after the other; of each the quickest round is shown."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SYSTEMS}
    for number in range(1, rounds + 1):
        for name, measured in SYSTEMS.items():
            sys.stderr.write(f"  round {number} of {rounds}, {name} …\n")
            found[name].append(await _row(name, measured, jobs, lanes))
    best = [max(rows, key=lambda row: row["jobs_per_s"]) for rows in found.values()]
    first = best[0]["jobs_per_s"]
    rows = [{**row, "rounds": rounds, "times_as_fast": round(first / row["jobs_per_s"], 2)} for row in best]
    return {"jobs": jobs, "lanes": lanes, "rows": rows}


async def _row(name: str, measured: Measured, jobs: int, lanes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="agno-lark-bench-") as folder:
        load, fsync = os.getloadavg()[0], fsync_times_s(Path(folder))
        cpu_s = time.process_time()
        row = await measured(Path(folder), jobs, lanes)
        cpu_s = time.process_time() - cpu_s
        fsync += fsync_times_s(Path(folder))
    return {
        "system": name,
        **row,
        "cpu_ms_per_job": round(cpu_s * 1000 / jobs, 3),
        "fsync_ms": spread_ms(fsync),
        "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
    }
