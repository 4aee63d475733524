"""One WebSocket to Feishu, from its handshake to its end."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from agno_lark.clock import Clock
from agno_lark.feishu.deliveries import Deliveries
from agno_lark.feishu.discovery import ClientConfig, Endpoint, NotConnected, read_config, read_rejection
from agno_lark.feishu.frames import InboundFrame, MalformedFrame, Parts, ping_frame, read_frame
from agno_lark.feishu.jsontext import read_object
from agno_lark.feishu.proxy import proxy_for
from agno_lark.feishu.status import Tally
from agno_lark.feishu.transport import USER_AGENT, tls_context

__all__ = ["Link", "open_socket"]

log = logging.getLogger(__name__)

# websockets prints whole handshakes, ticket included, at DEBUG.
_socket_log = logging.getLogger("agno_lark.feishu.socket")
_socket_log.setLevel(logging.INFO)

# Feishu is dead when it has been silent for so many pings (each is answered by a pong).
_SILENT_PINGS = 3
_MAX_FRAME_BYTES = 16 * 1024 * 1024


async def open_socket(endpoint: Endpoint, *, base_url: str, timeout_s: float) -> ClientConnection:
    """The handshake. Raises `ConnectionRefused` (final) or `NotConnected`."""
    secure = endpoint.url.startswith("wss:")
    try:
        return await connect(
            endpoint.url,
            ssl=tls_context() if secure else None,
            proxy=proxy_for(endpoint.url),
            compression=None,
            user_agent_header=USER_AGENT,
            open_timeout=timeout_s,
            close_timeout=2.0,
            # Feishu's own ping and pong are data frames; they alone decide whether it lives.
            ping_interval=None,
            max_size=_MAX_FRAME_BYTES,
            logger=_socket_log,
        )
    except InvalidStatus as error:
        response = error.response
        raise read_rejection(response.headers, response.status_code, base_url=base_url) from error
    except (WebSocketException, OSError, TimeoutError) as error:
        raise NotConnected(f"the WebSocket handshake failed ({type(error).__name__})") from error


class Link:
    """Reads frames, pings, and hands whole events to `deliveries`, until the socket is lost or has gone silent."""

    def __init__(
        self,
        socket: ClientConnection,
        endpoint: Endpoint,
        *,
        deliveries: Deliveries,
        tally: Tally,
        clock: Clock,
        pace: float,
        write_timeout_s: float,
        on_config: Callable[[ClientConfig], None],
    ) -> None:
        self._socket = socket
        self._service_id = endpoint.service_id
        self._config = endpoint.config
        self._deliveries = deliveries
        self._tally = tally
        self._clock = clock
        self._pace = pace
        self._write_timeout_s = write_timeout_s
        self._on_config = on_config
        self._config_changed = asyncio.Event()
        self._parts = Parts()

    async def run(self) -> None:
        """Never returns: raises `NotConnected` with the reason. Cancelling it leaves the socket open for acks."""
        pinger = asyncio.create_task(self._ping(), name="feishu-ping")
        try:
            await self._read()
        finally:
            pinger.cancel()
            await asyncio.wait({pinger})

    async def send(self, data: bytes) -> None:
        """Write one frame. Raises `OSError` where the socket is lost, or does not take it in time."""
        try:
            async with asyncio.timeout(self._write_timeout_s):
                await self._socket.send(data)
        except ConnectionClosed as error:
            raise OSError("the socket is closed") from error

    async def _read(self) -> None:
        while True:
            silence_s = _SILENT_PINGS * self._config.ping_interval_s * self._pace
            try:
                async with asyncio.timeout(silence_s):
                    data = await self._socket.recv()
            except TimeoutError as error:
                raise NotConnected(f"Feishu has been silent for {_SILENT_PINGS} pings") from error
            except ConnectionClosed as error:
                code = error.rcvd.code if error.rcvd is not None else None
                raise NotConnected(f"the connection was lost (close code {code})") from error
            self._tally.frame()
            try:
                self._take(read_frame(data))
            except MalformedFrame:
                self._tally.malformed += 1
                log.warning("A frame could not be read", extra={"action": "frame_malformed"})

    def _take(self, frame: InboundFrame) -> None:
        if not frame.is_data:
            if frame.kind == "pong" and frame.payload:
                self._reconfigure(frame.payload)
            return
        if frame.kind != "event":
            # The old kind `card` is not delivered here any more; nobody else is documented.
            log.info("A frame of an unknown kind was passed over", extra={"action": "frame_unknown"})
            return
        dropped = self._parts.dropped
        payload = self._parts.add(
            frame.message_id, frame.part, frame.parts, frame.payload, now_s=self._clock.monotonic_s()
        )
        if self._parts.dropped > dropped:
            self._tally.malformed += 1
            log.warning("Parts of an event were dropped", extra={"action": "parts_dropped"})
        if payload is not None:
            self._deliveries.take(frame, payload, self.send)

    def _reconfigure(self, payload: bytes) -> None:
        with contextlib.suppress(ValueError):  # a pong that is no JSON is still a sign of life
            config = read_config(read_object(payload), self._config)
            if config != self._config:
                self._config = config
                self._on_config(config)
                self._config_changed.set()

    async def _ping(self) -> None:
        while True:
            with contextlib.suppress(OSError):  # the reader notices a lost socket
                await self.send(ping_frame(self._service_id))
            self._config_changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.ping_interval_s * self._pace):
                    await self._config_changed.wait()
