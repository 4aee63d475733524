"""The sandbox held to the protocol by the real SDK: `FeishuChannel` connects, hears, answers, streams, downloads."""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agno_lark.testing import FeishuSandbox

SCRIPT = Path(__file__).with_name("sdk_bot.py")
MARTA = "Marta Weiss"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(500)


class SdkBot:
    """The process, and what it told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def told(self, kind: str, within_s: float = 20) -> dict[str, Any]:
        """The next line of this kind; others before it are skipped."""
        assert self._process.stdout is not None
        async with asyncio.timeout(within_s):
            while line := await self._process.stdout.readline():
                if line.startswith(b"{"):
                    facts: dict[str, Any] = json.loads(line)
                    if facts["kind"] == kind:
                        return facts
        raise AssertionError(f"the SDK's process ended without telling {kind!r}")


@asynccontextmanager
async def sdk_bot(feishu: FeishuSandbox) -> AsyncIterator[SdkBot]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "ignore",
        str(SCRIPT),
        feishu.url,
        feishu.app_id,
        feishu.app_secret,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    bot = SdkBot(process)
    try:
        ready = await bot.told("ready", within_s=40)
        assert ready["bot"] == feishu.world.app.bot_open_id
        yield bot
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_real_sdk_lives_in_the_sandbox() -> None:
    async with FeishuSandbox() as feishu, sdk_bot(feishu) as bot:
        await feishu.until_connected()
        direct = feishu.direct_chat(MARTA)

        asked = await feishu.write(MARTA, direct, "good morning")
        heard = await bot.told("message")
        assert (heard["text"], heard["message_id"]) == ("good morning", asked.message_id)
        assert (await bot.told("sent"))["success"]
        shown = feishu.last_from_bot(direct)
        assert shown is not None
        assert (shown.text, shown.parent_id) == ("you said good morning", asked.message_id)
        assert feishu.world.message(asked.message_id).reactions[0].emoji == "OK"

        topic = await feishu.write(MARTA, "Topics", "in a topic", mention_bot=True)
        heard = await bot.told("message")
        assert (heard["mentioned_bot"], heard["thread_id"]) == (True, topic.thread_id)
        await bot.told("sent")
        assert feishu.screen("Topics", topic.thread_id)[-1].author_is_bot

        await feishu.write(MARTA, direct, "stream please")
        sent = await bot.told("sent")
        assert sent["success"], sent
        streamed = await feishu.until(lambda _: _finished(feishu, direct), within_s=10)
        assert streamed.text == "alpha beta gamma"
        card = feishu.card_of(streamed.message_id)
        assert card is not None
        grown = [edit.text for edit in card.history if edit.kind == "content"]
        assert len(grown) >= 2
        assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(grown))

        await feishu.write(MARTA, direct, "a card please")
        message_id = (await bot.told("sent"))["message_id"]
        answer = await feishu.press(MARTA, message_id, "Press")
        assert answer["toast"]["content"] == "the SDK heard you"
        click = await bot.told("click")
        assert (click["message_id"], click["value"]) == (message_id, {"op": "press"})
        assert click["operator"] == feishu.world.person(MARTA).open_id

        await feishu.world.send_image(MARTA, direct, PNG)
        assert (await bot.told("message"))["downloaded"] == len(PNG)
        await bot.told("sent")

        feishu.faults.split_next(3)
        await feishu.write(MARTA, direct, "in three parts")
        assert (await bot.told("message"))["text"] == "in three parts"
        assert feishu.deliveries.counts["acks_200"] == feishu.deliveries.counts["attempts"]


def _finished(feishu: FeishuSandbox, chat_id: str) -> Any:
    shown = feishu.last_from_bot(chat_id)
    return shown if shown is not None and shown.card is not None and not shown.streaming else None
