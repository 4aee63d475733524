"""Where a message is, and what an operator can do about it: on a table in memory, and by the command line on a file."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from agno_lark.cli import cli
from agno_lark.errors import NewerSchemaError, StoreError
from agno_lark.intake.accept import Origin, Talk, accept_message, seen_before
from agno_lark.jobs import Job, JobState, Outcome, Queue, begin_effect, claim, finish
from agno_lark.operate import Whereabouts, cancel_job, list_jobs, retry_job, whereabouts
from agno_lark.replies import Ending, Place, note_card, put_answer, put_card
from agno_lark.sessions import Scope
from agno_lark.store import Store, Tx, read_once, write_once
from agno_lark.targets import RunView
from agno_lark.turns import RunPhase, run_of_turn
from agno_lark.turns.rows import close_run, mark_replied, mark_running, mark_submitted
from tests.job_fixtures import JobTable, accept_turn, job_table

PLACE = Place(chat_id="oc_1", message_id="om_t1")


@pytest.fixture
def table() -> Iterator[JobTable]:
    with job_table() as made:
        yield made


def ask(table: JobTable, name: str) -> None:
    """A turn as intake accepts it, by its message `om_{name}`."""
    table.do(seen_before, "cli", f"e-{name}", f"om_{name}", name)
    accept_turn(table, name, text=f"words of {name}")


def take(table: JobTable, queue: Queue = Queue.TURNS) -> Job:
    (job,) = table.do(claim, queue, "me", table.new_token, most=1, lease_ms=30_000).jobs
    return job


def end(table: JobTable, job: Job, state: JobState, phase: RunPhase, error: str = "") -> None:
    """As the turn's handler ends it: run, job and reply in one."""
    ending = Ending(view=RunView(), elapsed_ms=1, unknown=phase is RunPhase.UNKNOWN, turn_id=job.id)

    def also(tx: Tx) -> None:
        close_run(tx, job.id, phase, error or None)
        put_answer(tx, ending, reply_id=f"{job.id}-reply", turn_id=job.id, lane=job.lane, place=PLACE, language="en")

    table.do(finish, job, Outcome(state=state, error=error, also=also))


def at(table: JobTable, given: str) -> Whereabouts:
    found = table.do(whereabouts, given)
    assert found is not None
    return found


def test_a_message_is_followed_from_its_acceptance_to_its_answer(table: JobTable) -> None:
    ask(table, "t1")
    ask(table, "t2")
    ask(table, "t3")
    assert at(table, "om_t1").where == "accepted"
    third = at(table, "om_t3")
    assert (third.where, third.behind, third.behind_count) == ("waiting", ("t1", "t2"), 2)
    assert "behind t1 and 1 more" in third.why

    job = take(table)
    table.do(mark_submitted, "t1", "run-abcdef")
    table.do(begin_effect, job, "submit")
    assert (at(table, "om_t1").where, at(table, "om_t1").run_id) == ("running", "run-abcdef")
    assert "has not answered yet" in at(table, "om_t1").why
    table.do(mark_running, "t1", "run-abcdef")
    assert "goes on at the AgentOS" in at(table, "run-abc").why

    end(table, job, JobState.DONE, RunPhase.COMPLETED)
    assert at(table, "om_t1").where == "replying"
    reply = take(table, Queue.REPLIES)
    table.do(finish, reply, Outcome(also=lambda tx: mark_replied(tx, "t1", "om_answer")))
    shown = at(table, "om_answer")
    assert (shown.where, shown.message_id, shown.answer) == ("replied", "om_t1", "om_answer")
    assert shown.replied_ms == table.now_ms
    assert at(table, "om_t2").where == "accepted"


def test_a_reply_that_cannot_be_shown_now_or_ever_is_told_apart(table: JobTable) -> None:
    ask(table, "t1")
    end(table, take(table), JobState.DONE, RunPhase.COMPLETED)
    reply = take(table, Queue.REPLIES)
    table.do(finish, reply, Outcome(state=JobState.QUEUED, error="Feishu is away", delay_ms=5_000))
    assert at(table, "om_t1").where == "replying"
    assert "tried 1 times, last: Feishu is away" in at(table, "om_t1").why
    table.now_ms += 6_000
    table.do(finish, take(table, Queue.REPLIES), Outcome(state=JobState.FAILED, error="the bot is not in the chat"))
    assert at(table, "om_t1").where == "failed"
    assert "the bot is not in the chat" in at(table, "om_t1").why

    assert table.do(retry_job, "om_t1", "again").startswith("done")
    assert at(table, "om_t1").where == "replying"
    again = take(table, Queue.REPLIES)
    assert again.id == "again"
    table.do(finish, again, Outcome(also=lambda tx: mark_replied(tx, "t1", "om_answer")))
    assert at(table, "om_t1").where == "replied"
    assert table.do(retry_job, "t1-reply", "once more").startswith("nothing")


def test_an_unknown_turn_says_why_and_is_asked_again_once(table: JobTable) -> None:
    ask(table, "t1")
    job = take(table)
    table.do(mark_submitted, "t1", "run-1")
    table.do(begin_effect, job, "submit")
    end(table, job, JobState.UNKNOWN, RunPhase.UNKNOWN, "the AgentOS cannot be reached")
    take(table, Queue.REPLIES)
    found = at(table, "om_t1")
    assert found.where == "unknown"
    assert "while its run was handed over (the AgentOS cannot be reached)" in found.why

    assert table.do(retry_job, "om_t1", "t1-again") == "done: asked again, as turn t1-again"
    again = at(table, "t1-again")
    assert (again.message_id, again.retry_of) == ("om_t1", "t1")
    assert take(table).payload == {"text": "words of t1"}
    row = table.do(run_of_turn, "t1")
    assert row is not None
    assert (row.state, row.reason) == (RunPhase.CANCELLED, "retried")
    assert table.do(retry_job, "t1", "t1-thrice").startswith("nothing: it was asked again")
    assert table.do(cancel_job, "t1", "x").startswith("nothing")


def test_a_failed_turn_can_be_asked_again_as_long_as_its_words_are_kept(table: JobTable) -> None:
    ask(table, "t1")
    end(table, take(table), JobState.FAILED, RunPhase.FAILED, "timeout")
    assert table.do(retry_job, "om_t1", "t1-again").startswith("done")
    assert table.do(retry_job, "om_t1", "t1-thrice").startswith("nothing"), "it waits already"


def test_taking_back_means_what_is_still_possible(table: JobTable) -> None:
    for name in ("t1", "t2"):
        ask(table, name)
    take(table)
    assert table.do(cancel_job, "om_t2", "s2") == "done: it was not begun; the person is told"
    assert take(table, Queue.REPLIES).id == "t2-reply"
    assert table.do(cancel_job, "om_t1", "s1").startswith("done: the stop is noted")
    assert take(table, Queue.CONTROL).payload == {"turn_id": "t1"}
    assert table.do(cancel_job, "om_t2", "s3") == "nothing: the turn is over (cancelled)"
    assert "a stop was asked for 0 s ago" in at(table, "om_t1").why
    assert table.do(cancel_job, "nobody", "s4").startswith("nothing: no message, job or run 'nobody'")


def test_a_reply_that_is_taken_back_is_not_sent(table: JobTable) -> None:
    table.do(put_card, note_card("a hint"), reply_id="c-reply", lane="control:x", place=PLACE, language="en")
    assert table.do(cancel_job, "c-reply", "x") == "done: it is not carried out"
    assert not table.rows("SELECT 1 FROM outbox")
    assert not table.rows("SELECT 1 FROM lanes")


def test_an_answer_that_was_taken_back_is_not_called_shown(table: JobTable) -> None:
    ask(table, "t1")
    end(table, take(table), JobState.DONE, RunPhase.COMPLETED)
    assert table.do(cancel_job, "t1-reply", "x").startswith("done")
    assert at(table, "om_t1").where == "cancelled"


def test_a_command_is_found_by_its_message_and_is_not_asked_again(table: JobTable) -> None:
    table.do(seen_before, "cli", "e1", "om_help", "c1")
    table.do(put_card, note_card("a hint"), reply_id="c1", lane="control:x", place=PLACE, language="en")
    assert at(table, "om_help").message_id == "om_help"
    table.do(
        finish, take(table, Queue.REPLIES), Outcome(state=JobState.QUEUED, error="Feishu is away", delay_ms=60_000)
    )
    assert not table.do(claim, Queue.REPLIES, "me", table.new_token, most=1, lease_ms=1).jobs
    assert table.do(retry_job, "om_help", "x") == "done: its answer is tried now"
    table.do(finish, take(table, Queue.REPLIES), Outcome())
    assert table.do(retry_job, "om_help", "x").startswith("nothing")


def test_a_few_letters_of_an_id_are_enough_where_they_mean_one_job(table: JobTable) -> None:
    for name in ("abcdef-one", "abcdef-two", "abcxyz-one"):
        ask(table, name)
    end(table, take(table), JobState.FAILED, RunPhase.FAILED, "timeout")
    assert at(table, "abcdef-o").job.id == "abcdef-one", "its reply has a longer id, and means the same"
    assert at(table, "abcxyz").job.id == "abcxyz-one"
    assert table.do(whereabouts, "abcdef") is None, "two jobs begin so"
    assert table.do(whereabouts, "abcxy") is None, "too short"


def test_what_somebody_should_decide_about_can_be_listed(table: JobTable) -> None:
    for name in ("t1", "t2", "t3"):
        ask(table, name)
    job = take(table)
    table.do(mark_submitted, "t1", "run-1")
    end(table, job, JobState.UNKNOWN, RunPhase.UNKNOWN)
    end(table, take(table), JobState.FAILED, RunPhase.FAILED)
    assert [line.id for line in table.do(list_jobs, only_open=True)] == ["t1"]
    assert table.do(list_jobs, only_open=True)[0].message_id == "om_t1"
    assert table.do(retry_job, "t1", "t1-again").startswith("done")
    assert not table.do(list_jobs, only_open=True)
    assert at(table, "t1").asked_again_as == "t1-again"


def test_jobs_are_listed_newest_first_and_hold_no_words(table: JobTable) -> None:
    for name in ("t1", "t2", "t3"):
        ask(table, name)
    take(table)
    assert [line.id for line in table.do(list_jobs)] == ["t3", "t2", "t1"]
    assert [line.id for line in table.do(list_jobs, state="running")] == ["t1"]
    assert len(table.do(list_jobs, most=2)) == 2
    assert "words of" not in repr(table.do(list_jobs)) + repr(at(table, "om_t1"))


@pytest.fixture
async def state_file(tmp_path: Path) -> Path:
    path = tmp_path / "state.sqlite3"
    async with Store.open(path):
        pass

    scope = Scope(target_type="agent", target_id="a", chat_id="oc_1")
    place = Place(chat_id="oc_1", message_id="om_t1")
    origin = Origin(
        app_id="cli",
        tenant_key="t",
        event_id="e",
        sender="ou_a",
        chat_type="p2p",
        place=place,
        scope=scope,
        language="en",
    )
    write_once(path, 1_000, accept_message, "t1", origin, Talk(text="words"), ("agent", "a"))
    return path


def run(path: Path, *args: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["jobs", "--db", str(path), *args])
    return done.exit_code, done.output


def test_the_command_line_shows_asks_again_and_takes_back(state_file: Path) -> None:
    code, listed = run(state_file, "list", "--json")
    assert code == 0
    assert [line["id"] for line in json.loads(listed)] == ["t1"]
    assert "queued" in run(state_file, "list")[1]
    code, shown = run(state_file, "show", "om_t1")
    assert (code, shown.splitlines()[0]) == (
        0,
        "accepted: it is the next of its conversation, and waits for a free place",
    )
    assert json.loads(run(state_file, "show", "om_t1", "--json")[1])["message_id"] == "om_t1"
    assert run(state_file, "show", "om_unheard")[0] == 1
    assert run(state_file, "retry", "om_t1")[0] == 1
    code, told = run(state_file, "cancel", "om_t1", "--json")
    assert (code, json.loads(told)["done"]) == (0, True)
    assert run(state_file, "list", "--state", "cancelled")[1].count("om_t1") == 1
    assert "no daemon is running" in run(state_file, "show", "om_t1")[1]
    assert run(state_file, "list", "--kind", "bogus")[0] == 2


def test_a_file_that_is_not_there_or_of_another_version_is_told(tmp_path: Path, state_file: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file"):
        read_once(tmp_path / "nothing", 0, list_jobs)
    write_once(state_file, 0, lambda tx: tx.execute("INSERT INTO schema_version VALUES (99, 99, 0)"))
    with pytest.raises(NewerSchemaError, match="it has schema 99"):
        read_once(state_file, 0, list_jobs)


@pytest.mark.parametrize("given", ["\udcff\udcfe", "om_\udcff", "' OR 1=1 --", "a" * 100_000, "\0", "🎉", " ", ""])
@pytest.mark.parametrize("command", ["show", "retry", "cancel"])
def test_an_id_that_is_none_is_told_as_such(state_file: Path, command: str, given: str) -> None:
    code, told = run(state_file, command, "--", given)
    assert code == 1
    assert "no message, job or run" in told


def test_a_folder_that_may_not_be_looked_into_is_told(monkeypatch: pytest.MonkeyPatch, state_file: Path) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refused)
    with pytest.raises(StoreError, match="check the owner and the rights"):
        read_once(state_file, 0, list_jobs)


def test_what_raises_in_a_transaction_from_outside_undoes_it(state_file: Path) -> None:
    def fails(tx: Tx) -> None:
        cancel_job(tx, "om_t1", "x")
        raise KeyError("on purpose")

    with pytest.raises(KeyError):
        write_once(state_file, 0, fails)
    (line,) = read_once(state_file, 0, list_jobs)
    assert line.state == "queued"
