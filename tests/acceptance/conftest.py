"""One demo AgentOS for all acceptance tests, and a sandbox for each."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.daemon_fixtures import Operator
from tests.demo_agentos_fixtures import demo_agentos


@pytest.fixture(scope="session")
def agentos() -> Iterator[DemoAgentOS]:
    with demo_agentos() as demo:
        yield demo


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    """A sandbox whose people and chats have ids of their own: the AgentOS remembers those of other tests."""
    async with FeishuSandbox(redelivery_s=(0.2, 0.5, 1, 2), strict_cards=True, salt=uuid.uuid4().hex) as sandbox:
        yield sandbox


@pytest.fixture
async def operator(feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path) -> AsyncIterator[Operator]:
    async with Operator(feishu, agentos.url, tmp_path) as made:
        yield made
