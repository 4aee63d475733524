"""The runner when the machine sleeps, when it is stopped at the wrong moment, and when its disk is full."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agno_lark.clock import RandomIds
from agno_lark.errors import StoreError
from agno_lark.jobs import Job, JobKind, Lease, NewJob, Outcome, Prepared, Queue, Runner, enqueue, queue
from agno_lark.jobs import runner as runner_module
from agno_lark.store import Store, Tx


class SettableClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000


def job(name: str, lane: str = "a", queue: Queue = Queue.TURNS) -> NewJob:
    return NewJob(id=name, kind="test", queue=queue, lane=lane)


def runner_of(store: Store, handle: Callable[[Job, Lease], Any], clock: SettableClock, **kind: Any) -> Runner:
    kinds = {"test": JobKind(name="test", handle=handle, **kind)}
    return Runner(store, kinds, clock=clock, ids=RandomIds(), instance_id="me")


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize("effect", [False, True])
async def test_a_machine_that_slept_does_not_run_its_own_jobs_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effect: bool
) -> None:
    monkeypatch.setattr(runner_module, "RECOVER_S", 0.02)
    monkeypatch.setattr(runner_module, "HEARTBEATS", 0.5)  # every 60 s
    clock, begun, go_on = SettableClock(), asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    async def handle(job: Job, lease: Lease) -> Outcome:
        calls.append("handle")
        if effect:
            await lease.begin_effect("submit", lambda tx: None)
        begun.set()
        await go_on.wait()
        return Outcome()

    async def reconcile(job: Job, lease: Lease) -> Outcome:
        calls.append("reconcile")
        return Outcome()

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock, reconcile=reconcile)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("1"))
        await asyncio.wait_for(begun.wait(), 5)
        clock.ms += 10 * runner_module.LEASE_MS
        await asyncio.sleep(0.15)
        go_on.set()
        async with asyncio.timeout(5):
            while not runner.finished:
                await asyncio.sleep(0.01)
        assert calls == ["handle"]
        assert runner.finished == {"test.done": 1}
        await runner.drain(1)
        await end(running)


async def test_what_is_claimed_while_a_stop_begins_is_left_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, calls = SettableClock(), list[str]()
    holding, let_go = asyncio.Event(), asyncio.Event()

    async def handle(job: Job, lease: Lease) -> Outcome:
        calls.append(job.id)
        return Outcome()

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock)
        claim = runner._claim

        async def slow_claim(queue: Queue, most: int) -> Any:
            claimed = await claim(queue, most)
            if claimed[0].jobs:
                holding.set()
                await let_go.wait()
            return claimed

        monkeypatch.setattr(runner, "_claim", slow_claim)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("1"))
        await asyncio.wait_for(holding.wait(), 5)
        assert await runner.drain(1) == 0
        let_go.set()
        await asyncio.sleep(0.05)
        await end(running)
        assert not calls, "nobody would have waited for it"
        again = runner_of(store, handle, clock)
        running = asyncio.create_task(again.run())
        async with asyncio.timeout(5):
            while not again.finished:
                await asyncio.sleep(0.01)
        assert calls == ["1"]
        await again.drain(1)
        await end(running)


@pytest.mark.parametrize("steps", range(20))
async def test_a_reply_that_is_just_being_claimed_when_a_stop_begins_is_still_sent(tmp_path: Path, steps: int) -> None:
    """The stop looks for work at each moment between the claim's commit and the begin of its job."""
    clock = SettableClock()

    async def handle(job: Job, lease: Lease) -> Outcome:
        return Outcome()

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("before", queue=Queue.REPLIES))
        async with asyncio.timeout(5):
            while not runner.finished:
                await asyncio.sleep(0.001)
        await store.transact(enqueue, job("reply", queue=Queue.REPLIES))
        for _ in range(steps):
            await asyncio.sleep(0)
        assert await runner.drain(5) == 0
        assert runner.finished == {"test.done": 2}
        await end(running)


async def test_an_outcome_that_cannot_be_written_does_not_outlive_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, tried = SettableClock(), asyncio.Event()

    async def handle(job: Job, lease: Lease) -> Outcome:
        return Outcome()

    def full(*_: object) -> None:
        tried.set()
        raise StoreError("the disk is full")

    monkeypatch.setattr(queue, "finish", full)
    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("1"))
        async with asyncio.timeout(5):
            while not tried.is_set():
                await asyncio.sleep(0.01)
        monkeypatch.setattr(asyncio, "wait", _impatient(asyncio.wait))
        assert await runner.drain(0.01) == 1
        await end(running)
    async with asyncio.timeout(5):
        while any(task.get_name().startswith("job-") for task in asyncio.all_tasks()):
            await asyncio.sleep(0.05)


async def test_tidying_up_that_takes_long_is_not_taken_for_a_lost_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job is done, so its lease is nobody's; to cancel it would leave it to itself, unseen by a stop."""
    monkeypatch.setattr(runner_module, "HEARTBEATS", 3000)  # every 10 ms
    clock, tidying, tidied = SettableClock(), asyncio.Event(), asyncio.Event()

    async def tidy_up() -> None:
        tidying.set()
        await asyncio.sleep(0.3)
        tidied.set()

    async def handle(job: Job, lease: Lease) -> Outcome:
        return Outcome(after=tidy_up)

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("1"))
        await asyncio.wait_for(tidying.wait(), 5)
        await asyncio.sleep(0.1)
        assert runner.running(Queue.TURNS) == 1
        assert await runner.drain(5) == 0
        assert tidied.is_set(), "a stop waits for it"
        await end(running)


@pytest.mark.parametrize("effect", [False, True])
async def test_a_database_that_fails_for_a_moment_ends_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effect: bool
) -> None:
    """However often: a job is not given up, nor its end called unknown, because of the disk."""
    monkeypatch.setattr(runner_module, "RECOVER_S", 0.02)
    monkeypatch.setattr(runner_module, "STORE_AGAIN_S", 0.01)
    clock, calls = SettableClock(), list[str]()

    async def handle(job: Job, lease: Lease) -> Outcome:
        calls.append("handle")
        if effect:
            await lease.begin_effect("submit", lambda tx: None)
        if effect or len(calls) <= 2 * runner_module.ATTEMPTS_MOST:
            raise StoreError("the disk is full")
        return Outcome()

    async def reconcile(job: Job, lease: Lease) -> Outcome:
        calls.append("reconcile")
        if len(calls) <= 2 * runner_module.ATTEMPTS_MOST:
            raise StoreError("the disk is full")
        return Outcome()

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock, reconcile=reconcile)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("1"))
        async with asyncio.timeout(10):
            while not runner.finished:
                clock.ms += 10
                await asyncio.sleep(0.01)
        assert runner.finished == {"test.done": 1}
        assert calls[-1] == ("reconcile" if effect else "handle")
        assert calls.count("handle") == (1 if effect else len(calls))
        await runner.drain(1)
        await end(running)


def _impatient(wait: Any) -> Any:
    async def waits(tasks: Any, **more: Any) -> Any:
        more["timeout"] = min(more.get("timeout") or 1e9, 0.05) if "timeout" in more else None
        return await wait(tasks, **more)

    return waits


@pytest.mark.parametrize("has_words", [True, False])
async def test_an_outcome_that_nothing_can_write_ends_its_job_all_the_same_and_is_told(
    tmp_path: Path, has_words: bool
) -> None:
    clock, told = SettableClock(), list[str]()

    def unwritable(tx: Tx) -> None:
        tx.execute("SELECT :text", {"text": "half \ud83d"})

    async def handle(job: Job, lease: Lease) -> Outcome:
        return Outcome(also=unwritable)

    async def give_up(job: Job, outcome: Outcome) -> Outcome:
        told.append(outcome.error)
        return outcome if has_words else replace(outcome, also=unwritable)

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock, give_up=give_up)
        running = asyncio.create_task(runner.run())
        await store.transact(enqueue, job("1"))
        async with asyncio.timeout(5):
            while not runner.finished:
                await asyncio.sleep(0.01)
        assert runner.finished == {"test.failed": 1}
        assert told == ["UnicodeEncodeError"]
        await runner.drain(1)
        await end(running)


async def test_a_job_that_cannot_be_prepared_answers_for_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "BACK_OFF_MS", (0,))
    clock = SettableClock()

    def prepare(tx: Tx, job: Job) -> Prepared:
        if job.id == "odd":
            raise ValueError("nobody can read it")
        return Prepared()

    async def handle(job: Job, lease: Lease) -> Outcome:
        return Outcome()

    async with Store.open(tmp_path / "s", clock=clock) as store:
        runner = runner_of(store, handle, clock, prepare=prepare)
        for name in ("odd", "even"):
            await store.transact(enqueue, job(name, lane=name))
        running = asyncio.create_task(runner.run())
        async with asyncio.timeout(5):
            while "test.failed" not in runner.finished:
                await asyncio.sleep(0.01)
        assert runner.finished["test.done"] == 1
        await runner.drain(1)
        await end(running)
