"""Server-sent events out of bytes, however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agno_lark.targets.sse import SseFrame, SseParser, SseTooLong, run_event


def frames(*chunks: bytes) -> list[SseFrame]:
    parser = SseParser()
    return [frame for chunk in chunks for frame in parser.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_is_understood(end: bytes) -> None:
    wire = end.join([b"event: RunContent", b"data: {}", b"", b""])
    assert frames(wire) == [SseFrame(event="RunContent", data="{}")]


def test_data_lines_are_joined_and_comments_and_other_fields_passed_over() -> None:
    wire = b": keepalive\n\nid: 7\nretry: 10\ndata: a\ndata:b\ndata\n\n"
    assert frames(wire) == [SseFrame(event="message", data="a\nb\n")]


def test_an_event_without_data_is_none() -> None:
    assert frames(b"event: RunStarted\n\ndata: x\n\n") == [SseFrame(event="message", data="x")]


def test_line_separators_inside_json_do_not_tear_it() -> None:
    """httpx's own line reader breaks here."""
    wire = 'event: RunContent\ndata: {"content":"a\u2028b\u0085c\x1cd"}\n\n'.encode()
    assert frames(wire)[0].data == '{"content":"a\u2028b\u0085c\x1cd"}'


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_where_the_bytes_are_cut_does_not_matter(cuts: list[int], end: str) -> None:
    lines = ["event: RunContent", 'data: {"content": "哈哈"}', "", ": beat", "", "data: 1", "data: 2", "", ""]
    wire = end.join(lines).encode()
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    chunks = [wire[a:b] for a, b in pairwise(places)]
    assert frames(*chunks) == frames(wire)
    assert len(frames(wire)) == 2


def test_an_empty_chunk_between_cr_and_lf_changes_nothing() -> None:
    assert frames(b"data: 1\r", b"", b"\ndata: 2\r\n\r\n") == [SseFrame(event="message", data="1\n2")]


def test_an_event_without_end_is_refused() -> None:
    with pytest.raises(SseTooLong):
        SseParser(max_frame_bytes=100).feed(b"data: xxxxx\n" * 50)
    with pytest.raises(SseTooLong):
        SseParser(max_frame_bytes=100).feed(b"x" * 200)


def test_a_frame_becomes_an_event_with_its_index() -> None:
    event = run_event(SseFrame(event="RunContent", data='{"event_index": 3, "content": "a"}'))
    assert event is not None
    assert (event.name, event.index, event.data["content"]) == ("RunContent", 3, "a")


def test_an_unnamed_frame_takes_the_name_in_its_data() -> None:
    event = run_event(SseFrame(event="message", data='{"event": "RunStarted", "event_index": true}'))
    assert event is not None
    assert (event.name, event.index) == ("RunStarted", None)


@pytest.mark.parametrize("data", ["", "{", "[1]", "null", "[" * 100_000])
def test_junk_is_no_event(data: str) -> None:
    assert run_event(SseFrame(event="RunContent", data=data)) is None
