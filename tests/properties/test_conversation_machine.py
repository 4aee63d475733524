"""A conversation as a state machine: whatever is written, pressed, commanded, killed or forgotten, in any order, each
message's turn ends once, is handed over at most once, asked again at most once, and has one answer on its way."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agno_lark.commands import ParsedCommand
from agno_lark.intake.accept import Click, Intent, Origin, Talk, accept_click, accept_message
from agno_lark.jobs import (
    Job,
    JobState,
    LeaseLost,
    Outcome,
    Queue,
    begin_effect,
    claim,
    finish,
    recover,
    void_former_life,
)
from agno_lark.jobs.forget import forget_jobs
from agno_lark.operate import cancel_job, retry_job, whereabouts
from agno_lark.replies import DISMISS, RETRY, STOP, Ending, Place, cancel_reply, forget_replies, put_answer
from agno_lark.sessions import Scope
from agno_lark.store import Tx
from agno_lark.targets import RunView
from agno_lark.turns import RunPhase
from agno_lark.turns.forget import forget_runs
from agno_lark.turns.rows import OVER, close_run, mark_replied, mark_running, mark_submitted
from tests.job_fixtures import JobTable

LEASE_MS = 1_000
DAY_MS = 24 * 3_600_000
SCOPE = Scope(target_type="agent", target_id="a", chat_id="oc_1")
ENDS = {
    RunPhase.COMPLETED: JobState.DONE,
    RunPhase.FAILED: JobState.FAILED,
    RunPhase.CANCELLED: JobState.CANCELLED,
    RunPhase.UNKNOWN: JobState.UNKNOWN,
}
OPEN = (JobState.QUEUED, JobState.RUNNING)


class ConversationMachine(RuleBasedStateMachine):
    """One direct chat, its bridge with its crashes, an operator, and the cleaning."""

    def __init__(self) -> None:
        super().__init__()
        self.table = JobTable()
        self.count = 0
        self.held: list[Job] = []  # turns at work here
        self.zombies: list[Job] = []  # of a former life, which do not know it
        self.replies: list[Job] = []
        self.submitted: list[str] = []
        self.answered: set[str] = set()  # ids of all jobs there ever were

    def teardown(self) -> None:
        while self.work_is_left():
            self.table.now_ms += LEASE_MS + 1
            self.bridge_is_killed()
            self.takes(16)
            while self.held:
                self.turn_ends(self.held[0], RunPhase.COMPLETED)
            self.sends(16)
            while self.replies:
                self.feishu_confirms(self.replies[0])
        for row in self.table.rows("SELECT turn_id, state, replied_ms FROM runs"):
            assert row["state"] in OVER
            told = self.table.do(whereabouts, row["turn_id"])
            assert told is not None
            assert told.where in ("replied", "asking", "failed", "cancelled", "unknown")
        assert not self.table.rows("SELECT 1 FROM lanes")
        self.table.connection.close()

    def work_is_left(self) -> bool:
        return bool(self.table.rows("SELECT 1 FROM jobs WHERE state IN ('queued', 'running')"))

    def new(self, name: str) -> str:
        self.count += 1
        return f"{name}{self.count}"

    # -- people ------------------------------------------------------------------------------------------------------

    @rule(interrupts=st.booleans(), late=st.sampled_from([None, None, DAY_MS]), twice=st.booleans())
    def somebody_writes(self, interrupts: bool, late: int | None, twice: bool) -> None:
        self.accept(Talk(text="words"), twice=twice, interrupts=interrupts, too_late_ms=late)

    @rule(name=st.sampled_from(["new", "cancel", "retry", "dismiss"]), rest=st.sampled_from(["", "", "words"]))
    def somebody_commands(self, name: str, rest: str) -> None:
        self.accept(ParsedCommand(name=name, rest=rest))

    def accept(self, intent: Intent, *, twice: bool = False, **more: Any) -> None:
        message = self.new("om_")
        origin = Origin(
            app_id="cli",
            tenant_key="t",
            event_id=self.new("e"),
            sender="ou_a",
            chat_type="p2p",
            place=Place(chat_id="oc_1", message_id=message),
            scope=SCOPE,
            language="en",
            **more,
        )
        taken = self.table.do(accept_message, self.new("t"), origin, intent, ("agent", "a"))
        assert taken.is_new
        if taken.superseded is not None:
            self.zombies += [job for job in self.held if job.id == taken.superseded]
            self.held = [job for job in self.held if job.id != taken.superseded]
        if twice:
            assert not self.table.do(accept_message, self.new("t"), origin, intent, ("agent", "a")).is_new

    @precondition(lambda self: self.turns())
    @rule(data=st.data(), op=st.sampled_from([STOP, RETRY, DISMISS]), times=st.integers(1, 2))
    def somebody_presses(self, data: st.DataObject, op: str, times: int) -> None:
        turn = data.draw(st.sampled_from(self.turns()))
        for _ in range(times):
            card = self.table.rows(f"SELECT card_message_id FROM runs WHERE turn_id = '{turn}'")[0][0] or "om_card"
            click = Click(app_id="cli", event_id=self.new("e"), message_id=card, op=op, turn_id=turn, operator="ou_a")
            self.table.do(accept_click, self.new("t"), click, lambda row: True)

    @precondition(lambda self: self.jobs())
    @rule(data=st.data(), decide=st.sampled_from([retry_job, cancel_job]))
    def an_operator_decides(self, data: st.DataObject, decide: Callable[[Tx, str, str], str]) -> None:
        self.table.do(decide, data.draw(st.sampled_from(self.jobs())), self.new("o"))

    def turns(self) -> list[str]:
        return [row[0] for row in self.table.rows("SELECT turn_id FROM runs ORDER BY seq")]

    def jobs(self) -> list[str]:
        return [row[0] for row in self.table.rows("SELECT id FROM jobs ORDER BY seq")]

    # -- the bridge --------------------------------------------------------------------------------------------------

    @rule(most=st.integers(1, 3))
    def takes(self, most: int) -> None:
        def take(tx: Tx) -> list[tuple[Job, bool]]:
            jobs = claim(tx, Queue.TURNS, "me", self.table.new_token, most=most, lease_ms=LEASE_MS).jobs
            begun = [(job, mark_submitted(tx, job.id, f"run-{job.id}") is not None) for job in jobs]
            for job, is_begun in begun:
                if is_begun:
                    begin_effect(tx, job, "submit")
            return begun

        for job, is_begun in self.table.do(take):
            self.held.append(job)
            if is_begun:
                assert job.payload.get("text") == "words"
                self.submitted.append(job.id)
            else:
                self.turn_ends(job, RunPhase.CANCELLED)
        for job in self.table.do(claim, Queue.CONTROL, "me", self.table.new_token, most=16, lease_ms=LEASE_MS).jobs:
            self.table.do(finish, job, Outcome())

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def agent_answers(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.held))
        self.table.do(mark_running, job.id, f"run-{job.id}")

    @precondition(lambda self: self.held)
    @rule(data=st.data(), phase=st.sampled_from(list(ENDS)))
    def agent_ends(self, data: st.DataObject, phase: RunPhase) -> None:
        self.turn_ends(data.draw(st.sampled_from(self.held)), phase)

    @precondition(lambda self: self.zombies)
    @rule(data=st.data(), phase=st.sampled_from(list(ENDS)))
    def a_zombie_ends(self, data: st.DataObject, phase: RunPhase) -> None:
        job = data.draw(st.sampled_from(self.zombies))
        before = self.dump()
        try:
            self.write_end(job, phase)
        except LeaseLost:
            assert self.dump() == before
        else:
            raise AssertionError("it had lost its lease")

    def turn_ends(self, job: Job, phase: RunPhase) -> None:
        self.write_end(job, phase)
        self.held.remove(job)

    def write_end(self, job: Job, phase: RunPhase) -> None:
        ending = Ending(view=RunView(), elapsed_ms=1, turn_id=job.id, unknown=phase is RunPhase.UNKNOWN)
        place = Place(chat_id="oc_1", message_id="om")

        def also(tx: Tx) -> None:
            assert close_run(tx, job.id, phase)
            put_answer(
                tx, ending, reply_id=f"{job.id}-reply", turn_id=job.id, lane=job.lane, place=place, language="en"
            )

        self.table.do(finish, job, Outcome(state=ENDS[phase], also=also))

    @rule(most=st.integers(1, 3))
    def sends(self, most: int) -> None:
        self.replies += self.table.do(
            claim, Queue.REPLIES, "me", self.table.new_token, most=most, lease_ms=LEASE_MS
        ).jobs

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def feishu_answers(self, data: st.DataObject) -> None:
        self.feishu_confirms(data.draw(st.sampled_from(self.replies)))

    def feishu_confirms(self, job: Job) -> None:
        def also(tx: Tx) -> None:
            (turn,) = [row["turn_id"] for row in tx.all("SELECT turn_id FROM outbox WHERE id = :id", {"id": job.id})]
            cancel_reply(tx, job.id)
            if turn is not None:
                mark_replied(tx, turn, f"om_{turn}")

        self.table.do(finish, job, Outcome(also=also))
        self.replies.remove(job)

    @precondition(lambda self: self.replies)
    @rule(data=st.data(), state=st.sampled_from([JobState.FAILED, JobState.QUEUED]))
    def feishu_refuses(self, data: st.DataObject, state: JobState) -> None:
        job = data.draw(st.sampled_from(self.replies))
        self.table.do(finish, job, Outcome(state=state, error="refused"))
        self.replies.remove(job)

    @rule()
    def bridge_is_killed(self) -> None:
        self.zombies += self.held
        self.table.do(void_former_life, "me")
        self.replies.clear()
        found = self.table.do(recover, "me", self.table.new_token, lease_ms=LEASE_MS)
        self.held = list(found.to_reconcile)

    @rule()
    def time_passes_and_old_rows_go(self) -> None:
        self.table.now_ms += 8 * DAY_MS
        before_ms = self.table.now_ms - 7 * DAY_MS
        for forget in (forget_replies, forget_jobs, forget_runs):
            self.table.do(forget, before_ms, 100)

    # -- what holds --------------------------------------------------------------------------------------------------

    def dump(self) -> list[tuple[Any, ...]]:
        tables = ("jobs", "runs", "outbox", "lanes")
        return [tuple(row) for name in tables for row in self.table.rows(f"SELECT * FROM {name}")]

    @invariant()
    def a_run_is_handed_over_once(self) -> None:
        assert len(self.submitted) == len(set(self.submitted))

    @invariant()
    def a_turn_is_asked_again_once(self) -> None:
        assert not self.table.rows(
            "SELECT retry_of FROM runs WHERE retry_of IS NOT NULL GROUP BY retry_of HAVING COUNT(*) > 1"
        )

    @invariant()
    def job_and_run_agree(self) -> None:
        for row in self.table.rows("SELECT j.state AS job, r.state AS run FROM runs r JOIN jobs j ON j.id = r.turn_id"):
            assert (row["job"] in OPEN) is (row["run"] not in OVER), tuple(row)
            assert (row["job"] == JobState.UNKNOWN) is (row["run"] == RunPhase.UNKNOWN), tuple(row)

    @invariant()
    def what_ended_has_its_answer_and_what_goes_on_has_none(self) -> None:
        self.answered |= set(self.jobs())  # old ones are forgotten
        for row in self.table.rows("SELECT turn_id, state FROM runs"):
            assert (f"{row['turn_id']}-reply" in self.answered) is (row["state"] in OVER), tuple(row)

    @invariant()
    def a_reply_that_waits_has_its_words(self) -> None:
        assert not self.table.rows(
            "SELECT id FROM jobs WHERE kind = 'reply' AND state IN ('queued', 'running') "
            "AND id NOT IN (SELECT id FROM outbox)"
        )
        assert not self.table.rows("SELECT id FROM outbox WHERE id NOT IN (SELECT id FROM jobs)")

    @invariant()
    def an_answer_never_outlives_its_turn(self) -> None:
        assert not self.table.rows(
            "SELECT id FROM outbox WHERE turn_id IS NOT NULL AND turn_id NOT IN (SELECT turn_id FROM runs)"
        )


TestConversationMachine = ConversationMachine.TestCase
TestConversationMachine.settings = settings(max_examples=150, stateful_step_count=40)
