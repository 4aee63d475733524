"""`Store`: transact() with group commit on one writer thread; reads on read-only connections."""

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, NoReturn, Self

import aiosqlite

from agno_lark.clock import Clock, SystemClock
from agno_lark.errors import StoreError
from agno_lark.store.lock import whole_path
from agno_lark.store.opening import connect, probe
from agno_lark.store.trouble import Reason, Trouble, explained, reason_of

__all__ = ["Row", "Store", "Tx"]

logger = logging.getLogger(__name__)

type Row = sqlite3.Row
type Params = Mapping[str, object]

BATCH_MOST = 256  # functions in one commit: bounds how long the first caller waits for the last
WAL_MOST_BYTES = 16 * 2**20  # kept of it once a checkpoint has emptied it; those come every 4 MiB, readers allowing
BUSY_TIMEOUT_MS = 5_000  # for another program that holds the file (a backup, a shell), not for ourselves
BUSY_AGAIN_MS = 250  # while there is trouble: a refusal is to come soon enough to be told to Feishu
LOOK_AGAIN_S = 1.0  # while there is trouble: whether it has passed


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

    While the file cannot be written, `trouble` says why and since when, calls are refused without much waiting, and the
    thread looks each second whether it has passed. Damage does not pass: see `until_damaged`.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = whole_path(path)
        self._clock = clock
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._listeners: dict[str, list[Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None
        self._reader: aiosqlite.Connection | None = None
        self._closed = False
        self._look_at_s = 0.0
        self._damage: StoreError | None = None
        self._damaged = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.trouble: Trouble | None = None
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
            with store._explained():
                connection = await asyncio.to_thread(
                    connect,
                    store.path,
                    now_ms=store._clock.now_ms(),
                    busy_ms=BUSY_TIMEOUT_MS,
                    wal_most_bytes=WAL_MOST_BYTES,
                )
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
        then nothing of it was written; it is retryable unless the file is damaged. A caller that is cancelled does not
        undo what the thread has begun.
        """
        if self._closed:
            raise StoreError("the state database is closed")
        if self._damage is not None:
            raise self._refusal()
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

    async def until_damaged(self) -> NoReturn:
        """Wait for ever, unless damage is met in the file: then raise the `StoreError` that says so, as every
        transaction does from then on."""
        await self._damaged.wait()
        raise self._refusal()

    def _refusal(self) -> StoreError:
        assert self._damage is not None  # noqa: S101 - asked for only once there is damage
        refusal = StoreError(str(self._damage))  # a new one for each: they gather tracebacks
        refusal.retryable = False
        return refusal

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            failure = explained(self.path, error, reason_of(self.path, error))
            if not failure.retryable:
                self._meet(Reason.DAMAGED, failure)
            raise failure from error

    def _meet(self, reason: Reason, failure: StoreError) -> None:
        """Something keeps us from committing: say so once, however many calls it costs."""
        before = self.trouble
        if before is not None and before.reason is reason:
            return
        since_ms = before.since_ms if before else self._clock.now_ms()
        self.trouble = Trouble(reason=reason, since_ms=since_ms, message=str(failure))
        self._look_at_s = time.monotonic() + LOOK_AGAIN_S
        logger.error("nothing can be committed: %s", failure, extra={"action": "store_trouble", "reason": str(reason)})
        if reason is Reason.DAMAGED:
            self._damage = failure
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._damaged.set)

    def on_signal(self, name: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake()` on the caller's event loop after each commit that signalled `name`; returns an unsubscribe."""
        loop = asyncio.get_running_loop()

        def wake_soon() -> None:
            with contextlib.suppress(RuntimeError):  # that loop has ended; there is nobody left to wake
                loop.call_soon_threadsafe(wake)

        self._listeners.setdefault(name, []).append(wake_soon)
        return lambda: self._listeners[name].remove(wake_soon)

    async def _close(self) -> None:
        self._closed = True
        self._reader = None
        self._calls.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _write_loop(self, connection: sqlite3.Connection) -> None:
        with contextlib.closing(connection):
            while (first := self._next_call(connection)) is not None:
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

    def _next_call(self, connection: sqlite3.Connection) -> _Call | None:
        """What is to be done next; None is the end."""
        while self.trouble is not None and self._damage is None:
            wait_s = self._look_at_s - time.monotonic()
            if wait_s <= 0:
                self._look(connection)
            else:
                with contextlib.suppress(queue.Empty):
                    return self._calls.get(timeout=wait_s)
        return self._calls.get()

    def _look(self, connection: sqlite3.Connection) -> None:
        """Whether the trouble has passed. Not every commit that works tells: some write little, or nothing."""
        try:
            probe(connection)
        except sqlite3.Error as error:
            self._refused(connection, error)
            self._look_at_s = time.monotonic() + LOOK_AGAIN_S
            return
        trouble, self.trouble = self.trouble, None
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
        lasted_ms = self._clock.now_ms() - trouble.since_ms if trouble else 0
        logger.warning("commits work again", extra={"action": "store_recovered", "lasted_ms": lasted_ms})

    def _refused(self, connection: sqlite3.Connection, error: BaseException) -> StoreError:
        """What callers are told of a commit that failed with `error`."""
        reason = self._reason(error)
        failure = explained(self.path, error, reason)
        if reason is None:  # a fault of a call, or of ours
            logger.error("the state database refused a commit", extra={"action": "store_commit_failed"}, exc_info=error)
        else:
            connection.execute(f"PRAGMA busy_timeout={BUSY_AGAIN_MS:d}")
            self._meet(reason, failure)
        return failure

    def _reason(self, error: BaseException) -> Reason | None:
        return reason_of(self.path, error) if isinstance(error, sqlite3.Error) else None  # others are a call's own

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
                self._run(connection, call, now_ms)
                ended = ended or self._gather(batch)
            connection.execute("COMMIT")
            self.commits += 1
        except BaseException as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            failure = self._refused(connection, error)
            for call in batch:
                call.error = failure
            if not isinstance(error, Exception):
                raise
        return ended

    def _run(self, connection: sqlite3.Connection, call: _Call, now_ms: int) -> None:
        if call.future.cancelled():
            return
        connection.execute("SAVEPOINT call")
        try:
            call.result = call.fn(Tx(connection, now_ms, call.signals), *call.args, **call.kwargs)
        except BaseException as error:  # it belongs to the caller, who gets it
            call.error = error
            if not connection.in_transaction or self._reason(error) is not None:
                raise  # no fault of the call's: the file's, so the batch fails
            connection.execute("ROLLBACK TO call")
        connection.execute("RELEASE call")

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
