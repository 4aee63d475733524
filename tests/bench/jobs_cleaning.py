"""What people notice while old rows are forgotten: the commits of a busy bridge, before and during it."""

import asyncio
import itertools
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from agno_lark.clock import SystemClock
from agno_lark.intake.accept import Talk, accept_message
from agno_lark.retention import DAY_MS, Retention, rules
from agno_lark.settings import Settings
from agno_lark.store import Store
from tests.bench.jobs_work import TARGET, TEXT, origin_of, size_mb
from tests.bench.measures import spread_ms
from tests.bench.processes import fsync_times_s

__all__ = ["cleaning"]

BEFORE_S = 10.0
EVERY_S = 0.02  # fifty messages a second: more than one app may answer
OLD_JOBS = """
INSERT INTO jobs (id, kind, queue, lane, state, payload, attempts, created_ms, available_ms, started_ms, finished_ms)
VALUES (?, 'turn', 'turns', 'lane', 'done', '{}', 1, ?, ?, ?, ?)
"""
OLD_RUNS = """
INSERT INTO runs (turn_id, run_id, seq, scope, generation, session_id, target_type, target_id, app_id, tenant_key,
    requester, chat_id, chat_type, message_id, language, state, accepted_ms, finished_ms)
VALUES (?, ?, ?, ?, 1, ?, 'agent', 'demo-agent', 'cli_bench', 'tenant', ?, ?, 'p2p', ?, 'en', 'completed', ?, ?)
"""
OLD_KEYS = "INSERT INTO dedup_messages (app_id, kind, key, seen_ms) VALUES ('cli_bench', 'event', ?, ?)"


async def cleaning(*, old: int) -> dict[str, Any]:
    """A quarter of the old rows are jobs, a quarter their runs, half dedup keys, as a message leaves them.

    `commit_ms` is what accepting a message takes, its commit included.
    """
    with tempfile.TemporaryDirectory(prefix="agno-lark-bench-") as folder:
        path = Path(folder) / "state.sqlite3"
        async with Store.open(path):
            pass
        _fill(path, old // 4)
        size_before = size_mb(path)
        async with Store.open(path) as store:
            return {"old_rows": old, "size_before_mb": size_before, **await _measure(store, path)}


async def _measure(store: Store, path: Path) -> dict[str, Any]:
    settings = Settings.given(feishu_app_id="cli_bench", feishu_app_secret="s")
    numbers = itertools.count(10_000_000)
    load, fsync = os.getloadavg()[0], fsync_times_s(path.parent)
    before = await _commits(store, numbers, asyncio.create_task(asyncio.sleep(BEFORE_S)))
    began_s = time.monotonic()
    clean = asyncio.create_task(Retention(store, rules(settings), clock=SystemClock()).clean())
    during = await _commits(store, numbers, clean)
    took_s = time.monotonic() - began_s
    fsync += fsync_times_s(path.parent)
    await store.transact(lambda tx: tx.signal("nothing"))
    return {
        "gone": clean.result(),
        "took_s": round(took_s, 1),
        "commit_before_ms": spread_ms(before),
        "commit_during_ms": spread_ms(during),
        "size_after_mb": size_mb(path),
        "fsync_ms": spread_ms(fsync),
        "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
    }


async def _commits(store: Store, numbers: "itertools.count[int]", until: "asyncio.Task[Any]") -> list[float]:
    times: list[float] = []
    while not until.done():
        number = next(numbers)
        began_s = time.monotonic()
        await store.transact(accept_message, f"turn-{number}", origin_of(number % 500, number), Talk(text=TEXT), TARGET)
        times.append(time.monotonic() - began_s)
        await asyncio.sleep(EVERY_S)
    return times


def _fill(path: Path, turns: int) -> None:
    at = SystemClock().now_ms() - 30 * DAY_MS
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        for number in range(turns):
            name, scope = f"old-{number}", f"feishu:agent:demo-agent:chat_oc_{number % 500}"
            connection.execute(OLD_JOBS, (name, at, at, at, at + number))
            sender, session = f"ou_{number % 500}", f"{scope}:v1"
            given = (name, f"run-{name}", number, scope, session, sender, f"oc_{number % 500}", f"om_{name}")
            connection.execute(OLD_RUNS, (*given, at, at + number))
            connection.execute(OLD_KEYS, (f"event-{name}", at + number))
            connection.execute(OLD_KEYS, (f"message-{name}", at + number))
        connection.execute("COMMIT")
