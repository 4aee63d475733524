"""What is kept long enough goes; what is not over, or not known, or still needed, stays."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agno_lark import retention
from agno_lark.clock import SystemClock
from agno_lark.errors import SettingsError, StoreError
from agno_lark.intake import forget as intake_forget
from agno_lark.intake.accept import seen_before
from agno_lark.intake.forget import forget_keys
from agno_lark.jobs import JobState
from agno_lark.jobs import forget as jobs_forget
from agno_lark.jobs.forget import forget_jobs
from agno_lark.retention import DAY_MS, HOUR_MS, STEP_ROWS, Retention, Rule, rules
from agno_lark.sessions import raise_generation, session_id
from agno_lark.settings import Settings, load_settings
from agno_lark.store import Store, Tx, engine
from agno_lark.turns import RunPhase, run_of_turn
from agno_lark.turns import forget as turns_forget
from agno_lark.turns.forget import forget_runs
from agno_lark.turns.rows import earlier_requesters
from tests.job_fixtures import JobTable, job_table

NOW_MS = 1_000 * DAY_MS
SETTINGS = Settings.given(feishu_app_id="cli_a", feishu_app_secret="s")
JOB_OVER = {JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN}
RUN_OVER = {RunPhase.COMPLETED, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.UNKNOWN}

ADD_JOB = """
INSERT INTO jobs (id, kind, queue, lane, state, payload, created_ms, available_ms, finished_ms)
VALUES (:id, 'turn', 'turns', :lane, :state, :payload, 0, 0, :finished)
"""
ADD_RUN = """
INSERT INTO runs (turn_id, run_id, seq, scope, generation, session_id, target_type, target_id, app_id, tenant_key,
    requester, chat_id, chat_type, message_id, language, state, accepted_ms, finished_ms)
VALUES (:id, :run, :seq, :scope, 1, :session, 'agent', 'a', 'cli', 't', :requester, 'oc', :chat_type, 'om', 'en',
    :state, 0, :finished)
"""
ADD_REPLY = (
    "INSERT INTO outbox (id, turn_id, place, language, content, created_ms) VALUES (:id, :turn, '', 'en', '', 1)"
)
ADD_KEY = "INSERT INTO dedup_messages (app_id, kind, key, seen_ms) VALUES ('cli', 'event', :key, :seen)"


def add_job(tx: Tx, job_id: str, state: JobState, finished_ms: int | None, *, payload: str = "{}") -> None:
    given = {"id": job_id, "lane": f"lane-{job_id}", "state": state, "finished": finished_ms, "payload": payload}
    tx.execute(ADD_JOB, given)


def add_run(
    tx: Tx,
    turn_id: str,
    state: RunPhase,
    finished_ms: int | None,
    *,
    seq: int = 1,
    scope: str = "",
    requester: str = "ou_a",
    chat_type: str = "p2p",
) -> None:
    scope = scope or f"scope-{turn_id}"
    session = session_id(scope, 1)
    given = {"id": turn_id, "run": f"run-{turn_id}", "seq": seq, "scope": scope, "session": session}
    more = {"requester": requester, "chat_type": chat_type, "state": state, "finished": finished_ms}
    tx.execute(ADD_RUN, given | more)


def add_key(tx: Tx, key: str, seen_ms: int) -> None:
    tx.execute(ADD_KEY, {"key": key, "seen": seen_ms})


@pytest.fixture
def table() -> Iterator[JobTable]:
    with job_table() as made:
        made.now_ms = NOW_MS
        yield made


def clean(table: JobTable, settings: Settings = SETTINGS, *, most: int = 3) -> None:
    """What `Retention.clean` does, without waiting."""
    for rule in rules(settings):
        while table.do(rule.forget, table.now_ms - rule.keep_ms, most):
            pass


def ids(table: JobTable, name: str) -> set[str]:
    queries = {
        "jobs": "SELECT id FROM jobs",
        "runs": "SELECT turn_id FROM runs",
        "keys": "SELECT key FROM dedup_messages",
        "replies": "SELECT id FROM outbox",
    }
    return {str(row[0]) for row in table.rows(queries[name])}


ages_ms = st.integers(0, 20 * DAY_MS)


@given(
    turns=st.lists(st.tuples(st.sampled_from(JobState), ages_ms, st.sampled_from(RunPhase), ages_ms), max_size=12),
    keys=st.lists(ages_ms, max_size=12),
    dedup_hours=st.integers(8, 720),
    keep_days=st.integers(1, 30),
)
def test_whatever_is_there_only_what_is_over_known_and_old_goes(
    turns: list[tuple[JobState, int, RunPhase, int]], keys: list[int], dedup_hours: int, keep_days: int
) -> None:
    settings = SETTINGS.model_copy(update={"bridge_dedup_hours": dedup_hours, "bridge_keep_days": keep_days})
    with job_table() as table:
        table.now_ms = NOW_MS
        jobs_stay, runs_stay = set(), set()
        for number, (job, job_age, run, run_age) in enumerate(turns):
            name = f"turn-{number}"
            table.do(add_job, name, job, NOW_MS - job_age if job in JOB_OVER else None)
            table.do(add_run, name, run, NOW_MS - run_age if run in RUN_OVER else None)
            if job not in JOB_OVER or job is JobState.UNKNOWN or job_age <= keep_days * DAY_MS:
                jobs_stay.add(name)
            if name in jobs_stay or run not in RUN_OVER or run is RunPhase.UNKNOWN or run_age <= keep_days * DAY_MS:
                runs_stay.add(name)
        for number, age in enumerate(keys):
            table.do(add_key, str(number), NOW_MS - age)
        clean(table, settings)
        assert ids(table, "jobs") == jobs_stay
        assert ids(table, "runs") == runs_stay
        assert ids(table, "keys") == {str(n) for n, age in enumerate(keys) if age <= dedup_hours * HOUR_MS}


@pytest.mark.parametrize("hours", [8, 24])
def test_a_redelivery_within_the_hours_is_known_and_one_after_them_is_new(table: JobTable, hours: int) -> None:
    settings = SETTINGS.model_copy(update={"bridge_dedup_hours": hours})
    assert not table.do(seen_before, "cli", "event", "message")
    table.now_ms += hours * HOUR_MS
    clean(table, settings)
    assert table.do(seen_before, "cli", "event", "message")
    table.now_ms += 1
    clean(table, settings)
    assert not table.do(seen_before, "cli", "event", "message")


def test_less_than_feishus_own_repetitions_is_refused() -> None:
    needed = {"FEISHU_APP_ID": "cli_x", "FEISHU_APP_SECRET": "s"}
    with pytest.raises(SettingsError, match="BRIDGE_DEDUP_HOURS: expected a whole number from 8 to 720, got '7'"):
        load_settings(env_file=None, environ=needed | {"BRIDGE_DEDUP_HOURS": "7"}, needs_target=False)


def test_an_unknown_turn_goes_once_it_is_resolved(table: JobTable) -> None:
    long_ago = NOW_MS - 100 * DAY_MS
    table.do(add_job, "a", JobState.UNKNOWN, long_ago)
    table.do(add_run, "a", RunPhase.UNKNOWN, long_ago)
    clean(table)
    assert ids(table, "jobs") == ids(table, "runs") == {"a"}
    table.connection.execute("UPDATE jobs SET state = 'failed'")
    clean(table)
    assert ids(table, "runs") == {"a"}, "the run itself is still unknown"
    table.connection.execute("UPDATE runs SET state = 'failed'")
    clean(table)
    assert ids(table, "jobs") == ids(table, "runs") == set()


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_a_run_stays_while_its_answer_is_on_its_way_however_long_nobody_could_send_it(
    table: JobTable, state: JobState
) -> None:
    long_ago = NOW_MS - 100 * DAY_MS
    table.do(add_job, "turn", JobState.DONE, long_ago)
    table.do(add_run, "turn", RunPhase.COMPLETED, long_ago)
    table.do(add_job, "reply", state, None)
    table.do(lambda tx: tx.execute(ADD_REPLY, {"id": "reply", "turn": "turn"}))
    clean(table)
    assert (ids(table, "replies"), ids(table, "runs"), ids(table, "jobs")) == ({"reply"}, {"turn"}, {"reply", "turn"})
    table.connection.execute("UPDATE jobs SET state = 'failed', finished_ms = 1")
    clean(table)
    assert (ids(table, "replies"), ids(table, "runs"), ids(table, "jobs")) == (set(), set(), set())


def test_who_began_a_shared_conversation_is_known_as_long_as_it_goes_on(table: JobTable) -> None:
    """AgentOS keeps a session for whoever began it, and answers anybody else with 404."""
    scope, long_ago = "feishu:agent:a:chat_oc", NOW_MS - 100 * DAY_MS
    table.do(raise_generation, scope)
    table.connection.execute("UPDATE session_scopes SET generation = 1")
    for seq, person in enumerate(["ou_a", "ou_b", "ou_a", "ou_b"], 1):
        shared = {"scope": scope, "chat_type": "group", "requester": person}
        table.do(add_run, f"g{seq}", RunPhase.COMPLETED, long_ago, seq=seq, **shared)
    table.do(add_run, "new", RunPhase.WAITING, None, seq=9, scope=scope, chat_type="group", requester="ou_c")
    clean(table)
    assert ids(table, "runs") == {"g1", "g2", "new"}
    row = table.do(run_of_turn, "new")
    assert row is not None
    assert table.do(earlier_requesters, row) == ["ou_a", "ou_b"]
    table.do(raise_generation, scope)
    clean(table)
    assert ids(table, "runs") == {"new"}


@pytest.mark.parametrize(
    ("name", "add", "forget"),
    [
        ("jobs", lambda tx, name, at: add_job(tx, name, JobState.DONE, at), forget_jobs),
        ("runs", lambda tx, name, at: add_run(tx, name, RunPhase.FAILED, at), forget_runs),
        ("keys", add_key, forget_keys),
    ],
)
def test_one_step_takes_no_more_rows_than_it_is_told_and_the_oldest_first(
    table: JobTable, name: str, add: Callable[[Tx, str, int], None], forget: Callable[[Tx, int, int], int]
) -> None:
    for day in range(20, 0, -1):
        table.do(add, str(day), NOW_MS - day * DAY_MS)
    assert table.do(forget, NOW_MS, 4) == 4
    assert ids(table, name) == {str(day) for day in range(1, 17)}
    assert table.do(forget, NOW_MS - 15 * DAY_MS, 4) == 1
    assert table.do(forget, NOW_MS - 15 * DAY_MS, 4) == 0


@pytest.mark.parametrize("name", ["keys", "jobs", "runs"])
def test_a_step_finds_the_old_rows_by_an_index(table: JobTable, name: str) -> None:
    """A million rows that stay must not be read for the sake of those that go."""
    sql = {"keys": intake_forget, "jobs": jobs_forget, "runs": turns_forget}[name].FORGET
    plan = [
        str(row["detail"]) for row in table.connection.execute(f"EXPLAIN QUERY PLAN {sql}", {"before": 1, "most": 1})
    ]
    scans = [line for line in plan if line.startswith("SCAN") and line != "SCAN outbox"]  # it is nearly always empty
    assert not [*scans, *(line for line in plan if "TEMP B-TREE" in line)], plan


def fill(tx: Tx, count: int, payload: str = "{}") -> None:
    for number in range(count):
        add_job(tx, f"old-{number}", JobState.DONE, 1, payload=payload)
        add_run(tx, f"old-{number}", RunPhase.COMPLETED, 1)
        add_key(tx, f"old-{number}", 1)


async def test_a_cleaning_goes_in_small_steps_and_lets_others_write_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAUSE_S", 0.001)
    steps: list[int] = []

    def watched(rule: Rule) -> Rule:
        def forget(tx: Tx, before_ms: int, most: int) -> int:
            steps.append(rule.forget(tx, before_ms, most))
            return steps[-1]

        return Rule(name=rule.name, keep_ms=rule.keep_ms, forget=forget)

    async with Store.open(tmp_path / "s") as store:
        await store.transact(fill, 1_000)
        cleaning = Retention(store, tuple(watched(rule) for rule in rules(SETTINGS)), clock=SystemClock())
        task = asyncio.create_task(cleaning.clean())
        seen: set[int] = set()
        while not task.done():
            await store.transact(raise_generation, "somebody else")
            seen.add(len(steps))
        assert await task == {"keys": 1_000, "replies": 0, "jobs": 1_000, "runs": 1_000, "pages": 0}
    assert max(steps) == STEP_ROWS
    assert len(seen) > len(steps) / 2, "commits of others came between the steps"


async def test_the_file_gets_smaller_but_keeps_some_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PAUSE_S", 0.0)
    monkeypatch.setattr(retention, "SPARE_PAGES", 256)
    path = tmp_path / "s"
    async with Store.open(path) as store:
        await store.transact(fill, 2_000, "x" * 4_000)
    before = path.stat().st_size
    async with Store.open(path) as store:
        gone = await Retention(store, rules(SETTINGS), clock=SystemClock()).clean()
        free = (await store.read("PRAGMA freelist_count"))[0][0]
    assert gone["pages"] > 1_000
    assert 256 <= free < 256 + 64
    assert path.stat().st_size < before / 4
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_the_wal_gives_its_space_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WAL_MOST_BYTES", 2**20)
    wal = tmp_path / "s-wal"
    async with Store.open(tmp_path / "s") as store:
        await store.transact(fill, 1_500, "x" * 8_000)
        assert wal.stat().st_size > 8 * 2**20, "one large transaction is one large WAL"
        await store.transact(raise_generation, "a")
        await store.transact(raise_generation, "a")
        assert wal.stat().st_size <= 2**20


async def test_the_loop_goes_on_after_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "FIRST_S", 0.001)
    refusals: list[Exception] = [StoreError("the disk is full"), sqlite3.OperationalError("disk I/O error")]
    cleaned = asyncio.Event()

    def forget(tx: Tx, before_ms: int, most: int) -> int:
        if refusals:
            raise refusals.pop()
        cleaned.set()
        return 0

    async with Store.open(tmp_path / "s") as store:
        loop = Retention(store, (Rule(name="rows", keep_ms=0, forget=forget),), clock=SystemClock())
        task = asyncio.create_task(loop.run())
        try:
            async with asyncio.timeout(10):
                await cleaned.wait()
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait({task})
    assert [record.message for record in caplog.records].count("old rows could not be forgotten") == 2
