"""What a chaos run plans by its seed."""

from collections import Counter

import pytest

from agno_lark.sandbox.demo_script import Ask, Call, Fail, Say, forecast, script
from tests.bench.chaos_plan import DEEDS_A_MINUTE, QUIET_SHARE, DeedKind, Kind, Writing, deeds, people, writings

WHO = people(200)


@pytest.fixture(scope="module")
def plan() -> list[Writing]:
    return writings(7, 300.0, 2000, WHO)


def test_a_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert writings(1, 60.0, 400, WHO) == writings(1, 60.0, 400, WHO)
    assert writings(1, 60.0, 400, WHO) != writings(2, 60.0, 400, WHO)
    assert deeds(1, 60.0) == deeds(1, 60.0)
    assert deeds(1, 60.0) != deeds(2, 60.0)


def test_there_are_as_many_messages_as_asked_for_and_everybody_writes(plan: list[Writing]) -> None:
    assert len(plan) == 2000
    assert {one.person for one in plan} == {name for name, _ in WHO}
    assert {one.kind for one in plan} == set(Kind)
    assert [one.at_s for one in plan] == sorted(one.at_s for one in plan)


def test_people_write_several_messages_while_one_is_under_way(plan: list[Writing]) -> None:
    last: dict[tuple[str, str], float] = {}
    close = 0
    for one in plan:
        close += one.at_s - last.get((one.person, one.place), -9.0) < 0.9
        last[one.person, one.place] = one.at_s
    assert close > 500


def test_some_write_in_groups_and_most_to_the_bot_alone(plan: list[Writing]) -> None:
    places = Counter(one.place for one in plan)
    assert set(places) == {"", "Kitchen", "Workshop", "Harbour", "Notice board"}
    assert places[""] > 1000


def test_the_demo_agent_gives_each_message_the_answer_that_is_expected(plan: list[Writing]) -> None:
    for one in plan:
        if one.kind in (Kind.STATUS, Kind.HELP):
            assert one.model_calls == 0
            continue
        message = one.text.removeprefix("/new ")
        pieces = list(script(Ask(message=message)))
        if calls := [piece for piece in pieces if isinstance(piece, Call)]:
            pieces += script(Ask(message=message, results=[forecast(calls[0].args["city"])]))
        assert not [piece for piece in pieces if isinstance(piece, Fail)]
        said = "".join(piece.text for piece in pieces if isinstance(piece, Say))
        assert all(said.count(needle) == 1 for needle in one.needles), one
        assert one.model_calls == 1 + len(calls)


def test_no_two_echoes_expect_the_same_words(plan: list[Writing]) -> None:
    needles = [one.needles[0] for one in plan if one.kind in (Kind.ECHO, Kind.TOOL, Kind.NEW)]
    assert len(needles) == len(set(needles))


@pytest.mark.parametrize("seconds", [12.0, 60.0, 600.0])
def test_every_kind_of_deed_is_done_at_its_rate_and_none_at_the_end(seconds: float) -> None:
    found = deeds(3, seconds)
    counts = Counter(deed.kind for deed in found)
    assert set(counts) == set(DeedKind)
    assert all(counts[kind] == max(1, round(rate * seconds / 60)) for kind, rate in DEEDS_A_MINUTE.items())
    assert found[-1].at_s <= seconds * (1 - QUIET_SHARE)
