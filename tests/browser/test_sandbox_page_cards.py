"""Cards in a real browser: what a person's clicks and choices tell the bot, and what they see."""

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from agno_lark.testing import FeishuSandbox
from tests.page_fixtures import CARDS, LIN, MARTA, TOM, Json, ScriptedBot, button, markdown_card, tab

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Text that is cut without being a scrolling place, a deliberately clipped line, or hidden from the eye.
CUT = """() => [...document.querySelectorAll('#rows *, .side *, .top *, .foot *')].filter((node) => {
  const style = getComputedStyle(node);
  if (!node.checkVisibility() || node.closest('.unseen, summary, select, svg')) return false;
  if (style.overflowX === 'auto' || style.textOverflow === 'ellipsis' || style.webkitLineClamp !== 'none') return false;
  if (['INPUT', 'TEXTAREA', 'TABLE', 'IMG'].includes(node.nodeName)) return false;
  return style.overflowX !== 'visible' && node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0;
}).map((node) => node.className + ': ' + node.textContent.slice(0, 40))"""
SIDEWAYS = """() => document.documentElement.scrollWidth > innerWidth
  || document.getElementById('scroll').scrollWidth > document.getElementById('scroll').clientWidth"""


def address(feishu: FeishuSandbox, who: str = MARTA) -> str:
    return f"{feishu.url}/?person={quote(who)}"


def example(name: str) -> Json:
    found: Json = json.loads((CARDS / "valid" / name).read_text())
    return found


def plain(text: str) -> Json:
    return {"tag": "plain_text", "content": text}


def form(*elements: Json, more: list[Json] | None = None) -> Json:
    submit = button("Send", {"act": "send"}, name="go", form_action_type="submit", type="primary_filled")
    reset = {"tag": "button", "text": plain("Clear"), "name": "clear", "form_action_type": "reset"}
    held = {"tag": "form", "name": "f", "elements": [*elements, submit, reset]}
    return {"schema": "2.0", "body": {"elements": [held, *(more or [])]}}


async def told(bot: ScriptedBot, count: int = 1) -> Json:
    """The last of `count` clicks."""
    async with asyncio.timeout(5):
        while len(bot.clicks) < count:
            await asyncio.sleep(0.01)
    return bot.clicks[-1]


async def test_a_form_sends_every_field_in_its_own_shape(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    options = [{"text": plain(text), "value": text[0].lower()} for text in ("Filter", "Gloves", "Hat")]
    card = form(
        {"tag": "input", "name": "litres", "label": plain("Litres"), "required": True},
        {"tag": "input", "name": "remark", "label": plain("Remark"), "input_type": "multiline_text"},
        {"tag": "select_static", "name": "tank", "placeholder": plain("Tank"), "options": options},
        {"tag": "multi_select_static", "name": "extras", "placeholder": plain("Extras"), "options": options},
        {"tag": "select_person", "name": "approver", "placeholder": plain("Approver"), "options": []},
        {"tag": "date_picker", "name": "day", "placeholder": plain("Day")},
        {"tag": "picker_time", "name": "slot", "placeholder": plain("Slot")},
        {"tag": "picker_datetime", "name": "deadline", "placeholder": plain("Deadline")},
        {"tag": "checker", "name": "agree", "text": plain("I agree")},
        {"tag": "date_picker", "name": "unset", "placeholder": plain("Unset")},
    )
    bot.send(feishu.world.direct_chat(MARTA), card)
    bot.answer = {"toast": {"type": "success", "content": "Saved", "i18n": {"en_us": "Saved it"}}}
    async with tab(browser, address(feishu)) as page:
        await page.get_by_role("button", name="Send", exact=True).first.click()
        await expect(page.locator(".toast")).to_have_text("Please fill in what is required")
        await expect(page.locator(".field-error:visible")).to_have_text(["This is required"])
        await expect(page.get_by_label("Litres")).to_be_focused()
        assert bot.clicks == []

        await page.get_by_label("Litres").fill("900")
        await page.get_by_label("Tank").select_option("Gloves")
        await page.locator(".multi summary").click()
        await page.get_by_label("Filter").check()
        await page.get_by_role("checkbox", name="Hat").check()
        await expect(page.locator(".multi-shown")).to_have_text("Filter, Hat")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("checkbox", name="Hat")).to_be_hidden()
        await page.get_by_label("Approver").select_option(TOM)
        await page.get_by_label("Day", exact=True).fill("2026-06-03")
        await page.get_by_label("Slot").fill("14:30")
        await page.get_by_label("Deadline").fill("2026-06-03T18:00")
        await page.get_by_label("I agree").check()
        await page.locator(".card").get_by_role("button", name="Send").click()
        await expect(page.locator(".toast.success")).to_have_text("Saved it")
        action = await told(bot)
        assert action == {
            "tag": "button",
            "name": "go",
            "value": {"act": "send"},
            "timezone": "Asia/Shanghai",
            "form_value": {
                "litres": "900",
                "remark": "",
                "tank": "g",
                "extras": ["f", "h"],
                "approver": feishu.world.person(TOM).open_id,
                "day": "2026-06-03 +0800",
                "slot": "14:30 +0800",
                "deadline": "2026-06-03 18:00 +0800",
                "agree": True,
            },
        }
        await page.get_by_role("button", name="Clear").click()
        await expect(page.get_by_label("Litres")).to_have_value("")
        await expect(page.locator(".multi-shown")).to_have_text("Extras")
        assert len(bot.clicks) == 1


async def test_what_a_person_typed_survives_a_newer_card(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    field: Json = {"tag": "input", "name": "title", "label": plain("Title"), "default_value": "old"}
    panel: Json = {
        "tag": "collapsible_panel",
        "header": {"title": plain("Steps")},
        "elements": [{"tag": "markdown", "content": "step one"}],
        "element_id": "steps",
    }
    note = {"tag": "markdown", "content": "first", "element_id": "note"}
    _, entity = bot.send(feishu.world.direct_chat(MARTA), form(field, more=[panel, note]))
    async with tab(browser, address(feishu)) as page:
        title = page.get_by_label("Title")
        await title.fill("")
        await title.press_sequentially("half a sent")
        await page.locator("summary", has_text="Steps").click()
        await title.focus()
        above = {"tag": "markdown", "content": "something above", "element_id": "above"}
        newer = form(field, more=[panel, {**note, "content": "second"}])
        newer["body"]["elements"].insert(0, above)
        bot.change(entity, newer)
        await expect(page.get_by_text("second")).to_be_visible()
        await expect(title).to_have_value("half a sent")
        await expect(title).to_be_focused()
        await expect(page.get_by_text("step one")).to_be_visible()
        assert await title.evaluate("input => input.selectionStart") == len("half a sent")


async def test_a_question_is_asked_first_and_no_means_no(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    bot.send(feishu.world.direct_chat(LIN), example("03-approval-buttons.json"))
    async with tab(browser, address(feishu, LIN)) as page:
        yes = page.get_by_role("button", name="同意", exact=True)
        await yes.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("邮件发出之后不能收回。")
        await page.keyboard.press("Escape")
        await yes.click()
        await dialog.get_by_role("button", name="取消").click()
        assert bot.clicks == []
        await yes.click()
        await dialog.get_by_role("button", name="确定").click()
        assert (await told(bot))["value"] == {"act": "approve", "id": "ap-7"}
        await page.get_by_role("button", name="不同意").click()
        assert (await told(bot, 2))["value"] == {"act": "deny", "id": "ap-7"}


async def test_a_waiting_button_is_busy_and_counts_one_click(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    bot.hold = asyncio.Event()
    card = markdown_card(
        "Go?", more=[button("Go", {"n": 1}), button("Off", {"n": 2}, disabled=True, disabled_tips=plain("Not now"))]
    )
    bot.send(feishu.world.direct_chat(MARTA), card)
    async with tab(browser, address(feishu)) as page:
        go = page.get_by_role("button", name="Go", exact=True)
        await go.click()
        await expect(go).to_have_attribute("aria-busy", "true")
        await go.dispatch_event("click")
        await page.get_by_role("button", name="Off").click(force=True)
        await expect(page.locator(".toast")).to_have_text("Not now")
        bot.hold.set()
        await expect(go).not_to_have_attribute("aria-busy", "true")
        assert [click["value"] for click in bot.clicks] == [{"n": 1}]


async def test_a_bot_that_is_not_there_is_told_as_a_toast(browser: Browser, feishu: FeishuSandbox) -> None:
    nobody = feishu.world.bot
    bot = ScriptedBot(feishu.world)
    bot.send(feishu.world.direct_chat(MARTA), markdown_card("Go?", more=[button("Go", {"n": 1})]))
    feishu.world.bot = nobody
    async with tab(browser, address(feishu)) as page:
        await page.get_by_role("button", name="Go", exact=True).click()
        await expect(page.locator(".toast.error")).to_contain_text("200340")


async def test_controls_that_stand_alone_tell_the_bot_at_once(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    bot.send(feishu.world.direct_chat(LIN), example("09-standalone-controls.json"))
    async with tab(browser, address(feishu, LIN), height=1400) as page:
        await page.get_by_label("换个模型").select_option("细")
        assert await told(bot, 1) == {"tag": "select_static", "value": {"act": "model"}, "option": "deep"}
        await page.get_by_label("交给谁").select_option(TOM)
        assert (await told(bot, 2))["option"] == feishu.world.person(TOM).open_id
        await page.get_by_label("补充一句").fill("快一点")
        await page.keyboard.press("Enter")
        assert await told(bot, 3) == {"tag": "input", "value": {"act": "reply"}, "input_value": "快一点"}
        await page.get_by_label("哪天").fill("2026-03-02")
        assert await told(bot, 4) == {
            "tag": "date_picker",
            "value": {"act": "day"},
            "option": "2026-03-02 +0800",
            "timezone": "Asia/Shanghai",
        }
        await page.get_by_label("整理会议纪要").check()
        assert await told(bot, 5) == {"tag": "checker", "value": {"act": "done"}, "checked": True}
        await page.get_by_role("radio", name="b").check()
        assert (await told(bot, 6))["option"] == "b"
        await page.locator(".card [aria-label=更多]").click()
        await page.get_by_role("menuitem", name="再问一次").click()
        assert await told(bot, 7) == {"tag": "overflow", "value": {"act": "more"}, "option": "again"}
        await page.get_by_role("button", name="推迟").click()
        assert (await told(bot, 8))["value"] == {"act": "later"}


async def test_a_container_is_used_by_keyboard_and_opens_only_the_web(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    def container(text: str, *behaviors: Json) -> Json:
        held = [{"tag": "markdown", "content": text}]
        return {"tag": "interactive_container", "behaviors": list(behaviors), "elements": held}

    call = container("Call back", {"type": "callback", "value": {"act": "c"}})
    bad = container("Bad", {"type": "open_url", "default_url": "javascript:alert(1)"})
    card = {"schema": "2.0", "body": {"elements": [call, bad]}}
    bot.send(feishu.world.direct_chat(MARTA), card)
    async with tab(browser, address(feishu)) as page:
        await page.get_by_role("button", name="Call back").press("Enter")
        assert await told(bot) == {"tag": "interactive_container", "value": {"act": "c"}}
        await page.get_by_text("Bad").click()
        assert len(page.context.pages) == 1
        assert await page.locator("[data-url]").count() == 0


async def test_a_long_table_turns_its_pages(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    def table(count: int) -> Json:
        rows = [{"n": str(number)} for number in range(count)]
        columns = [{"name": "n", "display_name": "No", "data_type": "text"}]
        return {
            "schema": "2.0",
            "body": {
                "elements": [{"tag": "table", "page_size": 3, "columns": columns, "rows": rows, "element_id": "t"}]
            },
        }

    _, entity = bot.send(feishu.world.direct_chat(MARTA), table(7))
    async with tab(browser, address(feishu)) as page:
        shown = page.locator(".grid td:visible")
        await expect(shown).to_have_text(["0", "1", "2"])
        await page.get_by_role("button", name="Next page").click()
        await expect(shown).to_have_text(["3", "4", "5"])
        bot.change(entity, table(8))
        await expect(page.locator(".grid td")).to_have_count(8)
        await expect(shown).to_have_text(["3", "4", "5"])
        await page.get_by_role("button", name="Next page").click()
        await expect(shown).to_have_text(["6", "7"])
        await expect(page.get_by_role("button", name="Next page")).to_be_disabled()


@pytest.mark.parametrize(
    ("width", "dark", "who"), [(1280, False, LIN), (1280, True, MARTA), (390, False, MARTA), (390, True, LIN)]
)
async def test_every_example_card_fits_its_screen(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot, tmp_path: Path, width: int, dark: bool, who: str
) -> None:
    chat = feishu.world.direct_chat(who)
    for path in sorted((CARDS / "valid").glob("*.json")):
        bot.send(chat, json.loads(path.read_text()))
    async with tab(browser, address(feishu, who), width=width, height=900, dark=dark) as page:
        await expect(page.locator(".card")).to_have_count(10)
        await page.screenshot(path=tmp_path / f"cards-{width}-{'dark' if dark else 'light'}.png")
        assert await page.evaluate(SIDEWAYS) is False
        assert await page.evaluate(CUT) == []


async def test_a_phone_shows_the_list_or_the_conversation(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    async def fits(page: Page) -> None:
        assert await page.evaluate(SIDEWAYS) is False

    async with tab(browser, address(feishu), width=390, height=844) as page:
        await expect(page.get_by_role("navigation", name="Chats")).to_be_hidden()
        await fits(page)
        await page.get_by_role("button", name="All chats").click()
        await expect(page.get_by_role("textbox")).to_be_hidden()
        await fits(page)
        await page.get_by_role("link", name="Team").click()
        await expect(page.get_by_role("textbox", name="Message Team")).to_be_visible()
        await expect(page.get_by_role("heading", name="A group with Helper in it")).to_be_visible()
        await fits(page)


async def test_a_touch_shows_what_may_be_done_to_a_card(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    bot.send(feishu.world.direct_chat(MARTA), markdown_card("Touch me", more=[button("Go", {"n": 1})]))
    async with tab(browser, address(feishu), width=390, height=844, touch=True) as page:
        await page.get_by_role("button", name="Go", exact=True).tap()
        assert (await told(bot))["value"] == {"n": 1}
        await expect(page.locator(".row.picked")).to_have_count(0)
        await page.locator(".card").get_by_text("Touch me").tap()
        await page.get_by_role("button", name="Reply", exact=True).tap()
        await expect(page.locator("#replying-text")).to_have_text("Replying to Helper: Touch me")
