"""The judge of a chaos run finds what is wrong, and nothing where nothing is."""

from dataclasses import replace
from typing import Any

import pytest

from agno_lark.sandbox.demo_calls import ModelCall
from tests.bench.chaos_judge import FAULTS, Asked, Down, Facts, Seen, Turn, judge
from tests.bench.chaos_plan import Kind


def asked(number: int, kind: Kind = Kind.ECHO, **more: Any) -> Asked:
    given: dict[str, Any] = {
        "message_id": f"om_{number}",
        "person": "Person 1",
        "text": f"please note {number}",
        "kind": kind,
        "needles": (f"note {number}",),
        "model_calls": 1,
        "written_ms": number * 1000,
    }
    return Asked(**given | more)


def seen(number: int, text: str = "", **more: Any) -> Seen:
    given: dict[str, Any] = {
        "message_id": f"om_a{number}",
        "to": f"om_{number}",
        "place": "oc_1",
        "position": number,
        "text": text or f"Hello! You said: please note {number}\nDone · 1.0 s · run abcdefgh",
        "grows": False,
    }
    return Seen(**given | more)


def turn(number: int, **more: Any) -> Turn:
    given: dict[str, Any] = {
        "turn_id": f"t{number}",
        "message_id": f"om_{number}",
        "seq": number,
        "session_id": "lane",
        "state": "completed",
        "reason": None,
        "run_id": f"r{number}",
        "accepted_ms": number * 1000,
        "submitted_ms": number * 1000 + 10,
        "finished_ms": number * 1000 + 900,
    }
    return Turn(**given | more)


def call(number: int, **more: Any) -> ModelCall:
    given: dict[str, Any] = {"session_id": "lane", "run_id": f"r{number}", "turn_id": f"t{number}", "time_ms": number}
    return ModelCall(**given | more)


def facts(**more: Any) -> Facts:
    """Two messages in one lane, each with its answer."""
    numbers = (1, 2)
    good: dict[str, Any] = {
        "asked": [asked(number) for number in numbers],
        "seen": [seen(number) for number in numbers],
        "turns": [turn(number) for number in numbers],
        "calls": [call(number) for number in numbers],
    }
    return Facts(**good | more)


def wrongs(given: Facts) -> dict[str, int]:
    return {name: len(cases) for name, cases in judge(given).wrongs.items() if cases}


def test_two_messages_with_their_answers_are_right() -> None:
    verdict = judge(facts())
    assert verdict.is_good
    assert verdict.answers == {"completed": 2}
    assert verdict.as_json() == {
        **dict.fromkeys(FAULTS, 0),
        "unknown": 0,
        "explained": {},
        "answers": {"completed": 2},
        "wrongs": {},
        "explanations": [],
    }


def test_a_message_without_an_answer_is_lost() -> None:
    assert wrongs(facts(seen=[seen(1)])) == {"lost": 1}
    assert wrongs(facts(seen=[seen(1)], turns=[turn(1)], calls=[call(1)])) == {"lost": 1}


def test_a_card_that_still_grows_is_no_answer() -> None:
    assert wrongs(facts(seen=[seen(1), seen(2, grows=True)])) == {"lost": 1, "growing": 1}


def test_a_card_left_growing_beside_the_answer_is_seen() -> None:
    left = seen(2, message_id="om_left", text="Thinking…\nStop", grows=True)
    assert wrongs(facts(seen=[seen(1), left, seen(2)])) == {"growing": 1}


def test_a_second_answer_is_one_too_many() -> None:
    again = replace(seen(2), message_id="om_again", position=9)
    assert wrongs(facts(seen=[seen(1), seen(2), again])) == {"doubled": 1}


def test_a_message_that_became_two_turns_is_doubled() -> None:
    assert wrongs(facts(turns=[turn(1), turn(2), turn(3, message_id="om_2")])) == {"doubled": 1}


def test_an_answer_in_parts_is_one_answer() -> None:
    parts = [seen(2, "Hello! You said: please\nPart 1 of 2"), replace(seen(2), message_id="om_p2", position=3)]
    assert wrongs(facts(seen=[seen(1), *parts])) == {}
    assert wrongs(facts(seen=[seen(1), parts[0]])) == {"lost": 1}


def test_a_line_of_state_in_the_place_of_a_card_is_no_second_answer() -> None:
    stub = seen(2, "Done · 1.0 s · run abcdefgh", message_id="om_stub")
    assert wrongs(facts(seen=[seen(1), stub, replace(seen(2), position=3)])) == {}


def test_the_answer_to_another_message_is_wrong() -> None:
    assert wrongs(facts(seen=[seen(1), seen(2, "You said: please note 1\nDone · 1.0 s")])) == {"wrong": 1}


def test_an_answer_that_says_it_twice_is_wrong() -> None:
    twice = "You said: please note 2\nYou said: please note 2\nDone · 1.0 s"
    assert wrongs(facts(seen=[seen(1), seen(2, twice)])) == {"wrong": 1}


def test_an_answer_of_which_the_rows_know_nothing_is_wrong() -> None:
    assert wrongs(facts(turns=[turn(1)], calls=[call(1)])) == {"wrong": 1}


def test_a_run_that_began_before_an_earlier_one_of_its_lane_is_out_of_order() -> None:
    assert wrongs(facts(calls=[call(2), call(1)])) == {"out_of_order": 1}
    other = turn(2, session_id="another lane")
    assert wrongs(facts(calls=[call(2), call(1)], turns=[turn(1), other])) == {}


def test_an_answer_that_stands_before_an_earlier_one_is_out_of_order() -> None:
    assert wrongs(facts(seen=[seen(1, position=5), seen(2)])) == {"out_of_order": 1}


@pytest.mark.parametrize("again", [call(2), call(2, run_id="r3")], ids=["same run", "another run"])
def test_a_second_submission_is_found_by_the_calls_of_the_model(again: ModelCall) -> None:
    assert wrongs(facts(calls=[call(1), call(2), again])) == {"submitted_twice": 1}


def test_a_tool_takes_two_calls_of_the_model_and_no_third() -> None:
    tool = [asked(1), asked(2, Kind.TOOL, model_calls=2)]
    assert wrongs(facts(asked=tool, calls=[call(1), call(2), call(2)])) == {}
    assert wrongs(facts(asked=tool, calls=[call(1), call(2), call(2), call(2)])) == {"submitted_twice": 1}


def test_a_call_of_the_model_for_no_turn_is_found() -> None:
    assert wrongs(facts(calls=[call(1), call(2), call(9)])) == {"submitted_twice": 1}


def timed_out(end: str = "Failed") -> Facts:
    rows = [turn(1), turn(2, state="failed", reason="timeout", finished_ms=30_000)]
    return facts(seen=[seen(1), seen(2, f"note 2\n{end} · 28 s")], turns=rows)


def test_a_run_without_an_answer_is_explained_by_the_death_of_its_agentos() -> None:
    near = Down(what="agentos", from_ms=2_500, until_ms=6_000)
    verdict = judge(replace(timed_out(), downs=[near]))
    assert verdict.is_good
    assert verdict.explained == {"failed/timeout: AgentOS was killed": 1}
    assert len(verdict.explanations) == 1


@pytest.mark.parametrize(
    "down",
    [
        None,
        Down(what="agentos", from_ms=50_000, until_ms=60_000),
        Down(what="bridge", from_ms=2_500, until_ms=6_000),
    ],
    ids=["nothing happened", "too late", "the bridge's own death"],
)
def test_a_run_without_an_answer_that_nothing_explains_is_a_fault(down: Down | None) -> None:
    assert wrongs(replace(timed_out(), downs=[down] if down else [])) == {"unexplained": 1}


def test_a_card_that_tells_another_end_than_the_row_is_wrong() -> None:
    near = Down(what="agentos", from_ms=2_500, until_ms=6_000)
    assert wrongs(replace(timed_out("Outcome unknown"), downs=[near])) == {"wrong": 1}


def test_a_run_may_be_stopped_by_who_pressed_stop_and_by_nobody_else() -> None:
    rows = [turn(1), turn(2, state="cancelled")]
    stopped = facts(seen=[seen(1), seen(2, "1 2\nStopped · 1.0 s")], turns=rows)
    assert wrongs(replace(stopped, asked=[asked(1), asked(2, Kind.STOP)])) == {}
    assert wrongs(stopped) == {"unexplained": 1}


def test_a_command_is_answered_once_with_its_own_card() -> None:
    ask = asked(3, Kind.STATUS, text="/status", needles=(), model_calls=0)
    for text in ("Status\nNothing is running or waiting here.", "状态\n这里没有正在运行或等待的任务。"):
        assert wrongs(facts(asked=[*facts().asked, ask], seen=[*facts().seen, seen(3, text)])) == {}
    assert wrongs(facts(asked=[*facts().asked, ask])) == {"lost": 1}
    other = [*facts().seen, seen(3, "What you can do here")]
    assert wrongs(facts(asked=[*facts().asked, ask], seen=other)) == {"wrong": 1}


def test_what_is_left_in_the_rows_is_found() -> None:
    assert wrongs(facts(jobs=[("j1", "command", "queued", "boom"), ("j2", "turn", "unknown", None)])) == {"left": 1}
    assert wrongs(facts(turns=[turn(1), turn(2, state="running")])) == {"left": 1, "wrong": 1}


def test_a_process_that_ended_by_itself_is_a_fault() -> None:
    assert wrongs(facts(crashes=["bridge ended by itself"])) == {"crashed": 1}


def test_chinese_answers_are_read_as_well() -> None:
    ask = asked(2, needles=("记住 b",), text="请记住 b")
    answer = seen(2, "你好！你说的是：请记住 b\n已完成 · 1.0 秒 · 运行 abcdefgh")
    assert wrongs(facts(asked=[asked(1), ask], seen=[seen(1), answer])) == {}
