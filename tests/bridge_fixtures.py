"""A bridge between the sandbox and a demo AgentOS, for acceptance tests: all real but Feishu."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agno_lark.app import Bridge
from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.sandbox.records import Shown
from agno_lark.settings import Settings
from agno_lark.testing import FeishuSandbox

TARGETS = {"agent": "demo-agent", "team": "demo-team", "workflow": "demo-workflow"}


def settings_for(feishu: FeishuSandbox, agentos_url: str, folder: Path, **more: Any) -> Settings:
    kind = str(more.get("agentos_target_type", "agent"))
    values: dict[str, Any] = {
        "feishu_app_id": feishu.app_id,
        "feishu_app_secret": feishu.app_secret,
        "lark_api_base_url": feishu.url,
        "agentos_url": agentos_url,
        "agentos_target_type": kind,
        "agentos_target_id": TARGETS[kind],
        "feishu_state_db": folder / "state.sqlite3",
        "bridge_drain_timeout": 1,
    }
    return Settings.given(**values | more)


@contextlib.asynccontextmanager
async def bridge_between(
    feishu: FeishuSandbox, agentos: DemoAgentOS, folder: Path, **more: Any
) -> AsyncIterator[Bridge]:
    """A running bridge that is connected."""
    bridge = Bridge(settings_for(feishu, agentos.url, folder, **more))
    async with bridge.running():
        await feishu.until(lambda _: bridge.is_ready(), within_s=10)
        yield bridge


async def answer_to(feishu: FeishuSandbox, chat_id: str, *, after: int = 0, within_s: float = 15) -> Shown:
    """The bot's first message in the chat beyond the `after` there were, once it is complete."""

    def complete(_: object) -> Shown | None:
        shown = feishu.from_bot(chat_id)
        return shown[after] if len(shown) > after and not shown[after].streaming else None

    shown = await feishu.until(complete, within_s=within_s)
    assert shown is not None
    return shown
