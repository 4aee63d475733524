"""What a claim costs beside a million finished jobs, with fifty thousand waiting in its lane."""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from agno_lark.clock import RandomIds, SystemClock
from agno_lark.intake.accept import Talk, accept_message
from agno_lark.jobs import JobState, Outcome, Queue, claim, finish
from agno_lark.jobs.queue import Claimed
from agno_lark.sessions import session_id
from agno_lark.store import Store, Tx
from tests.bench.jobs_work import TARGET, TEXT, origin_of, prepare, size_mb
from tests.bench.measures import spread_ms
from tests.bench.processes import fsync_times_s

__all__ = ["table"]

CLAIMS = 1_000
FINISHED = """
INSERT INTO jobs (id, kind, queue, lane, state, payload, attempts, created_ms, available_ms, started_ms, finished_ms)
VALUES (?, 'turn', 'turns', ?, 'done', '{}', 1, ?, ?, ?, ?)
"""
WAITING = """
INSERT INTO jobs (id, kind, queue, lane, state, payload, created_ms, available_ms)
VALUES (?, 'turn', 'turns', ?, 'queued', '{"text": "hello"}', 1, 1)
"""


async def table(*, finished: int, waiting: int) -> dict[str, Any]:
    """Claims one by one from one lane, each completed before the next: first with nothing else there, then beside all.

    `claim_ms` is the whole transaction with its commit, `claim_in_transaction_ms` without; the fsync is the same for
    both, so the second ratio is the sharper one.
    """
    rows = []
    for name, done, queued in (("empty", 0, 0), ("full", finished, waiting)):
        with tempfile.TemporaryDirectory(prefix="agno-lark-bench-") as folder:
            rows.append({"table": name, "finished": done, **await _claims(Path(folder) / "s", done, queued)})
    ratios = {
        f"{key}_ratio": round(rows[1][key]["p50"] / rows[0][key]["p50"], 2)
        for key in ("claim_ms", "claim_in_transaction_ms")
    }
    return {"claims": CLAIMS, "rows": rows, **ratios}


async def _claims(path: Path, finished: int, queued: int) -> dict[str, Any]:
    lane = session_id(origin_of(0, 0).scope, 1)
    async with Store.open(path) as store:
        for number in range(CLAIMS if queued else 0):  # what is claimed was accepted as messages are
            await _accept(store, number)
    began_s = time.monotonic()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _fill(connection, finished, lane, max(0, queued - CLAIMS))
    filled_s = time.monotonic() - began_s
    whole: list[float] = []
    inside: list[float] = []
    async with Store.open(path) as store:
        load, fsync = os.getloadavg()[0], fsync_times_s(path.parent)
        ids = RandomIds()
        for number in range(CLAIMS):
            if not queued:
                await _accept(store, number)
            began_s = time.monotonic()
            claimed, took_s = await store.transact(_claim_one, ids.new)
            whole.append(time.monotonic() - began_s)
            inside.append(took_s)
            await store.transact(finish, claimed.jobs[0], Outcome(state=JobState.DONE))
        fsync += fsync_times_s(path.parent)
        left = (await store.read("SELECT COUNT(*) AS n FROM jobs WHERE state = 'queued'"))[0]["n"]
        size = size_mb(path)
    return {
        "waiting": queued,
        "left": left,
        "claim_ms": spread_ms(whole),
        "claim_in_transaction_ms": spread_ms(inside),
        "filled_in_s": round(filled_s, 1),
        "size_mb": size,
        "fsync_ms": spread_ms(fsync),
        "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
    }


async def _accept(store: Store, number: int) -> None:
    await store.transact(accept_message, f"turn-{number}", origin_of(0, number), Talk(text=TEXT), TARGET)


def _claim_one(tx: Tx, new_token: Callable[[], str]) -> tuple[Claimed, float]:
    began_s = time.perf_counter()
    claimed = claim(tx, Queue.TURNS, "bench", new_token, most=1, lease_ms=30_000)
    prepare(tx, claimed.jobs[0])
    return claimed, time.perf_counter() - began_s


def _fill(connection: sqlite3.Connection, finished: int, lane: str, behind: int) -> None:
    """Written behind SQLite's back, so to say: no fsync, one transaction, on a file that nobody else has open."""
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=-262144")
    connection.execute("BEGIN")
    now_ms = SystemClock().now_ms()

    def done() -> Iterator[tuple[Any, ...]]:
        for number in range(finished):
            at = now_ms - 600_000_000 + number * 500
            yield f"old-{number}", f"lane-{number % 5_000}", at, at, at, at

    connection.executemany(FINISHED, done())
    connection.executemany(WAITING, ((f"behind-{number}", lane) for number in range(behind)))
    connection.execute("COMMIT")
