"""Frames of the long connection: read, built, and put together from parts (feishu.md section 1). Pure.

The frame class is the SDK's. Importing it runs the whole of `lark_channel` (about a second), so it happens on first use
and never on the way to `--help`; a connection loads it in a thread before it needs it.
"""

import base64
import functools
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agno_lark.errors import FeishuError

__all__ = ["InboundFrame", "MalformedFrame", "Parts", "ack_frame", "load_frame_class", "ping_frame", "read_frame"]

_CONTROL, _DATA = 0, 1


class MalformedFrame(FeishuError):
    """The bytes are no frame. There is nothing to acknowledge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InboundFrame:
    """One frame from Feishu. `kind`: its `type` header (event, card, pong, ...); `part` of `parts` counts from 0."""

    is_data: bool
    kind: str
    message_id: str
    part: int
    parts: int
    payload: bytes = field(repr=False)
    wire: Any = field(repr=False)


@functools.cache
def load_frame_class() -> Any:
    """The SDK's `Frame`. Slow the first time: call it off the event loop.

    In a thread, too, because the SDK takes hold of the current event loop while it is imported (feishu.md section 2).
    """
    # Its vendored protobuf is older than Python's latest deprecations; where warnings are errors it would not import.
    # (A filter that stays, because `catch_warnings` in a thread would restore what others have changed meanwhile.)
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"lark_channel\.")
    from lark_channel.ws.pb.pbbp2_pb2 import Frame

    return Frame


def read_frame(data: bytes | str) -> InboundFrame:
    """Decode one frame. Raises `MalformedFrame` for any bytes that are none, and for text."""
    if isinstance(data, str):
        raise MalformedFrame("a text frame")
    frame = load_frame_class()()
    try:
        frame.ParseFromString(data)
        complete = frame.IsInitialized()
    except Exception as error:  # the decoder raises what it likes for junk, down to IndexError
        raise MalformedFrame("not a protobuf frame") from error
    if not complete:
        raise MalformedFrame("a frame without its required fields")
    headers = {header.key: header.value for header in frame.headers}
    return InboundFrame(
        is_data=frame.method == _DATA,
        kind=headers.get("type", ""),
        message_id=headers.get("message_id", ""),
        part=_count(headers.get("seq", ""), 0),
        parts=_count(headers.get("sum", ""), 1),
        payload=frame.payload,
        wire=frame,
    )


def ping_frame(service_id: int) -> bytes:
    """A ping for this connection."""
    frame = load_frame_class()(SeqID=0, LogID=0, service=service_id, method=_CONTROL)
    _add_header(frame, "type", "ping")
    return _bytes(frame)


def ack_frame(frame: InboundFrame, *, code: int, took_ms: int, answer: Mapping[str, Any] | None = None) -> bytes:
    """The same frame as an acknowledgement: 200, or 500 to have it delivered again. `answer`: a callback's JSON."""
    wire = load_frame_class()()
    wire.CopyFrom(frame.wire)
    _add_header(wire, "biz_rt", str(took_ms))
    body: dict[str, Any] = {"code": code}
    if answer is not None:
        body["data"] = base64.b64encode(json.dumps(answer, ensure_ascii=False).encode()).decode("ascii")
    wire.payload = json.dumps(body, separators=(",", ":")).encode()
    return _bytes(wire)


@dataclass(kw_only=True, slots=True)
class _Set:
    parts: int
    seen_s: float
    pieces: dict[int, bytes] = field(default_factory=dict)
    size_bytes: int = 0


class Parts:
    """Payloads that came in parts, in any order, until they are whole.

    Bounded in parts a payload, bytes, payloads and age; what goes over is dropped and, never acknowledged, comes again.
    """

    def __init__(
        self,
        *,
        max_parts: int = 1024,
        max_bytes: int = 16 * 1024 * 1024,
        max_payloads: int = 128,
        max_age_s: float = 60.0,
    ) -> None:
        self._max_parts = max_parts
        self._max_bytes = max_bytes
        self._max_payloads = max_payloads
        self._max_age_s = max_age_s
        self._sets: dict[str, _Set] = {}
        self._size_bytes = 0
        self.dropped = 0

    @property
    def size_bytes(self) -> int:
        """Bytes held, over all unfinished payloads."""
        return self._size_bytes

    def add(self, message_id: str, part: int, parts: int, piece: bytes, *, now_s: float) -> bytes | None:
        """Take one part; the whole payload if it was the last missing one, else `None`. A repeated part replaces."""
        if parts <= 1:
            return piece
        self._forget_old(now_s)
        if not message_id or not 0 <= part < parts or parts > self._max_parts:
            self.dropped += 1
            return None
        held = self._sets.pop(message_id, None)
        if held is not None and held.parts != parts:  # cut differently this time: a new delivery
            self._size_bytes -= held.size_bytes
            held = None
        held = held or _Set(parts=parts, seen_s=now_s)
        grown = len(piece) - len(held.pieces.get(part, b""))
        held.pieces[part] = piece
        held.size_bytes += grown
        held.seen_s = now_s
        self._size_bytes += grown
        if len(held.pieces) == parts:
            self._size_bytes -= held.size_bytes
            return b"".join(held.pieces[index] for index in range(parts))
        self._sets[message_id] = held  # at the end: the first in the dict has been quiet the longest
        while self._sets and (self._size_bytes > self._max_bytes or len(self._sets) > self._max_payloads):
            self._forget(next(iter(self._sets)))
        return None

    def _forget_old(self, now_s: float) -> None:
        while self._sets and now_s - next(iter(self._sets.values())).seen_s > self._max_age_s:
            self._forget(next(iter(self._sets)))

    def _forget(self, message_id: str) -> None:
        self._size_bytes -= self._sets.pop(message_id).size_bytes
        self.dropped += 1


def _add_header(frame: Any, key: str, value: str) -> None:
    header = frame.headers.add()
    header.key = key
    header.value = value


def _bytes(frame: Any) -> bytes:
    data = frame.SerializeToString()
    assert isinstance(data, bytes)  # noqa: S101 - for the type checker: the SDK is untyped
    return data


def _count(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else otherwise
