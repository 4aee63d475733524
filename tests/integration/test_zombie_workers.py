"""A worker that was stopped beyond its lease and goes on: two real processes, one real file."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agno_lark.jobs import NewJob, Queue, enqueue
from agno_lark.operate import list_jobs
from agno_lark.store import Store, read_once


class Worker:
    """A `zombie_worker` process; what it printed so far is in `said`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []

    async def says(self, *words: str) -> str:
        """Read on until it says one of these."""
        assert self.process.stdout is not None
        async with asyncio.timeout(20):
            while True:
                line = (await self.process.stdout.readline()).decode().strip()
                assert line or self.process.returncode is None, self.said
                self.said.append(line)
                if line in words:
                    return line


@contextlib.asynccontextmanager
async def worker(path: Path, name: str, go: Path) -> AsyncIterator[Worker]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.zombie_worker", str(path), name, str(go)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        yield Worker(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("effect", [False, True])
async def test_a_worker_stopped_beyond_its_lease_cannot_write_an_outcome_its_neighbours_stands(
    tmp_path: Path, effect: bool
) -> None:
    path, go = tmp_path / "state", tmp_path / "go"
    async with Store.open(path) as store:
        job = NewJob(id="j", kind="work", queue=Queue.TURNS, lane="a", payload={"effect": effect})
        await store.transact(enqueue, job)
    async with worker(path, "first", go) as first, worker(path, "second", tmp_path / "go2") as second:
        holder, neighbour, holders_go = first, second, go
        taken = [asyncio.create_task(each.says("handles")) for each in (first, second)]
        done, waiting = await asyncio.wait(taken, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if taken[1] in done:
            holder, neighbour, holders_go = second, first, tmp_path / "go2"
        holder.process.send_signal(signal.SIGSTOP)
        # Its lease runs out: the neighbour begins anew, or looks what became of the effect.
        await neighbour.says("reconciles" if effect else "handles")
        (go if holders_go != go else tmp_path / "go2").touch()
        async with asyncio.timeout(10):
            while (line := read_once(path, 0, list_jobs)[0]).state != "done":
                await asyncio.sleep(0.02)
        by_neighbour = line
        holders_go.touch()  # the first thing it finds when it goes on is that its work is done, too
        holder.process.send_signal(signal.SIGCONT)
        await holder.says("job_fenced", "job_lease_lost")
        assert read_once(path, 0, list_jobs) == [by_neighbour]
        assert by_neighbour.error == f"by {'second' if holder is first else 'first'}"
