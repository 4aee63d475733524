"""Server-sent events from bytes. Lines end with LF, CR or CRLF and with nothing else.

httpx's own line reader also breaks at U+2028 and its like, which AgentOS sends unescaped inside JSON: an answer that
holds one would tear its event in two. Hence this parser.
"""

import json
from dataclasses import dataclass

from agno_lark.targets.event_data import text_of, whole
from agno_lark.targets.protocol import RunEvent

__all__ = ["SseFrame", "SseParser", "SseTooLong", "run_event"]

_MAX_FRAME_BYTES = 64 * 1024 * 1024


class SseTooLong(ValueError):
    """A line or an event is longer than any run's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SseFrame:
    """One event: its name ("message" when unnamed) and its data lines, joined with LF."""

    event: str
    data: str


class SseParser:
    """Feed it bytes as they come; it gives back the events that are complete. Raises SseTooLong.

    Comments (heartbeats) and fields other than `event` and `data` are passed over.
    """

    def __init__(self, *, max_frame_bytes: int = _MAX_FRAME_BYTES) -> None:
        self._max = max_frame_bytes
        self._rest = b""
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[SseFrame]:
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        *lines, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if len(self._rest) > self._max:
            raise SseTooLong(f"a line of more than {self._max} bytes")
        return [frame for line in lines if (frame := self._line(line)) is not None]

    def _line(self, line: bytes) -> SseFrame | None:
        if not line:
            frame = SseFrame(event=self._event or "message", data="\n".join(self._data)) if self._data else None
            self._event, self._data, self._size = "", [], 0
            return frame
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._size += len(line)
            if self._size > self._max:
                raise SseTooLong(f"an event of more than {self._max} bytes")
            self._data.append(value)
        return None


def run_event(frame: SseFrame) -> RunEvent | None:
    """The frame as a run's event, or None when its data is no JSON object."""
    try:
        data = json.loads(frame.data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    name = frame.event if frame.event != "message" else text_of(data.get("event")) or frame.event
    return RunEvent(name=name, index=whole(data.get("event_index")), data=data)
