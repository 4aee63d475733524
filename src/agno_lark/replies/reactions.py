"""The emoji under a person's message that says, within a second, that it was taken; gone when it is answered."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from agno_lark.errors import StoreError
from agno_lark.feishu.api import OpenApi
from agno_lark.feishu.codes import CallRefused

__all__ = ["TAKEN", "Reactions"]

logger = logging.getLogger(__name__)

AFTER_S = 0.05  # the acknowledgement and the run go first
TAKEN = "OnIt"  # Feishu's emoji key: a person at work
CLOSE_S = 2.0


class Reactions:
    """A courtesy, not a promise: where Feishu refuses it, it is left out and logged.

    `remember(turn_id, reaction_id)` keeps the id where it survives a restart.
    """

    def __init__(self, api: OpenApi, remember: Callable[[str, str | None], Awaitable[None]]) -> None:
        self._api = api
        self._remember = remember
        self._adding: dict[str, asyncio.Task[str | None]] = {}

    def take(self, turn_id: str, message_id: str) -> None:
        """Put the emoji there, in the background: nothing waits for it."""
        self._adding[turn_id] = asyncio.create_task(self._add(turn_id, message_id), name=f"reaction-{turn_id}")

    async def clear(self, turn_id: str, message_id: str, reaction_id: str | None) -> None:
        """Take it away again. `reaction_id` is what the row remembers; one still on its way is waited for.

        A former life may have died between adding it and noting its id: then it is looked for.
        """
        adding = self._adding.pop(turn_id, None)
        if adding is not None:
            reaction_id = await adding or reaction_id
            if reaction_id is None:
                return
        try:
            reaction_id = reaction_id or await self._api.own_reaction(message_id, TAKEN)
            if reaction_id is None:
                return
            await self._api.delete_reaction(message_id, reaction_id)
        except CallRefused as error:
            logger.info("a reaction stays", extra={"action": "reaction_refused", "code": error.code})
            return
        await self._keep(turn_id, None)

    async def close(self) -> None:
        """Let what is on its way arrive (at a stop), for two seconds: no stop waits for a courtesy."""
        tasks, self._adding = list(self._adding.values()), {}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _add(self, turn_id: str, message_id: str) -> str | None:
        await asyncio.sleep(AFTER_S)
        try:
            reaction_id = await self._api.add_reaction(message_id, TAKEN)
        except CallRefused as error:
            logger.info("no reaction was added", extra={"action": "reaction_refused", "code": error.code})
            return None
        await self._keep(turn_id, reaction_id)
        return reaction_id

    async def _keep(self, turn_id: str, reaction_id: str | None) -> None:
        with contextlib.suppress(StoreError):  # logged by the store
            await self._remember(turn_id, reaction_id)
