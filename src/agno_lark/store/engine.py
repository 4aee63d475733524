"""`Store`: transact() with group commit on one writer thread; reads on read-only connections."""

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Self

import aiosqlite

from agno_lark.clock import Clock, SystemClock
from agno_lark.errors import StoreError
from agno_lark.store.lock import whole_path
from agno_lark.store.migrate import check_readable, migrate

__all__ = ["Row", "Store", "Tx"]

logger = logging.getLogger(__name__)

type Row = sqlite3.Row
type Params = Mapping[str, object]

BATCH_MOST = 256  # functions in one commit: bounds how long the first caller waits for the last
BUSY_TIMEOUT_MS = 5_000  # for another program that holds the file (a backup, a shell), not for ourselves


class Tx:
    """One open transaction, handed to the functions `transact` runs. Not to be kept, nor used elsewhere."""

    __slots__ = ("_connection", "_signals", "now_ms")

    def __init__(self, connection: sqlite3.Connection, now_ms: int, signals: set[str]) -> None:
        self._connection = connection
        self._signals = signals
        self.now_ms = now_ms  # UTC epoch ms, read once per commit

    def execute(self, sql: str, params: Params | None = None) -> int:
        """Run one statement; returns the number of rows it changed."""
        return self._connection.execute(sql, params or {}).rowcount

    def one(self, sql: str, params: Params | None = None) -> Row | None:
        """The first row, or None. The statement is run to its end, so `RETURNING` is safe."""
        rows = self._connection.execute(sql, params or {}).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, params: Params | None = None) -> list[Row]:
        """Every row."""
        return self._connection.execute(sql, params or {}).fetchall()

    def signal(self, name: str) -> None:
        """Wake those who wait for `name` (see `Store.on_signal`), once this transaction is committed."""
        self._signals.add(name)


class _Call:
    __slots__ = ("args", "error", "fn", "future", "kwargs", "loop", "result", "signals")

    def __init__(
        self,
        fn: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.fn, self.args, self.kwargs, self.loop = fn, args, kwargs, loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: object = None
        self.error: BaseException | None = None
        self.signals: set[str] = set()

    def deliver(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Store:
    """One SQLite file. Make it with `async with Store.open(path) as store`.

    Writes: one thread, `BEGIN IMMEDIATE`, `synchronous=FULL`; functions that arrive while a commit is under way share
    the next one, each inside a savepoint of its own, so that one that raises harms no neighbour.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = whole_path(path)
        self._clock = clock
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._listeners: dict[str, list[Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None
        self._reader: aiosqlite.Connection | None = None
        self._closed = False
        self.commits = 0  # how many commits there were, for status and benchmarks

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path, *, clock: Clock | None = None) -> AsyncIterator[Self]:
        """Open (and create, and migrate) the database.

        Raises `NewerSchemaError` for a file of a newer agno-lark, which is left as it is, and `StoreError` for one that
        cannot be used, with the reason and what to do.
        """
        store = cls(path, clock or SystemClock())
        async with contextlib.AsyncExitStack() as stack:
            connection = await asyncio.to_thread(store._connect)
            store._thread = threading.Thread(
                target=store._write_loop, args=(connection,), name="agno-lark-store", daemon=True
            )
            store._thread.start()
            stack.push_async_callback(store._close)
            uri = f"{store.path.as_uri()}?mode=ro"
            with store._explained():
                store._reader = await stack.enter_async_context(aiosqlite.connect(uri, uri=True, isolation_level=None))
            store._reader.row_factory = sqlite3.Row
            yield store

    async def transact[**P, T](self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(tx, *args, **kwargs)` in a transaction; its result comes after the commit.

        What `fn` raises undoes its own writes and is raised here. Raises `StoreError` when the commit itself failed:
        then nothing of it was written. A caller that is cancelled does not undo what the thread has begun.
        """
        if self._closed:
            raise StoreError("the state database is closed")
        call = _Call(fn, args, kwargs, asyncio.get_running_loop())
        self._calls.put(call)
        result: T = await call.future
        return result

    async def read(self, sql: str, params: Params | None = None) -> Sequence[Row]:
        """Rows of a SELECT, from the newest commit. Never waits for a writer. Raises `StoreError`."""
        if self._reader is None:
            raise StoreError("the state database is closed")
        with self._explained():
            async with self._reader.execute(sql, params or {}) as cursor:
                return list(await cursor.fetchall())

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(_explain(self.path, error)) from error

    def on_signal(self, name: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake()` on the caller's event loop after each commit that signalled `name`; returns an unsubscribe."""
        loop = asyncio.get_running_loop()

        def wake_soon() -> None:
            with contextlib.suppress(RuntimeError):  # that loop has ended; there is nobody left to wake
                loop.call_soon_threadsafe(wake)

        self._listeners.setdefault(name, []).append(wake_soon)
        return lambda: self._listeners[name].remove(wake_soon)

    def _connect(self) -> sqlite3.Connection:
        try:
            check_readable(self.path)
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds people's messages
            connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=0
            )
            connection.row_factory = sqlite3.Row
            connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only counts for a new file, before WAL
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA secure_delete=FAST")  # people's words do not stay in freed pages
            migrate(connection, self._clock.now_ms())
        except (sqlite3.Error, OSError) as error:
            raise StoreError(_explain(self.path, error)) from error
        return connection

    async def _close(self) -> None:
        self._closed = True
        self._reader = None
        self._calls.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _write_loop(self, connection: sqlite3.Connection) -> None:
        with contextlib.closing(connection):
            while (first := self._calls.get()) is not None:
                batch = [first]
                ended = self._commit(connection, batch)
                for loop in {call.loop for call in batch}:
                    mine = [call for call in batch if call.loop is loop]
                    with contextlib.suppress(RuntimeError):  # the caller's loop has ended; nobody waits any more
                        loop.call_soon_threadsafe(_deliver, mine)
                for name in {name for call in batch if call.error is None for name in call.signals}:
                    for wake in tuple(self._listeners.get(name, ())):
                        wake()
                if ended:
                    return

    def _commit(self, connection: sqlite3.Connection, batch: list[_Call]) -> bool:
        """Run the batch's first call, and all that wait by then, in one transaction. True when asked to stop."""
        ended = False
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error:
                ended = self._gather(batch)  # they share the refusal: each would wait as long for its own
                raise
            now_ms = self._clock.now_ms()
            for call in batch:  # grows while it is walked
                _run(connection, call, now_ms)
                ended = ended or self._gather(batch)
            connection.execute("COMMIT")
            self.commits += 1
        except BaseException as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            failure = StoreError(_explain(self.path, error))
            failure.__cause__ = error
            logger.error("the state database refused a commit", extra={"action": "store_commit_failed"}, exc_info=error)
            for call in batch:
                call.error = failure
            if not isinstance(error, Exception):
                raise
        return ended

    def _gather(self, batch: list[_Call]) -> bool:
        """Add to the batch what waits, as far as it has room. True when asked to stop."""
        while len(batch) < BATCH_MOST and not self._calls.empty():
            waiting = self._calls.get()
            if waiting is None:
                return True
            batch.append(waiting)
        return False


def _deliver(calls: list[_Call]) -> None:
    for call in calls:
        call.deliver()


def _run(connection: sqlite3.Connection, call: _Call, now_ms: int) -> None:
    if call.future.cancelled():
        return
    connection.execute("SAVEPOINT call")
    try:
        call.result = call.fn(Tx(connection, now_ms, call.signals), *call.args, **call.kwargs)
    except BaseException as error:  # it belongs to the caller, who gets it
        call.error = error
        if not connection.in_transaction:  # SQLite gave the whole transaction up (disk full): the batch fails
            raise
        connection.execute("ROLLBACK TO call")
    connection.execute("RELEASE call")


def _explain(path: Path, error: BaseException) -> str:
    """What went wrong with the file, and what to do, for the operator."""
    text = str(error)
    advice = "see the cause below"
    if "disk is full" in text or (isinstance(error, OSError) and error.errno == 28):
        advice = "the disk is full: free some space, the bridge goes on by itself"
    elif "locked" in text:
        advice = "another program holds it: close that program (a database browser, a backup)"
    elif "readonly" in text or "read-only" in text or isinstance(error, PermissionError):
        advice = "it cannot be written: check the owner and the rights of the file and its folder"
    elif "malformed" in text or "not a database" in text:
        advice = "it is damaged or not a database: put a backup in its place, or move it away to start anew"
    elif "unable to open" in text or isinstance(error, OSError):
        advice = "it cannot be opened: check that FEISHU_STATE_DB names a file in a folder that can be written"
    return f"state database {path}: {text}; {advice}"
