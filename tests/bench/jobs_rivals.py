"""What people would take instead of our store: one transaction per call through aiosqlite, and SqliteHuey."""

import asyncio
import contextlib
import itertools
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, cast

import aiosqlite
from huey import SqliteHuey  # type: ignore[import-untyped]
from sqlalchemy.util import await_only, greenlet_spawn

from agno_lark.intake.accept import seen_before
from agno_lark.sessions import current_generation, session_id
from agno_lark.store import Row, Tx
from agno_lark.turns import NewRun, RunPhase, open_run
from agno_lark.turns.rows import close_run, mark_submitted
from tests.bench.jobs_work import TARGET, TEXT, Transacts, origin_of
from tests.bench.measures import spread_ms

__all__ = ["OnePerCall", "huey_jobs"]

WITHIN_S = 120.0

type Params = dict[str, object]


class _AwaitedTx:
    """A `Tx` whose every statement is awaited on an aiosqlite connection, as code written for aiosqlite does."""

    def __init__(self, connection: aiosqlite.Connection, signals: set[str]) -> None:
        self._connection = connection
        self._signals = signals
        self.now_ms = time.time_ns() // 1_000_000

    def execute(self, sql: str, params: Params | None = None) -> int:
        cursor = await_only(self._connection.execute(sql, params or {}))
        return int(cursor.rowcount)

    def one(self, sql: str, params: Params | None = None) -> Row | None:
        rows = self.all(sql, params)
        return rows[0] if rows else None

    def all(self, sql: str, params: Params | None = None) -> list[Row]:
        return list(await_only(self._connection.execute_fetchall(sql, params or {})))

    def signal(self, name: str) -> None:
        self._signals.add(name)


class OnePerCall(Transacts):
    """The same functions on the same file with the same settings, each call in a transaction of its own."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self._listeners: dict[str, list[Callable[[], None]]] = {}
        self.commits = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator["OnePerCall"]:
        """On a database that `Store` has made."""
        async with aiosqlite.connect(path, isolation_level=None, cached_statements=512) as connection:
            connection.row_factory = sqlite3.Row
            await connection.execute("PRAGMA synchronous=FULL")
            await connection.execute("PRAGMA foreign_keys=ON")
            yield cls(connection)

    async def transact[**P, T](self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        signals: set[str] = set()
        async with self._turn:
            await self._connection.execute("BEGIN IMMEDIATE")
            try:
                tx = cast(Tx, _AwaitedTx(self._connection, signals))
                result = await greenlet_spawn(partial(fn, tx, *args, **kwargs))
                await self._connection.execute("COMMIT")
            except BaseException:
                await self._connection.execute("ROLLBACK")
                raise
            self.commits += 1
        for wake in [wake for name in signals for wake in self._listeners.get(name, ())]:
            wake()
        return result

    def on_signal(self, name: str, wake: Callable[[], None]) -> Callable[[], None]:
        self._listeners.setdefault(name, []).append(wake)
        return lambda: self._listeners[name].remove(wake)


class _Rows:
    """Our rows beside huey's queue, on one connection: each step a transaction, as huey's own steps are."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=30
        )
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA synchronous=FULL")
        self._lock = threading.Lock()
        self.close = self._connection.close

    @contextlib.contextmanager
    def tx(self) -> Iterator[Tx]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield Tx(self._connection, time.time_ns() // 1_000_000, set())
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def accept(self, job_id: str, lane: int, number: int) -> None:
        origin = origin_of(lane, number)
        with self.tx() as tx:
            seen_before(tx, origin.app_id, origin.event_id, origin.place.message_id, job_id)
            scope = str(origin.scope)
            generation = current_generation(tx, scope)
            run = NewRun(
                turn_id=job_id,
                seq=number,
                scope=scope,
                generation=generation,
                session_id=session_id(scope, generation),
                target_type=TARGET[0],
                target_id=TARGET[1],
                app_id=origin.app_id,
                tenant_key=origin.tenant_key,
                requester=origin.sender,
                chat_id=origin.place.chat_id,
                chat_type=origin.chat_type,
                thread_id=None,
                message_id=origin.place.message_id,
                language="en",
            )
            open_run(tx, run)

    def submit(self, job_id: str) -> None:
        with self.tx() as tx:
            mark_submitted(tx, job_id, f"run-{job_id}")

    def complete(self, job_id: str) -> None:
        with self.tx() as tx:
            close_run(tx, job_id, RunPhase.COMPLETED)


def huey_jobs(folder: Path, rows_path: Path | None, *, jobs: int, lanes: int, workers: int = 4) -> dict[str, Any]:
    """The work with SqliteHuey, in threads, `fsync` on: enqueue, dequeue, result stored.

    With `rows_path` (a database `Store` has made) also our dedup, session and run rows, without which it is a queue
    only: huey has no lanes, no leases and no dedup. Returns what `run_jobs` does, as far as huey tells it.
    """
    huey = SqliteHuey(filename=str(folder / "huey.sqlite3"), fsync=True)
    rows = _Rows(rows_path) if rows_path is not None else None
    accepted_s: dict[str, float] = {}
    completed_s: dict[str, float] = {}
    enqueue_s: list[float] = []
    failures: list[Exception] = []
    numbers = itertools.count()

    @huey.task()  # type: ignore[untyped-decorator]
    def turn(job_id: str, text: str) -> bool:
        if rows is not None:
            rows.submit(job_id)
            rows.complete(job_id)
        return True

    def write() -> None:
        while not failures and (number := next(numbers)) < jobs:
            job_id, began_s = f"turn-{number}", time.monotonic()
            if rows is not None:
                rows.accept(job_id, number % lanes, number)
            turn(job_id, TEXT)
            accepted_s[job_id] = began_s
            enqueue_s.append(time.monotonic() - began_s)

    def work() -> None:
        while not failures and len(completed_s) < jobs:
            task = huey.dequeue()
            if task is None:
                time.sleep(0.001)
                continue
            huey.execute(task)
            completed_s[task.args[0]] = time.monotonic()

    def told(step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=told, args=(step,), daemon=True) for step in [write] * 8 + [work] * workers]
    began_s = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began_s + WITHIN_S - time.monotonic()))
    failures += [TimeoutError(f"not done within {WITHIN_S} s")] * (len(completed_s) < jobs)
    if failures:
        raise failures[0]
    took_s = max(completed_s.values()) - began_s
    huey.storage.close()
    if rows is not None:
        rows.close()
    whole = [completed_s[job] - accepted_s[job] for job in accepted_s if job in completed_s]
    return {
        "jobs_per_s": round(len(completed_s) / took_s, 1),
        "enqueue_ms": spread_ms(enqueue_s),
        "claim_ms": spread_ms(()),
        "complete_ms": spread_ms(()),
        "end_to_end_ms": spread_ms(whole),
    }
