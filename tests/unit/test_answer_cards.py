"""An answer's text in parts, and the cards they make: held to the platform's rules, strictly."""

import json
import string
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agno_lark.locale import PHRASES, Lang, say
from agno_lark.replies import Ending, final_parts, note_card, running_card, showable, split_answer
from agno_lark.replies.elements import plain
from agno_lark.replies.parts import PART_BYTES, closed, json_bytes
from agno_lark.sandbox.cards import check, md_tables
from agno_lark.targets import FaultReason, RunEvent, RunFault, RunState, RunView, Step, StepKind, StepState, fold

LANGS: tuple[Lang, ...] = ("zh", "en")
DONE = RunView(run_id="1a2b3c4d-0000", state=RunState.COMPLETED)
TABLE = "|a|b|\n|-|-|\n|1|2|\n"
STEPS = tuple(
    Step(id=f"{number}", kind=StepKind.TOOL, name=f"tool_{number} `*<at id=all>", args="x=![p](http://e.org)" * 20)
    for number in range(60)
)


def ending(view: RunView, **more: object) -> Ending:
    return replace(Ending(view=view, elapsed_ms=3200), **more)  # type: ignore[arg-type]


def answer_of(card: dict[str, object]) -> str:
    body = card["body"]
    assert isinstance(body, dict)
    return "".join(
        element["content"]
        for element in body["elements"]
        if element["tag"] == "markdown" and element["element_id"] == "answer"
    )


def told(view: RunView, lang: Lang = "en", **more: object) -> str:
    return "\n".join(json.dumps(part.card, ensure_ascii=False) for part in final_parts(ending(view, **more), lang))


deltas = st.lists(
    st.one_of(st.sampled_from(["1", "1", "0", "$1,", "000", ",000", "哈", "\n", "\n", "a", " "]), st.text(max_size=5))
)


@given(deltas)
def test_whatever_repeats_the_final_text_is_the_deltas_put_together(pieces: list[str]) -> None:
    view = RunView()
    for index, piece in enumerate(pieces):
        view = fold(view, RunEvent(name="RunContent", index=index, data={"content": piece, "run_id": "r"}))
    view = fold(view, RunEvent(name="RunCompleted", index=len(pieces), data={"run_id": "r"}))
    shown = "".join(answer_of(part.card) for part in final_parts(ending(view), "en"))
    assert shown == showable("".join(pieces))
    if "![" not in shown and not any("\ud800" <= letter <= "\udfff" for letter in "".join(pieces)):
        assert shown == "".join(pieces)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["1", "1", "0"], "110"),
        (["$1,", "000", ",000"], "$1,000,000"),
        (["哈", "哈", "哈"], "哈哈哈"),
        (["\n", "\n"], "\n\n"),
    ],
)
def test_repeated_characters_of_case_19(pieces: list[str], text: str) -> None:
    view = RunView()
    for piece in pieces:
        view = fold(view, RunEvent(name="RunContent", data={"content": piece}))
    (part,) = final_parts(ending(replace(view, state=RunState.COMPLETED)), "en")
    assert answer_of(part.card) == text


words = st.sampled_from(
    [
        "word ",
        "字",
        "`code` ",
        "**b** ",
        "\n",
        "\n\n",
        "- item\n",
        "# h\n",
        "> q\n",
        "\n" + TABLE + "\n",
        "```py\nx = 1\n```\n",
        "```\n",
        "~~~~\n",
        "|",
        "![p](http://e.org/p.png)",
        "<at id=all></at>",
        "\\",
        '"',
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(words, max_size=60).map("".join), st.sampled_from([120, 400, 3000]))
def test_parts_are_small_ordered_and_lose_nothing(text: str, most: int) -> None:
    parts = split_answer(text, most_bytes=most)
    assert parts
    kept = (
        "".join(parts).replace("\n", "").replace("`", "").replace("~", "").replace("|a|b||-|-|", "").replace("py", "")
    )
    wanted = text.replace("\n", "").replace("`", "").replace("~", "").replace("|a|b||-|-|", "").replace("py", "")
    assert kept == wanted
    for part in parts:
        assert json_bytes(part) <= most
        assert md_tables(part) <= 4
        assert split_answer(part, most_bytes=most) == [part], "splitting is stable"


def test_text_that_fits_is_left_as_it_is() -> None:
    text = "a\n\n```\n|x|\n```\n" * 30
    assert split_answer(text) == [text]


def test_parts_between_blocks_join_to_the_text() -> None:
    text = "".join(f"## {number}\n\n{'word ' * 200}\n\n" for number in range(60))
    parts = split_answer(text)
    assert len(parts) > 2
    assert "".join(parts) == text
    assert all(part.startswith("## ") for part in parts), "cut between blocks"


def test_a_long_fence_is_closed_and_opened_again() -> None:
    text = "```python\n" + "".join(f"line_{number} = '{'字' * 30}'\n" for number in range(500)) + "```\n\nafter"
    parts = split_answer(text)
    assert len(parts) > 2
    for part in parts[:-1]:
        assert part.startswith("```python\n")
        assert part.rstrip().endswith("```")
    assert "after" in parts[-1]
    assert all(json_bytes(part) <= PART_BYTES for part in parts)


def test_a_fence_of_eleven_thousand_characters_without_a_break_is_cut_too() -> None:
    text = "```\n" + "字" * 11_000 + "\n```"
    parts = split_answer(text)
    assert sum(part.count("字") for part in parts) == 11_000
    assert all(json_bytes(part) <= PART_BYTES and part.startswith("```\n") for part in parts)


def test_a_long_tables_head_is_repeated() -> None:
    text = "| n | text |\n|---|---|\n" + "".join(f"| {number} | {'x' * 80} |\n" for number in range(600))
    parts = split_answer(text)
    assert len(parts) > 2
    assert all(part.startswith("| n | text |\n|---|---|\n| ") for part in parts)


def test_more_tables_than_a_card_takes_go_into_further_cards() -> None:
    text = "\n\n".join(f"table {number}\n\n{TABLE}" for number in range(8))
    parts = split_answer(text)
    assert [md_tables(part) for part in parts] == [3, 3, 2]
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![a](http://e.org/a.png)", "[a](http://e.org/a.png)"),
        ("x ![a]( <https://e.org/a.png> ) y", "x [a]( <https://e.org/a.png> ) y"),
        ("![a](data:image/png;base64,AAAA)", "[a](data:image/png;base64,AAAA)"),
        ("![a](img_v3_abc)", "![a](img_v3_abc)"),
        ("```\n![a](http://e.org/a.png)\n```", "```\n![a](http://e.org/a.png)\n```"),
        ("half \ud83d pair", "half \ufffd pair"),
        (
            "hi <at id=all></at> <AT id='ou_1'>x</at> <attic>",
            "hi &#60;at id=all>&#60;/at> &#60;AT id='ou_1'>x&#60;/at> <attic>",
        ),
        ("```\n<at id=all>\n```", "```\n<at id=all>\n```"),
    ],
)
def test_what_a_card_would_refuse_is_spelled_otherwise(text: str, shown: str) -> None:
    assert showable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```py\nx", "```py\nx\n```"),
        ("~~~~\nx\n```", "~~~~\nx\n```\n~~~~"),
        ("```\nx\n```", "```\nx\n```"),
        ("a `b", "a `b"),
    ],
)
def test_an_open_fence_is_shown_closed_while_it_streams(text: str, shown: str) -> None:
    assert closed(text) == shown


VIEWS = [
    DONE,
    replace(DONE, text="hello"),
    replace(DONE, text="![x](http://e.org/x.png) <at id=all></at> <unknown>\n" + TABLE * 9),
    replace(DONE, text="字" * 40_000, steps=STEPS, reasoning="because"),
    replace(DONE, text="a\x00b\ud800c" + '"\\' * 9000, steps=STEPS[:3]),
    replace(DONE, state=RunState.CANCELLED),
    replace(DONE, state=RunState.CANCELLED, text="1 2 3"),
    replace(DONE, state=RunState.PAUSED, pause_type="confirmation ![x](http://e.org)"),
    replace(DONE, text="x", input_tokens=1200, output_tokens=34),
    replace(DONE, text="\n\n"),
    replace(DONE, text="# " + "long heading " * 4000),
    replace(DONE, text="| a |\n|---|\n" + "| b |\n" * 4000),
]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("view", VIEWS, ids=range(len(VIEWS)))
def test_every_card_of_an_answer_passes_the_strict_checker(view: RunView, lang: Lang) -> None:
    faults = [None, *FaultReason, "internal"] if len(view.text) < 100 else [None, FaultReason.MODEL_ERROR]
    endings = [
        ending(view, fault=fault, details="x <b> | `![p](http://e.org)`" * 200 if fault else "") for fault in faults
    ]
    endings.append(ending(view, unknown=True))
    for one in endings:
        for part in final_parts(one, lang):
            for card in (part.card, part.plain, part.stub):
                assert not check(json.loads(json.dumps(card)), strict=True), card
            json.dumps(part.text).encode()
    for stopping in (False, True):
        for streaming in (False, True):
            card = running_card(view, turn_id="t" * 36, lang=lang, stopping=stopping, streaming=streaming)
            assert not check(json.loads(json.dumps(card)), strict=True), card


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("phrase", sorted(key for key in PHRASES if key.startswith("hint.")))
def test_every_sentence_of_ours_makes_a_card_the_platform_takes(phrase: str, lang: Lang) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(PHRASES[phrase][lang]) if name]
    values = {name: plain("![x](http://e.org/a.png) <at id=all></at> |a|\n|-|") for name in names}
    assert not check(note_card(say(phrase, lang, **values)), strict=True)


def test_the_final_card_tells_state_time_tokens_and_run() -> None:
    text = told(replace(DONE, text="x", input_tokens=1200, output_tokens=34))
    assert "Done · 3.2 s · 1,234 tokens · run 1a2b3c4d" in text


def test_a_failure_keeps_what_was_said_and_tells_what_to_do() -> None:
    view = replace(DONE, state=RunState.FAILED, text="so far", error=RunFault(reason=FaultReason.MODEL_ERROR))
    text = told(view, fault=FaultReason.MODEL_ERROR, details="boom")
    assert "so far" in text
    assert "Ask again" in text
    assert "boom" in text
    assert "Failed" in text


def test_an_answer_without_words_says_so() -> None:
    assert "without any text" in told(DONE)
    assert "before there was an answer" in told(replace(DONE, state=RunState.CANCELLED))


def test_steps_are_folded_newest_kept() -> None:
    steps = (*STEPS, Step(id="z", kind=StepKind.TOOL, name="newest", state=StepState.RUNNING))
    text = told(replace(DONE, text="x", steps=steps))
    assert "Steps (61)" in text
    assert "newest" in text


def test_no_card_is_larger_than_is_safe_whatever_others_call_things() -> None:
    steps = tuple(
        Step(id=f"{number}", kind=StepKind.TOOL, name="|\ud800" * 30_000, args="\x00字" * 30_000)
        for number in range(40)
    )
    view = replace(DONE, text="字" * 5_600, steps=steps, run_id="r" * 36, state=RunState.FAILED)
    parts = final_parts(ending(view, fault="internal", details="|" * 60_000), "zh")
    cards = [part.card for part in parts] + [running_card(view, turn_id="t" * 36, lang="zh")]
    cards.append(final_parts(ending(replace(DONE, state=RunState.PAUSED, pause_type="|\ud800" * 30_000)), "en")[0].card)
    for card in cards:
        assert len(json.dumps(card, ensure_ascii=False).encode()) <= 28_000
        assert not check(card, strict=True)


def test_the_stop_button_carries_the_turn() -> None:
    card = json.dumps(running_card(RunView(), turn_id="t1", lang="en"))
    assert '{"op": "turn.stop", "turn": "t1"}' in card
    assert "turn.stop" not in json.dumps(running_card(RunView(), turn_id="t1", lang="en", stopping=True))


def test_plain_text_reads_as_it_is_written() -> None:
    assert plain("get_weather <b> *x* _y_") == "get_weather &#60;b&#62; &#42;x&#42; &#95;y&#95;"
