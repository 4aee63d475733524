"""The whole product in a real browser: a person types, watches the card grow, presses Stop, reads the end."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import bridge_between
from tests.demo_agentos_fixtures import demo_agentos
from tests.page_fixtures import MARTA, tab

pytestmark = pytest.mark.asyncio(loop_scope="module")
SLOW_MS = 20_000


@pytest.fixture(scope="module")
def agentos() -> Iterator[DemoAgentOS]:
    with demo_agentos() as demo:
        yield demo


@pytest_asyncio.fixture(loop_scope="module")
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(salt=uuid.uuid4().hex) as sandbox:
        yield sandbox


async def test_a_person_types_watches_the_card_grow_presses_stop_and_reads_the_final_card(
    browser: Browser, feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    address = f"{feishu.url}/?person={quote(MARTA)}&chat=p2p"
    async with bridge_between(feishu, agentos, tmp_path), tab(browser, address) as page:
        await page.get_by_role("textbox").fill("count slowly to 60")
        await page.keyboard.press("Enter")
        card = page.locator(".card").last
        await expect(card).to_contain_text("1 2", timeout=SLOW_MS)
        await expect(card).to_contain_text("1 2 3 4 5", timeout=SLOW_MS)
        await expect(card).to_have_attribute("aria-busy", "true")
        await card.get_by_role("button", name="Stop").click()
        await expect(page.locator(".toast")).to_have_text("Stopping…", timeout=SLOW_MS)
        await expect(card).to_contain_text("Stopped", timeout=SLOW_MS)
        await expect(card).to_contain_text("1 2 3 4 5")
        await expect(card.get_by_role("button", name="Stop")).to_have_count(0)

        await page.get_by_role("textbox").fill("weather in Rome")
        await page.keyboard.press("Enter")
        answer = page.locator(".card").last
        await expect(answer).to_contain_text("Enjoy!", timeout=SLOW_MS)
        await expect(answer).to_contain_text("Done", timeout=SLOW_MS)
        await answer.get_by_text("Steps (1)").click()
        await expect(answer).to_contain_text("get_weather")

        await page.get_by_role("textbox").fill("/help")
        await page.keyboard.press("Enter")
        await expect(page.locator(".card").last).to_contain_text("What you can do here", timeout=SLOW_MS)
        await page.screenshot(path=tmp_path / "chat.png")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
async def test_an_answer_in_chinese_on_a_desk_and_on_a_phone(
    browser: Browser, feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path, width: int, dark: bool
) -> None:
    address = f"{feishu.url}/?person={quote('林悦')}&chat=p2p"
    async with bridge_between(feishu, agentos, tmp_path), tab(browser, address, width=width, dark=dark) as page:
        await page.get_by_role("textbox").fill("写一篇长文")
        await page.keyboard.press("Enter")
        card = page.locator(".card").last
        await expect(card).to_contain_text("就这些", timeout=SLOW_MS)
        await expect(card).to_contain_text("已完成", timeout=SLOW_MS)
        await expect(card.locator("table")).to_be_visible()
        await page.screenshot(path=tmp_path / f"answer-{width}.png")
