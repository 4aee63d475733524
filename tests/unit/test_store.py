"""The store: group commit, savepoints, migrations, one daemon a file."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from agno_lark.errors import AlreadyRunningError, NewerSchemaError, StoreError
from agno_lark.store import SCHEMA_VERSION, InstanceLock, Store, Tx

ADD = "INSERT INTO session_scopes (scope, generation, created_ms, updated_ms) VALUES (:scope, 1, :now, :now)"
COUNT = "SELECT COUNT(*) AS n FROM session_scopes"


def add(tx: Tx, scope: str) -> str:
    tx.execute(ADD, {"scope": scope, "now": tx.now_ms})
    return scope


def add_then_fail(tx: Tx, scope: str) -> None:
    add(tx, scope)
    raise ValueError(scope)


async def count(store: Store) -> int:
    return int((await store.read(COUNT))[0]["n"])


async def test_what_is_answered_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.sqlite3"
    async with Store.open(path) as store:
        assert await store.transact(add, "a") == "a"
        with contextlib.closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT scope FROM session_scopes").fetchall() == [("a",)]
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert oct(path.stat().st_mode)[-3:] == "600", "it holds people's messages"


async def test_functions_that_arrive_together_share_a_commit(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        await asyncio.gather(*(store.transact(add, f"s{number}") for number in range(200)))
        assert await count(store) == 200
        assert store.commits < 20


async def test_one_that_raises_undoes_its_own_writes_and_harms_no_neighbour(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        results = await asyncio.gather(
            store.transact(add, "a"),
            store.transact(add_then_fail, "b"),
            store.transact(add, "a"),
            store.transact(add, "c"),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [str, ValueError, sqlite3.IntegrityError, str]
        assert [row["scope"] for row in await store.read("SELECT scope FROM session_scopes ORDER BY scope")] == [
            "a",
            "c",
        ]


async def test_a_failing_commit_fails_every_caller_and_writes_nothing(tmp_path: Path) -> None:
    def orphan(tx: Tx) -> None:
        tx.execute("PRAGMA defer_foreign_keys=ON")
        tx.execute("CREATE TABLE parent (id TEXT PRIMARY KEY)")
        tx.execute("CREATE TABLE child (id TEXT REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
        tx.execute("INSERT INTO child VALUES ('nobody')")

    async with Store.open(tmp_path / "s") as store:
        results = await asyncio.gather(store.transact(orphan), store.transact(add, "a"), return_exceptions=True)
        assert isinstance(results[0], StoreError)
        assert store.trouble is None, "the file is not to blame"
        assert not await count(store) or isinstance(results[1], str)
        assert await store.transact(add, "b") == "b", "the writer goes on"


async def test_a_caller_that_is_cancelled_leaves_no_transaction_open(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        task = asyncio.create_task(store.transact(add, "a"))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert await store.transact(add, "b") == "b"


async def test_listeners_are_woken_after_the_commit_and_not_for_what_failed(tmp_path: Path) -> None:
    def signalling(tx: Tx, scope: str, fails: bool) -> None:
        add(tx, scope)
        tx.signal("jobs")
        if fails:
            raise LookupError

    async with Store.open(tmp_path / "s") as store:
        seen: list[int] = []
        woken = asyncio.Event()

        def wake() -> None:
            with contextlib.closing(sqlite3.connect(store.path)) as other:
                seen.append(other.execute("SELECT COUNT(*) FROM session_scopes").fetchone()[0])
            woken.set()

        unsubscribe = store.on_signal("jobs", wake)
        with pytest.raises(LookupError):
            await store.transact(signalling, "x", True)
        assert not seen
        await store.transact(signalling, "a", False)
        await asyncio.wait_for(woken.wait(), 5)
        assert seen == [1]
        unsubscribe()
        await store.transact(signalling, "b", False)
        await asyncio.sleep(0.05)
        assert seen == [1]


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s") as store:
        pass
    with pytest.raises(StoreError, match="closed"):
        await store.transact(add, "a")
    with pytest.raises(StoreError, match="closed"):
        await store.read(COUNT)


async def test_opening_again_keeps_what_is_there_and_migrates_once(tmp_path: Path) -> None:
    for scope in ("a", "b"):
        async with Store.open(tmp_path / "s") as store:
            await store.transact(add, scope)
    async with Store.open(tmp_path / "s") as store:
        assert await count(store) == 2
        versions = [row["version"] for row in await store.read("SELECT version FROM schema_version ORDER BY version")]
        assert versions == list(range(1, SCHEMA_VERSION + 1))


async def test_a_database_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with Store.open(path):
        pass
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("INSERT INTO schema_version VALUES (?, ?, 0)", (SCHEMA_VERSION + 7, SCHEMA_VERSION + 7))
        other.commit()
        other.execute("PRAGMA journal_mode=DELETE")
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError, match=f"schema {SCHEMA_VERSION + 7}"):
        async with Store.open(path):
            pass
    assert path.read_bytes() == before


async def test_a_newer_database_that_says_it_is_compatible_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with Store.open(path):
        pass
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("INSERT INTO schema_version VALUES (?, ?, 0)", (SCHEMA_VERSION + 1, SCHEMA_VERSION))
        other.commit()
    async with Store.open(path) as store:
        assert await store.transact(add, "a") == "a"


@pytest.mark.parametrize(
    "content", [b"this is no database, but some text that is long enough to be one", b"\x00" * 4096]
)
async def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a database"):
        async with Store.open(path):
            pass
    assert path.read_bytes() == content


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(StoreError, match="FEISHU_STATE_DB"):
        async with Store.open(tmp_path / "file" / "state"):
            pass


def test_a_second_daemon_on_the_same_file_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    with (
        InstanceLock.hold(tmp_path / "s", "http://127.0.0.1:7788") as first,
        pytest.raises(AlreadyRunningError, match=r"process \d+ on .*http://127.0.0.1:7788"),
        InstanceLock.hold(tmp_path / "s", "elsewhere"),
    ):
        pass
    with InstanceLock.hold(tmp_path / "s", "elsewhere") as second:
        assert second == first, "an instance knows its former life"
    with InstanceLock.hold(tmp_path / "other", "elsewhere") as third:
        assert third != first
