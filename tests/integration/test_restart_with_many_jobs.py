"""A restart that finds many queued jobs: work begins at once, nothing is lost, nothing is done twice, memory is flat.

How quick it is, is measured by `tests/bench/jobs.py --parts restart`; here the bounds only tell a stall from work.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agno_lark.intake.accept import Talk, accept_message
from agno_lark.store import Store
from tests.bench.jobs_restart import restart
from tests.bench.jobs_work import TARGET, origin_of
from tests.bench.processes import Running

ROOT = Path(__file__).parents[2]
JOBS, LANES = 10_000, 500
SOON_S = 10.0
FLAT_MB = 40.0


class Worker:
    """tests/many_jobs_worker.py as a process."""

    def __init__(self, process: asyncio.subprocess.Process, answers: Path) -> None:
        self.process = process
        self.answers = answers

    @classmethod
    @contextlib.asynccontextmanager
    async def on(cls, state: Path, answers: Path) -> AsyncIterator["Worker"]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", str(ROOT / "tests" / "many_jobs_worker.py"), str(state), str(answers)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield cls(process, answers)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    async def says(self, word: str, *, within_s: float) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(within_s):
            assert (await self.process.stdout.readline()).decode().strip() == word

    async def has_answered(self, most: int, *, within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while len(self.so_far()) < most:
                await asyncio.sleep(0.02)

    def so_far(self) -> list[str]:
        return self.answers.read_text().split() if self.answers.exists() else []

    def rss_mb(self) -> float:
        return Running(self.process.pid).rss_mb()


async def accept_many(state: Path) -> None:
    """Turn `l-n` is the n-th message of the l-th person."""
    async with Store.open(state) as store:
        for number in range(JOBS // LANES):
            accepted = (
                store.transact(accept_message, f"{lane}-{number}", origin_of(lane, number), Talk(text="hello"), TARGET)
                for lane in range(LANES)
            )
            assert all(one.is_new for one in await asyncio.gather(*accepted))


@pytest.mark.timeout(240)
async def test_ten_thousand_queued_turns_are_each_answered_once_in_order_though_killed_in_the_middle(
    tmp_path: Path,
) -> None:
    state, answers = tmp_path / "state.sqlite3", tmp_path / "answers"
    await accept_many(state)
    async with Worker.on(state, answers) as worker:
        await worker.says("ready", within_s=60)
        await worker.says("first", within_s=SOON_S)
        await worker.has_answered(JOBS // 5, within_s=120)
        os.kill(worker.process.pid, signal.SIGKILL)
        await worker.process.wait()
    before = worker.so_far()
    async with Worker.on(state, answers) as worker:
        await worker.says("ready", within_s=60)
        await worker.says("first", within_s=SOON_S)
        await worker.has_answered(len(before) + JOBS // 10, within_s=120)
        early_mb = worker.rss_mb()
        await worker.says("done", within_s=180)
        grown_mb = worker.rss_mb() - early_mb
    lanes = defaultdict(list)
    for turn in worker.so_far():
        lane, number = turn.split("-")
        lanes[int(lane)].append(int(number))
    assert len(before) < JOBS, "it was killed in the middle"
    assert lanes == {lane: list(range(JOBS // LANES)) for lane in range(LANES)}
    assert grown_mb < FLAT_MB
    async with Store.open(state) as store:
        ends = await store.read("SELECT state, COUNT(*) AS n FROM jobs GROUP BY state")
        runs = await store.read("SELECT state, COUNT(*) AS n FROM runs GROUP BY state")
    assert [tuple(row) for row in ends] == [("done", JOBS)]
    assert [tuple(row) for row in runs] == [("completed", JOBS)]


@pytest.mark.timeout(180)
async def test_a_daemon_that_finds_queued_jobs_answers_each_person_once() -> None:
    measured = await restart(queued=200, lanes=40)
    assert measured["first_running_after_ready_s"] < SOON_S
    assert (measured["lost"], measured["doubled"]) == (0, 0)
    assert measured["ends"] == {"done": 200}
