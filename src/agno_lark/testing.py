"""Public API for tests: a local Feishu that runs inside the test's event loop.

    async with FeishuSandbox(redelivery_s=(0.1, 0.2)) as feishu:
        ...point the bot at feishu.url with feishu.app_id and feishu.app_secret...
        await feishu.write("Marta Weiss", feishu.direct_chat("Marta Weiss"), "hello")
        newest = await feishu.until(lambda world: feishu.last_from_bot(), within_s=5)

`newest` may be a card that still grows (`newest.streaming`). Assert on what a person would see (`screen`), not on
calls. Times are seconds; ids are Feishu's own kinds.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Self

from agno_lark.clock import Clock, Ids
from agno_lark.sandbox.deliveries import Deliveries
from agno_lark.sandbox.faults import Faults
from agno_lark.sandbox.limits import Limits
from agno_lark.sandbox.local_feishu import ClientConfig, LocalFeishu
from agno_lark.sandbox.records import Card, Message, Person, Shown
from agno_lark.sandbox.server import serving
from agno_lark.sandbox.world import World

__all__ = ["ClientConfig", "FeishuSandbox", "Limits"]


class FeishuSandbox:
    """`async with FeishuSandbox() as feishu`: serves on 127.0.0.1 and a free port until the block ends.

    redelivery_s    waits before each repetition of an event that was not acked with 200
    ack_s           how long an ack, or a card callback's answer, may take
    limits          rates; `Limits.none()` lifts those of the app as a whole (benchmarks)
    client_config   what clients are told about pings and reconnecting
    clock, ids      for still time and known ids; `feishu.advance(s)` pushes the clock in any case
    keep_history    False keeps no earlier contents of messages and cards (long benchmarks)
    strict_cards    refuse also what the card documentation leaves unclear
    salt            other ids for people and chats (they are the same in every sandbox else)
    """

    def __init__(
        self,
        *,
        redelivery_s: Sequence[float] = (15.0, 300.0, 3600.0, 21600.0),
        ack_s: float = 3.0,
        limits: Limits | None = None,
        client_config: ClientConfig | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        keep_history: bool = True,
        strict_cards: bool = False,
        salt: str = "",
        port: int = 0,
    ) -> None:
        self._feishu = LocalFeishu.build(
            clock=clock,
            ids=ids,
            limits=limits,
            ack_s=ack_s,
            redelivery_s=redelivery_s,
            client_config=client_config,
            keep_history=keep_history,
            strict_cards=strict_cards,
            salt=salt,
        )
        self._port = port
        self._stack = AsyncExitStack()
        self.url = ""

    async def __aenter__(self) -> Self:
        self.url = await self._stack.enter_async_context(serving(self._feishu, "127.0.0.1", self._port))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feishu.deliveries.close()
        await self._stack.aclose()

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Nothing listens while the block runs; afterwards the same world is there again, at the same address.

        People may write meanwhile; their events wait, as they do while no bot is connected.
        """
        await self._stack.aclose()
        port = int(self.url.rpartition(":")[2])
        try:
            yield
        finally:
            await self._stack.enter_async_context(serving(self._feishu, "127.0.0.1", port))

    # -- what it is made of --------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        """People, chats, messages, cards, and what people do."""
        return self._feishu.world

    @property
    def faults(self) -> Faults:
        """What goes wrong on demand."""
        return self._feishu.faults

    @property
    def deliveries(self) -> Deliveries:
        """Events on their way: `counts`, `parcels`, `connections`, `post_raw(envelope)`."""
        return self._feishu.deliveries

    @property
    def app_id(self) -> str:
        return self.world.app.app_id

    @property
    def app_secret(self) -> str:
        return self.world.app.app_secret

    @property
    def connection_count(self) -> int:
        """How many WebSockets of the bot are open."""
        return len(self._feishu.deliveries.connections)

    @property
    def limits(self) -> Limits:
        """The rates in force; may be replaced at any time."""
        return self._feishu.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._feishu.limits = limits

    # -- what people do ------------------------------------------------------------------------------------------------

    async def write(self, person: Person | str, chat_id: str, text: str, **more: Any) -> Message:
        """See `World.write`; person and chat also by name."""
        return await self.world.write(person, chat_id, text, **more)

    async def click(self, person: Person | str, message_id: str, action: dict[str, Any]) -> dict[str, Any]:
        """See `World.click`."""
        return await self.world.click(person, message_id, action)

    async def press(
        self, person: Person | str, message_id: str, label: str, *, form_value: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Click the button that reads `label`. Raises LookupError where the card shows none."""
        return await self.world.press(person, message_id, label, form_value=form_value)

    async def recall(self, person: Person | str, message_id: str) -> Message:
        """See `World.recall`."""
        return await self.world.recall(person, message_id)

    def direct_chat(self, person: Person | str) -> str:
        """The chat id of this person's direct chat with the bot."""
        return self.world.direct_chat(person).chat_id

    # -- time and tokens -----------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass at once (tokens, streaming mode, uuids; not the redelivery schedule)."""
        self.world.clock.advance(seconds)

    def expire_tokens(self) -> int:
        """Every token issued so far stops working; returns how many."""
        return self._feishu.tokens.expire_all()

    # -- what is seen --------------------------------------------------------------------------------------------------

    def screen(self, chat_id: str, thread_id: str | None = None) -> list[Shown]:
        """What a person sees in a chat, oldest first."""
        return self.world.screen(chat_id, thread_id)

    def from_bot(self, chat_id: str | None = None) -> list[Shown]:
        """The bot's messages still to be seen, oldest first; of one chat or of all."""
        return [self.world.show(message) for message in self._bots(chat_id)]

    def last_from_bot(self, chat_id: str | None = None) -> Shown | None:
        """The bot's newest message, or None."""
        found = self._bots(chat_id)
        return self.world.show(found[-1]) if found else None

    def _bots(self, chat_id: str | None) -> list[Message]:
        ids = self.world.timeline if chat_id is None else self.world.chat(chat_id).timeline
        found = (self.world.messages[message_id] for message_id in ids)
        return [message for message in found if message.sender_is_bot and not message.recalled]

    def card_of(self, message_id: str) -> Card | None:
        """The card entity behind a message, with its history; None for other messages."""
        return self.world.cards.get(self.world.message(message_id).card_id or "")

    async def until[T](self, holds: Callable[[World], T], *, within_s: float = 5.0) -> T:
        """Wait until `holds(world)` is truthy and return its value; it is asked every 20 ms.

        Raises AssertionError after `within_s`, telling what people see then.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + within_s
        while not (value := holds(self.world)):
            if loop.time() >= deadline_s:
                raise AssertionError(f"not within {within_s} s; people see:\n{self._screens()}")
            await asyncio.sleep(0.02)
        return value

    async def until_connected(self, count: int = 1, *, within_s: float = 5.0) -> None:
        """Wait until `count` WebSockets are open."""
        await self.until(lambda _: self.connection_count >= count, within_s=within_s)

    def _screens(self) -> str:
        lines = []
        for chat in self.world.chats.values():
            for shown in self.world.screen(chat.chat_id):
                flags = "".join([" (recalled)" * shown.recalled, " (streaming)" * shown.streaming])
                lines.append(f"  [{chat.name}] {shown.author}: {shown.kind} {shown.text[:300]!r}{flags}")
        lines.append(f"  connections: {self.connection_count}, deliveries: {dict(self.deliveries.counts)}")
        return "\n".join(lines)
