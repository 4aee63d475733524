"""One WebSocket of a bot: frames out through a queue, frames in to the deliveries, pings answered."""

import asyncio
import logging
import random
import socket
import struct
from collections.abc import Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from agno_lark.sandbox.frames import Ack, event_frames, pong_frame, read_frame
from agno_lark.sandbox.records import Json

__all__ = ["Connection", "abort_transport"]

log = logging.getLogger(__name__)


def abort_transport(send: Any) -> None:
    """Break the TCP connection behind an ASGI `send` of uvicorn, with a reset rather than a close.

    uvicorn's `send` is a bound method of the object that holds the transport; ASGI itself has no way to hang up.
    """
    owner = getattr(send, "__self__", None)
    transport: asyncio.Transport | None = getattr(owner, "transport", None)
    if transport is None:
        raise RuntimeError("this ASGI server shows no transport to break")
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Connection:
    """Owned by its endpoint: `serve` runs until either side ends it."""

    def __init__(
        self,
        websocket: WebSocket,
        *,
        connection_id: str,
        service_id: int,
        config: Callable[[], Json | None],
        raw_send: Any,
    ) -> None:
        self.connection_id = connection_id
        self.service_id = service_id
        self.silent = False
        self.pings = 0
        self.bad_frames = 0
        self._websocket = websocket
        self._config = config
        self._raw_send = raw_send
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send_event(self, payload: bytes, *, message_id: str, parts: int, rng: random.Random) -> None:
        """Queue an event's frames; more than one part is shuffled."""
        frames = list(
            event_frames(
                payload, message_id=message_id, trace_id=message_id[::-1], service_id=self.service_id, parts=parts
            )
        )
        if len(frames) > 1:
            rng.shuffle(frames)
        for frame in frames:
            self._out.put_nowait(frame)

    def drop(self) -> None:
        """Break the line without a word."""
        self._out.put_nowait(None)
        abort_transport(self._raw_send)

    def close(self) -> None:
        """End it politely, after what is queued."""
        self._out.put_nowait(None)

    async def serve(self, on_ack: Callable[[str, Ack], None]) -> None:
        """Read and write until the end. Frames that are none are counted and skipped."""
        writer = asyncio.create_task(self._write(), name=f"sandbox-ws-writer-{self.connection_id}")
        reader = asyncio.create_task(self._read(on_ack), name=f"sandbox-ws-reader-{self.connection_id}")
        try:
            await asyncio.wait({writer, reader}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (writer, reader):
                task.cancel()
            await asyncio.gather(writer, reader, return_exceptions=True)

    async def _write(self) -> None:
        while (frame := await self._out.get()) is not None:
            if not self.silent:
                await self._websocket.send_bytes(frame)
        await self._websocket.close(1001)

    async def _read(self, on_ack: Callable[[str, Ack], None]) -> None:
        while True:
            try:
                data = await self._websocket.receive_bytes()
            except (WebSocketDisconnect, KeyError):
                return
            if self.silent:
                continue
            try:
                frame = read_frame(data)
            except ValueError as error:
                self.bad_frames += 1
                log.warning("a frame was not understood", extra={"action": "sandbox_bad_frame", "reason": str(error)})
                continue
            if frame.is_ping:
                self.pings += 1
                self._out.put_nowait(pong_frame(self.service_id, self._config()))
            elif frame.ack is not None:
                on_ack(frame.message_id, frame.ack)
