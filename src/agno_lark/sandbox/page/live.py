"""The page's live half: changes of the world as server-sent events.

Events: `row` {message_id, chat_id, thread_id, html, mine, last, at_ms} for the chat that is open, `other` {chat_id,
last, at_ms} for the rest, `bot` {connected} at the start and when it changes. Changes of one message that come close
together are sent once, as it looks then; a slow browser only sees fewer.
"""

import asyncio
from collections.abc import AsyncIterator

from agno_lark.sandbox.page.html import to_json
from agno_lark.sandbox.page.rows import draw_row, preview, scene_for
from agno_lark.sandbox.records import Change, Chat, Person
from agno_lark.sandbox.world import World

__all__ = ["bot_is_there", "live", "sse"]

GATHER_S = 0.04
DRAWING_SHARE = 4
"""How many times longer than the last drawing to wait: the bot's calls are answered in this event loop, too."""
LOOK_S = 1.0
PING_EVERY = 15


def sse(event: str, data: object) -> str:
    """One server-sent event; the data is JSON on one line."""
    return f"event: {event}\ndata: {to_json(data)}\n\n"


def bot_is_there(world: World) -> bool:
    """Whether a bot holds a connection; a stand-in without connections counts as there."""
    return len(getattr(world.bot, "connections", (True,))) > 0


def _told(world: World, chat: Chat, person: Person, change: Change) -> str | None:
    """What the browser is told about one change, or None when it does not concern this person."""
    message = world.messages.get(change.message_id)
    where = world.chats.get(change.chat_id)
    if message is None or where is None or change.kind == "toast" or person.open_id not in where.members:
        return None
    scene = scene_for(world, person)
    if change.chat_id != chat.chat_id:
        last = preview(world, message, person, scene)
        return sse("other", {"chat_id": change.chat_id, "last": last, "at_ms": message.updated_ms})
    return sse(
        "row",
        {
            "message_id": message.message_id,
            "chat_id": chat.chat_id,
            "thread_id": message.thread_id or "",
            "mine": message.sender_id == person.open_id,
            "last": preview(world, message, person, scene),
            "at_ms": message.updated_ms,
            "html": str(draw_row(world, message, person, scene)),
        },
    )


async def live(world: World, chat: Chat, person: Person) -> AsyncIterator[str]:
    """Events for one browser, until it goes away or the world ends."""
    changes = world.changes()
    waiting: dict[str, Change] = {}
    news = asyncio.Event()

    async def gather() -> None:
        async for change in changes:
            waiting.pop(change.message_id, None)
            waiting[change.message_id] = change
            news.set()

    gathering = asyncio.create_task(gather(), name=f"page-live-{person.name}")
    gathering.add_done_callback(lambda _task: news.set())
    try:
        there = bot_is_there(world)
        yield "retry: 1000\n" + sse("bot", {"connected": there})
        quiet, drawing_s = 0, 0.0
        while not gathering.done() or waiting:
            if there is not bot_is_there(world):
                there = not there
                yield sse("bot", {"connected": there})
            try:
                await asyncio.wait_for(news.wait(), LOOK_S)
            except TimeoutError:
                quiet += 1
                if quiet % PING_EVERY == 0:
                    yield ": still here\n\n"
                continue
            await asyncio.sleep(max(GATHER_S, DRAWING_SHARE * drawing_s))
            news.clear()
            batch = list(waiting.values())
            waiting.clear()
            started_s = world.clock.monotonic_s()
            for change in batch:
                told = _told(world, chat, person, change)
                if told is not None:
                    yield told
            drawing_s = world.clock.monotonic_s() - started_s
            if gathering.done():
                return
    finally:
        changes.close()
        gathering.cancel()
