"""Opening the state database: judged before it is touched, and written to once before it is relied on."""

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from agno_lark.store.migrate import check_readable, migrate
from agno_lark.store.trouble import PROBE_BYTES, damaged

__all__ = ["connect", "probe"]

CHECK_MOST_BYTES = 512 * 2**20  # half a second's reading here; damage in a larger file is met when it is read
CHECK_MOST_S = 2.0  # where SQLite lets itself be interrupted in a check (3.41 and later), on a slow disk
DROP_PROBE = "DROP TABLE IF EXISTS store_probe"
MAKE_PROBE = f"CREATE TABLE store_probe AS SELECT zeroblob({PROBE_BYTES}) AS room"


def connect(path: Path, *, now_ms: int, busy_ms: int, wal_most_bytes: int) -> sqlite3.Connection:
    """The writer's connection, in autocommit mode; the file is made where there is none, and migrated.

    Raises `NewerSchemaError` and, for damage, `StoreError` before it has written anything; `sqlite3.Error` or `OSError`
    when the file cannot be opened or written now.
    """
    undo_unfinished(path)
    check_readable(path)
    check_whole(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds people's messages
    with contextlib.ExitStack() as stack:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=0
        )
        stack.callback(connection.close)
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout={busy_ms:d}")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only counts for a new file, before WAL
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA journal_size_limit={wal_most_bytes:d}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA temp_store=MEMORY")  # what savepoints keep to undo: a tenth of a batch's time
        connection.execute("PRAGMA secure_delete=FAST")  # people's words do not stay in freed pages
        migrate(connection, now_ms)
        probe(connection)
        stack.pop_all()
    return connection


def undo_unfinished(path: Path) -> None:
    """Let SQLite undo what a program was killed in, where that used a rollback journal (as the first start of all does,
    for a moment): a connection that only reads cannot, and could not judge the file. Raises `sqlite3.Error`."""
    if path.exists() and path.with_name(path.name + "-journal").exists():
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()


def check_whole(path: Path) -> None:
    """Look for damage, in bounded time. Raises `StoreError`, `sqlite3.Error`."""
    if not path.exists() or not 0 < path.stat().st_size <= CHECK_MOST_BYTES:
        return
    until_s = time.monotonic() + CHECK_MOST_S
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > until_s, 10_000)
        try:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                return
            raise
    if found != "ok":
        raise damaged(path, found.splitlines()[-1])


def probe(connection: sqlite3.Connection) -> None:
    """Commit something that takes room, and take it away again: whether writing works is known only by writing.

    Raises `sqlite3.Error`, and then nothing is left open.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(DROP_PROBE)  # of a life that was killed in between
        connection.execute(MAKE_PROBE)
        connection.execute("COMMIT")
        connection.execute(DROP_PROBE)
    finally:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
