"""Forgetting: what has been kept long enough goes, a little at a time, so that a commit never waits for it.

Each package says what of its tables may go (its `forget.py`); here is only for how long, in which order and how fast.
Survives a crash: it goes on where it was, for what is gone is gone.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from agno_lark.clock import Clock
from agno_lark.errors import StoreError
from agno_lark.intake.forget import forget_keys
from agno_lark.jobs.forget import forget_jobs
from agno_lark.replies import forget_replies
from agno_lark.settings import Settings
from agno_lark.store import Store, Tx
from agno_lark.store.space import STEP_PAGES, free_pages, give_back
from agno_lark.turns.forget import forget_runs

__all__ = ["Retention", "Rule", "rules"]

logger = logging.getLogger(__name__)

STEP_ROWS = 100
PAUSE_S = 0.05  # between two steps, and at least four times as long as the step took
FIRST_S = 60.0  # after the start, when there is other work to do
AGAIN_S = 3600.0
SPARE_PAGES = 1024  # 4 MiB are left in the file for what comes next: to cut and grow it every hour would be for nothing

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One kind of rows: `forget(tx, before_ms, most)` deletes up to `most` older ones; how many it was."""

    name: str
    keep_ms: int
    forget: Callable[[Tx, int, int], int]


def rules(settings: Settings) -> tuple[Rule, ...]:
    """What is forgotten, and when, in this order: a run stays as long as its job does."""
    keep_ms = settings.bridge_keep_days * DAY_MS
    return (
        Rule(name="keys", keep_ms=settings.bridge_dedup_hours * HOUR_MS, forget=forget_keys),
        Rule(name="replies", keep_ms=keep_ms, forget=forget_replies),
        Rule(name="jobs", keep_ms=keep_ms, forget=forget_jobs),
        Rule(name="runs", keep_ms=keep_ms, forget=forget_runs),
    )


class Retention:
    """Cleans a while after the start, then every hour, until cancelled."""

    def __init__(self, store: Store, rules: tuple[Rule, ...], *, clock: Clock) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock

    async def run(self) -> None:
        """Never ends by itself; a database that refuses is tried again soon."""
        wait_s = FIRST_S
        while True:
            await asyncio.sleep(wait_s)
            try:
                await self.clean()
                wait_s = AGAIN_S
            except (StoreError, sqlite3.Error) as error:  # the bridge works on with what it has
                logger.warning(
                    "old rows could not be forgotten", extra={"action": "retention_failed", "reason": str(error)}
                )
                wait_s = FIRST_S

    async def clean(self) -> dict[str, int]:
        """Forget all that is due, then hand the file's free space back; returns how many rows of each kind, and pages.

        May be cancelled between any two steps. Raises `StoreError`, `sqlite3.Error`.
        """
        gone = {}
        for rule in self._rules:
            before_ms = self._clock.now_ms() - rule.keep_ms
            gone[rule.name] = await self._in_steps(rule.forget, before_ms, STEP_ROWS, enough=STEP_ROWS)
        gone["pages"] = await self._in_steps(_shrink, enough=1)
        if any(gone.values()):
            logger.info("what was kept long enough is gone", extra={"action": "retention_cleaned", **gone})
        return gone

    async def _in_steps(self, step: Callable[..., int], *given: int, enough: int) -> int:
        """Repeat `step(tx, …)`, each time in a transaction of its own, while it does `enough`; returns the sum."""
        total = 0
        while True:
            began_s = self._clock.monotonic_s()
            done = await self._store.transact(step, *given)
            total += done
            if done < enough:
                return total
            await asyncio.sleep(max(PAUSE_S, 4 * (self._clock.monotonic_s() - began_s)))


def _shrink(tx: Tx) -> int:
    return give_back(tx) if free_pages(tx) >= SPARE_PAGES + STEP_PAGES else 0
