"""The state machine of jobs: any order of what can happen keeps its promises."""

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agno_lark.jobs import (
    TRANSITIONS,
    Job,
    JobState,
    LeaseLost,
    NewJob,
    Outcome,
    Queue,
    begin_effect,
    cancel_queued,
    claim,
    enqueue,
    extend,
    finish,
    recover,
    release,
    resolve_unknown,
    revoke,
    running_in_lane,
    settle_clock,
    void_former_life,
)
from tests.job_fixtures import JobTable

LANES = st.sampled_from(["a", "b", "c"])
UNFINISHED = {JobState.QUEUED, JobState.RUNNING}
ENDS = [JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN]
LEASE_MS = 1000


class JobMachine(RuleBasedStateMachine):
    """Workers claim, finish, hang and come back late; the clock steps; the process crashes and starts again."""

    def __init__(self) -> None:
        super().__init__()
        self.table = JobTable()
        self.order: dict[str, list[str]] = defaultdict(list)  # lane → ids in order of acceptance
        self.held: dict[str, Job] = {}  # whose outcome must count
        self.zombies: list[Job] = []  # whose outcome must not
        self.last: dict[str, JobState] = {}
        self.effects: set[str] = set()
        self.started: dict[str, list[str]] = defaultdict(list)

    def teardown(self) -> None:
        self.table.connection.close()

    @rule(lane=LANES, delay_ms=st.sampled_from([0, 0, 700]))
    def accept(self, lane: str, delay_ms: int) -> None:
        name = f"{lane}{len(self.order[lane])}"
        job = NewJob(id=name, kind="k", queue=Queue.TURNS, lane=lane, available_ms=self.table.now_ms + delay_ms)
        self.table.do(enqueue, job)
        self.order[lane].append(name)

    @rule(most=st.integers(1, 3))
    def work(self, most: int) -> None:
        claimed = self.table.do(claim, Queue.TURNS, "me", self.table.new_token, most=most, lease_ms=LEASE_MS)
        for job in claimed.jobs:
            assert job.effect is None, "what had begun is for the reconciler"
            self.held[job.id] = job
            if job.id not in self.started[job.lane]:
                self.started[job.lane].append(job.id)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), end=st.sampled_from(ENDS))
    def end(self, data: st.DataObject, end: JobState) -> None:
        job = self.held.pop(data.draw(st.sampled_from(sorted(self.held))))
        self.table.do(finish, job, Outcome(state=end))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), delay_ms=st.sampled_from([0, 400]))
    def try_again(self, data: st.DataObject, delay_ms: int) -> None:
        job = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        outcome = Outcome(state=JobState.QUEUED, delay_ms=delay_ms)
        if job.id in self.effects:
            try:
                self.table.do(finish, job, outcome)
            except LeaseLost:
                return
            raise AssertionError("a job with an effect begun was queued again")
        self.table.do(finish, job, outcome)
        self.zombies.append(self.held.pop(job.id))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        job = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        self.table.do(begin_effect, job, "effect")
        self.effects.add(job.id)

    @precondition(lambda self: self.held)
    @rule()
    def heartbeat(self) -> None:
        leases = [(job.id, job.lease_token) for job in self.held.values()]
        assert self.table.do(extend, leases, lease_ms=LEASE_MS) == set()

    @rule(step_ms=st.sampled_from([-3000, 50, 500, 1500]))
    def clock_steps(self, step_ms: int) -> None:
        self.table.now_ms += step_ms

    @rule()
    def recovers(self) -> None:
        recovered = self.table.do(recover, "me", self.table.new_token, lease_ms=LEASE_MS)
        expired = [job for job in self.held.values() if not self._is_current(job)]
        for job in expired:
            self.zombies.append(self.held.pop(job.id))
        assert len(expired) == recovered.requeued + len(recovered.to_reconcile)
        for job in recovered.to_reconcile:
            assert job.id in self.effects
            self.held[job.id] = job

    @rule()
    def crashes_and_starts(self) -> None:
        self.zombies += self.held.values()
        self.held.clear()
        self.table.do(void_former_life, "me")
        self.table.do(settle_clock)
        for job in self.table.do(recover, "me", self.table.new_token, lease_ms=LEASE_MS).to_reconcile:
            assert job.id in self.effects
            self.held[job.id] = job

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def lets_go(self, data: st.DataObject) -> None:
        """Interrupted while stopping: the lease runs out at once, for whoever recovers next."""
        job = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        self.table.do(release, job)

    @precondition(lambda self: self.zombies)
    @rule(data=st.data(), end=st.sampled_from([*ENDS, JobState.QUEUED]))
    def a_zombie_comes_late(self, data: st.DataObject, end: JobState) -> None:
        zombie = data.draw(st.sampled_from(self.zombies))
        before = self._dump()
        with pytest.raises(LeaseLost):
            self.table.do(finish, zombie, Outcome(state=end))
        with pytest.raises(LeaseLost):
            self.table.do(begin_effect, zombie, "x")
        self.table.do(release, zombie)
        assert self._dump() == before

    @precondition(lambda self: any(self.order.values()))
    @rule(data=st.data())
    def somebody_takes_a_job_back(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(name for names in self.order.values() for name in names)))
        was = self._states()[name]
        assert self.table.do(cancel_queued, name, "why") is (was is JobState.QUEUED)

    @precondition(lambda self: self.held)
    @rule(lane=LANES, state=st.sampled_from([JobState.CANCELLED, JobState.UNKNOWN]))
    def something_newer_takes_its_place(self, lane: str, state: JobState) -> None:
        name = self.table.do(running_in_lane, lane)
        runs = [job_id for job_id, job in self._states().items() if job is JobState.RUNNING and job_id[0] == lane]
        assert runs == ([name] if name else [])
        if name is not None:
            assert self.table.do(revoke, name, state, "superseded")
            self.zombies.append(self.held.pop(name))

    @precondition(lambda self: any(self.order.values()))
    @rule(data=st.data())
    def somebody_decides_about_an_unknown_one(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(name for names in self.order.values() for name in names)))
        was = self._states()[name]
        assert self.table.do(resolve_unknown, name, "dismissed") is (was is JobState.UNKNOWN)

    def _dump(self) -> list[tuple[object, ...]]:
        return [tuple(row) for sql in ("SELECT * FROM jobs", "SELECT * FROM lanes") for row in self.table.rows(sql)]

    def _is_current(self, job: Job) -> bool:
        row = self.table.connection.execute("SELECT lease_token FROM jobs WHERE id = ?", (job.id,)).fetchone()
        return bool(row["lease_token"] == job.lease_token)

    def _states(self) -> dict[str, JobState]:
        return {row["id"]: JobState(row["state"]) for row in self.table.rows("SELECT id, state FROM jobs")}

    @invariant()
    def only_known_moves_are_made(self) -> None:
        states = self._states()
        for name, state in states.items():
            before = self.last.get(name, JobState.QUEUED)
            # Several moves may have happened in one rule: queued → running → queued.
            assert state is before or state in TRANSITIONS[before] or before is JobState.RUNNING, (name, before, state)
            if not TRANSITIONS[before]:
                assert state is before, "an end is an end"
        self.last = states

    @invariant()
    def at_most_one_job_of_a_lane_runs_and_its_row_says_so(self) -> None:
        states = self._states()
        lanes = {row["lane"]: row for row in self.table.rows("SELECT * FROM lanes")}
        seqs = {row["id"]: row["seq"] for row in self.table.rows("SELECT id, seq FROM jobs")}
        for lane, names in self.order.items():
            unfinished = [name for name in names if states[name] in UNFINISHED]
            running = [name for name in unfinished if states[name] is JobState.RUNNING]
            assert len(running) <= 1
            if not unfinished:
                assert lane not in lanes
                continue
            assert lanes[lane]["head_seq"] == seqs[unfinished[0]], "the oldest unfinished job is the head"
            assert (lanes[lane]["ready_ms"] is None) == bool(running)
            assert not running or running[0] == unfinished[0]

    @invariant()
    def jobs_start_in_the_order_of_acceptance(self) -> None:
        for lane, started in self.started.items():
            order = self.order[lane]
            assert started == sorted(started, key=order.index)


JobMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestJobMachine = JobMachine.TestCase
