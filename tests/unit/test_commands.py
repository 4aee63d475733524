"""Reading commands, and what they decide and answer."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agno_lark.commands import CommandContext, NearMiss, ParsedCommand, decide, parse_command
from agno_lark.commands.conversation import answer_help, answer_new
from agno_lark.commands.runs import answer_cancel, answer_status, read_status
from agno_lark.locale import Lang
from agno_lark.sandbox.cards import check
from agno_lark.sessions import current_generation
from agno_lark.turns import RunPhase, find_run
from agno_lark.turns.rows import close_run, mark_running, mark_submitted
from tests.job_fixtures import JobTable, accept_turn, job_table

SCOPE = "feishu:agent:a:chat_oc_1"


@pytest.fixture
def table() -> Iterator[JobTable]:
    with job_table() as made:
        yield made


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/new", "new", ""),
        ("  /NEW ", "new", ""),
        ("／help", "help", ""),
        ("/new demo", "new", "demo"),
        ("/new\nline one\nline two", "new", "line one\nline two"),
        ("/stop", "cancel", ""),
        ("/cancel 1a2b3c4d", "cancel", "1a2b3c4d"),
        ("/Status　", "status", ""),
    ],
)
def test_commands_are_read(text: str, name: str, rest: str) -> None:
    assert parse_command(text) == ParsedCommand(name=name, rest=rest)


@pytest.mark.parametrize(
    "text",
    [
        "/etc/hosts is wrong",
        "/weather",
        "/weather in Rome",
        "hello /new",
        "/",
        "//new",
        "/ new",
        "/newcomer guide",
        "",
        "/123",
        "/statement of work",
        "1/2",
    ],
)
def test_other_text_goes_to_the_agent(text: str) -> None:
    assert parse_command(text) is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/nwe", "/new"),
        ("/cancle", "/cancel"),
        ("/stauts", "/status"),
        ("/hlep", "/help"),
        ("/cancell 1a2b3c4d", "/cancel"),
        ("/stpo", "/stop"),
    ],
)
def test_a_near_miss_gets_a_hint(text: str, meant: str) -> None:
    found = parse_command(text)
    assert isinstance(found, NearMiss)
    assert found.meant == meant


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse_command(text)
    parse_command("/" + text)


def run(table: JobTable, name: str, *, scope: str = SCOPE, phase: RunPhase = RunPhase.WAITING) -> str:
    """A turn of the scope, brought to `phase`; its run id is `{name}-` and some more."""
    accept_turn(table, name, scope=scope)
    run_id = f"{name}-0000-run"
    if phase is not RunPhase.WAITING:
        assert table.do(mark_submitted, name, run_id)
        table.do(mark_running, name, run_id)
        if phase is not RunPhase.RUNNING:
            assert table.do(close_run, name, phase)
    return run_id


def cancel(table: JobTable, rest: str = "", scope: str = SCOPE) -> dict[str, object]:
    return dict(table.do(decide, "cancel", CommandContext(scope=scope, rest=rest, job_id="j")))


def test_new_raises_the_generation_for_what_follows(table: JobTable) -> None:
    assert table.do(current_generation, SCOPE) == 1
    assert table.do(decide, "new", CommandContext(scope=SCOPE, rest="", job_id="j")) == {
        "generation": 2,
        "still_running": False,
    }
    run(table, "first", phase=RunPhase.RUNNING)
    assert table.do(decide, "new", CommandContext(scope=SCOPE, rest="", job_id="j"))["still_running"]
    assert table.do(current_generation, SCOPE) == 3
    assert table.do(current_generation, SCOPE + ":other") == 1


def test_cancel_means_the_newest_run_that_was_handed_over(table: JobTable) -> None:
    run(table, "first", phase=RunPhase.COMPLETED)
    run(table, "second", phase=RunPhase.RUNNING)
    run(table, "third")
    assert cancel(table) == {"result": "requested", "turn_id": "second", "run": "second-0"}


def test_cancel_takes_a_waiting_turn_when_nothing_runs(table: JobTable) -> None:
    assert cancel(table) == {"result": "nothing"}
    run(table, "third")
    assert cancel(table)["turn_id"] == "third"
    assert not table.do(mark_submitted, "third", "run"), "a turn that was stopped is not handed over"


def test_cancel_by_id_is_for_ones_own_scope(table: JobTable) -> None:
    run_id = run(table, "abcdef", phase=RunPhase.RUNNING)
    other = run(table, "fedcba", scope=SCOPE + ":user:ou_b", phase=RunPhase.RUNNING)
    assert cancel(table, "abcdef-0")["result"] == "requested"
    assert cancel(table, f"`{run_id}`")["result"] == "requested"
    assert cancel(table, other)["result"] == "not_found"
    assert cancel(table, "abc")["result"] == "not_found", "too short to mean one run"
    assert cancel(table, "a b")["result"] == "arguments"
    assert table.do(close_run, "abcdef", RunPhase.CANCELLED)
    assert cancel(table, run_id)["result"] == "over"


def test_a_prefix_of_two_runs_finds_neither(table: JobTable) -> None:
    run(table, "abcdef1", phase=RunPhase.RUNNING)
    run(table, "abcdef2", phase=RunPhase.RUNNING)
    assert table.do(find_run, "abcdef") is None
    assert table.do(find_run, "abcdef%") is None
    assert table.do(find_run, "abcdef1-") is not None


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_answer_is_a_card_the_platform_takes(table: JobTable, lang: Lang) -> None:
    for number, phase in enumerate(phase for phase in RunPhase if phase not in (RunPhase.SUBMITTED,)):
        run(table, f"run{number}", phase=phase)
    for number in range(30):
        run(table, f"many{number}")
    facts = table.do(read_status, SCOPE)
    evil = "![x](http://e.org/a.png) <at id=all></at> |a|\n|-|"
    cards = [
        answer_help(evil, lang),
        answer_new({"still_running": True}, lang),
        answer_new({"still_running": False}, lang),
        answer_status(facts, 3, evil, table.now_ms + 5000, lang),
        answer_status(([], []), 1, "x", 0, lang),
        *(
            answer_cancel({"result": result, "run": evil}, lang)
            for result in ("requested", "nothing", "not_found", "over", "arguments")
        ),
    ]
    for card in cards:
        assert not check(card, strict=True), card
