"""Events on their way through `accept`: side by side, bounded, and acknowledged only afterwards."""

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agno_lark import crash
from agno_lark.feishu.events import Event, MalformedEvent, parse_event
from agno_lark.feishu.frames import InboundFrame, ack_frame
from agno_lark.feishu.status import Tally

__all__ = ["Accept", "Deliveries", "Send"]

log = logging.getLogger(__name__)

Accept = Callable[[Event], Awaitable[Mapping[str, Any] | None]]
Send = Callable[[bytes], Awaitable[None]]

_OK, _AGAIN = 200, 500


class _Crowded(Exception):
    """As many events wait as may."""


class Deliveries:
    """Takes whole events; each runs in a task of its own and ends in one acknowledgement.

    An accept that takes longer than `answer_within_s` is acknowledged with 500, so that Feishu brings the event again
    (its limit is 3 s), but runs on: its commit may be under way and would not be undone by a cancellation, dedup turns
    the repetition into a 200, and a card click, which never comes again, is carried out after all. It keeps its place
    among the `max_running` until it ends. An event that finds no place in time is acknowledged with 500 untouched.
    """

    def __init__(
        self, accept: Accept, tally: Tally, *, answer_within_s: float, max_running: int, max_waiting: int
    ) -> None:
        self._accept = accept
        self._tally = tally
        self._answer_within_s = answer_within_s
        self._places = asyncio.Semaphore(max_running)
        self._max_tasks = max_running + max_waiting
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: set[asyncio.Task[Mapping[str, Any] | None]] = set()

    def take(self, frame: InboundFrame, payload: bytes, send: Send) -> None:
        """Start one delivery. `send` writes to the socket it came from; once that is lost the event comes again."""
        crowded = len(self._tasks) >= self._max_tasks
        task = asyncio.create_task(self._deliver(frame, payload, send, crowded=crowded), name="feishu-event")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, within_s: float) -> None:
        """Wait for what has been taken, then cancel what is left (it was not acknowledged, so it comes again)."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        left = [*self._tasks, *self._running]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    async def _deliver(self, frame: InboundFrame, payload: bytes, send: Send, *, crowded: bool) -> None:
        started_s = time.monotonic()
        try:
            event = parse_event(payload)
        except MalformedEvent:
            # Acknowledged all the same: another delivery would bring the same bytes.
            self._tally.malformed += 1
            log.warning("An event could not be read", extra={"action": "event_malformed"})
            await self._acknowledge(frame, send, _OK, None, started_s)
            return
        self._tally.event(event.event_type)
        code, answer = _AGAIN, None
        running: asyncio.Task[Mapping[str, Any] | None] | None = None
        try:
            async with asyncio.timeout(self._answer_within_s):
                if crowded:
                    raise _Crowded
                running = await self._start(event)
                answer = await asyncio.shield(running)
                code = _OK
        except _Crowded:
            self._tally.failures += 1
            log.warning("An event found no place", extra={**_about(event), "action": "event_crowded"})
        except TimeoutError as error:
            self._failed(event, error, late=running is None or not running.done())
        except Exception as error:  # noqa: BLE001 - the border: whatever it was, the event comes again
            self._failed(event, error, late=False)
        await self._acknowledge(frame, send, code, answer, started_s)
        crash.reached("accept.acknowledged")
        if running is not None and not running.done():
            await self._finish_late(event, running)

    async def _start(self, event: Event) -> asyncio.Task[Mapping[str, Any] | None]:
        await self._places.acquire()
        self._tally.in_flight += 1
        running = asyncio.create_task(_run(self._accept, event), name="feishu-accept")
        self._running.add(running)
        running.add_done_callback(self._leave)
        return running

    def _leave(self, task: "asyncio.Task[Mapping[str, Any] | None]") -> None:
        self._running.discard(task)
        self._tally.in_flight -= 1
        self._places.release()

    async def _finish_late(self, event: Event, running: "asyncio.Task[Mapping[str, Any] | None]") -> None:
        try:
            await running
        except Exception as error:  # noqa: BLE001 - the border, as above
            log.error("A late event failed", extra={**_about(event), "action": "event_failed", **_what(error)})

    def _failed(self, event: Event, error: Exception, *, late: bool) -> None:
        self._tally.failures += 1
        if late:
            self._tally.late += 1
            log.warning("An event took too long to accept", extra={**_about(event), "action": "event_late"})
        else:
            log.error(
                "An event could not be accepted", extra={**_about(event), "action": "event_failed", **_what(error)}
            )

    async def _acknowledge(
        self, frame: InboundFrame, send: Send, code: int, answer: Mapping[str, Any] | None, started_s: float
    ) -> None:
        took_ms = int((time.monotonic() - started_s) * 1000)
        try:
            data = ack_frame(frame, code=code, took_ms=took_ms, answer=answer)
        except (TypeError, ValueError):
            self._tally.failures += 1
            log.error("An event's answer is no JSON", extra={"action": "event_failed", "error": "answer"})
            data = ack_frame(frame, code=_AGAIN, took_ms=took_ms)
        with contextlib.suppress(OSError):
            await send(data)


async def _run(accept: Accept, event: Event) -> Mapping[str, Any] | None:
    return await accept(event)


def _about(event: Event) -> dict[str, str]:
    return {"event_id": event.event_id, "event_type": event.event_type}


def _what(error: Exception) -> dict[str, str]:
    """Kind and place of an error; not its words, which may be the message's."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else ""
    return {"error": type(error).__name__, "where": where}
