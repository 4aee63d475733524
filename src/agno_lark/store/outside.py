"""One transaction on the state database from outside the daemon's own engine, which may be running meanwhile or not."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate

from agno_lark.errors import NewerSchemaError, StoreError
from agno_lark.store.engine import Tx
from agno_lark.store.migrate import SCHEMA_VERSION, version_of
from agno_lark.store.trouble import explained, reason_of

__all__ = ["read_once", "write_once"]

BUSY_TIMEOUT_MS = 10_000  # the daemon's own commits take milliseconds


def read_once[**P, T](
    path: Path, now_ms: int, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run `fn(tx, …)`, which only reads, on the newest commit. Raises `StoreError`, also where there is no file."""
    with _opened(path, "ro") as connection:
        connection.execute("BEGIN")
        return fn(Tx(connection, now_ms, set()), *args, **kwargs)


def write_once[**P, T](
    path: Path, now_ms: int, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run `fn(tx, …)` and commit. A daemon that is running sees it at its next look, within seconds. Raises
    `StoreError`; what `fn` raises undoes what it wrote."""
    with _opened(path, "rw") as connection:
        connection.execute("BEGIN IMMEDIATE")
        result = fn(Tx(connection, now_ms, set()), *args, **kwargs)
        connection.execute("COMMIT")
        return result


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        if not path.is_file():
            raise StoreError(
                f"state database {path.absolute()}: there is no such file; check FEISHU_STATE_DB, or start the "
                "daemon once"
            )
        uri = f"{path.resolve().as_uri()}?mode={mode}"
        with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")
            if (version := version_of(connection)) != SCHEMA_VERSION:
                raise NewerSchemaError(
                    f"state database {path}: it has schema {version}, this agno-lark works with {SCHEMA_VERSION}; use "
                    "the agno-lark that runs the daemon, or start this one's daemon on it first"
                )
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise explained(path, error, reason_of(path, error)) from error
