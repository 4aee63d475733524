"""Processes that are killed and come back: the bridge's daemon and the demo AgentOS."""

import asyncio
import contextlib
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.bench.chaos_judge import Down
from tests.bench.processes import environment

__all__ = ["Kept", "answers_200"]

READY_WITHIN_S = 60.0
TERM_WITHIN_S = 20.0
SETTLED_S = 4.0


def now_ms() -> int:
    """UTC milliseconds, as everybody on this machine reads them."""
    return time.time_ns() // 1_000_000


def answers_200(url: str) -> bool:
    """Whether a GET is answered with 200, within two seconds. Blocks."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


class Kept:
    """`python *command`, started again after each end; its output is appended to `log`.

    `downs`: when it was away, from the signal until it was ready again. `crashes`: ends nobody asked for, told.
    `starts_s`: how long each start took until it was ready.
    """

    def __init__(self, name: str, command: tuple[str, ...], *, env: Mapping[str, str], log: Path, ready_url: str):
        self.name = name
        self.downs: list[Down] = []
        self.crashes: list[str] = []
        self.starts_s: list[float] = []
        self.lives = 0
        self.ready = asyncio.Event()
        self._command = command
        self._env = environment(env)
        self._log = log
        self._ready_url = ready_url
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._away_since_ms: int | None = None
        self._ready_since_s = 0.0
        self._one_by_one = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether it is being ended or started by somebody just now."""
        return self._one_by_one.locked()

    @property
    def is_settled(self) -> bool:
        """Whether it has been ready for four seconds, and for longer than its start took: on a slow machine it would do
        nothing but start else."""
        started_s = self.starts_s[-1] if self.starts_s else 0.0
        return self.ready.is_set() and time.monotonic() - self._ready_since_s >= max(SETTLED_S, 1.5 * started_s)

    async def start(self) -> None:
        """Start it and return once it is ready."""
        async with self._one_by_one:
            await self._start()
        async with asyncio.timeout(READY_WITHIN_S):
            await self.ready.wait()

    async def end(self, how: signal.Signals, away_s: float) -> None:
        """Send the signal, wait for the end, and after a while start it again (which is not waited for)."""
        async with self._one_by_one:
            await self._end(how)
            await asyncio.sleep(away_s)
            await self._start()

    async def stop(self) -> None:
        """SIGTERM, for good. Idempotent."""
        async with self._one_by_one:
            await self._end(signal.SIGTERM)

    async def _start(self) -> None:
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-W", "ignore", *self._command),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._env,
            )
        self.lives += 1
        self._process = process
        self._watch = asyncio.create_task(self._until_ready(process), name=f"watch-{self.name}")

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        started_s = time.monotonic()
        while not await asyncio.to_thread(answers_200, self._ready_url):
            if process.returncode is not None:
                return  # told when its end is asked for
            await asyncio.sleep(0.1)
        self.starts_s.append(time.monotonic() - started_s)
        self._ready_since_s = time.monotonic()
        self.ready.set()
        if self._away_since_ms is not None:
            self.downs.append(Down(what=self.name, from_ms=self._away_since_ms, until_ms=now_ms()))
            self._away_since_ms = None

    async def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is not None:
            self.crashes.append(f"{self.name}, life {self.lives}, had ended by itself with {process.returncode}")
        if self._away_since_ms is None:  # else it was ended before it was ready
            self._away_since_ms = now_ms()
        self.ready.clear()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            async with asyncio.timeout(TERM_WITHIN_S):
                await process.wait()
        except TimeoutError:
            self.crashes.append(f"{self.name}, life {self.lives}, did not end within {TERM_WITHIN_S:g} s of {how.name}")
            process.kill()
            await process.wait()
        if process.stdin is not None:
            process.stdin.close()
        if how is signal.SIGTERM and process.returncode not in (0, -signal.SIGTERM):
            self.crashes.append(f"{self.name}, life {self.lives}, ended with {process.returncode} after SIGTERM")
