"""The state machine of runs: only known moves, one end, and a stop that is asked for in time is never overtaken."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agno_lark.turns import RUN_TRANSITIONS, RunPhase, request_cancel, run_of_turn
from agno_lark.turns.rows import OVER, close_run, mark_running, mark_submitted, resolve_unknown_run
from tests.job_fixtures import JobTable, accept_turn

CLOSINGS = st.sampled_from([RunPhase.PAUSED, *sorted(OVER)])


class RunMachine(RuleBasedStateMachine):
    """One turn; its handler, a former life of it, and a person with a Stop button, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.table = JobTable()
        accept_turn(self.table, "t")
        self.last = RunPhase.WAITING
        self.stop_asked_first = False

    def teardown(self) -> None:
        self.table.connection.close()

    def row(self) -> RunPhase:
        row = self.table.do(run_of_turn, "t")
        assert row is not None
        return row.state

    @rule()
    def submits(self) -> None:
        was_waiting = self.row() is RunPhase.WAITING
        done = self.table.do(mark_submitted, "t", "run")
        assert (done is not None) is (was_waiting and not self.stop_asked_first)

    @rule(run_id=st.sampled_from(["run", "minted-by-the-queue"]))
    def hears(self, run_id: str) -> None:
        before = self.row()
        self.table.do(mark_running, "t", run_id)
        if before is RunPhase.WAITING or before in OVER:
            assert self.row() is before

    @rule()
    def person_stops(self) -> None:
        before = self.row()
        assert self.table.do(request_cancel, "t") is (before not in OVER)
        self.stop_asked_first = self.stop_asked_first or before is RunPhase.WAITING

    @rule(end=CLOSINGS)
    def closes(self, end: RunPhase) -> None:
        before = self.row()
        allowed = end in RUN_TRANSITIONS[before] or end is before is RunPhase.PAUSED
        assert self.table.do(close_run, "t", end) is (allowed and before not in OVER)

    @rule()
    def somebody_decides(self) -> None:
        before = self.row()
        assert self.table.do(resolve_unknown_run, "t", "dismissed") is (before is RunPhase.UNKNOWN)

    @invariant()
    def only_known_moves_are_made(self) -> None:
        state = self.row()
        assert state is self.last or state in RUN_TRANSITIONS[self.last], (self.last, state)
        self.last = state
        row = self.table.do(run_of_turn, "t")
        assert row is not None
        assert (row.finished_ms is not None) is (state in OVER)


RunMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestRunMachine = RunMachine.TestCase
