"""What the demo agents say."""

import re

import pytest

from agno_lark.sandbox.demo_script import Ask, Call, Fail, Role, Say, Think, Wait, calculate, forecast, script


def spoken(message: str, **more: object) -> str:
    ask = Ask(message=message, **more)  # type: ignore[arg-type]
    return "".join(piece.text for piece in script(ask) if isinstance(piece, Say))


def calls(message: str, role: Role = Role.AGENT, results: tuple[str, ...] = ()) -> list[Call]:
    return [piece for piece in script(Ask(message=message, role=role, results=results)) if isinstance(piece, Call)]


def test_a_plain_message_is_echoed_in_its_language() -> None:
    assert spoken("good morning").startswith("Hello! You said: good morning")
    assert spoken("早上好").startswith("你好！你说的是：早上好")


def test_what_was_said_is_remembered() -> None:
    assert spoken("what did I say?", earlier=("a", "b")) == "Earlier you said:\n\n1. a\n2. b"
    assert spoken("我说了什么", earlier=("甲",)) == "你之前说过：\n\n1. 甲"
    assert spoken("what did I say?") == "This is your first message."


@pytest.mark.parametrize(
    ("message", "city"),
    [("weather in New York", "New York"), ("上海天气", "上海"), ("天气", "北京"), ("the weather?", "Paris")],
)
def test_the_weather_is_looked_up(message: str, city: str) -> None:
    assert calls(message) == [Call(tool="get_weather", args={"city": city})]
    assert forecast(city) in spoken(message, results=(forecast(city),))
    assert calls(message, results=("sunny",)) == []


def test_the_weather_is_told_in_the_language_of_the_question() -> None:
    assert not re.search("[A-Za-z]", forecast("上海").removesuffix("C"))
    assert re.fullmatch(r"Rome: [a-z ]+, \d+ °C", forecast("Rome"))


@pytest.mark.parametrize(
    ("message", "expression"), [("calculate 2*(3+4)", "2*(3+4)"), ("计算 1/8", "1/8"), ("算一下", "6*7")]
)
def test_sums_are_worked_out(message: str, expression: str) -> None:
    assert calls(message) == [Call(tool="calculator", args={"expression": expression})]


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2*(3+4)", "14"),
        ("1/8", "0.125"),
        ("-3-4", "-7"),
        ("1/0", "not a number"),
        ("__import__('os')", "not a number"),
    ],
)
def test_the_calculator_knows_sums_and_nothing_else(expression: str, result: str) -> None:
    assert calculate(expression) == result


def test_a_slow_answer_counts_with_pauses() -> None:
    pieces = script(Ask(message="count to 3"))
    assert [(piece.text, piece.after_s) for piece in pieces if isinstance(piece, Say)] == [
        ("1 ", 0.3),
        ("2 ", 0.3),
        ("3 ", 0.3),
    ]
    assert spoken("慢慢数到 2") == "1 2 "
    assert script(Ask(message="count fast to 1")) == (Say(text="1 ", after_s=0.1),)


def test_it_repeats_fails_thinks_and_keeps_silent_when_told_to() -> None:
    assert spoken("repeat") == "110"
    assert isinstance(script(Ask(message="fail"))[-1], Fail)
    assert any(isinstance(piece, Think) for piece in script(Ask(message="think")))
    assert Wait(for_s=2) in script(Ask(message="silence 2"))


def test_a_bench_message_is_answered_at_once() -> None:
    for role in (Role.AGENT, Role.LEADER, Role.MEMBER):
        assert script(Ask(message="/bench 17", role=role)) == (Say(text="ok"),)


@pytest.mark.parametrize("message", ["markdown", "长文"])
def test_the_long_answer_holds_every_kind_of_block(message: str) -> None:
    text = spoken(message)
    for mark in ("# ", "## ", "1. ", "   - ", "```python", "|---|", "> ", "**", "]("):
        assert mark in text
    assert len(script(Ask(message=message))) > 100


def test_a_leader_asks_every_member_and_then_sums_up() -> None:
    asked = [calls("shall we?", Role.LEADER, results)[0].args["member_id"] for results in ((), ("yes",))]
    assert asked == ["demo-researcher", "demo-writer"]
    assert spoken("shall we?", role=Role.LEADER, results=("yes", "no")) == "The team's view:\n\n- yes\n- no"


def test_a_reviewer_passes_on_what_it_was_given() -> None:
    assert spoken("# Draft\n\n哈哈 `x`", role=Role.REVIEWER) == "# Draft\n\n哈哈 `x`"
