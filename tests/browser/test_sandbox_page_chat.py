"""The web chat in a real browser: typing, cards that grow, buttons, forms, phones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from agno_lark.testing import FeishuSandbox
from tests.page_fixtures import MARTA, TOM, ScriptedBot, button, markdown_card, tab

pytestmark = pytest.mark.asyncio(loop_scope="module")

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63606060f80f00010401005fe5c34b"
    "0000000049454e44ae426082"
)
PIECES = ["Tomatoes ", "need sun, ", "**water** ", "and time.\n\n- sow\n- wait\n- eat"]


@asynccontextmanager
async def chat_tab(
    browser: Browser, feishu: FeishuSandbox, who: str = MARTA, chat: str = "p2p", **look: int
) -> AsyncIterator[Page]:
    async with tab(browser, f"{feishu.url}/?person={quote(who)}&chat={chat}", **look) as page:  # type: ignore[arg-type]
        yield page


async def at_end(page: Page) -> None:
    """Returns once the last line is in view. The page forbids the eval that wait_for_function needs."""
    away = "() => { const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight }"
    async with asyncio.timeout(5):
        while await page.evaluate(away) > 4:
            await asyncio.sleep(0.02)


async def test_a_person_types_and_the_answer_grows_until_they_press_stop(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    stop = button("Stop", {"act": "stop"}, element_id="stop", type="text", size="small")
    async with chat_tab(browser, feishu) as page:
        await expect(page.get_by_role("heading", name="Ask Helper something")).to_be_visible()
        await page.get_by_role("textbox", name="Message Helper").fill("How do tomatoes grow?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".row.mine")).to_contain_text("How do tomatoes grow?")
        await expect(page.get_by_role("textbox")).to_have_value("")
        assert [kind for kind, _ in bot.events] == ["im.message.receive_v1"]

        _, entity = bot.send(feishu.world.direct_chat(MARTA), markdown_card(PIECES[0], streaming=True, more=[stop]))
        card = page.locator(".card")
        for count in range(2, len(PIECES)):
            bot.change(entity, markdown_card("".join(PIECES[:count]), streaming=True, more=[stop]))
            await expect(card).to_contain_text("".join(PIECES[:count]).replace("**", "").strip())
        await expect(card).to_have_attribute("aria-busy", "true")
        await expect(card.locator(".typing")).to_be_visible()

        bot.answer = {"toast": {"type": "info", "content": "Stopping"}}
        await card.get_by_role("button", name="Stop").click()
        await expect(page.locator(".toast")).to_have_text("Stopping")
        assert bot.clicks[0]["value"] == {"act": "stop"}
        assert bot.clicks[0]["timezone"] == "Asia/Shanghai"

        bot.change(entity, markdown_card("".join(PIECES)))
        await expect(card.get_by_role("listitem")).to_have_text(["sow", "wait", "eat"])
        await expect(card).to_have_attribute("aria-busy", "false")
        await expect(card.get_by_role("button", name="Stop")).to_have_count(0)


async def test_an_example_is_sent_with_one_click(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    async with tab(browser, f"{feishu.url}/?person={quote(MARTA)}&example=Plan%20a%20trip") as page:
        await page.locator(".examples").get_by_role("button", name="Plan a trip").click()
        await expect(page.locator(".row.mine")).to_contain_text("Plan a trip")
        await expect(page.locator(".suggestions").get_by_role("button")).to_have_text(["Plan a trip"])
    assert feishu.screen("Marta Weiss")[0].text == "Plan a trip"


async def test_shift_enter_starts_a_line_and_markup_stays_text(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    async with chat_tab(browser, feishu) as page:
        await page.get_by_role("textbox").press_sequentially("<b>one</b>")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("two <img src=x onerror=alert(1)>")
        await page.keyboard.press("Enter")
        await expect(page.locator(".bubble .text")).to_have_text("<b>one</b>two <img src=x onerror=alert(1)>")
        assert await page.locator(".bubble img, .bubble b").count() == 0
    assert feishu.screen(MARTA)[0].text == "<b>one</b>\ntwo <img src=x onerror=alert(1)>"


async def test_a_mention_is_chosen_with_the_keyboard(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    async with chat_tab(browser, feishu, chat="group") as page:
        box = page.get_by_role("textbox")
        await box.press_sequentially("@hel")
        await expect(page.get_by_role("option", name="Helper")).to_have_attribute("aria-selected", "true")
        await box.press("Enter")
        await box.press_sequentially("and @")
        await expect(page.get_by_role("option")).to_have_text(["Helper", "林悦", TOM])
        await box.press("ArrowUp")
        await box.press("Tab")
        await box.press_sequentially("meet?")
        await box.press("Enter")
        await expect(page.locator(".bubble .mention")).to_have_text(["@Helper", f"@{TOM}"])
    message = feishu.world.messages[feishu.world.timeline[0]]
    assert [mention.name for mention in message.mentions] == ["Helper", TOM]
    assert message.content["text"] == "@_user_1 and @_user_2 meet?"


async def test_a_reply_quotes_a_recall_leaves_a_note_and_a_reaction_shows_who(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    team = feishu.world.chat("Team")
    first = await feishu.write(TOM, team.chat_id, "Lunch at noon?")
    async with chat_tab(browser, feishu, chat="group") as page:
        row = page.locator(f"[data-message={first.message_id}]")
        await row.hover()
        await row.get_by_role("button", name="Reply", exact=True).click()
        await expect(page.locator("#replying-text")).to_have_text(f"Replying to {TOM}: Lunch at noon?")
        await page.keyboard.type("Yes")
        await page.keyboard.press("Enter")
        mine = page.locator(".row.mine")
        await expect(mine.locator(".quote")).to_have_text(f"{TOM}: Lunch at noon?")
        await expect(page.locator("#replying")).to_be_hidden()

        await row.hover()
        await row.locator(".react summary").click()
        await row.get_by_role("button", name="HEART").click()
        await expect(row.locator(".reaction")).to_have_text("❤️Marta Weiss")
        await row.locator(".reaction").click()
        await expect(row.locator(".reaction")).to_have_count(0)

        await mine.hover()
        await mine.get_by_role("button", name="Recall").click()
        await expect(page.locator(".row.notice")).to_have_text("You recalled a message")
    assert [shown.recalled for shown in feishu.screen("Team")] == [False, True]
    assert feishu.screen("Team")[1].parent_id == first.message_id


async def test_a_picture_and_a_file_are_sent(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    async with chat_tab(browser, feishu) as page:
        await page.locator("#file").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": PNG})
        picture = page.locator(".sent-image")
        await expect(picture).to_be_visible()
        assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        await page.locator("#file").set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"})
        link = page.locator("a.file")
        await expect(link).to_contain_text("notes.txt")
        async with page.expect_download() as download:
            await link.click()
        assert (await download.value).suggested_filename == "notes.txt"
    assert [shown.kind for shown in feishu.screen(MARTA)] == ["image", "file"]


async def test_a_topic_keeps_its_replies(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    async with chat_tab(browser, feishu, chat="topic") as page:
        await page.get_by_role("textbox", name="New topic in Topics").fill("Offsite in June")
        await page.keyboard.press("Enter")
        topic = page.locator(".topic")
        await topic.get_by_role("button", name="Reply in this topic").last.click()
        await page.keyboard.type("I like lakes")
        await page.keyboard.press("Enter")
        await expect(topic.locator(".bubble")).to_have_text(["Offsite in June", "I like lakes"])
        await page.get_by_role("textbox").fill("Another thing")
        await page.keyboard.press("Enter")
        await expect(topic).to_have_count(2)
    threads = [shown.thread_id for shown in feishu.screen("Topics")]
    assert threads[0] == threads[1] != threads[2]


async def test_news_elsewhere_is_marked_in_the_list(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    async with chat_tab(browser, feishu) as page:
        await feishu.write(TOM, feishu.world.chat("Team").chat_id, "Anybody here?")
        team = page.get_by_role("link", name="Team")
        await expect(team).to_contain_text("Anybody here?")
        await expect(team.locator(".unread")).to_be_visible()
        await team.click()
        await expect(page.locator(".bubble")).to_have_text("Anybody here?")
        await expect(page.get_by_role("link", name="Team").locator(".unread")).to_be_hidden()


async def test_a_lost_connection_comes_back_with_what_was_missed(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    async with chat_tab(browser, feishu) as page:
        feishu.world.close_listeners()
        await expect(page.get_by_text("Reconnecting…")).to_be_visible()
        bot.send(feishu.world.direct_chat(MARTA), markdown_card("Said meanwhile"))
        await expect(page.locator(".card")).to_have_text("Said meanwhile")
        await expect(page.get_by_text("Reconnecting…")).to_be_hidden()


async def test_the_view_follows_the_end_only_while_one_is_there(
    browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot
) -> None:
    chat = feishu.world.direct_chat(MARTA)
    for number in range(30):
        await feishu.write(MARTA, chat.chat_id, f"line {number}")
    async with chat_tab(browser, feishu) as page:
        _, entity = bot.send(chat, markdown_card("start", streaming=True))
        for count in range(1, 6):
            bot.change(entity, markdown_card("long line\n\n" * count * 4, streaming=True))
            await expect(page.locator(".card .md-p")).to_have_count(count * 4)
        await at_end(page)
        await page.locator("#scroll").evaluate("node => { node.scrollTop = 0 }")
        await expect(page.locator("#jump")).to_be_hidden()
        bot.change(entity, markdown_card("long line\n\n" * 40, streaming=True))
        await expect(page.locator(".card .md-p")).to_have_count(40)
        assert await page.locator("#scroll").evaluate("node => node.scrollTop") == 0
        bot.send(chat, markdown_card("and another"))
        await page.get_by_role("button", name="Newest messages").click()
        await at_end(page)


async def test_the_page_speaks_the_persons_language(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    async with chat_tab(browser, feishu, who="林悦") as page:
        await expect(page.get_by_role("heading", name="和 Helper 聊聊吧")).to_be_visible()
        await page.get_by_role("link", name=TOM).click()
        await expect(page.get_by_role("heading", name="Ask Helper something")).to_be_visible()
        assert await page.locator("html").get_attribute("lang") == "en"


async def test_nothing_is_asked_of_another_host(browser: Browser, feishu: FeishuSandbox, bot: ScriptedBot) -> None:
    asked: list[str] = []
    text = "![x](https://evil.example/x.png) <img src='https://evil.example/y.png'> [z](https://evil.example/z)"
    bot.send(feishu.world.direct_chat(MARTA), markdown_card(text))

    async def look(page: Page) -> None:
        page.on("request", lambda request: asked.append(request.url))
        await page.reload()
        await expect(page.locator(".card")).to_contain_text("z")
        await page.wait_for_load_state("load")

    async with chat_tab(browser, feishu) as page:
        await look(page)
    assert len(asked) > 5
    assert [address for address in asked if not address.startswith((feishu.url, "data:"))] == []
