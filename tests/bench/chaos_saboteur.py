"""Who breaks things, by the plan: processes, sockets, HTTP answers, and the way of events."""

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agno_lark.testing import FeishuSandbox
from tests.bench.chaos_judge import Down
from tests.bench.chaos_plan import Deed, DeedKind
from tests.bench.chaos_processes import Kept, now_ms

__all__ = ["Saboteur"]

# Every call the bridge makes; the ones an answer needs come more often.
CALLS = (
    "POST /open-apis/im/v1/messages/:message_id/reply",
    "POST /open-apis/im/v1/messages/:message_id/reply",
    "POST /open-apis/cardkit/v1/cards",
    "POST /open-apis/cardkit/v1/cards",
    "PUT /open-apis/cardkit/v1/cards/:card_id",
    "PUT /open-apis/cardkit/v1/cards/:card_id",
    "PUT /open-apis/cardkit/v1/cards/:card_id/elements/:element_id/content",
    "PATCH /open-apis/cardkit/v1/cards/:card_id/settings",
    "POST /open-apis/im/v1/messages/:message_id/reactions",
    "POST /open-apis/auth/v3/tenant_access_token/internal",
)
REPLY = CALLS[0]
HASTY_SHARE = 0.2
SIGNALS = {
    DeedKind.BRIDGE_KILL: signal.SIGKILL,
    DeedKind.BRIDGE_TERM: signal.SIGTERM,
    DeedKind.AGENTOS_KILL: signal.SIGKILL,
}


class Saboteur:
    """Carries out deeds. `log`: what was done when, `{"ms", "kind", …}`; `done`: how often each kind."""

    def __init__(self, feishu: FeishuSandbox, bridge: Kept, agentos: Kept) -> None:
        self._feishu = feishu
        self._bridge = bridge
        self._agentos = agentos
        self.log: list[dict[str, Any]] = []
        self.done: Counter[str] = Counter()
        self.downs: list[Down] = []

    async def work(self, deeds: Sequence[Deed], started_s: float) -> None:
        """Do each at its time after `started_s` (the loop's clock)."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as under_way:
            for deed in deeds:
                await asyncio.sleep(max(0.0, started_s + deed.at_s - loop.time()))
                under_way.create_task(self._do(deed), name=f"deed-{deed.kind}")

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self._feishu.faults.clear()

    async def _do(self, deed: Deed) -> None:
        entry: dict[str, Any] = {"ms": now_ms(), "kind": deed.kind.value}
        self.log.append(entry)
        kept = self._agentos if deed.kind is DeedKind.AGENTOS_KILL else self._bridge
        if deed.kind in SIGNALS:
            # A process may be ended while it still starts, too, but not every time.
            if kept.is_busy or not (kept.is_settled or deed.chance < HASTY_SHARE):
                self.done["put off"] += 1
                entry["put_off"] = True
                return
            await kept.end(SIGNALS[deed.kind], away_s=1.5 * deed.chance)
            entry["until_ms"] = now_ms()
        elif deed.kind is DeedKind.OUTAGE:
            since_ms = now_ms()
            async with self._feishu.outage():
                await asyncio.sleep(0.5 + 2.5 * deed.chance)
            entry["until_ms"] = now_ms()
            self.downs.append(Down(what="feishu", from_ms=since_ms, until_ms=now_ms()))
        else:
            entry |= self._arm(deed)
        self.done[deed.kind.value] += 1

    def _arm(self, deed: Deed) -> dict[str, Any]:
        """What takes no time of ours; returns what to note of it."""
        faults, chance = self._feishu.faults, deed.chance
        call = CALLS[int(chance * len(CALLS))]
        after_effect = int(chance * 1000) % 2 == 0
        times = 1 + int(chance * 1000) % 4
        match deed.kind:
            case DeedKind.DROP:
                return {"sockets": faults.drop_sockets()}
            case DeedKind.SILENCE:
                return {"sockets": faults.silence()}
            case DeedKind.HANDSHAKE:
                faults.fail("/sandbox/ws", times=2, code=1000040343)
                return {"sockets": faults.drop_sockets()}
            case DeedKind.TOKENS:
                return {"tokens": self._feishu.expire_tokens()}
            case DeedKind.FAIL:
                faults.fail(call, times=times, status=500 + int(chance * 100) % 4, after_effect=after_effect)
            case DeedKind.RESET:
                faults.reset(call, times=times, after_effect=after_effect)
            case DeedKind.RATE if chance < 0.5:
                faults.fail(REPLY, times=times, status=400, code=230020, message="chat rate limit")
                return {"call": REPLY, "times": times}
            case DeedKind.RATE:
                headers = {"x-ogw-ratelimit-limit": "50", "x-ogw-ratelimit-reset": "1"}
                faults.fail(call, times=times, status=429, code=99991400, headers=headers)
            case DeedKind.SLOW:
                faults.latency("/open-apis/*", 0.2 + 1.8 * chance, times=10 * times)
                return {"times": 10 * times}
            case DeedKind.DUPLICATE:
                faults.duplicate_next(times)
            case DeedKind.RENAME:
                faults.new_event_id_next(times)
            case DeedKind.DELAY:
                faults.delay_next(0.2 + 3.0 * chance)
            case DeedKind.REORDER:
                faults.reorder_next(1 + times)
            case DeedKind.SPLIT:
                faults.split_next(1 + times)
        return {"call": call, "times": times, "after_effect": after_effect}
