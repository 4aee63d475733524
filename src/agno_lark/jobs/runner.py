"""The runner: claims jobs, calls their handlers under a lease, writes what came of it."""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate

from agno_lark.clock import Clock, Ids
from agno_lark.errors import StoreError
from agno_lark.jobs import queue as sql
from agno_lark.jobs.job import Job, JobState, LeaseLost, Outcome, Queue
from agno_lark.store import Store, Tx

__all__ = ["JobKind", "Lease", "Prepared", "Runner"]

logger = logging.getLogger(__name__)

LEASE_MS = 30_000
HEARTBEATS = 3  # chances to prolong a lease before it runs out
RECOVER_S = 5.0
DRAIN_LOOK_S = 0.02
POLL_S = 1.0  # wake-ups are direct, after the commit; this is for what another process wrote (`agno-lark jobs`)
CLAIM_MOST = 16
ATTEMPTS_MOST = 5
STORE_AGAIN_S = 1.0
SHIELDED_S = 30.0  # for what must be written although we are cancelled; then the lease runs out
BACK_OFF_MS = (500, 2_000, 10_000, 30_000)

type Handler = Callable[[Job, "Lease"], Awaitable[Outcome]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What `prepare` found, and whether it recorded an effect (with `jobs.begin_effect`). `fault`: it failed, which the
    job is to answer for and not those it was claimed with."""

    value: Any = None
    effect_begun: bool = False
    fault: Exception | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKind:
    """What to do with jobs of one kind.

    `reconcile` gets the jobs whose former holder had begun an effect; without one such a job ends as unknown. `give_up`
    gets a job that ends because its handler failed in a way it did not foresee, to tell the person; what it returns is
    the outcome. `prepare(tx, job)` runs in the transaction that claims a job for `handle`: what that would read, or
    record, first of all, without a commit of its own; `handle` finds the result in `lease.prepared`. What it raises
    counts as raised by `handle`; so it reads before it writes.
    """

    name: str
    handle: Handler
    prepare: Callable[[Tx, Job], Prepared] | None = None
    reconcile: Handler | None = None
    give_up: Callable[[Job, Outcome], Awaitable[Outcome]] | None = None


class Lease:
    """What a handler may do under its lease besides working."""

    def __init__(self, store: Store, job: Job, prepared: Prepared) -> None:
        self._store = store
        self._job = job
        self.prepared = prepared.value
        self.fault = prepared.fault
        self.effect_begun = job.effect is not None or prepared.effect_begun

    async def begin_effect[**P, T](
        self, effect: str, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Record that `effect` is about to happen, and run `fn(tx, …)` in the same transaction. Raises `LeaseLost`.

        When `fn` raises, the effect is not recorded either.
        """

        def record(tx: Tx) -> T:
            sql.begin_effect(tx, self._job, effect)
            return fn(tx, *args, **kwargs)

        result = await self._store.transact(record)
        self.effect_begun = True
        return result


@dataclass(slots=True)
class _Work:
    job: Job
    task: asyncio.Task[None]
    is_over: bool = False  # it holds no lease any more, or wants none; it may still be tidying up


class Runner:
    """Runs registered job kinds until stopped. One a process; several processes may share a PostgreSQL later."""

    def __init__(
        self,
        store: Store,
        kinds: Mapping[str, JobKind],
        *,
        clock: Clock,
        ids: Ids,
        instance_id: str,
        turns_at_once: int = 200,
        controls_at_once: int = 64,
        replies_at_once: int = 64,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._clock = clock
        self._ids = ids
        self._instance_id = instance_id
        self._places = {
            Queue.TURNS: turns_at_once,
            Queue.CONTROL: controls_at_once,
            Queue.REPLIES: replies_at_once,
        }
        self._lease_ms = lease_ms
        self._work: dict[Queue, dict[str, _Work]] = {queue: {} for queue in Queue}
        self._wake = {queue: asyncio.Event() for queue in Queue}
        self._stopping = False  # no new work is begun, but what was done is still told
        self._stopped = False  # nothing is claimed any more
        self._drained = False
        self._claiming = False
        self.finished: dict[str, int] = {}  # "kind.state" → how many since the start

    async def run(self) -> None:
        """Recover what a former life left, then claim and work until cancelled. A loop that dies ends this."""
        await self._begin()
        unsubscribe = [self._store.on_signal(queue, self._wake[queue].set) for queue in Queue]
        self._claiming = True
        try:
            async with asyncio.TaskGroup() as loops:
                for queue in Queue:
                    loops.create_task(self._claim_loop(queue), name=f"claim-{queue}")
                loops.create_task(self._every(self._lease_ms / HEARTBEATS / 1000, self._heartbeat), name="heartbeat")
                loops.create_task(self._every(RECOVER_S, self._recover), name="recover")
        finally:
            self._claiming = False
            for stop in unsubscribe:
                stop()

    def _take_over(self, tx: Tx) -> None:
        sql.void_former_life(tx, self._instance_id)
        sql.settle_clock(tx)

    async def _begin(self) -> None:
        """What a former life left. A bridge inside somebody's app must not end because the disk is full just now."""
        while True:
            try:
                await self._store.transact(self._take_over)
                await self._recover()
                return
            except StoreError:  # logged by the store; both may be repeated
                await asyncio.sleep(STORE_AGAIN_S)

    async def drain(self, timeout_s: float) -> int:
        """Begin nothing more, wait for what is under way, then interrupt it (it goes on at the next start). Replies are
        still sent meanwhile: what ends while we wait shall be seen too.

        Returns how many jobs were interrupted. Call it before cancelling `run`, so that leases are kept meanwhile.
        """
        self._stopping = True
        try:
            async with asyncio.timeout(timeout_s):
                while await self._is_busy():
                    tasks = [work.task for works in self._work.values() for work in works.values()]
                    if tasks:
                        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    else:  # replies that are ready, about to be claimed
                        await asyncio.sleep(DRAIN_LOOK_S)
        except TimeoutError:
            pass
        self._stopped = True
        late = [work.task for works in self._work.values() for work in works.values()]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)
        self._drained = True
        return len(late)

    async def _is_busy(self) -> bool:
        """Something is being worked on here, or a reply could be sent now."""
        if any(self._work.values()) or not self._claiming:
            return any(self._work.values())
        is_ready = False
        with contextlib.suppress(StoreError):
            is_ready = await self._store.transact(sql.ready_lanes, Queue.REPLIES, 1) > 0
        return is_ready or any(self._work.values())  # it may have been claimed in the same commit

    def interrupt(self, job_id: str) -> None:
        """Stop working on a job whose lease was taken away (`revoke`); nothing it would write counts any more."""
        for works in self._work.values():
            if (work := works.get(job_id)) and not work.is_over:
                work.task.cancel()

    def running(self, queue: Queue) -> int:
        """How many jobs of this queue are being worked on here."""
        return len(self._work[queue])

    async def _claim_loop(self, queue: Queue) -> None:
        wake = self._wake[queue]
        while not self._ends(queue):
            wake.clear()
            most = min(CLAIM_MOST, self._places[queue] - len(self._work[queue]))
            wait_s = POLL_S
            if most > 0:
                claimed, prepared = await self._claim(queue, most)
                if self._ends(queue):  # meanwhile: nobody would wait for them, the next start takes them up
                    for job in claimed.jobs:
                        with contextlib.suppress(StoreError):  # else the next start voids the lease
                            await self._store.transact(sql.release, job)
                    return
                for job in claimed.jobs:
                    self._start(job, prepared.get(job.id))
                if len(claimed.jobs) == most:
                    continue
                if claimed.next_ready_ms is not None:
                    wait_s = min(POLL_S, max(0.001, (claimed.next_ready_ms - self._clock.now_ms()) / 1000))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), wait_s)

    def _ends(self, queue: Queue) -> bool:
        return self._stopped or (self._stopping and queue is not Queue.REPLIES)

    async def _claim(self, queue: Queue, most: int) -> tuple[sql.Claimed, dict[str, Prepared]]:
        try:
            return await self._store.transact(self._claim_and_prepare, queue, most)
        except StoreError:  # logged by the store; the disk may come back
            await asyncio.sleep(STORE_AGAIN_S)
            return sql.Claimed(jobs=(), next_ready_ms=None), {}

    def _claim_and_prepare(self, tx: Tx, queue: Queue, most: int) -> tuple[sql.Claimed, dict[str, Prepared]]:
        if queue is Queue.TURNS and self._replies_are_behind(tx):
            return sql.Claimed(jobs=(), next_ready_ms=None), {}
        claimed = sql.claim(tx, queue, self._instance_id, self._ids.new, most=most, lease_ms=self._lease_ms)
        prepared = {}
        for job in claimed.jobs:
            kind = self._kinds.get(job.kind)
            if kind is not None and kind.prepare is not None:
                prepared[job.id] = self._prepare(tx, job, kind.prepare)
        return claimed, prepared

    def _prepare(self, tx: Tx, job: Job, prepare: Callable[[Tx, Job], Prepared]) -> Prepared:
        try:
            return prepare(tx, job)
        except (StoreError, sqlite3.Error):
            raise
        except Exception as error:  # noqa: BLE001 - the job border: a row nobody can read must not end the claiming
            return Prepared(fault=error)

    def _replies_are_behind(self, tx: Tx) -> bool:
        """As many answers wait as are being sent. More runs would only let people wait longer for theirs: an agent that
        is quicker than Feishu's rates, over a long queue, would leave thousands of answers unsent."""
        places = self._places[Queue.REPLIES]
        return sql.ready_lanes(tx, Queue.REPLIES, places) == places

    def _start(self, job: Job, prepared: Prepared | None = None) -> None:
        task = asyncio.create_task(self._work_on(job, prepared or Prepared()), name=f"job-{job.kind}-{job.id}")
        self._work[job.queue][job.id] = work = _Work(job, task)
        task.add_done_callback(lambda _: self._ended(work))

    def _ended(self, work: _Work) -> None:
        works, job = self._work[work.job.queue], work.job
        if works.get(job.id) is work:  # and not one that took it over, whose lease must be kept
            del works[job.id]
        self._wake[job.queue].set()
        if job.queue is Queue.REPLIES:  # turns may be waiting for room among them
            self._wake[Queue.TURNS].set()

    async def _work_on(self, job: Job, prepared: Prepared) -> None:
        lease = Lease(self._store, job, prepared)
        try:
            outcome = await self._outcome(job, lease)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):
                await _shielded(self._store.transact(sql.release, job))
            raise
        except LeaseLost:
            logger.warning("a job's lease was lost", extra={"action": "job_lease_lost", "job": job.id})
            return
        except StoreError:  # logged by the store; no fault of the job's, so it is taken up again as after a crash
            logger.warning("a job waits for the database", extra={"action": "job_store_failed", "job": job.id})
            await self._put_back(job)
            return
        await _shielded(self._record(job, outcome, lease))

    async def _outcome(self, job: Job, lease: Lease) -> Outcome:
        kind = self._kinds.get(job.kind)
        if kind is None:
            return Outcome(state=JobState.FAILED, error=f"no handler for jobs of kind {job.kind}")
        handle = kind.handle if job.effect is None else kind.reconcile
        if handle is None:
            return Outcome(state=JobState.UNKNOWN, error=f"interrupted after: {job.effect}")
        try:
            if lease.fault is not None:
                raise lease.fault
            return await handle(job, lease)
        except (LeaseLost, StoreError):
            raise
        except Exception as error:  # the job border: whatever a handler did not foresee
            logger.exception(
                "a job failed unexpectedly", extra={"action": "job_failed", "job": job.id, "kind": job.kind}
            )
            what = f"{type(error).__name__}: {error}"
            if not lease.effect_begun and job.attempts < ATTEMPTS_MOST:
                delay_ms = BACK_OFF_MS[min(job.attempts, len(BACK_OFF_MS)) - 1]
                return Outcome(state=JobState.QUEUED, error=what, delay_ms=delay_ms)
            return await self._give_up(
                kind, job, Outcome(state=JobState.UNKNOWN if lease.effect_begun else JobState.FAILED, error=what)
            )

    async def _give_up(self, kind: JobKind, job: Job, outcome: Outcome) -> Outcome:
        if kind.give_up is None:
            return outcome
        try:
            return await kind.give_up(job, outcome)
        except StoreError:
            raise
        except Exception:  # the job border once more: telling the person failed too
            logger.exception("nobody could be told that a job failed", extra={"action": "job_untold", "job": job.id})
            return outcome

    async def _record(self, job: Job, outcome: Outcome, lease: Lease) -> None:
        refused = 0
        while True:
            try:
                await self._store.transact(sql.finish, job, outcome)
            except LeaseLost:
                logger.warning(
                    "an outcome came too late and was not written", extra={"action": "job_fenced", "job": job.id}
                )
                return
            except StoreError as error:  # the outcome is known, so it is worth waiting for the disk
                if self._drained or not error.retryable:
                    return  # the next start looks again
                await asyncio.sleep(STORE_AGAIN_S)
                continue
            except Exception as error:  # the job border: what was to be written with it, not the database
                logger.exception("an outcome cannot be written", extra={"action": "job_unwritable", "job": job.id})
                if refused == 2:
                    return  # nor can the plainest one
                refused += 1
                state = JobState.UNKNOWN if lease.effect_begun else JobState.FAILED
                outcome = Outcome(state=state, error=type(error).__name__)
                if refused == 1 and (kind := self._kinds.get(job.kind)):
                    outcome = await self._give_up(kind, job, outcome)
                continue
            self._hold_no_more(job)
            name = f"{job.kind}.{outcome.state}"
            self.finished[name] = self.finished.get(name, 0) + 1
            break
        if outcome.after is not None:
            try:
                await outcome.after()
            except Exception:  # the job border: the job itself is done
                logger.exception("tidying up after a job failed", extra={"action": "job_after_failed", "job": job.id})

    async def _put_back(self, job: Job) -> None:
        """Let go of a job once the database takes it: at once then, and not when its lease runs out."""
        self._hold_no_more(job)
        while not self._drained:
            await asyncio.sleep(STORE_AGAIN_S)
            try:
                await self._store.transact(sql.release, job)
                return
            except StoreError as error:
                if not error.retryable:
                    return

    def _hold_no_more(self, job: Job) -> None:
        if (work := self._work[job.queue].get(job.id)) and work.job.lease_token == job.lease_token:
            work.is_over = True

    async def _every(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(StoreError):  # logged by the store; the next round tries again
                await step()

    async def _heartbeat(self) -> None:
        all_work = [work for works in self._work.values() for work in works.values()]
        held = [(work.job.id, work.job.lease_token) for work in all_work if not work.is_over]
        if not held:
            return
        lost = await self._store.transact(sql.extend, held, lease_ms=self._lease_ms)
        for work in all_work:
            if work.job.id in lost and not work.is_over:  # it may have ended meanwhile
                work.task.cancel()

    async def _recover(self) -> None:
        """Find leases that ran out. Our own, of jobs still at work here, did so only because this machine slept or its
        clock was set: they are prolonged first, or the same job would run twice side by side."""
        if self._stopping:
            return
        await self._heartbeat()
        recovered = await self._store.transact(sql.recover, self._instance_id, self._ids.new, lease_ms=self._lease_ms)
        for job in recovered.to_reconcile:
            self._start(job)
        if recovered.requeued or recovered.to_reconcile:
            logger.info(
                "interrupted jobs were found",
                extra={
                    "action": "jobs_recovered",
                    "requeued": recovered.requeued,
                    "to_reconcile": len(recovered.to_reconcile),
                },
            )


async def _shielded[T](work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` even when we are cancelled meanwhile: an outcome that is known must be written."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=SHIELDED_S)
        raise
