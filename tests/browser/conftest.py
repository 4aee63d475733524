"""One Chromium a file, a sandbox and a scripted bot a test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from agno_lark.testing import FeishuSandbox
from tests.page_fixtures import ScriptedBot, chromium


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox() as sandbox:
        yield sandbox


@pytest.fixture
def bot(feishu: FeishuSandbox) -> ScriptedBot:
    return ScriptedBot(feishu.world)
