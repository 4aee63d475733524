"""Frames: as the SDK's class reads them, whatever bytes come, and parts in any order."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agno_lark.feishu.frames import MalformedFrame, Parts, ack_frame, load_frame_class, ping_frame, read_frame


def event_frame(payload: bytes, **headers: str) -> bytes:
    frame = load_frame_class()(SeqID=7, LogID=8, service=33, method=1, payload=payload)
    for key, value in {
        "type": "event",
        "message_id": "m1",
        "sum": "1",
        "seq": "0",
        "trace_id": "t1",
        **headers,
    }.items():
        header = frame.headers.add()
        header.key, header.value = key, value
    data: bytes = frame.SerializeToString()
    return data


def decode(data: bytes) -> Any:
    frame = load_frame_class()()
    frame.ParseFromString(data)
    return frame


def headers_of(frame: Any) -> list[tuple[str, str]]:
    return [(header.key, header.value) for header in frame.headers]


def test_an_event_frame_is_read() -> None:
    frame = read_frame(event_frame(b"{}", sum="3", seq="2"))
    assert (frame.is_data, frame.kind, frame.message_id) == (True, "event", "m1")
    assert (frame.part, frame.parts, frame.payload) == (2, 3, b"{}")


def test_an_acknowledgement_is_the_same_frame_with_its_time() -> None:
    frame = read_frame(event_frame(b"{}"))
    sent = decode(ack_frame(frame, code=200, took_ms=12))
    assert (sent.SeqID, sent.LogID, sent.service, sent.method) == (7, 8, 33, 1)
    assert headers_of(sent) == [*headers_of(frame.wire), ("biz_rt", "12")]
    assert json.loads(sent.payload) == {"code": 200}


def test_a_callbacks_answer_travels_in_base64() -> None:
    answer = {"toast": {"type": "info", "content": "已批准"}}
    sent = decode(ack_frame(read_frame(event_frame(b"{}")), code=200, took_ms=1, answer=answer))
    assert json.loads(base64.b64decode(json.loads(sent.payload)["data"])) == answer


def test_acknowledging_twice_does_not_pile_up_headers() -> None:
    frame = read_frame(event_frame(b"{}"))
    ack_frame(frame, code=500, took_ms=1)
    assert len(headers_of(decode(ack_frame(frame, code=200, took_ms=2)))) == 6


def test_a_ping_names_its_service() -> None:
    sent = decode(ping_frame(33))
    assert (sent.method, sent.service, headers_of(sent)) == (0, 33, [("type", "ping")])


def test_odd_counts_mean_one_whole_payload() -> None:
    frame = read_frame(event_frame(b"x", sum="²", seq="-1"))
    assert (frame.part, frame.parts) == (0, 1)


@pytest.mark.parametrize("junk", [b"", b"\x00", b"\xff" * 40, b"hello", "text"])
def test_junk_is_one_clear_error(junk: bytes | str) -> None:
    with pytest.raises(MalformedFrame):
        read_frame(junk)


def test_a_frame_cut_inside_its_payload_is_no_frame() -> None:
    whole = event_frame(b"abc")
    for missing in (1, 2, 3):
        with pytest.raises(MalformedFrame):
            read_frame(whole[:-missing])


@given(st.binary(max_size=300))
def test_any_bytes_give_a_frame_or_the_one_error(data: bytes) -> None:
    try:
        frame = read_frame(data)
    except MalformedFrame:
        return
    assert isinstance(frame.payload, bytes)


@settings(max_examples=60)
@given(st.data())
def test_parts_of_several_payloads_in_any_order_come_together(data: st.DataObject) -> None:
    payloads = data.draw(
        st.dictionaries(st.sampled_from("abc"), st.lists(st.binary(max_size=9), min_size=1), min_size=1)
    )
    deliveries = [(name, index) for name, pieces in payloads.items() for index in range(len(pieces))]
    parts, whole = Parts(), {}
    for name, index in data.draw(st.permutations(deliveries)):
        pieces = payloads[name]
        joined = parts.add(name, index, len(pieces), pieces[index], now_s=0.0)
        if joined is not None:
            whole[name] = joined
    assert whole == {name: b"".join(pieces) for name, pieces in payloads.items()}
    assert (parts.size_bytes, parts.dropped) == (0, 0)


def test_a_part_that_comes_twice_counts_once() -> None:
    parts = Parts()
    assert parts.add("m", 0, 2, b"aa", now_s=0) is None
    assert parts.add("m", 0, 2, b"a", now_s=0) is None
    assert parts.size_bytes == 1
    assert parts.add("m", 1, 2, b"b", now_s=0) == b"ab"


def test_a_payload_cut_differently_starts_again() -> None:
    parts = Parts()
    parts.add("m", 0, 3, b"old", now_s=0)
    assert parts.add("m", 0, 2, b"a", now_s=0) is None
    assert parts.add("m", 1, 2, b"b", now_s=0) == b"ab"


def test_parts_are_bounded_in_number_bytes_payloads_and_age() -> None:
    parts = Parts(max_parts=4, max_bytes=10, max_payloads=2, max_age_s=60)
    for bad in ((5, 0), (2, 2), (2, -1)):
        assert parts.add("m", bad[1], bad[0], b"x", now_s=0) is None
    assert (parts.dropped, parts.size_bytes) == (3, 0)
    for name in "abc":
        parts.add(name, 0, 2, b"1234", now_s=0)
    assert (parts.dropped, parts.size_bytes) == (4, 8)  # "a" had to go
    parts.add("c", 1, 3, b"123456789", now_s=1)  # too many bytes beside "b"
    assert parts.size_bytes <= 10
    parts.add("d", 0, 2, b"1", now_s=100)
    assert parts.size_bytes == 1  # the old ones were forgotten
