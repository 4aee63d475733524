"""The app's own access token: fetched once for everybody who waits, kept until shortly before it expires."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agno_lark.clock import Clock

__all__ = ["IssuedToken", "TenantTokens"]

# Feishu hands out the same token until less than 30 minutes are left, then a new one beside it; renewing this long
# before the end means no call under way ever carries one that has just died.
_MARGIN_S = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IssuedToken:
    """A token and how long it is good for, in seconds from when it was asked for."""

    value: str = field(repr=False)
    expires_in_s: float


class TenantTokens:
    """`get()` is cheap while a token is in date. A waiter that is cancelled does not stop the fetch for the others."""

    def __init__(self, fetch: Callable[[], Awaitable[IssuedToken]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._token: IssuedToken | None = None
        self._good_until_s = 0.0
        self._fetching: asyncio.Task[str] | None = None

    async def get(self) -> str:
        """A token in date. Raises what the fetch raised; the next call tries again."""
        if self._token is not None and self._clock.monotonic_s() < self._good_until_s:
            return self._token.value
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._renew(), name="feishu-tenant-token")
            # Every waiter may have been cancelled when it fails; its error is then nobody's, and no warning either.
            self._fetching.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._fetching)

    def drop(self, value: str) -> None:
        """Forget this token, unless another has taken its place meanwhile."""
        if self._token is not None and self._token.value == value:
            self._token = None

    async def close(self) -> None:
        """Stop a fetch under way."""
        if self._fetching is not None and not self._fetching.done():
            self._fetching.cancel()
            await asyncio.wait({self._fetching})

    async def _renew(self) -> str:
        asked_s = self._clock.monotonic_s()
        token = await self._fetch()
        # Never less than a second, so that a token shorter than the margin is used at all.
        good_for_s = max(token.expires_in_s - _MARGIN_S, token.expires_in_s / 2, 1.0)
        self._token, self._good_until_s = token, asked_s + good_for_s
        return token.value
