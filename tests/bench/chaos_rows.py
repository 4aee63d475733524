"""What the bridge wrote down, read from its state file beside it. Each function opens the file and closes it again."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from tests.bench.chaos_judge import Turn

__all__ = ["is_idle", "turns", "unfinished"]


@contextlib.contextmanager
def _reading(state: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=10)
    connection.row_factory = sqlite3.Row
    try:
        yield connection
    finally:
        connection.close()


def is_idle(state: Path) -> bool:
    """Whether no job waits or runs, and every reply is confirmed."""
    return not [job for job in unfinished(state) if job[2] in ("queued", "running")]


def turns(state: Path) -> list[Turn]:
    """Every turn there has been, in order of acceptance."""
    names = [field.name for field in fields(Turn)]
    with _reading(state) as db:
        return [Turn(**{name: row[name] for name in names}) for row in db.execute("SELECT * FROM runs ORDER BY seq")]


def unfinished(state: Path) -> list[tuple[str, str, str, str | None]]:
    """(id, kind, state, error) of every job that is not done, and of every reply that is not confirmed."""
    with _reading(state) as db:
        jobs = db.execute("SELECT id, kind, state, error FROM jobs WHERE state <> 'done' ORDER BY seq").fetchall()
        replies = db.execute("SELECT id, 'outbox' AS kind, 'queued' AS state, NULL AS error FROM outbox").fetchall()
        return [(row["id"], row["kind"], row["state"], row["error"]) for row in (*jobs, *replies)]
