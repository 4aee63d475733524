"""Tenant tokens: issued for the app's secret, checked on every call, expiring after two hours."""

from agno_lark.clock import Clock, Ids
from agno_lark.sandbox.refusals import Refused

__all__ = ["LIFE_MS", "Tokens"]

LIFE_MS = 7200 * 1000
RENEW_MS = 30 * 60 * 1000


class Tokens:
    """The same token is returned until less than 30 minutes are left (payloads/responses/token_tenant_internal)."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._expires_ms: dict[str, int] = {}
        self._current = ""

    def issue(self) -> tuple[str, int]:
        """(token, seconds it still lives)."""
        now_ms = self._clock.now_ms()
        left_ms = self._expires_ms.get(self._current, 0) - now_ms
        if left_ms < RENEW_MS:
            self._expires_ms = {token: at for token, at in self._expires_ms.items() if at > now_ms}
            self._current = "t-g1sb" + self._ids.new().replace("-", "")
            self._expires_ms[self._current] = now_ms + LIFE_MS
            left_ms = LIFE_MS
        return self._current, left_ms // 1000

    def check(self, authorization: str | None) -> None:
        """Raises Refused: 99991661 none, 99991671 no token of ours, 99991663 unknown or expired."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Refused(99991661, "Need a token")
        token = token.strip()
        if not token.startswith(("t-", "u-")):
            raise Refused(99991671, "Invalid token: must start with t-/u-")
        if self._expires_ms.get(token, 0) <= self._clock.now_ms():
            raise Refused(99991663, "Invalid access token for authorization")

    def expire_all(self) -> int:
        """Every token issued so far is worth nothing now; returns how many there were."""
        count = len(self._expires_ms)
        self._expires_ms.clear()
        return count
