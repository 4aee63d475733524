"""The store while its file cannot be written, and when it is damaged."""

import asyncio
import contextlib
import logging
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agno_lark.errors import StoreError
from agno_lark.store import SCHEMA_VERSION, Reason, Store, Tx, engine, opening
from agno_lark.store.migrate import migrate
from agno_lark.store.trouble import reason_of

ADD = "INSERT INTO session_scopes (scope, generation, created_ms, updated_ms) VALUES (:scope, 1, 1, 1)"
ALL = "SELECT COUNT(*) AS n, SUM(LENGTH(scope)) AS length FROM session_scopes"
PAGE = 4096
KILLED = """
import os, signal, sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("PRAGMA journal_mode=DELETE")
c.execute("PRAGMA cache_size=5")
c.execute("BEGIN")
c.execute("UPDATE session_scopes SET scope = scope || '-changed'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def add(tx: Tx, scope: str) -> None:
    tx.execute(ADD, {"scope": scope})


def add_many(tx: Tx, rows: int = 5_000) -> None:
    for number in range(rows):
        add(tx, f"a scope that is as long as they are {number}")


def read_all(tx: Tx) -> int:
    return len(tx.all("SELECT * FROM session_scopes ORDER BY updated_ms, scope"))


def room_for(tx: Tx, pages: int) -> None:
    """How long the file may become, but never shorter than it is; no page of it is left free."""
    tx.all("PRAGMA incremental_vacuum")
    tx.one(f"PRAGMA max_page_count={pages}")


async def passes(store: Store) -> None:
    async with asyncio.timeout(5):
        while store.trouble is not None:
            await asyncio.sleep(0.01)


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["action"] for record in caplog.records if "action" in record.__dict__]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr(engine, "BUSY_AGAIN_MS", 5)
    monkeypatch.setattr(engine, "LOOK_AGAIN_S", 0.05)


async def test_trouble_is_told_once_and_ends_by_itself_without_a_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Store.open(tmp_path / "s") as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "s", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            for number in range(20):
                with pytest.raises(StoreError, match="another program holds it") as refused:
                    await store.transact(add, f"{number}")
                assert refused.value.retryable
            assert store.trouble is not None
            assert store.trouble.reason is Reason.LOCKED
            assert str(refused.value) == store.trouble.message
        await passes(store)
        assert actions(caplog) == ["store_trouble", "store_recovered"]
        await store.transact(add, "afterwards")
        assert (await store.read(ALL))[0]["n"] == 1


async def test_a_full_disk_refuses_the_call_that_needs_room_and_what_needs_none_goes_on(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        await store.transact(room_for, 1)  # as many pages as there are
        with pytest.raises(StoreError, match="the disk is full"):
            await store.transact(add_many)
        assert store.trouble is not None
        assert store.trouble.reason is Reason.DISK_FULL
        for _ in range(10):
            assert await store.transact(read_all) == 0
            await asyncio.sleep(0.02)
        assert store.trouble is not None, "what writes nothing proves nothing"
        await store.transact(room_for, 1_000_000)
        await passes(store)
        await store.transact(add_many)


async def test_a_call_that_meets_a_full_disk_takes_nobodys_commit_for_its_own(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        await store.transact(room_for, 1)
        results = await asyncio.gather(store.transact(add, "small"), store.transact(add_many), return_exceptions=True)
        assert isinstance(results[1], StoreError)
        kept = (await store.read(ALL))[0]["n"]
        assert kept == (0 if isinstance(results[0], StoreError) else 1), "answered is kept, and only that"


async def test_a_file_that_becomes_read_only_is_trouble_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[sqlite3.Connection] = []
    connect = opening.connect

    def remembering(*args: Any, **more: Any) -> sqlite3.Connection:
        made.append(connect(*args, **more))
        return made[0]

    monkeypatch.setattr(engine, "connect", remembering)
    async with Store.open(tmp_path / "s") as store:
        made[0].execute("PRAGMA query_only=ON")
        with pytest.raises(StoreError, match="it cannot be written"):
            await store.transact(add, "a")
        assert store.trouble is not None
        assert store.trouble.reason is Reason.READ_ONLY
        made[0].execute("PRAGMA query_only=OFF")
        await passes(store)


async def test_a_fault_of_a_call_is_no_trouble_of_the_file(tmp_path: Path) -> None:
    def fails(tx: Tx, error: Exception) -> None:
        raise error

    async with Store.open(tmp_path / "s") as store:
        for error in (FileNotFoundError(2, "no such file"), sqlite3.OperationalError("no such column")):
            with pytest.raises(type(error)):
                await store.transact(fails, error)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await store.transact(lambda tx: tx.all("SELECT * FROM nothing_here"))
        assert store.trouble is None


@pytest.mark.parametrize("met_by", ["a transaction", "a read"])
async def test_damage_does_not_pass(tmp_path: Path, caplog: pytest.LogCaptureFixture, met_by: str) -> None:
    path = tmp_path / "s"
    async with Store.open(path) as store:
        await store.transact(add_many)
    async with Store.open(path) as store:
        watching = asyncio.create_task(store.until_damaged())
        await asyncio.sleep(0)
        assert not watching.done()
        garble(path, behind=PAGE)
        with pytest.raises(StoreError, match="it is damaged") as refused:
            await (store.transact(read_all) if met_by == "a transaction" else store.read(ALL))
        assert not refused.value.retryable
        with pytest.raises(StoreError, match="put a backup in its place"):
            await asyncio.wait_for(watching, 5)
        with pytest.raises(StoreError, match="it is damaged"):
            await store.transact(add, "b")
        assert store.trouble is not None
        assert store.trouble.reason is Reason.DAMAGED
    assert actions(caplog) == ["store_trouble"]
    assert caplog.records[0].levelno == logging.ERROR


async def test_damage_in_any_page_is_found_at_the_start_and_the_file_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    async with Store.open(path) as store:
        await store.transact(add_many)
    for page in pages_with(path, b"as long as they are 2500"):
        garble(path, behind=page, size=PAGE)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="it is damaged") as refused:
        await Store.open(path).__aenter__()
    assert not refused.value.retryable
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    monkeypatch.setattr(opening, "CHECK_MOST_BYTES", PAGE)
    async with Store.open(path) as store:  # a file too long to be read at each start: damage is met where it is read
        with pytest.raises(StoreError, match="it is damaged"):
            await store.transact(read_all)


async def test_a_check_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    async with Store.open(path) as store:
        await store.transact(add_many)
    monkeypatch.setattr(opening, "CHECK_MOST_S", -1)
    async with Store.open(path) as store:
        assert await store.transact(read_all) == 5_000


async def test_what_another_program_was_killed_in_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with Store.open(path) as store:
        await store.transact(add_many)
        length = (await store.read(ALL))[0]["length"]
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-S", "-c", KILLED, str(path)])
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "s-journal").stat().st_size > 0
    async with Store.open(path) as store:
        assert (await store.read(ALL))[0]["length"] == length


def test_a_disk_that_fills_up_in_a_migration_is_told_as_such_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "s", isolation_level=None)) as connection:
        connection.execute("PRAGMA max_page_count = 4")
        with pytest.raises(sqlite3.OperationalError) as refused:
            migrate(connection, 1)
        assert reason_of(tmp_path / "s", refused.value) is Reason.DISK_FULL
        assert not connection.in_transaction
        connection.execute("PRAGMA max_page_count = 1000")
        migrate(connection, 1)
        newest = connection.execute("SELECT MAX(version) FROM schema_version").fetchone()
        assert newest == (SCHEMA_VERSION,)


async def test_what_tries_the_file_leaves_nothing_in_it(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with Store.open(path) as store:
        await store.transact(lambda tx: tx.execute("CREATE TABLE store_probe (room)"))  # of a life that was killed
    async with Store.open(path) as store:
        names = await store.read("SELECT name FROM sqlite_master WHERE name = 'store_probe'")
        assert not names


def garble(path: Path, *, behind: int, size: int | None = None) -> None:
    with path.open("r+b") as file:
        file.seek(behind)
        file.write(b"\xa5" * (size or path.stat().st_size - behind))


def pages_with(path: Path, words: bytes) -> list[int]:
    """Where the pages begin that hold these words."""
    raw = path.read_bytes()
    return [at for at in range(0, len(raw), PAGE) if words in raw[at : at + PAGE]]
