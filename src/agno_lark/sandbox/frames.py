"""WebSocket frames, as the platform builds and reads them (feishu.md section 1). The class is the SDK's own."""

import atexit
import base64
import binascii
import itertools
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from agno_lark.sandbox.records import Json

__all__ = ["Ack", "Inbound", "event_frames", "load_frame_class", "pong_frame", "read_frame"]

CONTROL, DATA = 0, 1
_SEQUENCE = itertools.count(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ack:
    """The bot's answer to a data frame: `code` 200 is taken, others ask again; `data` the card callback's answer."""

    code: int
    data: Json | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Inbound:
    """A frame from the bot: a ping, an ack of the attempt `message_id`, or something unknown (both None)."""

    is_ping: bool
    message_id: str
    ack: Ack | None
    biz_rt_ms: int | None


@cache
def load_frame_class() -> Any:
    """The SDK's `Frame`. Heavy, and the SDK takes hold of the current event loop when imported: load it in a thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the SDK's own, on every import
        from lark_channel.ws import client
        from lark_channel.ws.pb.pbbp2_pb2 import Frame

    def tidy() -> None:
        if not client.loop.is_running():
            client.loop.close()  # the loop the SDK made for itself while it was imported

    atexit.register(tidy)
    return Frame


def _frame(method: int, service_id: int, headers: dict[str, str], payload: bytes) -> bytes:
    frame = load_frame_class()()
    frame.SeqID = next(_SEQUENCE)
    frame.LogID = 0
    frame.service = service_id
    frame.method = method
    for key, value in headers.items():
        header = frame.headers.add()
        header.key, header.value = key, value
    if payload:
        frame.payload = payload
    data: bytes = frame.SerializeToString()
    return data


def event_frames(payload: bytes, *, message_id: str, trace_id: str, service_id: int, parts: int = 1) -> Iterator[bytes]:
    """One frame, or `parts` of them in order; card clicks too come as type event."""
    size = max(1, -(-len(payload) // parts))
    pieces = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
    for seq, piece in enumerate(pieces):
        headers = {
            "type": "event",
            "message_id": message_id,
            "sum": str(len(pieces)),
            "seq": str(seq),
            "trace_id": trace_id,
        }
        yield _frame(DATA, service_id, headers, piece)


def pong_frame(service_id: int, config: Json | None) -> bytes:
    """The answer to a ping, with a new ClientConfig or nothing."""
    return _frame(CONTROL, service_id, {"type": "pong"}, json.dumps(config).encode() if config else b"")


def read_frame(data: bytes) -> Inbound:
    """What the bot sent. Raises ValueError where it is no frame, or an ack whose payload is not as agreed."""
    frame = load_frame_class()()
    try:
        frame.ParseFromString(data)
    except Exception as error:  # noqa: BLE001 - protobuf's own error class depends on its implementation
        raise ValueError(f"not a frame: {error}") from None
    headers = {header.key: header.value for header in frame.headers}
    kind = headers.get("type", "")
    message_id = str(headers.get("message_id", ""))
    if frame.method == CONTROL:
        return Inbound(is_ping=kind == "ping", message_id="", ack=None, biz_rt_ms=None)
    biz_rt = str(headers.get("biz_rt", ""))
    return Inbound(
        is_ping=False,
        message_id=message_id,
        ack=_ack(bytes(frame.payload)),
        biz_rt_ms=int(biz_rt) if biz_rt.isdigit() else None,
    )


def _ack(payload: bytes) -> Ack:
    try:
        body = json.loads(payload)
        code = body["code"]
        data = body.get("data")
        answer = json.loads(base64.b64decode(data, validate=True)) if data else None
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"the ack's payload is not as agreed: {error!r}") from None
    if not isinstance(code, int) or (answer is not None and not isinstance(answer, dict)):
        raise ValueError("the ack's payload is not as agreed: code is no number, or data no object")
    return Ack(code=code, data=answer)
