"""A card that asks what shall become of a message, in a real browser: pressed once, decided, answered."""

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect

from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import LaterClock, PlayedTarget, answer, bridge_on
from tests.page_fixtures import MARTA, tab

pytestmark = pytest.mark.asyncio(loop_scope="module")
SLOW_MS = 20_000


@pytest.mark.parametrize(
    ("person", "asks", "button", "decided"),
    [
        (MARTA, "reached me only now", "Answer now", "Answered below."),
        ("林悦", "我刚刚才收到", "现在回答", "回答见下文"),
    ],
)
async def test_a_late_message_is_asked_about_and_answered_at_a_press(
    browser: Browser, feishu: FeishuSandbox, tmp_path: Path, person: str, asks: str, button: str, decided: str
) -> None:
    target = PlayedTarget(answer)
    await feishu.write(person, feishu.direct_chat(person), "what is for lunch?" if person == MARTA else "午饭吃什么？")
    async with (
        bridge_on(feishu, target, tmp_path, clock=LaterClock(9 * 3600)),
        tab(browser, f"{feishu.url}/?person={quote(person)}&chat=p2p") as page,
    ):
        card = page.locator(".card").first
        await expect(card).to_contain_text(asks, timeout=SLOW_MS)
        await page.screenshot(path=tmp_path / "asks.png")
        await card.get_by_role("button", name=button).click()
        await expect(card).to_contain_text(decided, timeout=SLOW_MS)
        await expect(card.get_by_role("button", name=button)).to_have_count(0)
        await expect(page.locator(".card").last).to_contain_text("the answer", timeout=SLOW_MS)
        await page.screenshot(path=tmp_path / "decided.png")
    assert len(target.submissions) == 1
