"""The sandbox's card checker, held to ../shared/cards: its examples, its verdicts, its codes."""

import copy
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from agno_lark.sandbox.cards import check, refusal
from agno_lark.sandbox.cards.schema import explain, is_valid

DATA = Path(__file__).parent.parent / "data" / "cards"
VALID = sorted((DATA / "valid").glob("*.json"))
INVALID = sorted((DATA / "invalid").glob("*.json"))
EXPECTED = json.loads((DATA / "expected.json").read_text("utf-8"))
TABLE = "\n\n|a|b|\n|-|-|\n|1|2|\n\n"


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def markdown(**more: Any) -> dict[str, Any]:
    return {"tag": "markdown", "content": "x", **more}


def card(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"schema": "2.0", "body": {"elements": list(elements)}}


def codes(value: Any, *, cardkit: bool = False) -> set[int]:
    return {finding.code for finding in check(value, cardkit=cardkit) if finding.level == "error"}


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_a_valid_example_has_no_finding_in_strict_and_no_error_in_normal_mode(path: Path) -> None:
    assert check(load(path), strict=True) == []
    assert codes(load(path)) == set()


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.stem)
def test_an_invalid_example_is_refused_with_the_expected_code(path: Path) -> None:
    assert codes(load(path)) == {EXPECTED[path.name]["code"]}
    assert refusal(load(path), strict=True) is not None


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (300301, card(markdown(element_id="a"), markdown(element_id="a"))),
        (300305, card(*(markdown() for _ in range(201)))),
        (200860, card(markdown(content="x" * 31000))),
        (11310, card(markdown(content=TABLE * 3), markdown(content=TABLE * 3))),
        (200570, card(markdown(content="![p](https://e.org/p.png)"))),
        (200915, card({"tag": "table", "columns": [{"name": "a", "data_type": "text"}], "rows": [{"b": "1"}]})),
    ],
    ids=lambda v: str(v) if isinstance(v, int) else "card",
)
def test_what_a_schema_cannot_say_is_found_all_the_same(code: int, value: dict[str, Any]) -> None:
    assert is_valid(value, strict=False)
    assert codes(value, cardkit=True) == {code}


def test_a_table_inside_a_code_fence_is_not_counted() -> None:
    assert check(card(markdown(content="```\n" + TABLE * 7 + "\n```"))) == []


def test_the_size_limit_counts_bytes_and_not_characters() -> None:
    assert codes(card(markdown(content="汉" * 10_000))) == set()
    assert codes(card(markdown(content="汉" * 10_500))) == {230025}


def test_the_path_of_a_finding_reads_like_the_platforms() -> None:
    found = refusal(card(markdown(), {"tag": "button", "text": {"tag": "plain_text", "content": "x"}, "type": "loud"}))
    assert found is not None
    assert found.path == "ROOT -> body -> elements -> [1](tag: button) -> type"


def mutated(value: Any, rng: random.Random) -> Any:
    """The value with one thing somewhere inside it changed, dropped, doubled or added."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for name, child in list(items):
            places.append((node, name))
            walk(child)

    walk(value)
    parent, name = rng.choice(places)
    match rng.randrange(5):
        case 0:
            del parent[name]
        case 1:
            parent[name] = rng.choice([None, 0, 1, True, "", "x", "12px", [], {}, -3.5, 10**6, "img_x"])
        case 2 if isinstance(parent, list):
            parent.append(copy.deepcopy(parent[name]))
        case 3 if isinstance(parent, dict):
            parent["corner_radius"] = "4px"
        case _:
            source_parent, source_name = rng.choice(places)
            parent[name] = copy.deepcopy(source_parent[source_name])
    return value


@pytest.mark.parametrize("seed", range(6))
def test_the_fast_verdict_is_the_slow_ones_for_mutated_examples(seed: int) -> None:
    rng = random.Random(seed)
    for path in [rng.choice(VALID) for _ in range(6)]:
        value = mutated(load(path), rng)
        for strict in (False, True):
            assert is_valid(value, strict=strict) == (next(explain(value, strict=strict), None) is None), value


def test_a_card_is_judged_in_less_than_five_milliseconds() -> None:
    values = [load(path) for path in VALID]
    for value in values:
        check(value)
    started = time.perf_counter()
    for value in values * 5:
        check(value)
    assert (time.perf_counter() - started) / (5 * len(values)) < 0.005
