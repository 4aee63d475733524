"""Reading events: every sample of ours, and every JSON there is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agno_lark.feishu import (
    CARD_CLICK,
    MESSAGE_RECALLED,
    MESSAGE_RECEIVED,
    CardClick,
    IncomingMessage,
    MalformedEvent,
    parse_click,
    parse_event,
    parse_message,
    parse_recall,
)
from agno_lark.feishu.events import epoch_ms
from tests.feishu_fixtures import BODIES, EVENTS, JSON, NAMES, load


def message(name: str) -> IncomingMessage:
    return parse_message(load(name))


def click(name: str) -> CardClick:
    return parse_click(load(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_read(name: str) -> None:
    event = load(name)
    sample = json.loads((EVENTS / f"{name}.json").read_text())
    assert event.event_id == sample["header"]["event_id"]
    assert event.tenant_key == "2ba4f54dc7d4988c"
    assert 1_780_382_000_000 < event.created_ms < 1_780_384_000_000
    if event.event_type == MESSAGE_RECEIVED:
        assert parse_message(event).content == sample["event"]["message"]["content"]
    elif event.event_type == CARD_CLICK:
        assert parse_click(event).tag == sample["event"]["action"]["tag"]
    elif event.event_type == MESSAGE_RECALLED:
        assert parse_recall(event).message_id == sample["event"]["message_id"]


def test_a_direct_message_is_read_whole() -> None:
    got = message("text")
    assert (got.chat_type, got.message_type, got.language) == ("p2p", "text", "en")
    assert got.sender_open_id == "ou_a23b9b81c5518a7082a649f736032b68"
    assert got.created_ms == 1780382407313
    assert (got.thread_id, got.root_id, got.parent_id, got.mentions) == (None, None, None, ())


def test_a_first_level_reply_keeps_its_parent() -> None:
    got = message("reply_quote_first_level")
    assert got.parent_id == got.root_id == "om_9368937fb1b33d5a6e3e5f039ed298a6"
    assert got.thread_id is None


def test_mentions_tell_bots_from_people_and_survive_missing_ids() -> None:
    bot, person, other_bot, everybody = message("text_mentions").mentions
    assert (bot.is_bot, person.is_bot, other_bot.is_bot) == (True, False, True)
    assert (everybody.key, everybody.open_id) == ("@_all", "")


def test_a_sender_of_another_tenant_is_told_apart() -> None:
    got = message("text_external_tenant")
    assert got.sender_tenant_key == "85a159e5351f25a9" != got.tenant_key
    assert got.sender_user_id is None


def test_microseconds_of_card_events_become_milliseconds() -> None:
    assert click("card_button").created_ms == 1780382911910


def test_a_click_carries_what_was_chosen() -> None:
    form = click("card_form_submit")
    assert form.name == "submit_fuel"
    assert form.form_value["extras"] == ["filter", "gloves"]
    assert form.timezone == "Europe/Berlin"
    assert click("card_select").option == "tank_b"
    assert click("card_multi_select").options == ("filter", "gloves")
    assert click("card_checker").checked is True
    assert click("card_input").input_value == "use the small hose"
    assert click("card_button").value == {"op": "fuel.approve", "order": 118}


def test_a_click_with_a_string_value_survives() -> None:
    got = click("card_button_string_value")
    assert (got.value, got.value_text) == ({}, "fuel.approve:118")


def test_a_click_without_context_survives_and_context_beside_the_event_is_found() -> None:
    raw = json.loads((EVENTS / "card_button.json").read_text())
    context = raw["event"].pop("context")
    assert parse_click(parse_event(json.dumps(raw))).message_id == ""
    raw["context"] = context
    assert parse_click(parse_event(json.dumps(raw))).message_id == context["open_message_id"]


def test_an_event_of_the_old_schema_is_read() -> None:
    raw = {
        "uuid": "u1",
        "ts": "1780382407.31",
        "type": "event_callback",
        "event": {"type": "message", "app_id": "cli_1"},
    }
    event = parse_event(json.dumps(raw))
    assert (event.event_id, event.event_type, event.app_id) == ("u1", "message", "cli_1")


@pytest.mark.parametrize(
    "junk",
    [
        *(
            b"",
            b"null",
            b"[]",
            b"\xff\xfe\x00",
            b"{",
            b'{"header":{}}',
            b'{"header":{"event_id":"e1"}}',
            b"[" * 100_000,
        ),
        b'{"header":{"event_id":1,"event_type":"x"}}',
        b'{"n":' + b"9" * 5000 + b"}",
    ],
)
def test_junk_is_one_clear_error(junk: bytes) -> None:
    with pytest.raises(MalformedEvent):
        parse_event(junk)


def test_half_a_character_does_not_travel_on() -> None:
    raw = {"header": {"event_id": "e1", "event_type": "t"}, "event": {"text": "a\ud83d", "\udc00": ["\ud83d\ude00"]}}
    event = parse_event(json.dumps(raw))
    assert event.body == {"text": "a\ufffd", "\ufffd": ["😀"]}


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_give_an_event_or_the_one_error(payload: bytes) -> None:
    try:
        event = parse_event(payload)
    except MalformedEvent:
        return
    assert event.event_id
    assert event.event_type


@given(BODIES)
def test_any_body_gives_a_value_or_the_one_error(body: Any) -> None:
    event = parse_event(json.dumps({"header": {"event_id": "e1", "event_type": "t"}, "event": body}))
    for parse in (parse_message, parse_click, parse_recall):
        try:
            value = parse(event)
        except MalformedEvent:
            continue
        assert value.event_id == "e1"


@pytest.mark.parametrize(
    ("given_time", "expected_ms"),
    [
        ("1780382407313", 1780382407313),
        ("1780382911910000", 1780382911910),
        (1780382897, 1780382897000),
        ("", 0),
        (None, 0),
        (True, 0),
        (-5, 0),
        ("9" * 30, 0),
        (10**18, 0),
        ("１２", 0),
        (1.5, 0),
    ],
)
def test_times_are_told_apart_by_their_size(given_time: object, expected_ms: int) -> None:
    assert epoch_ms(given_time) == expected_ms
