"""The kill matrix: wherever the daemon dies, a message ends with one answer, and its run has asked its model once.

Each cell is a message, a real daemon that is killed at a crash point (`AGNO_LARK_CRASH_AT`) and started again, and
Feishu's redelivery: of what was not acknowledged at once, and of the whole event afterwards, under its own id and under
another. A cell has to end as the one whose daemon was left alone: the same card, the same jobs, the same calls of the
model, and nothing left over. Where that cannot be had, `UNKNOWABLE` names the place and the reason.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agno_lark.crash import CRASH_POINTS
from agno_lark.locale import say
from tests.demo_agentos_fixtures import demo_agentos
from tests.kill_fixtures import (
    AFTER,
    SIGTERM,
    Aftermath,
    Cell,
    ForkServer,
    World,
    differences,
    report,
    unfinished,
    wrong_ends,
)

pytestmark = pytest.mark.timeout(180)

# Each streams for about a second; the team asks both of its members, the workflow has two steps.
MESSAGES = {
    "agent": Cell(text="count fast to 8", target=("agent", "demo-agent")),
    "team": Cell(text="hello", target=("team", "demo-team")),
    "workflow": Cell(text="count fast to 8", target=("workflow", "demo-workflow")),
}
ASKED = {
    "agent": [("agent", 1)],
    "team": [("leader", 3), ("member", 1), ("member", 1)],
    "workflow": [("agent", 1), ("reviewer", 1)],
}
PLAIN = Cell(text="count fast to 8", target=("agent", "demo-agent-plain"))
LONG = "hello " + "word" * 9_000  # is said back: three cards' worth of answer
COMMANDS = ("/status", "/new", "/help")
BETWEEN_PARTS = "reply.part_sent"  # not reached by an answer that fits into one card

TWICE = (
    ("accept.received", "accept.received"),
    ("accept.committed", "turn.claimed"),
    ("accept.acknowledged", "turn.submitting"),
    ("turn.claimed", "turn.submitting"),
    ("turn.card_made", "turn.card_sent"),
    ("turn.submitting", "turn.submitted"),
    ("turn.submitted", "turn.ended"),
    ("turn.running", "turn.closed"),
    ("turn.ended", "reply.sending"),
    ("turn.closed", "reply.sent"),
    ("reply.sending", "reply.sending"),
    ("reply.sent", "reply.sent", "reply.confirmed"),
)
MOMENTS_S = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.3, 0.9, 1.0, 1.1, 1.2)

_KEEPS_NO_RUNS = "an agent without a database keeps no runs: nobody can be asked whether one had begun"
_CUT = "its run ends with the connection (plain stream: 'client gone: the run is CANCELLED'), and cannot be resumed"
UNKNOWABLE = {
    "turn.claimed": _KEEPS_NO_RUNS,
    "turn.card_made": _KEEPS_NO_RUNS,
    "turn.card_sent": _KEEPS_NO_RUNS,
    "turn.submitting": _KEEPS_NO_RUNS,
    "turn.submitted": _CUT,
    "turn.running": _CUT,
    "turn.following": _CUT,
    "turn.ended": f"{_CUT}: what it answered was known to the process that died, and to nobody else",
}
"""For `demo-agent-plain` only. agentos.md: "An agent without a database answers 400 to `background=true`", so the plain
stream is what it gets, where "a cut connection ends the run; nothing can be resumed". What has a database has no such
place: its runs can be asked for.
"""
MAYBE_CLAIMED = {"accept.committed", "accept.acknowledged"}  # the next commit may be under way, and claim the turn


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer.running() as running:
        yield running


@pytest.fixture(scope="module")
def without_queue(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield from _world(server, tmp_path_factory.mktemp("without-queue"), durable_queue=False)


@pytest.fixture(scope="module")
def durable_queue(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield from _world(server, tmp_path_factory.mktemp("durable-queue"), durable_queue=True)


def _world(server: ForkServer, folder: Path, *, durable_queue: bool) -> Iterator[World]:
    calls_path = folder / "model-calls"
    with demo_agentos(durable_queue=durable_queue, calls_path=calls_path) as demo:
        yield World(server, demo.url, calls_path, folder)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    made: World = request.getfixturevalue(request.param)
    return made


both_kinds_of_agentos = pytest.mark.parametrize("world", ["without_queue", "durable_queue"], indirect=True)


type Ends = str | tuple[str, ...]


def killed(message: Cell, *ends: Ends) -> list[Cell]:
    """Cells with this message, each with these ends of the daemon's lives."""
    return [replace(message, ends=(end,) if isinstance(end, str) else end) for end in ends]


async def all_end_alike(world: World, message: Cell, *ends: Ends) -> Aftermath:
    """Fail with every cell that does not end as the message does when nobody disturbs the daemon; returns that."""
    found = await world.try_all([message, *killed(message, *ends)])
    undisturbed = found[message]
    wrongs = {
        cell: [*wrong_ends(cell, each), *unfinished(each), *differences(each, undisturbed)]
        for cell, each in found.items()
    }
    fail_with(report(wrongs, found))
    return undisturbed


def fail_with(told: str) -> None:
    if told:
        pytest.fail(told, pytrace=False)


@both_kinds_of_agentos
@pytest.mark.parametrize("kind", MESSAGES)
async def test_killed_anywhere_a_message_gets_one_answer_and_its_run_asks_its_model_once(
    world: World, kind: str
) -> None:
    points = [point for point in CRASH_POINTS if point != BETWEEN_PARTS]
    undisturbed = await all_end_alike(world, MESSAGES[kind], *points, SIGTERM)
    assert len(undisturbed.shown) == 1
    assert undisturbed.asked == ASKED[kind]
    assert undisturbed.runs == [("completed", None)]


@both_kinds_of_agentos
async def test_killed_again_while_it_recovers_a_message_gets_one_answer(world: World) -> None:
    undisturbed = await all_end_alike(world, MESSAGES["agent"], *TWICE)
    assert len(undisturbed.shown) == 1


@both_kinds_of_agentos
async def test_killed_at_a_moment_nobody_named_a_message_gets_one_answer(world: World) -> None:
    await all_end_alike(world, MESSAGES["agent"], *(f"{AFTER}{seconds:g} s" for seconds in MOMENTS_S))


@both_kinds_of_agentos
@pytest.mark.parametrize("kind", MESSAGES)
async def test_killed_between_the_parts_of_a_long_answer_each_part_is_shown_once(world: World, kind: str) -> None:
    message = replace(MESSAGES[kind], text=LONG)
    ends = (BETWEEN_PARTS, f"{BETWEEN_PARTS}:2", (BETWEEN_PARTS, BETWEEN_PARTS), "reply.sent")
    undisturbed = await all_end_alike(world, message, *ends)
    assert len(undisturbed.shown) >= 3
    assert undisturbed.asked == ASKED[kind]


@pytest.mark.parametrize("command", COMMANDS)
async def test_killed_anywhere_a_command_gets_one_answer_and_asks_no_model(without_queue: World, command: str) -> None:
    points = [point for point in CRASH_POINTS if point.startswith(("accept.", "reply.")) and point != BETWEEN_PARTS]
    undisturbed = await all_end_alike(without_queue, Cell(text=command), *points)
    assert len(undisturbed.shown) == 1
    assert undisturbed.asked == []


async def test_where_no_runs_are_kept_the_person_is_told_what_nobody_can_know_and_no_run_is_begun_again(
    without_queue: World,
) -> None:
    points = [point for point in CRASH_POINTS if point != BETWEEN_PARTS]
    found = await without_queue.try_all([PLAIN, *killed(PLAIN, *points, SIGTERM)])
    undisturbed = found[PLAIN]
    wrongs = {
        cell: [*wrong_ends(cell, each), *unfinished(each), *_outcome_of_plain(cell, each, undisturbed)]
        for cell, each in found.items()
    }
    fail_with(report(wrongs, found))
    assert undisturbed.asked == ASKED["agent"]


def _outcome_of_plain(cell: Cell, found: Aftermath, undisturbed: Aftermath) -> Iterator[str]:
    point = cell.ends[0] if cell.ends else ""
    is_unknown = [state for state, _ in found.runs] == ["unknown"]
    if point in UNKNOWABLE or point == SIGTERM or (point in MAYBE_CLAIMED and is_unknown):
        yield from _not_told_unknown(found)
        never = point in ("turn.claimed", "turn.submitting")
        surely = point in ("turn.submitted", "turn.running", "turn.following", "turn.ended")
        if found.asked not in ([[]] if never else [ASKED["agent"]] if surely else [[], ASKED["agent"]]):
            yield f"the model was asked: {found.asked}"
    else:
        yield from differences(found, undisturbed)


def _not_told_unknown(found: Aftermath) -> Iterator[str]:
    texts = [each.text for each in found.shown]
    if len(texts) != 1 or say("turn.unknown", "en") not in texts[0]:
        yield f"shown, instead of one card that says it is unknown: {texts}"
    elif not all(say(word, "en") in found.told[0] for word in ("turn.retry", "turn.dismiss")):
        yield f"nothing to decide on the card: {found.told}"
    if found.runs != [("unknown", None)]:
        yield f"runs: {found.runs}"


def test_every_place_where_nobody_can_know_is_a_crash_point() -> None:
    assert UNKNOWABLE.keys() | MAYBE_CLAIMED < CRASH_POINTS.keys()
