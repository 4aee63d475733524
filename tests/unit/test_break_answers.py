"""Answers made to hold the bridge up: reading them costs no more than their length."""

import time

import pytest

from agno_lark.replies import showable, split_answer
from agno_lark.replies.parts import count_tables

MANY = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "|" * MANY + "\nx",
        "|" * 2_000 + "\n" + " " * MANY + "x",
        "![" * MANY,
        "![](" * MANY,
        "![](img_" * MANY + ")",
        "[" * MANY,
    ],
    ids=["bars", "bars over blanks", "pictures without an end", "addresses without an end", "keys", "brackets"],
)
def test_no_text_takes_longer_than_its_length_deserves(text: str) -> None:
    started = time.perf_counter()
    count_tables(text)
    split_answer(showable(text))
    assert time.perf_counter() - started < 5, "it was minutes"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![a](http://x/y.png)", "[a](http://x/y.png)"),
        ("![a](img_v3_1)![b](u)", "![a](img_v3_1)[b](u)"),
        ("![![a](u)", "[![a](u)"),
        ("![a] (u) ![b]", "![a] (u) ![b]"),
        ("![a]( <img_1>)", "![a]( <img_1>)"),
        ("![](", "![]("),
        ("![](data:image/png;base64," + "A" * 9000 + ") done", "[](data:image/png;base64," + "A" * 9000 + ") done"),
    ],
)
def test_pictures_by_address_become_links_and_keys_stay(text: str, shown: str) -> None:
    assert showable(text) == shown


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("|a|\n|-|\n|b|", 1),
        ("|a|\n|-|\n|-|\n", 1),
        ("a | b\n--- | ---\n\n> |c|\n> |:-:|\n", 2),
        ("a | b\n- item", 0),
        ("a\n---", 0),
    ],
)
def test_heads_of_tables_are_counted(text: str, tables: int) -> None:
    assert count_tables(text) == tables
