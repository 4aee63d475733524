"""The long connection of one app, held for as long as the bridge runs.

Our own, because the SDK's client lives on one module-global event loop, never notices a silent socket, and
acknowledges before the handler has run (feishu.md section 2). Several may run in one event loop; they share nothing.
"""

import asyncio
import logging
import random
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection

from agno_lark.clock import Clock, SystemClock
from agno_lark.errors import ConnectionRefused
from agno_lark.feishu.deliveries import Accept, Deliveries
from agno_lark.feishu.discovery import ClientConfig, NotConnected, discover
from agno_lark.feishu.frames import load_frame_class
from agno_lark.feishu.link import Link, open_socket
from agno_lark.feishu.status import ConnectionState, ConnectionStatus, Tally
from agno_lark.feishu.transport import http_client, tls_context

__all__ = ["Connection", "ConnectionLimits", "wait_before"]

log = logging.getLogger(__name__)

_SETTLED_AFTER_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionLimits:
    """Times and counts of our own. `pace` is the length of one of Feishu's seconds: tests shorten it."""

    connect_timeout_s: float = 10.0
    write_timeout_s: float = 10.0
    answer_within_s: float = 2.5
    drain_s: float = 5.0
    max_running: int = 64
    max_waiting: int = 4096
    pace: float = 1.0


def wait_before(attempt: int, config: ClientConfig | None, chance: float) -> float | None:
    """Seconds (of Feishu's) until attempt number `attempt`, counted from 1 since the last connection; `None`: give up.

    `chance` is a random number in [0, 1). After a loss the first wait is jitter only, so that all clients of a server
    that restarts do not come back at once; later waits are the interval. Before Feishu has said anything (`config` is
    `None`) the waits double from 1 s to 30 s. Pure.
    """
    if config is None:
        return min(30.0, 2.0 ** min(attempt - 1, 5)) * (0.5 + chance / 2)
    if 0 <= config.reconnect_count < attempt:
        return None
    return config.reconnect_jitter_s * chance if attempt == 1 else float(config.reconnect_interval_s)


class Connection:
    """Holds one app's connection. `await run()` in a task of its own; `snapshot()` at any time; `await stop()` ends it.

    `accept(event)` is awaited for each delivery, side by side, and only then is the event acknowledged: return `None`,
    or a card callback's answer. An error or more than 2.5 s asks Feishu for another delivery (see `Deliveries`).
    """

    def __init__(
        self,
        app_id: str,
        app_secret: str,
        base_url: str,
        accept: Accept,
        *,
        clock: Clock | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._app_id = app_id
        self._app_secret = app_secret
        self._base_url = base_url.rstrip("/")
        self._clock = clock or SystemClock()
        self._limits = limits or ConnectionLimits()
        self._tally = Tally(app_id=app_id, clock=self._clock)
        self._deliveries = Deliveries(
            accept,
            self._tally,
            answer_within_s=self._limits.answer_within_s,
            max_running=self._limits.max_running,
            max_waiting=self._limits.max_waiting,
        )
        self._config: ClientConfig | None = None
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    def snapshot(self) -> ConnectionStatus:
        """How it is doing now."""
        return self._tally.snapshot()

    async def run(self) -> None:
        """Connect, and reconnect, until `stop()` or cancellation.

        Either way no further frame is taken, what was taken is acknowledged (within `drain_s`), and the socket closed.
        Raises `ConnectionRefused` where Feishu will never say yes to these settings, or after as many failed attempts
        as it allows.
        """
        self._ended.clear()
        keeper = asyncio.create_task(self._keep(), name=f"feishu-connection-{self._app_id}")
        stopper = asyncio.create_task(self._stopping.wait(), name="feishu-connection-stop")
        try:
            await asyncio.wait({keeper, stopper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopper.cancel()
            keeper.cancel()
            await asyncio.wait({keeper, stopper})
            await self._deliveries.drain(self._limits.drain_s)  # what came over a socket that is lost
            if self._tally.state is not ConnectionState.REFUSED:
                self._tally.enter(ConnectionState.CLOSED)
            self._ended.set()
        if not keeper.cancelled():
            keeper.result()

    async def stop(self) -> None:
        """Ask `run()` to end, and wait until it has. It cannot be run again."""
        self._stopping.set()
        await self._ended.wait()

    async def _keep(self) -> None:
        # Off the event loop: the SDK's package takes about a second to import.
        await asyncio.to_thread(load_frame_class)
        await asyncio.to_thread(tls_context)
        attempt = 0
        async with http_client(self._base_url, timeout_s=self._limits.connect_timeout_s) as client:
            while True:
                self._tally.enter(ConnectionState.CONNECTING)
                since_s = self._clock.monotonic_s()
                try:
                    endpoint = await discover(client, self._app_id, self._app_secret, base_url=self._base_url)
                    self._config = endpoint.config
                    socket = await open_socket(
                        endpoint, base_url=self._base_url, timeout_s=self._limits.connect_timeout_s
                    )
                    link = Link(
                        socket,
                        endpoint,
                        deliveries=self._deliveries,
                        tally=self._tally,
                        clock=self._clock,
                        pace=self._limits.pace,
                        write_timeout_s=self._limits.write_timeout_s,
                        on_config=self._reconfigure,
                    )
                    await self._hold(socket, link)
                except ConnectionRefused as error:
                    self._tally.enter(ConnectionState.REFUSED, str(error))
                    log.error("Feishu refused the connection", extra={"action": "refused", "code": error.code})
                    raise
                except NotConnected as error:
                    # A connection that is cut again and again right after its start is no better than a failed one.
                    lived = self._clock.monotonic_s() - since_s >= _SETTLED_AFTER_S * self._limits.pace
                    attempt = 1 if lived and self._tally.state is ConnectionState.CONNECTED else attempt + 1
                    await self._wait(attempt, error)

    async def _hold(self, socket: ClientConnection, link: Link) -> None:
        """Run the link until it is lost (`NotConnected`), or drain and close it when cancelled."""
        self._tally.enter(ConnectionState.CONNECTED)
        log.info("Connected to Feishu", extra={"action": "connected", "app_id": self._app_id})
        try:
            await link.run()
        except asyncio.CancelledError:
            await self._deliveries.drain(self._limits.drain_s)
            raise
        finally:
            await socket.close()

    async def _wait(self, attempt: int, reason: NotConnected) -> None:
        wait_s = wait_before(attempt, self._config, random.random())
        if wait_s is None:
            message = f"not connected after as many attempts as Feishu allows ({attempt - 1}): {reason}"
            self._tally.enter(ConnectionState.REFUSED, message)
            raise ConnectionRefused(message, code=-1) from reason
        self._tally.enter(ConnectionState.WAITING, str(reason))
        log.warning(
            "Not connected to Feishu",
            extra={"action": "disconnected", "app_id": self._app_id, "reason": str(reason), "wait_s": round(wait_s, 1)},
        )
        await asyncio.sleep(wait_s * self._limits.pace)

    def _reconfigure(self, config: ClientConfig) -> None:
        self._config = config
