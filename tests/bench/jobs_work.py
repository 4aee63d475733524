"""The work every system of the jobs benchmark does: messages accepted, claimed, completed, over a hundred lanes."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Concatenate, cast

from agno_lark.clock import RandomIds, SystemClock
from agno_lark.intake.accept import Origin, Talk, accept_message
from agno_lark.jobs import Job, JobKind, Lease, Outcome, Prepared, Runner, begin_effect, is_open
from agno_lark.replies import Place, reply_lane
from agno_lark.sessions import Scope
from agno_lark.store import Store, Tx
from agno_lark.turns import TURN, RunPhase
from agno_lark.turns.rows import close_run, mark_submitted
from tests.bench.measures import spread_ms

__all__ = ["TARGET", "TEXT", "Noted", "Transacts", "complete", "origin_of", "prepare", "run_jobs", "size_mb"]

TARGET = ("agent", "demo-agent")
TEXT = "What is the weather in Rome, and shall I take an umbrella?"


class Transacts:
    """What the runner and intake ask of a store: `Store`, and what stands beside it here."""

    async def transact[**P, T](self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        raise NotImplementedError

    def on_signal(self, name: str, wake: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError


STEPS = {"accept_message": "enqueue", "_claim_and_prepare": "claim", "finish": "complete"}


class Noted(Transacts):
    """A store that notes how long each transaction took, from the call to its answer. Times are monotonic seconds.

    `times_s` goes by step. A claim counts where it gave jobs (up to 16 of them).
    """

    def __init__(self, store: Store | Transacts) -> None:
        self._store = store
        self.times_s: dict[str, list[float]] = {step: [] for step in STEPS.values()}
        self.accepted_s: dict[str, float] = {}
        self.completed_s: dict[str, float] = {}
        self.all_done = asyncio.Event()
        self.expected = 0

    async def transact[**P, T](self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        began_s = time.monotonic()
        result = await self._store.transact(fn, *args, **kwargs)
        ended_s = time.monotonic()
        step = STEPS.get(fn.__name__)
        if step == "claim" and not cast(Any, result)[0].jobs:
            return result
        if step is not None:
            self.times_s[step].append(ended_s - began_s)
        if step == "enqueue":
            self.accepted_s[str(args[0])] = began_s
        elif step == "complete":
            self.completed_s[cast(Job, args[0]).id] = ended_s
            if len(self.completed_s) == self.expected:
                self.all_done.set()
        return result

    def on_signal(self, name: str, wake: Callable[[], None]) -> Callable[[], None]:
        return self._store.on_signal(name, wake)


def origin_of(lane: int, number: int) -> Origin:
    """Where the n-th message of a lane came from: each lane is a person's direct chat."""
    return Origin(
        app_id="cli_bench",
        tenant_key="tenant",
        event_id=f"event-{lane}-{number}",
        sender=f"ou_{lane}",
        chat_type="p2p",
        place=Place(chat_id=f"oc_{lane}", message_id=f"om_{lane}_{number}", thread_id=None),
        scope=Scope(target_type=TARGET[0], target_id=TARGET[1], chat_id=f"oc_{lane}"),
        language="en",
    )


def prepare(tx: Tx, job: Job) -> Prepared:
    """What a turn records in the claim's own transaction: its run's id, and that it is about to be submitted."""
    is_open(tx, reply_lane(job.lane))
    row = mark_submitted(tx, job.id, f"run-{job.id}")
    begin_effect(tx, job, "submit")
    return Prepared(value=row, effect_begun=True)


async def complete(job: Job, lease: Lease) -> Outcome:
    """A handler that is done at once: what is measured is everything around it."""

    def also(tx: Tx) -> None:
        close_run(tx, job.id, RunPhase.COMPLETED)

    return Outcome(also=also)


@contextlib.asynccontextmanager
async def _runner(store: Noted) -> AsyncIterator[None]:
    kinds = {TURN: JobKind(name=TURN, prepare=prepare, handle=complete)}
    runner = Runner(cast(Store, store), kinds, clock=SystemClock(), ids=RandomIds(), instance_id="bench")
    task = asyncio.create_task(runner.run(), name="runner")
    try:
        yield
    finally:
        await runner.drain(5)
        task.cancel()
        await asyncio.wait({task})


async def run_jobs(store: Store | Transacts, *, jobs: int, lanes: int) -> dict[str, Any]:
    """`lanes` people write at once, each message as soon as the one before is committed, while the runner works.

    Returns jobs a second, from the first acceptance asked for to the last completion committed, and the times of the
    steps.
    """
    noted = Noted(store)
    noted.expected = jobs

    async def write(lane: int) -> None:
        for number in range(lane, jobs, lanes):
            await noted.transact(accept_message, f"turn-{number}", origin_of(lane, number), Talk(text=TEXT), TARGET)

    async with _runner(noted), asyncio.timeout(300):
        began_s = time.monotonic()
        await asyncio.gather(*(write(lane) for lane in range(lanes)))
        await noted.all_done.wait()
        took_s = max(noted.completed_s.values()) - began_s
    whole = [noted.completed_s[job] - noted.accepted_s[job] for job in noted.completed_s]
    steps = {f"{step}_ms": spread_ms(times) for step, times in noted.times_s.items()}
    return {"jobs_per_s": round(jobs / took_s, 1), **steps, "end_to_end_ms": spread_ms(whole)}


def size_mb(path: Path) -> float:
    """Of a database with what lies beside it (WAL), MB of 2**20 bytes."""
    files = (path, path.with_name(path.name + "-wal"))
    return round(sum(file.stat().st_size for file in files if file.exists()) / 2**20, 1)
