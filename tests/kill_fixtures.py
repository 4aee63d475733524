"""A message, a daemon killed while it carries that out, and what is there afterwards: one cell of the kill matrix.

All is real but Feishu: the daemon is a process of its own (tests/fork_server.py) that kills itself at a crash point, or
gets a signal; the AgentOS is the demo one; the sandbox delivers again as Feishu does.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agno_lark.crash import VARIABLE
from agno_lark.sandbox.deliveries import ParcelState
from agno_lark.sandbox.demo_calls import ModelCall, read_calls
from agno_lark.sandbox.records import Message, Shown
from agno_lark.testing import FeishuSandbox

ROOT = Path(__file__).parents[1]
MARTA = "Marta Weiss"
SIGTERM = "SIGTERM"
"""In `Cell.ends`: not a crash point, but the signal, as soon as the card is there."""
AFTER = "after "
"""In `Cell.ends`: `after 0.25 s`, counted from the message or from the start: killed from outside, wherever it is."""

# Durations and ids; and the agent's name: before it is known, which may be a second after a start, its id stands there.
_DIFFERS = re.compile(
    r"\d+(\.\d+)? s\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\brun [0-9a-f]{8}\b|\b[Dd]emo[- ]agent\b"
)
_LOG_LINES = 15
_SOON_S = 15.0  # much longer than anything takes here; a cell in which something never happens is not to hang

TABLES = {
    "jobs": "SELECT kind, state, effect, error FROM jobs ORDER BY seq",
    "runs": "SELECT state, reason, finished_ms, replied_ms, reaction_id FROM runs ORDER BY seq",
    "lanes": "SELECT lane FROM lanes",
    "outbox": "SELECT id FROM outbox",
}

type Rows = list[dict[str, Any]]


class Forked:
    """A daemon's process. `ended`: its exit code, negative for the signal that killed it."""

    def __init__(self) -> None:
        self.started: Future[int] = Future()
        self.ended: Future[int] = Future()

    def signal(self, number: int) -> None:
        if not self.ended.done():
            os.kill(self.started.result(), number)

    async def ends(self, within_s: float) -> int | None:
        """Its exit code; None when it still lives after so long."""
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self.ended)), within_s)
        except TimeoutError:
            return None


class ForkServer:
    """`with ForkServer.running() as server:`: starts daemons in a tenth of a second. For any event loop."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._forked: list[Forked] = []

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator["ForkServer"]:
        command = [sys.executable, "-m", "tests.fork_server"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("the fork server could not start; its stderr says why")
            server = cls(process)
            hearing = threading.Thread(target=server._hear, name="fork-server")
            hearing.start()
            try:
                yield server
            finally:
                process.stdin.close()
                hearing.join()

    async def start(self, *args: str, env: dict[str, str], cwd: Path, log: Path) -> Forked:
        """A daemon with these arguments, this environment and no other; its output is added to the file `log`."""
        forked = Forked()
        self._forked.append(forked)
        order = {"order": len(self._forked) - 1, "args": args, "env": env, "cwd": str(cwd), "log": str(log)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        await asyncio.wrap_future(forked.started)
        return forked

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            forked = self._forked[told["order"]]
            if "pid" in told:
                forked.started.set_result(told["pid"])
            else:
                forked.ended.set_result(told["exit"])
        for forked in self._forked:  # nobody is to wait for a server that has died
            for future in (forked.started, forked.ended):
                if not future.done():
                    future.set_exception(RuntimeError("the fork server has ended"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """`ends`: how the daemon's lives end one after the other, by crash point; the one after them is not disturbed."""

    ends: tuple[str, ...] = ()
    text: str
    target: tuple[str, str] = ("agent", "demo-agent")  # type and id

    @property
    def name(self) -> str:
        return ", then ".join(self.ends) or "undisturbed"


@dataclass(kw_only=True, slots=True)
class Aftermath:
    """What a cell has left behind, once nothing is under way any more."""

    exits: list[int | None] = field(default_factory=list)  # of every life, in order; None: it had to be stopped
    over_before: bool = False  # nothing was under way when SIGTERM came
    delivered: list[str] = field(default_factory=list)  # the event; the same once more; and under another id
    shown: list[Shown] = field(default_factory=list)
    reactions: list[str] = field(default_factory=list)
    tables: dict[str, Rows] = field(default_factory=dict)
    calls: list[ModelCall] = field(default_factory=list)  # of models, for this conversation
    log: str = ""

    @property
    def asked(self) -> list[tuple[str, int]]:
        """How often each run has asked its model, by the role of who asks: the same for two undisturbed runs."""
        by_run = Counter((call.role, call.run_id) for call in self.calls)
        return sorted((role, times) for (role, _), times in by_run.items())

    @property
    def told(self) -> list[str]:
        """What people see, with all its buttons, but for what differs from run to run."""
        return [_DIFFERS.sub("#", json.dumps(each.card or each.text, ensure_ascii=False)) for each in self.shown]

    @property
    def jobs(self) -> list[tuple[str, str]]:
        return sorted((row["kind"], row["state"]) for row in self.tables["jobs"])

    @property
    def runs(self) -> list[tuple[str, str | None]]:
        return [(row["state"], row["reason"]) for row in self.tables["runs"]]


def unfinished(found: Aftermath) -> Iterator[str]:
    """What is left over, or was done twice, whatever the message and its outcome."""
    if any(each.streaming for each in found.shown):
        yield "a card still streams"
    if any('"turn.stop"' in json.dumps(each.card) for each in found.shown):
        yield "a card still has its Stop button"
    if found.reactions:
        yield f"the emoji is still there: {found.reactions}"
    if len(found.tables["runs"]) > 1:
        yield f"{len(found.tables['runs'])} turns of one message"
    for row in found.tables["runs"]:
        if row["finished_ms"] is None or row["replied_ms"] is None or row["reaction_id"] is not None:
            yield f"the turn is not closed: {row}"
    for row in found.tables["jobs"]:
        if row["state"] in ("queued", "running"):
            yield f"a job is left: {row}"
    for name in ("lanes", "outbox"):
        if found.tables[name]:
            yield f"left in {name}: {found.tables[name]}"
    if set(found.delivered) != {ParcelState.ACKED}:
        yield f"deliveries: {found.delivered}"


def wrong_ends(cell: Cell, found: Aftermath) -> Iterator[str]:
    """The daemon has to die as the cell says, and to stop in peace afterwards."""
    meant = [0 if end == SIGTERM else -signal.SIGKILL for end in cell.ends] + [0]
    if found.exits != meant:
        yield f"the daemon's lives ended with {found.exits}, not {meant}"
    if found.over_before:
        yield "nothing was under way any more when SIGTERM came"


def differences(found: Aftermath, undisturbed: Aftermath) -> Iterator[str]:
    """Where a cell ended otherwise than the one whose daemon was left alone."""
    for what in ("told", "jobs", "runs", "asked"):
        here, there = getattr(found, what), getattr(undisturbed, what)
        if here != there:
            yield f"{what}: {here}\n      not: {there}"


def report(wrongs: Mapping[Cell, Sequence[str]], found: Mapping[Cell, Aftermath]) -> str:
    """The cells that went wrong, each by its name, with what its last life said; "" where none did."""
    told = []
    for cell, sentences in wrongs.items():
        if sentences:
            lines = [f"  - {sentence}" for sentence in sentences]
            log = ["  log:", *(f"    {line}" for line in found[cell].log.splitlines()[-_LOG_LINES:])]
            told.append("\n".join([f"{' '.join(cell.target)}, {cell.name}:", *lines, *log]))
    return "\n".join(told)


class World:
    """What a matrix has for all of its cells."""

    def __init__(self, server: ForkServer, agentos_url: str, calls_path: Path, folder: Path) -> None:
        self.server = server
        self.agentos_url = agentos_url
        self.calls_path = calls_path
        self.folder = folder

    async def try_all(self, cells: Sequence[Cell], *, at_once: int = 8) -> dict[Cell, Aftermath]:
        places = asyncio.Semaphore(at_once)

        async def one(cell: Cell) -> Aftermath:
            async with places:
                return await self.try_one(cell)

        async with asyncio.TaskGroup() as group:
            tasks = {cell: group.create_task(one(cell), name=cell.name) for cell in cells}
        return {cell: task.result() for cell, task in tasks.items()}

    async def try_one(self, cell: Cell) -> Aftermath:
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir()
        sandbox = FeishuSandbox(redelivery_s=(0.2, 0.5, 1, 2), strict_cards=True, salt=folder.name)
        async with sandbox as feishu:
            trial = _Trial(self, cell, feishu, folder)
            try:
                await trial.run()
            finally:
                await trial.leave()
        return trial.found


class _Trial:
    def __init__(self, world: World, cell: Cell, feishu: FeishuSandbox, folder: Path) -> None:
        self.world, self.cell, self.feishu, self.folder = world, cell, feishu, folder
        self.found = Aftermath()
        self.chat = feishu.direct_chat(MARTA)
        self.database = folder / "state.sqlite3"
        self.log = folder / "daemon.log"
        self.daemon: Forked | None = None

    async def run(self) -> None:
        ends = self.cell.ends
        self.daemon = await self._start(*ends[:1])
        await self._until(lambda: self.feishu.connection_count, _SOON_S)
        message = await self.feishu.write(MARTA, self.chat, self.cell.text)
        for number, end in enumerate(ends, 1):
            if end == SIGTERM:
                await self._until(lambda: self.feishu.from_bot(self.chat), _SOON_S)
                self.daemon.signal(signal.SIGTERM)
            elif end.startswith(AFTER):
                await asyncio.sleep(float(end.split()[1]))
                self.daemon.signal(signal.SIGKILL)
            code = await self.daemon.ends(_SOON_S)
            self.found.exits.append(code)
            if code is None:
                await self.leave()
            elif end == SIGTERM:
                self.found.over_before = not read_tables(self.database)["lanes"]
            self.daemon = await self._start(*ends[number : number + 1])
        await self._until(lambda: self._is_at_rest(message), _SOON_S)
        await self._deliver_again(message)
        self.daemon.signal(signal.SIGTERM)
        self.found.exits.append(await self.daemon.ends(_SOON_S))
        self._look(message)

    async def leave(self) -> None:
        if self.daemon is not None:
            self.daemon.signal(signal.SIGKILL)
            await self.daemon.ends(10)

    async def _start(self, crash_at: str = "") -> Forked:
        kind, target = self.cell.target
        env = {
            "PATH": os.environ["PATH"],
            "FEISHU_APP_ID": self.feishu.app_id,
            "FEISHU_APP_SECRET": self.feishu.app_secret,
            "LARK_API_BASE_URL": self.feishu.url,
            "AGENTOS_URL": self.world.agentos_url,
            "AGENTOS_TARGET_TYPE": kind,
            "AGENTOS_TARGET_ID": target,
            "FEISHU_STATE_DB": str(self.database),
            "BRIDGE_PORT": "0",
            "BRIDGE_DRAIN_TIMEOUT": "0" if crash_at == SIGTERM else "5",
            "LOG_LEVEL": "debug",
            "LOG_FORMAT": "text",
        }
        if crash_at and crash_at != SIGTERM and not crash_at.startswith(AFTER):
            env[VARIABLE] = crash_at
        return await self.world.server.start(env=env, cwd=self.folder, log=self.log)

    async def _until(self, holds: Callable[[], object], within_s: float) -> bool:
        """Wait for something; what did not come shows in what is found at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not holds():
                    await asyncio.sleep(0.05)
                return True
        return False

    def _is_at_rest(self, message: Message) -> bool:
        shown = self.feishu.from_bot(self.chat)
        if not shown or any(each.streaming for each in shown) or message.reactions:
            return False
        tables = read_tables(self.database)
        return not tables["lanes"] and not tables["outbox"] and bool(tables["jobs"])

    async def _deliver_again(self, message: Message) -> None:
        """The same event under its own id and under another one, as Feishu may hours later."""
        parcels = self.feishu.deliveries.parcels
        first = next(parcel for parcel in parcels.values() if parcel.message_id == message.message_id)
        await self._until(lambda: first.state is ParcelState.ACKED, _SOON_S)
        self.found.delivered.append(first.state)
        body = json.loads(first.payload)
        other = body | {"header": body["header"] | {"event_id": uuid.uuid4().hex}}
        ids = [self.feishu.deliveries.post_raw(each) for each in (body, other)]
        await self._until(lambda: all(parcels[each].state is ParcelState.ACKED for each in ids), _SOON_S)
        self.found.delivered += [parcels[each].state for each in ids]

    def _look(self, message: Message) -> None:
        found = self.found
        found.shown = self.feishu.from_bot(self.chat)
        found.reactions = [reaction.emoji for reaction in message.reactions]
        found.tables = read_tables(self.database)
        found.calls = [call for call in read_calls(self.world.calls_path) if self.chat in call.session_id]
        found.log = self.log.read_text("utf-8", "replace")


def read_tables(database: Path) -> dict[str, Rows]:
    """The rows that tell whether work is left, read beside whoever writes."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as connection:
        connection.row_factory = sqlite3.Row
        return {name: [dict(row) for row in connection.execute(sql)] for name, sql in TABLES.items()}
