"""The state database on bad days, as real daemons meet them: disk full, locked, read-only, damaged, of a newer version.

A disk is filled by a limit on the size of files, which works on any machine; where mounting is allowed, also for real.
"""

import asyncio
import contextlib
import functools
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from agno_lark.app import Bridge
from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.store import SCHEMA_VERSION, Store, Tx, engine
from agno_lark.testing import FeishuSandbox
from agno_lark.web import bridge_router
from tests.break_fixtures import MARTA, TOM, PlayedTarget, answer, played_settings
from tests.bridge_fixtures import answer_to
from tests.daemon_fixtures import Daemon, Operator
from tests.demo_agentos_fixtures import demo_agentos

HOLD = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE'); "
HOLD += "print('held', flush=True); sys.stdin.read()"
SMALL_FILES = ("sh", "-c", 'ulimit -f 2 && exec "$0" "$@"')
# What root may write to it writes whatever a file's rights are, unless it gives that power up.
AS_ANYBODY = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()


@pytest.fixture(scope="module")
def agentos() -> Iterator[DemoAgentOS]:
    with demo_agentos() as demo:
        yield demo


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.3,) * 200, strict_cards=True, salt=uuid.uuid4().hex) as sandbox:
        yield sandbox


@pytest.fixture
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The operator's state file; for what happens on a small disk, on one of its own."""
    if "small disk" not in getattr(request, "param", ""):
        yield tmp_path / "state.sqlite3"
        return
    with small_disk(tmp_path / "small"):
        yield tmp_path / "small" / "state.sqlite3"


@pytest.fixture
async def operator(feishu: FeishuSandbox, agentos: DemoAgentOS, state: Path, tmp_path: Path) -> AsyncIterator[Operator]:
    async with Operator(feishu, agentos.url, tmp_path) as made:
        made.env["FEISHU_STATE_DB"] = str(state)
        yield made


# -- what can be wrong -------------------------------------------------------------------------------------------------


async def make_state(path: Path, rows: int = 5_000) -> None:
    """A database of some hundred pages, closed in order."""

    def fill(tx: Tx) -> None:
        for number in range(rows):
            sql = "INSERT INTO session_scopes (scope, generation, created_ms, updated_ms) VALUES (:scope, 1, 1, 1)"
            tx.execute(sql, {"scope": f"a scope that is as long as they are {number}"})

    async with Store.open(path) as store:
        await store.transact(fill)


def garble(path: Path) -> None:
    """Everything behind the first page becomes garbage."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def make_newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("INSERT INTO schema_version VALUES (?, ?, 0)", (SCHEMA_VERSION + 7, SCHEMA_VERSION + 7))
        other.commit()


@contextlib.asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Another program holds the file."""
    command = [sys.executable, "-S", "-c", HOLD, str(path)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"held\n"
        yield
    finally:
        process.stdin.close()
        await process.stdout.read()  # to its end, so that the pipe is closed before the loop is
        await process.wait()


@contextlib.asynccontextmanager
async def small_files(pid: int) -> AsyncIterator[None]:
    """The process may not write beyond the first kilobyte of any file."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextlib.asynccontextmanager
async def filled(folder: Path) -> AsyncIterator[None]:
    """The file system of this folder is full, to the last block."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        ballast.unlink()


@contextlib.asynccontextmanager
async def immutable(path: Path) -> AsyncIterator[None]:
    """Nobody may write the file, not even who has it open."""
    files = (path, path.with_name(path.name + "-wal"))
    chattr("+i", *files)
    try:
        yield
    finally:
        chattr("-i", *files)


def chattr(mode: str, *files: Path) -> None:
    subprocess.run(["chattr", mode, *files], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Two megabytes are mounted there."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@functools.cache
def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


@functools.cache
def may_make_immutable() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        try:
            chattr("+i", Path(file.name))
        except (OSError, subprocess.CalledProcessError):
            return False
        is_so = not os.access(file.name, os.W_OK)
        chattr("-i", Path(file.name))
        return is_so


# -- at the start ------------------------------------------------------------------------------------------------------


async def fails_to_start(operator: Operator, *told: str, through: tuple[str, ...] = ()) -> None:
    code, output = await (await operator.start(through=through)).ends(within_s=30)
    assert code == 4
    for words in (*told, str(operator.env["FEISHU_STATE_DB"])):
        assert words in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("spoil", "told"),
    [(garble, "it is damaged"), (make_newer, f"schema {SCHEMA_VERSION + 7}")],
    ids=["damaged", "newer"],
)
async def test_a_damaged_or_newer_file_is_refused_and_left_as_it_is(
    operator: Operator, state: Path, spoil: Callable[[Path], None], told: str
) -> None:
    await make_state(state)
    spoil(state)
    before = state.read_bytes()
    await fails_to_start(operator, told)
    assert state.read_bytes() == before


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
async def test_a_file_that_another_program_holds_is_waited_for_and_then_refused(
    operator: Operator, state: Path, mode: str
) -> None:
    await make_state(state)
    with contextlib.closing(sqlite3.connect(state)) as other:
        other.execute(f"PRAGMA journal_mode={mode}")
    async with held(state):
        await fails_to_start(operator, "another program holds it")


async def test_a_file_that_cannot_be_written_is_refused(operator: Operator, state: Path) -> None:
    await make_state(state)
    state.chmod(0o444)
    await fails_to_start(operator, "it cannot be written", "the rights", through=AS_ANYBODY)


async def test_a_folder_that_cannot_be_written_is_refused(operator: Operator, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(0o555)
    operator.env["FEISHU_STATE_DB"] = str(folder / "state.sqlite3")
    await fails_to_start(operator, "Permission denied", "the rights", through=AS_ANYBODY)


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_start_on_a_full_disk_is_refused_and_the_next_one_works(
    operator: Operator, state: Path, is_new: bool
) -> None:
    if not is_new:
        await make_state(state)
    await fails_to_start(operator, "the disk is full", through=SMALL_FILES)
    await (await operator.start()).ready()


if may_mount():

    @pytest.mark.parametrize("state", ["small disk"], indirect=True)
    async def test_a_start_on_a_disk_without_a_block_is_refused_and_the_next_one_works(
        operator: Operator, state: Path
    ) -> None:
        await make_state(state)
        async with filled(state.parent):
            await fails_to_start(operator, "the disk is full", "lock file")
        state.with_name(state.name + ".lock").write_bytes(b"\0" * 1000)  # so long it has been in a former life
        async with filled(state.parent):
            await fails_to_start(operator, "the disk is full", "state database")
        await (await operator.start()).ready()


# -- while it runs -----------------------------------------------------------------------------------------------------

type Mishap = Callable[[Daemon, Path], AbstractAsyncContextManager[None]]

MISHAPS: dict[str, tuple[str, Mishap]] = {
    "full": ("disk_full", lambda daemon, path: small_files(daemon.process.pid)),
    "held": ("locked", lambda daemon, path: held(path)),
}
if may_mount():
    MISHAPS["full, on a small disk"] = ("disk_full", lambda daemon, path: filled(path.parent))
if may_make_immutable():
    MISHAPS["immutable"] = ("read_only", lambda daemon, path: immutable(path))


async def get(daemon: Daemon, path: str) -> tuple[int, dict[str, Any]]:
    async with httpx.AsyncClient(base_url=daemon.url, trust_env=False) as client:
        answered = await client.get(path)
        return answered.status_code, answered.json()


async def readiness(daemon: Daemon, wanted: int, within_s: float) -> dict[str, Any]:
    async with asyncio.timeout(within_s):
        while (told := await get(daemon, "/readyz"))[0] != wanted:
            await asyncio.sleep(0.05)
    return told[1]


@pytest.mark.parametrize(("state", "mishap"), [(name, name) for name in MISHAPS], indirect=["state"])
async def test_events_come_again_until_the_database_works_and_then_each_has_one_answer(
    operator: Operator, feishu: FeishuSandbox, agentos: DemoAgentOS, state: Path, mishap: str
) -> None:
    reason, happens = MISHAPS[mishap]
    daemon = await operator.start()
    await daemon.ready()
    begun, later = feishu.direct_chat(MARTA), feishu.direct_chat(TOM)
    await feishu.write(MARTA, begun, "count slowly to 12")
    await feishu.until(lambda _: any("1 2 " in shown.text for shown in feishu.from_bot(begun)), within_s=15)
    async with happens(daemon, state):
        await feishu.write(TOM, later, "say hello")
        assert await readiness(daemon, 503, within_s=15) == {"status": "not ready", "why": reason}
        await feishu.until(lambda _: feishu.deliveries.counts["acks_500"] >= 3, within_s=15)
        assert not feishu.from_bot(later), "what is not kept is not begun"
        status = (await get(daemon, "/feishu/status"))[1]
        assert not status["ready"]
        assert (status["store"]["ok"], status["store"]["reason"]) == (False, reason)
        assert status["store"]["since_ms"] > status["started_ms"]
        assert (await get(daemon, "/healthz"))[0] == 200, "no restart would help"
        health = await operator.start("health", "--port", daemon.url.rsplit(":", 1)[1])
        assert (await health.ends()) == (1, f"not ready: {reason}\n")
    await readiness(daemon, 200, within_s=10)
    assert (await get(daemon, "/feishu/status"))[1]["store"] == {"ok": True, "reason": None, "since_ms": None}
    assert "hello" in (await answer_to(feishu, later, within_s=30)).text
    assert "10 11 12" in (await answer_to(feishu, begun, within_s=30)).text
    daemon.process.send_signal(signal.SIGTERM)
    code, output = await daemon.ends()
    assert code == 0
    assert [len(feishu.from_bot(chat)) for chat in (begun, later)] == [1, 1]
    async with httpx.AsyncClient(base_url=agentos.url, trust_env=False) as client:
        calls = (await client.get("/demo/model-calls")).json()["by_session"]
    asked = [count for session, count in calls.items() for chat in (begun, later) if chat in session]
    assert asked == [1, 1], "each model was asked once"
    assert feishu.deliveries.counts["lost"] == 0
    assert [output.count(action) for action in ("store_trouble", "store_recovered")] == [1, 1]
    assert "Traceback" not in output


async def test_damage_that_is_met_while_it_runs_ends_the_daemon(
    operator: Operator, feishu: FeishuSandbox, state: Path
) -> None:
    await make_state(state)
    daemon = await operator.start()
    await daemon.ready()
    with contextlib.closing(sqlite3.connect(state, isolation_level=None)) as other:
        other.execute("PRAGMA user_version = 1")  # nobody's cache holds any more
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        garble(state)
    await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
    code, output = await daemon.ends(within_s=30)
    assert code == 4
    assert "it is damaged" in output
    assert "put a backup in its place" in output
    assert output.count("store_trouble") == 1
    assert "Traceback" not in output


async def test_where_a_message_is_cannot_be_told_without_the_database_and_that_is_said(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    app = FastAPI()
    app.include_router(bridge_router(Bridge(played_settings(feishu, tmp_path), PlayedTarget(answer))))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(base_url="http://bridge", transport=transport) as client:
        told = await client.get("/feishu/status", params={"message_id": "om_1"})
        assert told.status_code == 503
        assert "no such file" in told.json()["message"]["error"]
        assert (await client.get("/readyz")).json() == {"status": "not ready", "why": "not_running"}


async def test_a_bridge_in_an_app_waits_for_its_database_from_the_first_transaction_on(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 100)
    settings = played_settings(feishu, tmp_path)
    bridge, chat = Bridge(settings, PlayedTarget(answer)), feishu.direct_chat(MARTA)
    async with bridge.running():
        with contextlib.closing(sqlite3.connect(settings.feishu_state_db, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # before any of the bridge's tasks has had its turn
            await feishu.until(lambda _: bridge.not_ready_why() == "locked", within_s=10)
            await feishu.until_connected(within_s=10)
            await feishu.write(MARTA, chat, "hello")
            await feishu.until(lambda _: feishu.deliveries.counts["acks_500"] >= 2, within_s=10)
            assert bridge.failure is None
        await feishu.until(lambda _: bridge.is_ready(), within_s=10)
        assert "the answer" in (await answer_to(feishu, chat)).text
    assert len(feishu.from_bot(chat)) == 1
