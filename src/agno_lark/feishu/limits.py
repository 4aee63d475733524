"""Feishu's rates as gates: each says when the next call may go, never what it should say.

Rates: cards/README.md "Limits", payloads/README.md "Limits and scopes". A bucket lets `burst` calls through at once and
then `per_s` a second, so any window of t seconds sees at most `burst + t * per_s` of them: each pair below keeps that
sum under Feishu's number, which a bucket as wide as the limit itself would pass twice over, with something to spare
for calls that the network brings closer together than they left.
"""

import asyncio
from dataclasses import dataclass

from aiolimiter import AsyncLimiter

__all__ = ["Gate", "Limits", "Rate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """`burst` calls at once, then `per_s` a second."""

    burst: int
    per_s: float

    def bucket(self) -> AsyncLimiter:
        return AsyncLimiter(self.burst, self.burst / self.per_s)


CARD = Rate(burst=2, per_s=7.0)  # 10 operations a second and card
CHAT = Rate(burst=2, per_s=2.5)  # 5 sends a second, to a group or a person, shared with all other bots there
MESSAGE = Rate(burst=2, per_s=2.5)  # 5 patches a second and message
API_SECOND = Rate(burst=24, per_s=16.0)  # 50 a second, API and app
API_MINUTE = Rate(burst=120, per_s=14.0)  # 1000 a minute, API and app


class Gate:
    """One or more buckets as `async with`: entering waits until each has room; leaving does nothing."""

    __slots__ = ("_buckets",)

    def __init__(self, *buckets: AsyncLimiter) -> None:
        self._buckets = buckets

    async def __aenter__(self) -> None:
        for bucket in self._buckets:
            await bucket.acquire()

    async def __aexit__(self, *exc: object) -> None:
        return None


class Limits:
    """The gates of one app. Buckets that have run empty are dropped, so finished cards and quiet chats cost nothing."""

    def __init__(
        self,
        *,
        card: Rate = CARD,
        chat: Rate = CHAT,
        message: Rate = MESSAGE,
        api_second: Rate = API_SECOND,
        api_minute: Rate = API_MINUTE,
    ) -> None:
        self._card, self._chat, self._message = card, chat, message
        self._api_second, self._api_minute = api_second, api_minute
        self._buckets: dict[tuple[str, str], AsyncLimiter] = {}
        self._sweep_at = 256
        self._open_at_s = 0.0

    def card(self, card_id: str) -> Gate:
        """Before any operation on a card entity: content, whole card, settings."""
        return Gate(self._bucket("card", card_id, self._card))

    def chat(self, chat_id: str) -> Gate:
        """Before a send or a reply into this chat (or to this person)."""
        return Gate(self._bucket("chat", chat_id, self._chat))

    def message(self, message_id: str) -> Gate:
        """Before a patch of this message."""
        return Gate(self._bucket("message", message_id, self._message))

    def api(self, call: str) -> Gate:
        """Before any call of this API; `OpenApi` waits here by itself."""
        return Gate(
            self._bucket("api second", call, self._api_second), self._bucket("api minute", call, self._api_minute)
        )

    def halt(self, for_s: float) -> None:
        """No call of this app for so many seconds: Feishu asked for it. A shorter halt never cuts a longer one."""
        self._open_at_s = max(self._open_at_s, asyncio.get_running_loop().time() + for_s)

    async def halted(self) -> None:
        """Wait until no halt holds."""
        # In a loop, for the halt may have been lengthened meanwhile.
        while (wait_s := self._open_at_s - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(wait_s)

    @property
    def tracked(self) -> int:
        """How many buckets are kept."""
        return len(self._buckets)

    def _bucket(self, kind: str, name: str, rate: Rate) -> AsyncLimiter:
        bucket = self._buckets.get((kind, name))
        if bucket is None:
            if len(self._buckets) >= self._sweep_at:
                self._sweep()
            bucket = self._buckets[kind, name] = rate.bucket()
        return bucket

    def _sweep(self) -> None:
        # A bucket with all its room back tells nothing a new one would not.
        self._buckets = {
            key: bucket for key, bucket in self._buckets.items() if not bucket.has_capacity(bucket.max_rate)
        }
        self._sweep_at = max(256, 2 * len(self._buckets))
