"""Events on their way to the bot: one random connection each, an ack within 3 s, or again by the schedule.

Rules: feishu.md section 1. While nobody is connected events wait and leave when somebody is. Card callbacks are sent
once and never again. A late ack counts for nothing.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from agno_lark.sandbox.connections import Connection
from agno_lark.sandbox.events import envelope, json_bytes, without_content
from agno_lark.sandbox.faults import Faults
from agno_lark.sandbox.frames import Ack
from agno_lark.sandbox.records import Json
from agno_lark.sandbox.refusals import NoAnswer

if TYPE_CHECKING:
    from agno_lark.sandbox.world import World

__all__ = ["Attempt", "Deliveries", "Parcel", "ParcelState"]

log = logging.getLogger(__name__)

REDELIVERY_S = (15.0, 300.0, 3600.0, 21600.0)
ACK_S = 3.0


class ParcelState(StrEnum):
    """Where an event is."""

    WAITING = "waiting"  # nobody is connected, or its next attempt is scheduled
    SENT = "sent"  # an attempt waits for its ack
    ACKED = "acked"  # taken with code 200
    LOST = "lost"  # the schedule is used up, or a card callback got no answer


@dataclass(kw_only=True, slots=True)
class Attempt:
    """One sending. `result` 0 until something is known; then the ack's code, or -1 for none, -2 for a broken socket."""

    message_id: str
    connection_id: str
    sent_ms: int
    result: int = 0
    ack_after_s: float | None = None


@dataclass(kw_only=True, slots=True)
class Parcel:
    """One event and every attempt to deliver it."""

    event_id: str
    event_type: str
    payload: bytes
    message_id: str = ""
    state: ParcelState = ParcelState.WAITING
    attempts: list[Attempt] = field(default_factory=list)
    rounds: int = 0
    answer: asyncio.Future[Json] | None = None
    timer: asyncio.TimerHandle | None = None


class Deliveries:
    """The BotLink of a running server."""

    def __init__(
        self,
        world: "World",
        faults: Faults,
        *,
        ack_s: float = ACK_S,
        redelivery_s: Sequence[float] = REDELIVERY_S,
        rng: random.Random | None = None,
    ) -> None:
        self.world = world
        self.faults = faults
        self.ack_s = ack_s
        self.redelivery_s = tuple(redelivery_s)
        self.connections: dict[str, Connection] = {}
        self.parcels: dict[str, Parcel] = {}
        self.counts: Counter[str] = Counter()
        self._rng = rng or random.Random()
        self._waiting: list[Parcel] = []
        self._held: list[Parcel] = []
        self._in_flight: dict[str, tuple[Parcel, Attempt, float]] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._closed = False

    # -- from the world ----------------------------------------------------------------------------------------------

    def post(self, event_type: str, event: Json) -> str:
        """Hand an event over; returns its event id at once."""
        parcel = self._pack(event_type, event)
        faults = self.faults
        if faults.new_event_ids:
            again = [self._pack(event_type, event) for _ in range(faults.new_event_ids)]
            faults.new_event_ids = 0
        else:
            again = []
        if faults.delay_s:
            delay_s, faults.delay_s = faults.delay_s, 0.0
            self._later(delay_s, lambda: self._release([parcel, *again]))
        elif faults.reorder:
            self._held += [parcel, *again]
            faults.reorder -= 1
            if not faults.reorder:
                self.release_held()
        else:
            self._release([parcel, *again])
        return parcel.event_id

    def post_raw(self, body: Json) -> str:
        """Deliver a whole envelope as it is, with the event id it brings (a test's own input)."""
        header = body.get("header", {})
        event_id = str(header.get("event_id") or self.world.new_id(""))
        parcel = Parcel(
            event_id=event_id,
            event_type=str(header.get("event_type", "")),
            payload=json_bytes(body),
        )
        self._remember(parcel)
        self._send(parcel)
        return event_id

    async def ask(self, event_type: str, event: Json) -> Json:
        """Send a card callback and wait for its answer. Raises NoAnswer with the client's code."""
        parcel = self._pack(event_type, event)
        parcel.answer = asyncio.get_running_loop().create_future()
        if not self.connections:
            parcel.state = ParcelState.LOST
            raise NoAnswer(200340, "the bot is not connected")
        if self.faults.delay_s:
            delay_s, self.faults.delay_s = self.faults.delay_s, 0.0
            self._later(delay_s, lambda: self._send(parcel))
        else:
            self._send(parcel)
        return await parcel.answer

    def _pack(self, event_type: str, event: Json) -> Parcel:
        world = self.world
        event_id = world.new_id("")
        body = envelope(world.app, event_type, event, event_id=event_id, now_ms=world.clock.now_ms())
        parcel = Parcel(event_id=event_id, event_type=event_type, payload=json_bytes(body))
        if event_type == "im.message.receive_v1":
            parcel.message_id = event["message"]["message_id"]
        self._remember(parcel)
        return parcel

    def _remember(self, parcel: Parcel) -> None:
        self.parcels[parcel.event_id] = parcel
        self.counts["events"] += 1
        if len(self.parcels) > 20_000:
            for event_id in list(self.parcels)[:10_000]:
                if self.parcels[event_id].state in (ParcelState.ACKED, ParcelState.LOST):
                    del self.parcels[event_id]

    def _later(self, delay_s: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        def run() -> None:
            self._timers.discard(handle)
            if not self._closed:
                act()

        handle = asyncio.get_running_loop().call_later(delay_s, run)
        self._timers.add(handle)
        return handle

    def _release(self, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            self._send(parcel)

    # -- out and back ------------------------------------------------------------------------------------------------

    def _send(self, parcel: Parcel) -> None:
        if not self.connections:
            parcel.state = ParcelState.WAITING
            if parcel.answer is not None:
                self._lose(parcel, 200340, "the bot is not connected")
            elif parcel not in self._waiting:
                self._waiting.append(parcel)
            return
        if parcel.message_id and self.world.message(parcel.message_id).recalled:
            parcel.payload = without_content(parcel.payload)
        copies, self.faults.duplicates = 1 + self.faults.duplicates, 0
        parts, self.faults.parts = self.faults.parts, 1
        parcel.rounds += 1
        for _ in range(copies):
            connection = self._rng.choice(list(self.connections.values()))
            attempt = Attempt(
                message_id=self.world.new_id(""),
                connection_id=connection.connection_id,
                sent_ms=self.world.clock.now_ms(),
            )
            parcel.attempts.append(attempt)
            parcel.state = ParcelState.SENT
            self._in_flight[attempt.message_id] = (parcel, attempt, self.world.clock.monotonic_s())
            connection.send_event(parcel.payload, message_id=attempt.message_id, parts=parts, rng=self._rng)
            self.counts["attempts"] += 1
        if parcel.timer is not None:
            parcel.timer.cancel()
            self._timers.discard(parcel.timer)
        parcel.timer = self._later(self.ack_s, lambda: self._failed(parcel, -1))

    def acked(self, message_id: str, ack: Ack) -> None:
        """An ack came in."""
        known = self._in_flight.pop(message_id, None)
        if known is None:
            self.counts["late_or_unknown_acks"] += 1
            return
        parcel, attempt, sent_s = known
        attempt.result = ack.code
        attempt.ack_after_s = self.world.clock.monotonic_s() - sent_s
        self.counts[f"acks_{ack.code}"] += 1
        if parcel.state is not ParcelState.SENT:
            return
        if ack.code != 200:
            self._failed(parcel, ack.code)
            return
        parcel.state = ParcelState.ACKED
        self._stop_timer(parcel)
        if parcel.answer is not None and not parcel.answer.done():
            parcel.answer.set_result(ack.data or {})

    def _stop_timer(self, parcel: Parcel) -> None:
        if parcel.timer is not None:
            parcel.timer.cancel()
            self._timers.discard(parcel.timer)
            parcel.timer = None

    def _failed(self, parcel: Parcel, result: int) -> None:
        """The running attempt of a parcel came to nothing: schedule the next, or give up."""
        self._stop_timer(parcel)
        for attempt in parcel.attempts:
            if self._in_flight.pop(attempt.message_id, None) is not None and attempt.result == 0:
                attempt.result = result
        if parcel.answer is not None:
            code = {-1: 200341, -2: 200342}.get(result, 200671)
            self._lose(parcel, code, "the bot did not answer the click in time" if result < 0 else "the bot failed")
            return
        tries = parcel.rounds - 1
        if tries >= len(self.redelivery_s):
            parcel.state = ParcelState.LOST
            self.counts["lost"] += 1
            return
        parcel.state = ParcelState.WAITING
        self.counts["redeliveries"] += 1
        self._later(self.redelivery_s[tries], lambda: self._send(parcel))

    def _lose(self, parcel: Parcel, code: int, message: str) -> None:
        parcel.state = ParcelState.LOST
        if parcel.answer is not None and not parcel.answer.done():
            parcel.answer.set_exception(NoAnswer(code, message))

    # -- connections come and go -------------------------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        """A bot's connection is ready: what waited for one leaves now."""
        self.connections[connection.connection_id] = connection
        self.counts["connections"] += 1
        waiting, self._waiting = self._waiting, []
        self._release(waiting)

    def disconnected(self, connection: Connection) -> None:
        """What was on its way over this connection and unacked goes by the schedule."""
        if self.connections.pop(connection.connection_id, None) is None:
            return
        for parcel, attempt, _ in list(self._in_flight.values()):
            if attempt.connection_id == connection.connection_id and parcel.state is ParcelState.SENT:
                self._failed(parcel, -2)

    def drop_all(self) -> int:
        """Break every connection (a fault)."""
        open_now = list(self.connections.values())
        for connection in open_now:
            connection.drop()
            self.disconnected(connection)
        return len(open_now)

    def silence_all(self) -> int:
        """Let every connection now open fall silent (a fault)."""
        for connection in self.connections.values():
            connection.silent = True
        return len(self.connections)

    def release_held(self) -> None:
        """What is held back to be reordered leaves now, the last first."""
        held, self._held = self._held, []
        self._release(list(reversed(held)))

    def close(self) -> None:
        """The server ends: no timer fires any more, no click waits."""
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for parcel in self.parcels.values():
            if parcel.answer is not None:
                self._lose(parcel, 200340, "the sandbox is closing")
        self.hang_up()

    def hang_up(self) -> None:
        """End every connection politely."""
        for connection in list(self.connections.values()):
            connection.close()
