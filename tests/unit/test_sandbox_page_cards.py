"""Cards as HTML: every visible text is there, nothing of a card's own markup is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agno_lark.sandbox.content import visible_card_text
from agno_lark.sandbox.page.cards import FAMILIES, draw_card, summary_of
from agno_lark.sandbox.page.scene import Face, Scene
from tests.page_fixtures import CARDS, button, markdown_card
from tests.page_reading import read_html, words_of

type Json = dict[str, Any]

PERSON = "ou_7d8a6e6df7621556ce0d21922b676706"
SCENE = Scene(
    language="zh",
    faces={PERSON: Face(open_id=PERSON, name="陈青", mark="🐼", colour="#3370ff")},
    picture=lambda key: f"/sandbox/page/resources/{key}",
)
VALID = sorted((CARDS / "valid").glob("*.json"))
INVALID = sorted((CARDS / "invalid").glob("*.json"))
EVIL = '</span><script>alert(1)</script><img src=x onerror=alert(1)>" onclick="x\' --&gt;'


def card_of(path: Path) -> Json:
    found: Json = json.loads(path.read_text())
    return found


def body(*elements: Json, **more: Any) -> Json:
    return {"schema": "2.0", "body": {"elements": list(elements)}, **more}


def drawn(*elements: Json, scene: Scene = SCENE) -> str:
    return str(draw_card(body(*elements), scene))


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_every_visible_word_of_an_example_is_drawn(path: Path) -> None:
    card = card_of(path)
    reading = read_html(str(draw_card(card, SCENE)))
    # Ids become names, and moments become dates: those words are looked at below.
    wanted = {word for word in words_of(visible_card_text(card)) if not re.fullmatch(r"ou_\w+|\d{13}", word)}
    assert wanted - set(re.findall(r"\w+", reading.spoken)) == set()
    assert reading.problems == []


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_a_card_the_platform_refuses_is_still_drawn_without_harm(path: Path) -> None:
    reading = read_html(str(draw_card(card_of(path), SCENE)))
    assert reading.tags[0] == "article"
    assert [problem for problem in reading.problems if "rel=" not in problem] == []


def test_a_persons_id_becomes_a_name_and_a_moment_a_date() -> None:
    text = read_html(str(draw_card(card_of(CARDS / "valid" / "05-table.json"), SCENE))).text
    assert text.count("陈青") == 2
    assert "03/04" in text
    assert "30.0" in text


def test_every_element_of_the_documentation_has_a_drawing() -> None:
    schema = json.loads((Path("src/agno_lark/sandbox/cards/card-2.0.schema.json")).read_text())
    tags = {
        part["properties"]["tag"]["const"]
        for name, part in schema["$defs"].items()
        if isinstance(part.get("properties", {}).get("tag"), dict) and "const" in part["properties"]["tag"]
    }
    assert {"button", "form", "table", "checker"} <= tags
    assert tags - {"text_tag"} <= set(FAMILIES)


@pytest.mark.parametrize("tag", ["hologram", "note", "action", "", "<b>", "a" * 300])
def test_an_unknown_element_leaves_a_visible_note_and_its_neighbours(tag: str) -> None:
    html = drawn({"tag": "markdown", "content": "before"}, {"tag": tag}, {"tag": "markdown", "content": "after"})
    reading = read_html(html)
    assert "此处的组件无法显示" in reading.text
    assert tag[:40] in reading.text
    assert "before" in reading.text
    assert "after" in reading.text
    assert 'class="unknown"' in html


@pytest.mark.parametrize(
    "element",
    [
        {"tag": "markdown", "content": EVIL},
        {"tag": "div", "text": {"tag": "plain_text", "content": EVIL}},
        {
            "tag": "div",
            "text": {"tag": "lark_md", "content": EVIL},
            "fields": [{"text": {"tag": "lark_md", "content": EVIL}}],
        },
        button(EVIL, {"x": EVIL}, hover_tips={"tag": "plain_text", "content": EVIL}, name=EVIL),
        {"tag": "input", "name": EVIL, "default_value": EVIL, "label": {"tag": "plain_text", "content": EVIL}},
        {"tag": "input", "name": "x", "input_type": "multiline_text", "default_value": f"</textarea>{EVIL}"},
        {"tag": "select_static", "options": [{"text": {"content": EVIL}, "value": EVIL}]},
        {
            "tag": "img",
            "img_key": EVIL,
            "alt": {"tag": "plain_text", "content": EVIL},
            "corner_radius": "1px;x:url(//e)",
        },
        {"tag": "person", "user_id": EVIL, "show_name": True},
        {"tag": "chart", "chart_spec": {"type": EVIL, "title": {"text": EVIL}}},
        {"tag": "table", "columns": [{"name": "a", "display_name": EVIL, "data_type": "text"}], "rows": [{"a": EVIL}]},
        {
            "tag": "column_set",
            "background_style": "red;background:url(//e)",
            "columns": [{"tag": "column", "elements": []}],
        },
        {"tag": "collapsible_panel", "header": {"title": {"tag": "markdown", "content": EVIL}}, "elements": []},
        {"tag": "form", "name": EVIL, "elements": []},
        {
            "tag": "markdown",
            "content": f"[x](javascript:alert(1)) <a href='javascript:alert(1)'>y</a> <font color='{EVIL}'>z",
        },
        {
            "tag": "interactive_container",
            "behaviors": [{"type": "open_url", "default_url": "data:text/html,x"}],
            "elements": [],
        },
        {"tag": EVIL, "element_id": EVIL, "margin": "0 url(//e)"},
    ],
    ids=lambda element: str(element["tag"])[:24],
)
def test_no_markup_of_a_card_reaches_the_page(element: Json) -> None:
    reading = read_html(drawn(element, scene=Scene()))
    assert reading.problems == []
    assert reading.links == []
    assert "script" not in reading.tags


@pytest.mark.parametrize("value", [None, 1, 2.5, True, "text", [], {}, [1], {"a": 1}, [[{}]]])
@pytest.mark.parametrize("tag", sorted(FAMILIES))
def test_wrong_types_anywhere_break_nothing(tag: str, value: Any) -> None:
    names = (
        "text", "content", "elements", "columns", "rows", "options", "header", "fields", "icon", "behaviors",
        "confirm", "value", "img_list", "persons", "selected_values", "button_area", "checked_style", "width",
        "margin", "padding", "title", "alt", "label", "placeholder", "name", "element_id", "initial_option",
        "initial_date", "i18n_content", "chart_spec", "weight", "border", "format", "max_length", "page_size",
        "header_style", "disabled", "type", "img_key", "url", "multi_url",
    )  # fmt: skip
    reading = read_html(drawn({"tag": tag, **dict.fromkeys(names, value)}))
    assert reading.tags[0] == "article"
    assert reading.problems == []


def test_a_card_of_wrong_types_is_drawn_too() -> None:
    for wrong in (None, 1, "x", [], [1]):
        card = {"schema": "2.0", "config": wrong, "header": wrong, "body": wrong, "card_link": wrong}
        assert str(draw_card(card, SCENE)).startswith("<article")


def test_nesting_without_end_is_cut_with_a_note() -> None:
    element: Json = {"tag": "markdown", "content": "deep"}
    for _ in range(200):
        element = {"tag": "interactive_container", "behaviors": [], "elements": [element]}
    reading = read_html(drawn(element))
    assert "此处的组件无法显示" in reading.text
    assert "deep" not in reading.text


def test_texts_follow_the_lookers_language() -> None:
    card = card_of(CARDS / "valid" / "08-header-tags.json")
    assert "每周汇总已生成" in draw_card(card, Scene(language="zh"))
    english = draw_card(card, Scene(language="en"))
    assert "Weekly digest is ready" in english
    assert "Open the card for the full text." in english


def test_a_streaming_card_says_that_it_is_being_written() -> None:
    writing = str(draw_card(markdown_card("so far", streaming=True), SCENE))
    assert 'aria-busy="true"' in writing
    assert "正在输入" in writing
    done = str(draw_card(markdown_card("so far", streaming=True), SCENE, streaming=False))
    assert 'aria-busy="false"' in done
    assert "正在输入" not in done


def test_own_colours_hold_in_light_and_dark_and_nothing_else_does() -> None:
    card = card_of(CARDS / "valid" / "07-two-columns.json")
    html = str(draw_card(card, SCENE))
    assert "light-dark(rgba(20,86,240,0.06), rgba(117,164,255,0.12))" in html
    assert "color-mix(in srgb, var(--grey) 36%, var(--surface))" in html
    assert "color:" not in drawn({"tag": "markdown", "content": "<font color='#f00;x:y'>red</font>"})


def test_what_a_button_tells_the_bot_stands_on_it() -> None:
    html = drawn(
        button("Go", {"a": 1}, name="go", confirm={"title": {"content": "Sure?"}, "text": {"content": "No way back"}})
    )
    assert "{&#34;tag&#34;:&#34;button&#34;,&#34;name&#34;:&#34;go&#34;,&#34;value&#34;:{&#34;a&#34;:1}}" in html
    assert "No way back" in html
    assert "data-action" not in drawn({"tag": "button", "text": {"tag": "plain_text", "content": "Nothing"}})


def test_form_buttons_submit_and_reset_only_inside_forms() -> None:
    submit = button("Send", {"a": 1}, name="s", form_action_type="submit")
    assert "data-form-action" not in drawn(submit)
    assert 'data-form-action="submit"' in drawn({"tag": "form", "name": "f", "elements": [submit]})
    old = {**submit, "action_type": "form_reset"}
    del old["form_action_type"]
    assert 'data-form-action="reset"' in drawn({"tag": "form", "name": "f", "elements": [old]})


def test_keys_of_elements_stay_when_others_come_before_them() -> None:
    field = {"tag": "input", "name": "title"}
    before = re.findall(r'data-key="([^"]+)"', drawn(field, {"tag": "markdown", "content": "x", "element_id": "m"}))
    after = re.findall(
        r'data-key="([^"]+)"', drawn({"tag": "hr"}, field, {"tag": "markdown", "content": "x", "element_id": "m"})
    )
    assert set(before) <= set(after)
    assert len(set(after)) == len(after)


def test_a_cards_line_in_a_list_is_its_summary_or_its_first_words() -> None:
    assert summary_of({"config": {"summary": {"content": "in short"}}, **body()}, SCENE) == "in short"
    assert summary_of(card_of(CARDS / "valid" / "05-table.json"), SCENE) == "本周工单"
    assert (
        summary_of(body({"tag": "hr"}, {"tag": "markdown", "content": "**first** <font color='red'>x</font>"}), SCENE)
        == "first x"
    )
    assert summary_of(body(), SCENE) == ""
