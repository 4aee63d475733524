"""Schema versions: numbered SQL files, each applied in the transaction that records it."""

import contextlib
import sqlite3
from importlib import resources
from pathlib import Path

from agno_lark.errors import NewerSchemaError

__all__ = ["SCHEMA_VERSION", "check_readable", "migrate", "version_of"]

# (version, the oldest version of this package's code that can still work on it)
MIGRATIONS: tuple[tuple[int, int, str], ...] = ((1, 1, "0001_core.sql"), (2, 2, "0002_exactly_once.sql"))
SCHEMA_VERSION = MIGRATIONS[-1][0]

CREATE_SCHEMA_VERSION = """
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY, compatible_with INTEGER NOT NULL, applied_ms BIGINT NOT NULL
)
"""
NEWEST = "SELECT version, compatible_with FROM schema_version ORDER BY version DESC LIMIT 1"
RECORD = "INSERT INTO schema_version (version, compatible_with, applied_ms) VALUES (:version, :compatible, :now_ms)"


def check_readable(path: Path) -> None:
    """Refuse a file of a newer version before anything touches it. Raises `NewerSchemaError`, `sqlite3.Error`."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone()
        newest = connection.execute(NEWEST).fetchone() if known else None
    if newest and newest[0] > SCHEMA_VERSION and newest[1] > SCHEMA_VERSION:
        raise NewerSchemaError(
            f"state database {path}: it has schema {newest[0]}, this agno-lark knows {SCHEMA_VERSION}; it was not "
            "touched: install the newer agno-lark again, or name another file in FEISHU_STATE_DB"
        )


def version_of(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 where there is none. Raises `sqlite3.Error`."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone()
    row = connection.execute(NEWEST).fetchone() if known else None
    return int(row[0]) if row else 0


def migrate(connection: sqlite3.Connection, now_ms: int) -> None:
    """Bring the schema up to date. `connection` is in autocommit mode; a failed step leaves the step before it."""
    connection.execute(CREATE_SCHEMA_VERSION)
    row = connection.execute(NEWEST).fetchone()
    have = row[0] if row else 0
    folder = resources.files(__package__) / "migrations"
    for version, compatible, name in MIGRATIONS:
        if version <= have:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements((folder / name).read_text("utf-8")):
                connection.execute(statement)
            connection.execute(RECORD, {"version": version, "compatible": compatible, "now_ms": now_ms})
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite may have given it up itself (disk full)
                connection.execute("ROLLBACK")
            raise


def statements(script: str) -> list[str]:
    """The script's statements one by one: `executescript` would commit on its own."""
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
