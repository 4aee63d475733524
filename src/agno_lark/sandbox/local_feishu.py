"""The parts of the local Feishu, put together: one of these is what every OpenAPI module is handed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agno_lark.clock import Clock, Ids
from agno_lark.sandbox.deliveries import ACK_S, REDELIVERY_S, Deliveries
from agno_lark.sandbox.faults import Faults
from agno_lark.sandbox.limits import Limits, Rates
from agno_lark.sandbox.records import Json
from agno_lark.sandbox.refusals import Refused
from agno_lark.sandbox.tokens import Tokens
from agno_lark.sandbox.world import World

__all__ = ["ClientConfig", "LocalFeishu"]

UUID_LIFE_MS = 60 * 60 * 1000


@dataclass(kw_only=True, slots=True)
class ClientConfig:
    """What discovery and pongs tell a client; whole seconds, 1 to 86400, `reconnect_count` -1 for ever.

    The real platform says 120, 30 and 120; the sandbox is quicker, so that a restart is noticed while one looks on.
    """

    reconnect_count: int = -1
    reconnect_interval_s: int = 2
    reconnect_nonce_s: int = 1
    ping_interval_s: int = 30

    def as_json(self) -> Json:
        return {
            "ReconnectCount": self.reconnect_count,
            "ReconnectInterval": self.reconnect_interval_s,
            "ReconnectNonce": self.reconnect_nonce_s,
            "PingInterval": self.ping_interval_s,
        }


@dataclass(kw_only=True, slots=True)
class LocalFeishu:
    """World, tokens, rates, faults and deliveries of one app."""

    world: World
    tokens: Tokens
    faults: Faults
    deliveries: Deliveries
    rates: Rates
    limits: Limits
    client_config: ClientConfig
    strict_cards: bool = False
    sent_uuids: dict[str, tuple[int, str]] = field(default_factory=dict)
    tickets: set[str] = field(default_factory=set)

    @classmethod
    def build(
        cls,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        limits: Limits | None = None,
        ack_s: float = ACK_S,
        redelivery_s: Sequence[float] = REDELIVERY_S,
        client_config: ClientConfig | None = None,
        keep_history: bool = True,
        strict_cards: bool = False,
        salt: str = "",
        seed: int | None = None,
    ) -> "LocalFeishu":
        """A new, empty one; `seed` makes the choice of connections repeatable."""
        world = World(clock, ids, keep_history=keep_history, salt=salt)
        faults = Faults()
        rng = random.Random(seed)
        deliveries = Deliveries(world, faults, ack_s=ack_s, redelivery_s=redelivery_s, rng=rng)
        world.bot = deliveries
        faults.sockets = deliveries
        return cls(
            world=world,
            tokens=Tokens(world.clock, world.ids),
            faults=faults,
            deliveries=deliveries,
            rates=Rates(),
            limits=limits or Limits(),
            client_config=client_config or ClientConfig(),
            strict_cards=strict_cards,
        )

    def within_api_rate(self, api: str) -> None:
        """One more call of this API. Raises Refused 99991400 over 50/s or 1000/min (feishu.md section 5)."""
        now_s = self.world.clock.monotonic_s()
        for kind, limit, window_s in (
            ("api/s", self.limits.api_per_s, 1.0),
            ("api/min", self.limits.api_per_min, 60.0),
        ):
            wait_s = self.rates.wait_s(kind, api, limit=limit, window_s=window_s, now_s=now_s)
            if wait_s:
                raise rate_limited(99991400, "request trigger frequency limit", limit=limit, wait_s=wait_s)

    def within_rate(self, kind: str, key: str, limit: int, *, code: int, message: str) -> None:
        """One more in this second for a chat, message or card. Raises Refused with `code`, HTTP 429."""
        wait_s = self.rates.wait_s(kind, key, limit=limit, window_s=1.0, now_s=self.world.clock.monotonic_s())
        if wait_s:
            raise rate_limited(code, message, limit=limit, wait_s=wait_s)

    def sent_before(self, uuid: str) -> str | None:
        """The message id this uuid already has, if it was used within the hour."""
        at_ms, message_id = self.sent_uuids.get(uuid, (0, ""))
        return message_id if message_id and self.world.clock.now_ms() - at_ms < UUID_LIFE_MS else None

    def note_uuid(self, uuid: str, message_id: str) -> None:
        """Remember the message a uuid made."""
        if len(self.sent_uuids) > 20_000:
            oldest_ms = self.world.clock.now_ms() - UUID_LIFE_MS
            self.sent_uuids = {key: kept for key, kept in self.sent_uuids.items() if kept[0] > oldest_ms}
        self.sent_uuids[uuid] = (self.world.clock.now_ms(), message_id)


def rate_limited(code: int, message: str, *, limit: int, wait_s: float) -> Refused:
    """HTTP 429 with the platform's headers; the wait is rounded up to whole seconds."""
    reset = max(1, int(wait_s) + (wait_s % 1 > 0))
    headers = {"x-ogw-ratelimit-limit": str(limit), "x-ogw-ratelimit-reset": str(reset)}
    return Refused(code, message, http=429, headers=headers)
