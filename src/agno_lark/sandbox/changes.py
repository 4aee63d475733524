"""Live views: each listener has its own bounded queue, so a slow one never holds up the world."""

import asyncio

from agno_lark.sandbox.records import Change

__all__ = ["Changes"]


class Changes:
    """One listener's stream of changes, from the moment it is made. A slow listener loses the oldest, nothing else."""

    def __init__(self, listeners: set["Changes"]) -> None:
        self._queue: asyncio.Queue[Change | None] = asyncio.Queue(maxsize=5000)
        self._listeners = listeners
        listeners.add(self)

    def push(self, change: Change | None) -> None:
        while self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(change)

    def close(self) -> None:
        """Stop listening; a pending `async for` ends."""
        self._listeners.discard(self)
        self.push(None)

    def __aiter__(self) -> "Changes":
        return self

    async def __anext__(self) -> Change:
        change = await self._queue.get()
        if change is None:
            raise StopAsyncIteration
        return change
