"""The words a person meant: cases.md 3 and 4, our samples, and any content at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agno_lark.feishu import Mention, meant_text, parse_message
from agno_lark.feishu.text import MeantText
from tests.feishu_fixtures import JSON, load

BOT = "ou_bot"
LOTSE = "ou_11ec84ac73bce232114e699dbdf7fe6f"


def mention(key: str, open_id: str, name: str = "Somebody") -> Mention:
    return Mention(key=key, open_id=open_id, union_id="", name=name, is_bot=False)


def text(words: str, *mentions: Mention) -> MeantText:
    return meant_text("text", json.dumps({"text": words}), mentions, bot_open_id=BOT)


def post(rows: Any, *mentions: Mention, **more: Any) -> MeantText:
    return meant_text("post", json.dumps({"title": "", "content": rows, **more}), mentions, bot_open_id=BOT)


def sample(name: str) -> MeantText:
    message = parse_message(load(name))
    return meant_text(message.message_type, message.content, message.mentions, bot_open_id=LOTSE)


HELPER = mention("@_user_1", BOT, "Helper")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("@_user_1/new", "/new"),
        ("@_user_1 /new demo", "/new demo"),
        ("@_user_1 /etc/hosts is wrong", "/etc/hosts is wrong"),
        ("please ask @_user_1", "please ask"),
        ("please @_user_1 ask", "please ask"),
        ("please @_user_1, ask", "please, ask"),
        ("@_user_1 @_user_1 hi", "hi"),
        ("one\n@_user_1 two", "one\ntwo"),
        ("one @_user_1\n  two", "one\n  two"),
        ("@_user_1", ""),
        ("@_user_1\u3000你好", "你好"),
        ("a@_user_1b", "ab"),
    ],
)
def test_the_bots_own_name_is_taken_out_with_one_blank(words: str, meant: str) -> None:
    got = text(words, HELPER)
    assert got == MeantText(text=meant, mentions_bot=True, mentions_all=False)


def test_a_key_is_not_the_start_of_a_longer_key() -> None:
    got = text("@_user_10 hi @_user_1", HELPER, mention("@_user_10", "ou_b", "Berta"))
    assert got.text == "@Berta hi"
    assert got.mentions_bot


def test_a_key_nobody_is_behind_stays_as_it_was_typed() -> None:
    assert text("see @_user_7 and @_allies", HELPER).text == "see @_user_7 and @_allies"


def test_a_name_that_looks_like_a_key_is_not_read_again() -> None:
    got = text("@_user_2 hi", HELPER, mention("@_user_2", "ou_b", "@_user_1"))
    assert (got.text, got.mentions_all) == ("@_user_1 hi", False)


@pytest.mark.parametrize(
    "got",
    [
        text("@_all standup moved"),
        text("@_all standup moved", mention("@_all", "")),
        post([[{"tag": "at", "user_id": "all"}, {"tag": "text", "text": " standup moved"}]]),
        post([[{"tag": "at", "user_id": "@_all", "user_name": "所有人"}, {"tag": "text", "text": " standup moved"}]]),
    ],
)
def test_everybody_is_a_flag_and_not_the_bot(got: MeantText) -> None:
    assert got == MeantText(text="@all standup moved", mentions_bot=False, mentions_all=True)


def test_a_bot_whose_id_is_not_known_yet_is_not_everybody() -> None:
    got = meant_text("text", '{"text":"@_all hi"}', [mention("@_all", "")], bot_open_id="")
    assert not got.mentions_bot


def test_the_bot_is_found_by_its_union_id_too() -> None:
    other = Mention(key="@_user_1", open_id="ou_elsewhere", union_id="on_bot", name="Helper", is_bot=True)
    got = meant_text("text", '{"text":"@_user_1 hi"}', [other], bot_open_id=BOT, bot_union_id="on_bot")
    assert got == MeantText(text="hi", mentions_bot=True, mentions_all=False)


def test_a_command_in_rich_text_is_bare() -> None:
    rows = [[{"tag": "at", "user_id": "@_user_1", "user_name": "Helper"}, {"tag": "text", "text": " /new demo"}]]
    assert post(rows, HELPER) == MeantText(text="/new demo", mentions_bot=True, mentions_all=False)


def test_a_rich_post_keeps_its_links_code_and_names() -> None:
    got = sample("post")
    assert got.text == (
        "Crane 4 inspection\n"
        "plain bold under struck slanted both a\u00a0b\n"
        "see [crane manual](https://wiki.quellhof.example/crane4) with @沈一诺\n"
        "[image]\n"
        "[video]\n"
        ":THUMBSUP: ok\n"
        "---\n"
        "```python\ndef load(t):\n    return t * 0.8\n```"
    )
    assert got.mentions_bot


def test_the_markdown_half_of_a_post_keeps_lists_and_quotes() -> None:
    got = sample("post_content_v2_md")
    assert got.text == (
        "Shift notes\n1. Check **bilge**\n2. Log fuel\n> by\n![gauge](img_v3_02sv_de95a22b-0b5b-7498-4d31-5593504414dg)"
    )
    assert got.mentions_bot


def test_files_of_a_post_are_named() -> None:
    assert sample("post_with_files").text == "please compare both\n[file: berth-plan-a.pdf]\n[folder: old plans]"
    assert sample("post_files_only").text == "[file: draught.xlsx]\n[file: tonnage.xlsx]"


def test_a_post_in_languages_and_one_with_flat_rows_are_read() -> None:
    wrapped = json.dumps({"zh_cn": {"title": "标题", "content": [[{"tag": "text", "text": "正文"}]]}})
    assert meant_text("post", wrapped, [], bot_open_id=BOT).text == "标题\n正文"
    assert post([{"tag": "text", "text": "flat"}]).text == "flat"


def test_kinds_without_text_still_tell_whom_they_mention() -> None:
    got = meant_text("image", '{"image_key":"img_1"}', [HELPER], bot_open_id=BOT)
    assert got == MeantText(text="", mentions_bot=True, mentions_all=False)


def test_an_early_recall_leaves_no_words() -> None:
    assert sample("content_empty_after_recall").text == ""


def test_content_that_is_no_json_is_the_words_themselves() -> None:
    assert meant_text("text", "just words", [], bot_open_id=BOT).text == "just words"


def test_our_marker_cannot_be_smuggled_in() -> None:
    assert text("a\0 b", mention("@_user_2", "ou_b", "x\0y")).text == "a b"
    assert text("@_user_2!", mention("@_user_2", "ou_b", "x\0y")).text == "@xy!"


def test_a_long_hostile_message_costs_no_more_than_its_length() -> None:
    hostile = "<at id=x>" * 16_000 + " " * 50_000
    rows = [[{"tag": "md", "text": hostile}]]
    assert post(rows).text == hostile.strip()
    assert text("@_user_1 " * 16_000, HELPER).text == ""


@given(st.sampled_from(["text", "post", "image"]), st.text() | JSON.map(json.dumps))
def test_any_content_gives_text_that_can_be_stored(message_type: str, content: str) -> None:
    got = meant_text(message_type, content, [HELPER], bot_open_id=BOT)
    if message_type != "text" or not any("\ud800" <= char <= "\udfff" for char in content):
        got.text.encode()
    assert got.mentions_bot


WORDS = st.sampled_from(["@_user_1", "@_user_12", "@", "_user_1", "hi", "，你好", "/new", "@_all_", "1", ".", "```"])


@given(st.lists(WORDS, max_size=12))
def test_only_the_bots_own_name_goes_and_words_keep_their_order(words: list[str]) -> None:
    got = text("\t".join(words), HELPER, mention("@_user_12", "ou_b", "Zwölf"))
    expected = ["@Zwölf" if word == "@_user_12" else word for word in words if word != "@_user_1"]
    # (punctuation moves up to what stood before the name, as a person would write it)
    assert "".join(got.text.split()) == "".join(expected)
    assert "\t\t" not in got.text
