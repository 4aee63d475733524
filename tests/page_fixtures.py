"""For tests of the sandbox's page: a bot that does what the test says, and Debian's Chromium."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from agno_lark.sandbox.records import Card, Chat, Message
from agno_lark.sandbox.world import World

CARDS = Path(__file__).parent / "data" / "cards"
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
MARTA, LIN, TOM = "Marta Weiss", "林悦", "Tom Okafor"

type Json = dict[str, Any]


class ScriptedBot:
    """Stands where a connected bot would: keeps what it is told and answers clicks with `answer`.

    `hold` (an asyncio.Event) makes clicks wait until it is set.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: list[tuple[str, Json]] = []
        self.clicks: list[Json] = []
        self.answer: Json = {}
        self.hold: asyncio.Event | None = None
        world.bot = self

    def post(self, event_type: str, event: Json) -> str:
        self.events.append((event_type, event))
        return f"event-{len(self.events)}"

    async def ask(self, event_type: str, event: Json) -> Json:
        self.clicks.append(event["action"])
        if self.hold is not None:
            await self.hold.wait()
        return self.answer

    def send(self, chat: Chat, card: Json, *, reply_to: str | None = None) -> tuple[Message, Card]:
        """A card entity appears in the chat."""
        config = card.get("config")
        entity = Card(
            card_id=self.world.new_id("card-"),
            json=card,
            created_ms=self.world.clock.now_ms(),
            streaming=isinstance(config, dict) and config.get("streaming_mode") is True,
            streaming_since_ms=self.world.clock.now_ms(),
        )
        self.world.cards[entity.card_id] = entity
        content = {"type": "card", "data": {"card_id": entity.card_id}}
        return self.world.bot_message(chat, "interactive", content, card=entity, reply_to=reply_to), entity

    def change(self, entity: Card, card: Json) -> None:
        """The card is another one now."""
        entity.json = card
        config = card.get("config")
        entity.streaming = isinstance(config, dict) and config.get("streaming_mode") is True
        self.world.card_changed(entity)


def markdown_card(*texts: str, streaming: bool = False, more: list[Json] | None = None) -> Json:
    """A card of markdown elements `text0`, `text1`, ... and whatever else."""
    elements: list[Json] = [
        {"tag": "markdown", "content": text, "element_id": f"text{index}"} for index, text in enumerate(texts)
    ]
    return {
        "schema": "2.0",
        "config": {"streaming_mode": streaming, "update_multi": True},
        "body": {"elements": [*elements, *(more or [])]},
    }


def button(label: str, value: Json, **more: Any) -> Json:
    """A button that calls back."""
    return {
        "tag": "button",
        "text": {"tag": "plain_text", "content": label},
        "behaviors": [{"type": "callback", "value": value}],
        **more,
    }


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Debian's Chromium, closed at the end."""
    path = shutil.which("chromium")
    assert path is not None, "install Debian's chromium"
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def tab(
    browser: Browser, address: str, *, width: int = 1280, height: int = 800, dark: bool = False, touch: bool = False
) -> AsyncIterator[Page]:
    """A tab at an address, once it hears live changes. Anything the browser complains of fails the test at the end."""
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        timezone_id="Asia/Shanghai",
        locale="en-US",
        has_touch=touch,
        is_mobile=touch,
    )
    context.set_default_timeout(10_000)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    try:
        await page.goto(address)
        await page.wait_for_selector("body[data-live=yes]")
        yield page
        assert complaints == [], complaints
    finally:
        await context.close()
