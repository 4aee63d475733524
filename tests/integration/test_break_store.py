"""The state file by odd names, on a bad disk, and held by others."""

import asyncio
import errno
import os
import sqlite3
import time
from pathlib import Path

import pytest

from agno_lark.errors import AlreadyRunningError, StoreError
from agno_lark.store import InstanceLock, Store, Tx, engine


def add(tx: Tx, scope: str) -> None:
    sql = "INSERT INTO session_scopes (scope, generation, created_ms, updated_ms) VALUES (:scope, 1, 1, 1)"
    tx.execute(sql, {"scope": scope})


@pytest.mark.parametrize("through", ["a link to the file", "a link to its folder"])
def test_one_state_file_under_two_names_is_one_lock(tmp_path: Path, through: str) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "s.db").touch()
    other = tmp_path / "other"
    if through == "a link to the file":
        other.symlink_to(real / "s.db")
    else:
        other.symlink_to(real)
        other = other / "s.db"
    with InstanceLock.hold(real / "s.db", "http://first"), pytest.raises(AlreadyRunningError, match="http://first"):
        InstanceLock.hold(other, "http://second").__enter__()


async def test_a_name_that_sqlite_takes_for_memory_is_a_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        async with Store.open(Path(":memory:")) as store:
            await store.transact(add, f"s{time.monotonic_ns()}")
            rows = await store.read("SELECT COUNT(*) AS n FROM session_scopes")
    assert rows[0]["n"] == 2, "it survives a restart"


@pytest.mark.parametrize("name", [".", "/", "~nobody-of-this-name/s.db", "a\0b"])
async def test_what_names_no_file_is_told(name: str) -> None:
    with pytest.raises(StoreError, match="FEISHU_STATE_DB"):
        InstanceLock.hold(Path(name), "").__enter__()
    with pytest.raises(StoreError, match="FEISHU_STATE_DB"):
        await Store.open(Path(name)).__aenter__()


def test_a_full_disk_is_told_and_does_not_cost_the_instance_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with InstanceLock.hold(tmp_path / "s", "here") as first:
        pass

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StoreError, match="No space left"):
            InstanceLock.hold(tmp_path / "s", "here").__enter__()
    with InstanceLock.hold(tmp_path / "s", "here") as second:
        assert second == first


def test_a_file_system_without_locks_is_not_called_a_second_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(StoreError, match="No locks available"):
        InstanceLock.hold(tmp_path / "s", "here").__enter__()


async def test_callers_wait_for_a_locked_file_together_and_not_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 200)
    async with Store.open(tmp_path / "s") as store:
        other = sqlite3.connect(tmp_path / "s", isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            told = await asyncio.gather(*(store.transact(add, f"{n}") for n in range(40)), return_exceptions=True)
            took_s = time.monotonic() - started
        finally:
            other.close()
        assert all(isinstance(error, StoreError) for error in told)
        assert took_s < 3, "it was 40 times 0.2 s"
        await store.transact(add, "afterwards")


async def test_a_read_that_fails_is_a_store_error(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        with pytest.raises(StoreError, match="no such table"):
            await store.read("SELECT * FROM nothing_here")
