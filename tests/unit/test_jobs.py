"""Jobs: lanes, claims, fenced outcomes, recovery; and the runner that works on them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agno_lark.clock import RandomIds, SystemClock
from agno_lark.jobs import (
    TRANSITIONS,
    Job,
    JobKind,
    JobState,
    Lease,
    LeaseLost,
    NewJob,
    Outcome,
    Prepared,
    Queue,
    Runner,
    begin_effect,
    cancel_queued,
    claim,
    counts,
    enqueue,
    extend,
    finish,
    forget_payload,
    kept_payload,
    recover,
    resolve_unknown,
    revoke,
    running_in_lane,
    settle_clock,
    void_former_life,
)
from agno_lark.store import Store, Tx
from tests.job_fixtures import JobTable, job_table


@pytest.fixture
def table() -> Iterator[JobTable]:
    with job_table() as made:
        yield made


def new(name: str, lane: str = "a", queue: Queue = Queue.TURNS, available_ms: int = 0) -> NewJob:
    return NewJob(id=name, kind="test", queue=queue, lane=lane, payload={"n": name}, available_ms=available_ms)


def take(table: JobTable, queue: Queue = Queue.TURNS, most: int = 10, lease_ms: int = 1000) -> list[Job]:
    return list(table.do(claim, queue, "me", table.new_token, most=most, lease_ms=lease_ms).jobs)


def state_of(table: JobTable, name: str) -> str:
    return str(table.connection.execute("SELECT state FROM jobs WHERE id = ?", (name,)).fetchone()[0])


def test_a_lane_runs_one_job_at_a_time_in_the_order_of_acceptance(table: JobTable) -> None:
    for name in ("1", "2", "3"):
        table.do(enqueue, new(name))
    seen = []
    while jobs := take(table):
        assert len(jobs) == 1
        seen.append(jobs[0].payload["n"])
        assert not take(table), "the lane is busy"
        table.do(finish, jobs[0], Outcome())
    assert seen == ["1", "2", "3"]
    assert not table.rows("SELECT * FROM lanes"), "an empty lane costs nothing"


def test_lanes_run_side_by_side_oldest_first(table: JobTable) -> None:
    for number in range(5):
        table.do(enqueue, new(f"{number}", lane=f"lane{number}"))
    assert [job.id for job in take(table, most=3)] == ["0", "1", "2"]
    assert [job.id for job in take(table)] == ["3", "4"]


def test_control_jobs_have_places_of_their_own(table: JobTable) -> None:
    table.do(enqueue, new("turn"))
    table.do(enqueue, new("stop", lane="control:a", queue=Queue.CONTROL))
    assert [job.id for job in take(table, Queue.CONTROL)] == ["stop"]
    assert table.signals == {"turns", "control"}


def test_a_job_waits_for_its_time_and_its_lane_with_it(table: JobTable) -> None:
    table.do(enqueue, new("later", available_ms=table.now_ms + 500))
    table.do(enqueue, new("behind"))
    claimed = table.do(claim, Queue.TURNS, "me", table.new_token, most=9, lease_ms=1)
    assert claimed.jobs == ()
    assert claimed.next_ready_ms == table.now_ms + 500
    table.now_ms += 500
    assert [job.id for job in take(table)] == ["later"]


def test_an_outcome_is_written_under_its_token_alone(table: JobTable) -> None:
    table.do(enqueue, new("1"))
    (first,) = take(table)
    table.now_ms += 2000
    assert table.do(recover, "me", table.new_token, lease_ms=1000).requeued == 1
    (second,) = take(table)
    with pytest.raises(LeaseLost):
        table.do(finish, first, Outcome())
    with pytest.raises(LeaseLost):
        table.do(begin_effect, first, "late")
    assert table.do(extend, [(first.id, first.lease_token)], lease_ms=1000) == {"1"}
    assert table.do(extend, [(second.id, second.lease_token)], lease_ms=1000) == set()
    table.do(finish, second, Outcome(state=JobState.FAILED, error="why"))
    assert state_of(table, "1") == "failed"


def test_what_goes_with_an_outcome_is_written_with_it_or_not_at_all(table: JobTable) -> None:
    def also(tx: Tx) -> None:
        tx.execute("INSERT INTO dedup_messages VALUES ('app', 'event', 'k', 0, NULL)")

    table.do(enqueue, new("1"))
    (job,) = take(table)
    table.do(finish, job, Outcome(also=also))
    with pytest.raises(LeaseLost):
        table.do(finish, job, Outcome(also=also))
    assert len(table.rows("SELECT * FROM dedup_messages")) == 1


def test_a_persons_words_leave_the_database_with_the_job(table: JobTable) -> None:
    table.do(enqueue, new("secret words"))
    (job,) = take(table)
    table.do(finish, job, Outcome(state=JobState.QUEUED))
    (again,) = take(table)
    assert again.payload == {"n": "secret words"}
    table.do(finish, again, Outcome())
    assert table.rows("SELECT payload FROM jobs")[0]["payload"] == "{}"


@pytest.mark.parametrize("end", [JobState.FAILED, JobState.UNKNOWN])
def test_what_may_be_asked_for_again_keeps_its_words_until_that_is_decided(table: JobTable, end: JobState) -> None:
    table.do(enqueue, new("words"))
    (job,) = take(table)
    assert table.do(kept_payload, job.id) == {}, "while it runs they are the handler's"
    table.do(finish, job, Outcome(state=end))
    assert table.do(kept_payload, job.id) == {"n": "words"}
    assert table.do(resolve_unknown, job.id, "dismissed") is (end is JobState.UNKNOWN)
    table.do(forget_payload, job.id)
    assert table.rows("SELECT payload FROM jobs")[0]["payload"] == "{}"
    assert not table.do(resolve_unknown, job.id, "dismissed")


def test_a_revoked_lease_lets_the_lane_go_on_and_fences_its_holder_off(table: JobTable) -> None:
    for name in ("1", "2"):
        table.do(enqueue, new(name))
    (job,) = take(table)
    assert table.do(running_in_lane, job.lane) == job.id
    assert table.do(revoke, job.id, JobState.CANCELLED, "superseded")
    assert not table.do(revoke, job.id, JobState.CANCELLED, "superseded")
    (following,) = take(table)
    assert following.payload == {"n": "2"}
    with pytest.raises(LeaseLost):
        table.do(finish, job, Outcome())
    assert [row["state"] for row in table.rows("SELECT state FROM jobs ORDER BY seq")] == ["cancelled", "running"]


def test_a_clock_that_was_ahead_holds_nothing_after_a_restart(table: JobTable) -> None:
    table.now_ms += 3_600_000
    for name in ("1", "2"):
        table.do(enqueue, new(name))
    table.now_ms -= 3_600_000
    assert take(table) == []
    assert table.do(settle_clock) == 1
    (job,) = take(table)
    table.do(finish, job, Outcome())
    assert len(take(table)) == 1, "what waited behind it too"


def test_a_retry_keeps_its_place_at_the_head_of_the_lane(table: JobTable) -> None:
    table.do(enqueue, new("1"))
    table.do(enqueue, new("2"))
    (job,) = take(table)
    table.do(finish, job, Outcome(state=JobState.QUEUED, delay_ms=300))
    assert not take(table)
    table.now_ms += 300
    (again,) = take(table)
    assert (again.id, again.attempts) == ("1", 2)


def test_a_job_with_an_effect_begun_is_never_queued_again(table: JobTable) -> None:
    table.do(enqueue, new("1"))
    (job,) = take(table)
    table.do(begin_effect, job, "submit")
    with pytest.raises(LeaseLost):
        table.do(finish, job, Outcome(state=JobState.QUEUED))
    table.now_ms += 5000
    recovered = table.do(recover, "me", table.new_token, lease_ms=1000)
    assert recovered.requeued == 0
    (taken,) = recovered.to_reconcile
    assert (taken.id, taken.effect, taken.attempts) == ("1", "submit", 2)
    assert not take(table)
    with pytest.raises(LeaseLost):
        table.do(finish, job, Outcome())
    table.do(finish, taken, Outcome(state=JobState.UNKNOWN))
    assert state_of(table, "1") == "unknown"


def test_a_restart_voids_its_own_former_leases_and_nobody_elses(table: JobTable) -> None:
    table.do(enqueue, new("mine", lane="a"))
    take(table)
    table.do(enqueue, new("theirs", lane="b"))
    table.do(claim, Queue.TURNS, "other", table.new_token, most=1, lease_ms=60_000)
    assert table.do(void_former_life, "me") == 1
    assert table.do(recover, "me", table.new_token, lease_ms=1000).requeued == 1
    assert (state_of(table, "mine"), state_of(table, "theirs")) == ("queued", "running")


def test_a_waiting_job_can_be_taken_back_and_its_lane_goes_on(table: JobTable) -> None:
    for name in ("1", "2", "3"):
        table.do(enqueue, new(name))
    assert table.do(cancel_queued, "2", "recalled")
    assert table.do(cancel_queued, "1", "recalled")
    assert not table.do(cancel_queued, "1", "recalled")
    (job,) = take(table)
    assert job.id == "3"
    assert not table.do(cancel_queued, "3", "too late")


def test_no_end_state_leads_back_to_work() -> None:
    ends = {JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN}
    assert {end: set(TRANSITIONS[end]) for end in ends if TRANSITIONS[end]} == {JobState.UNKNOWN: {JobState.CANCELLED}}
    assert TRANSITIONS.keys() == set(JobState)


def test_a_claim_reads_no_job_but_the_heads(table: JobTable) -> None:
    plan = " ".join(str(row["detail"]) for row in table.rows("EXPLAIN QUERY PLAN " + ready_sql()))
    assert "lanes_ready" in plan
    assert "SCAN" not in plan
    plan = " ".join(str(row["detail"]) for row in table.rows("EXPLAIN QUERY PLAN " + next_sql()))
    assert "jobs_queued" in plan
    assert "TEMP B-TREE" not in plan


def ready_sql() -> str:
    from agno_lark.jobs.queue import READY

    return READY.replace(":queue", "'turns'").replace(":now", "5").replace(":most", "5")


def next_sql() -> str:
    from agno_lark.jobs.queue import NEXT_IN_LANE

    return NEXT_IN_LANE.replace(":lane", "'a'")


# -- the runner ------------------------------------------------------------------------------------------------------


class Bench:
    """A runner on a real store, and what its handler saw."""

    def __init__(self, store: Store, handle: Callable[[Job, Lease], Any], **kind: Any) -> None:
        self.store = store
        self.runner = Runner(
            store,
            {"test": JobKind(name="test", handle=handle, **kind)},
            clock=SystemClock(),
            ids=RandomIds(),
            instance_id="me",
            turns_at_once=4,
        )
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Bench":
        self.task = asyncio.create_task(self.runner.run())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.runner.drain(0)
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait({self.task})

    async def states(self) -> dict[str, str]:
        return {row["id"]: row["state"] for row in await self.store.read("SELECT id, state FROM jobs")}

    async def until(self, name: str, state: str) -> None:
        async with asyncio.timeout(5):
            while (await self.states()).get(name) != state:
                await asyncio.sleep(0.01)


async def test_the_runner_works_on_what_is_enqueued_at_once(tmp_path: Path) -> None:
    seen: list[str] = []

    async def handle(job: Job, lease: Lease) -> Outcome:
        seen.append(job.id)
        return Outcome()

    async with Store.open(tmp_path / "s") as store, Bench(store, handle) as bench:
        for number in range(20):
            await store.transact(enqueue, new(f"{number}", lane=f"lane{number % 3}"))
        await bench.until("19", "done")
        await bench.until("18", "done")
        await bench.until("17", "done")
        for lane in range(3):
            mine = [int(name) for name in seen if int(name) % 3 == lane]
            assert mine == sorted(mine)
        assert await counts(store) == {}


async def test_a_hundred_lanes_do_not_wait_for_one_and_a_head_that_failed_or_is_unknown_lets_its_lane_go_on(
    tmp_path: Path,
) -> None:
    go_on = asyncio.Event()

    async def handle(job: Job, lease: Lease) -> Outcome:
        if job.id == "0-head":
            await go_on.wait()
        ends = [JobState.FAILED, JobState.UNKNOWN, JobState.CANCELLED]
        return Outcome(state=ends[int(job.id.split("-")[0]) % 3] if job.id.endswith("head") else JobState.DONE)

    async with Store.open(tmp_path / "s") as store, Bench(store, handle) as bench:
        for number in range(100):
            for name in ("head", "next"):
                await store.transact(enqueue, new(f"{number}-{name}", lane=f"lane{number}"))
        for number in range(1, 100):
            await bench.until(f"{number}-next", "done")
        states = await bench.states()
        assert (states["0-head"], states["0-next"]) == ("running", "queued")
        go_on.set()
        await bench.until("0-next", "done")


async def test_a_control_job_overtakes_turns_that_fill_every_place(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def handle(job: Job, lease: Lease) -> Outcome:
        if job.queue is Queue.TURNS:
            await gate.wait()
        return Outcome()

    async with Store.open(tmp_path / "s") as store, Bench(store, handle) as bench:
        for number in range(6):
            await store.transact(enqueue, new(f"{number}", lane=f"lane{number}"))
        await store.transact(enqueue, new("stop", lane="control:lane0", queue=Queue.CONTROL))
        await bench.until("stop", "done")
        assert bench.runner.running(Queue.TURNS) == 4, "no more than there are places"
        gate.set()
        await bench.until("5", "done")


async def test_a_handler_that_raises_is_tried_again_then_given_up_and_told(tmp_path: Path) -> None:
    told: list[tuple[str, JobState]] = []

    async def handle(job: Job, lease: Lease) -> Outcome:
        raise RuntimeError("boom")

    async def give_up(job: Job, outcome: Outcome) -> Outcome:
        told.append((outcome.error, outcome.state))
        return outcome

    async with Store.open(tmp_path / "s") as store:
        await store.transact(enqueue, new("1"))
        await store.transact(lambda tx: tx.execute("UPDATE jobs SET attempts = 3"))
        async with Bench(store, handle, give_up=give_up) as bench:
            async with asyncio.timeout(5):
                while not (await store.read("SELECT 1 FROM jobs WHERE state = 'queued' AND attempts = 4")):
                    await asyncio.sleep(0.01)
            await store.transact(lambda tx: tx.execute("UPDATE lanes SET ready_ms = 0"))
            await store.transact(lambda tx: tx.signal("turns"))
            await bench.until("1", "failed")
    assert told == [("RuntimeError: boom", JobState.FAILED)]


async def test_a_handler_that_raises_after_an_effect_ends_unknown(tmp_path: Path) -> None:
    async def handle(job: Job, lease: Lease) -> Outcome:
        await lease.begin_effect("submit", lambda tx: None)
        raise RuntimeError("boom")

    async with Store.open(tmp_path / "s") as store, Bench(store, handle) as bench:
        await store.transact(enqueue, new("1"))
        await store.transact(enqueue, new("2"))
        await bench.until("1", "unknown")
        await bench.until("2", "unknown")


async def test_an_interrupted_job_goes_on_at_the_next_start(tmp_path: Path) -> None:
    calls: list[str] = []
    begun = asyncio.Event()

    async def hang(job: Job, lease: Lease) -> Outcome:
        if job.id == "effect":
            await lease.begin_effect("submit", lambda tx: None)
        calls.append(f"handle {job.id}")
        if len(calls) == 2:
            begun.set()
        await asyncio.sleep(60)
        return Outcome()

    async def finish_it(job: Job, lease: Lease) -> Outcome:
        calls.append(f"{'reconcile' if job.effect else 'handle'} {job.id}")
        return Outcome()

    async with Store.open(tmp_path / "s") as store:
        await store.transact(enqueue, new("effect", lane="a"))
        await store.transact(enqueue, new("plain", lane="b"))
        async with Bench(store, hang):
            await asyncio.wait_for(begun.wait(), 5)
        async with Bench(store, finish_it, reconcile=finish_it) as bench:
            await bench.until("effect", "done")
            await bench.until("plain", "done")
    assert sorted(calls) == ["handle effect", "handle plain", "handle plain", "reconcile effect"]


async def test_a_job_of_a_kind_nobody_knows_fails_and_says_so(tmp_path: Path) -> None:
    async def handle(job: Job, lease: Lease) -> Outcome:
        return Outcome()

    async with Store.open(tmp_path / "s") as store, Bench(store, handle) as bench:
        await store.transact(enqueue, NewJob(id="1", kind="strange", queue=Queue.CONTROL, lane="x"))
        await bench.until("1", "failed")
        assert "strange" in (await store.read("SELECT error FROM jobs"))[0]["error"]


async def test_tidying_up_comes_after_the_outcome_and_may_fail(tmp_path: Path) -> None:
    tidied: list[str] = []

    async def handle(job: Job, lease: Lease) -> Outcome:
        async def after() -> None:
            tidied.extend([row["state"] for row in await store.read("SELECT state FROM jobs WHERE id = '1'")])
            raise RuntimeError("boom")

        return Outcome(after=after)

    async with Store.open(tmp_path / "s") as store, Bench(store, handle) as bench:
        await store.transact(enqueue, new("1"))
        await store.transact(enqueue, new("2"))
        await bench.until("2", "done")
    assert tidied[0] == "done"


async def test_what_is_prepared_in_the_claim_is_committed_with_it(tmp_path: Path) -> None:
    seen: list[tuple[Any, bool]] = []

    def prepare(tx: Tx, job: Job) -> Prepared:
        begin_effect(tx, job, "submit")
        return Prepared(value=job.payload["n"], effect_begun=True)

    async def handle(job: Job, lease: Lease) -> Outcome:
        rows = await store.read("SELECT state, effect FROM jobs")
        seen.append((lease.prepared, [tuple(row) for row in rows] == [("running", "submit")]))
        raise RuntimeError("boom")

    async with Store.open(tmp_path / "s") as store, Bench(store, handle, prepare=prepare) as bench:
        await store.transact(enqueue, new("1"))
        await bench.until("1", "unknown")
    assert seen == [("1", True)], "with an effect begun it is not tried again"
