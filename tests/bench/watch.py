"""When things happened at the sandbox: frames out, acks in, answers seen. It looks on and changes nothing.

The sandbox has no clock on its frames, so the functions its connections call are wrapped while a watch is on.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from starlette.websockets import WebSocket

from agno_lark.sandbox import connections
from agno_lark.sandbox.frames import event_frames, read_frame
from agno_lark.sandbox.records import ChangeKind, Message
from agno_lark.testing import FeishuSandbox

__all__ = ["Watch"]


class Watch:
    """Times are monotonic seconds. `left` and `acked` go by attempt, `seen` and `complete` by the question's id."""

    def __init__(self, feishu: FeishuSandbox) -> None:
        self._feishu = feishu
        self._frames: dict[bytes, str] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self.left: dict[str, float] = {}
        self.acked: dict[str, float] = {}
        self.own_ms: dict[str, int] = {}  # what the bot says an event took it (biz_rt)
        self.seen: dict[str, float] = {}
        self.complete: dict[str, float] = {}
        self.answers: dict[str, str] = {}  # question → message id of its answer
        self.lags_s: list[float] = []

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Watch until the block ends."""
        lag = asyncio.create_task(self._measure_lag(), name="sandbox-lag")
        send_bytes, tell = WebSocket.send_bytes, self._feishu.world.tell

        def frames(payload: bytes, *, message_id: str, **more: Any) -> Iterator[bytes]:
            for frame in event_frames(payload, message_id=message_id, **more):
                self._frames[frame] = message_id
                yield frame

        async def sending(websocket: WebSocket, data: bytes) -> None:
            if (message_id := self._frames.pop(data, None)) is not None:
                self.left[message_id] = time.monotonic()
            await send_bytes(websocket, data)

        def reading(data: bytes) -> Any:
            now_s = time.monotonic()
            frame = read_frame(data)
            if frame.ack is not None and frame.ack.code == 200:
                self.acked[frame.message_id] = now_s
                self.own_ms[frame.message_id] = frame.biz_rt_ms or 0
            return frame

        def telling(kind: ChangeKind, message: Message, **more: Any) -> None:
            if message.sender_is_bot and message.parent_id:
                self._answer(message.parent_id, message)
            tell(kind, message, **more)

        with (
            patch.object(connections, "event_frames", frames),
            patch.object(connections, "read_frame", reading),
            patch.object(WebSocket, "send_bytes", sending),
            patch.object(self._feishu.world, "tell", telling),
        ):
            try:
                yield
            finally:
                lag.cancel()

    async def answer_to(self, question: str, within_s: float) -> bool:
        """Wait until the answer to this message is complete; False when it is not in time."""
        if question in self.complete:
            return True
        waiting = self._waiting[question] = asyncio.get_running_loop().create_future()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await waiting
        return question in self.complete

    def _answer(self, question: str, message: Message) -> None:
        now_s = time.monotonic()
        self.seen.setdefault(question, now_s)
        self.answers.setdefault(question, message.message_id)
        # The sandbox tells of a card's change before it closes its streaming mode.
        asyncio.get_running_loop().call_soon(self._look, question, message, now_s)

    def _look(self, question: str, message: Message, now_s: float) -> None:
        card = self._feishu.world.cards.get(message.card_id or "")
        if question in self.complete or (card is not None and card.streaming):
            return
        self.complete[question] = now_s
        waiting = self._waiting.pop(question, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def _measure_lag(self) -> None:
        """How late the sandbox's own event loop is: what the numbers of a busy machine owe to the observer."""
        while True:
            due_s = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.lags_s.append(time.monotonic() - due_s)
