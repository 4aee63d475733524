"""The AgentOS is killed in the middle of a run: the card ends, says so and keeps its text; the conversation goes on."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agno_lark.app import Bridge
from agno_lark.sandbox.agentos import DemoAgentOS, start_demo_agentos
from agno_lark.sandbox.records import Shown
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to, settings_for
from tests.demo_agentos_fixtures import free_port

MARTA = "Marta Weiss"


@asynccontextmanager
async def bridge_to(feishu: FeishuSandbox, port: int, folder: Path, **more: Any) -> AsyncIterator[Bridge]:
    """A bridge that outlives the AgentOS on that port."""
    bridge = Bridge(settings_for(feishu, f"http://127.0.0.1:{port}", folder, **more))
    async with bridge.running():
        await feishu.until(lambda _: bridge.is_ready(), within_s=10)
        yield bridge


async def killed_while_counting(feishu: FeishuSandbox, chat: str, demo: DemoAgentOS) -> Shown:
    """The card as it was when its AgentOS was killed."""

    def counts(_: object) -> Shown | None:
        return next((shown for shown in feishu.from_bot(chat) if "1 2 3 " in shown.text), None)

    await feishu.write(MARTA, chat, "count fast to 500")
    card = await feishu.until(counts, within_s=20)
    assert card is not None
    assert "Stop" in lines_of(card)
    os.kill(demo.pid, signal.SIGKILL)
    await demo.process.wait()
    return card


def lines_of(shown: Shown) -> list[str]:
    return [line.strip() for line in shown.text.splitlines()]


@pytest.mark.timeout(120)  # an AgentOS takes its time to start, twice here
@pytest.mark.parametrize(
    ("kind", "durable_queue"), [("agent", False), ("team", False), ("workflow", False), ("agent", True)]
)
async def test_a_run_whose_agentos_was_restarted_ends_and_the_next_message_is_answered(
    feishu: FeishuSandbox, tmp_path: Path, kind: str, durable_queue: bool
) -> None:
    port, database = free_port(), tmp_path / "sessions.sqlite3"
    chat = feishu.direct_chat(MARTA)
    start = partial(start_demo_agentos, port=port, db_path=database, durable_queue=durable_queue, ready_timeout_s=60)
    async with bridge_to(feishu, port, tmp_path, agentos_target_type=kind, bridge_lost_run_timeout=1.5):
        async with start() as demo:
            card = await killed_while_counting(feishu, chat, demo)
        assert feishu.from_bot(chat)[0].streaming, "it is waited for until the AgentOS is back, and tells"
        async with start():
            ended = await answer_to(feishu, chat, within_s=30)
            assert ended.message_id == card.message_id
            assert "1 2 3 " in ended.text
            assert "no longer works on this run" in ended.text
            assert "Stop" not in lines_of(ended)
            await feishu.write(MARTA, chat, "good morning")
            answer = await answer_to(feishu, chat, after=1)
            assert "good morning" in answer.text
            assert "Done" in answer.text
    assert len(feishu.from_bot(chat)) == 2


@pytest.mark.timeout(120)
async def test_a_run_whose_agentos_stays_away_ends_after_the_run_timeout(feishu: FeishuSandbox, tmp_path: Path) -> None:
    port = free_port()
    chat = feishu.direct_chat(MARTA)
    async with bridge_to(feishu, port, tmp_path, bridge_run_timeout=2.0, bridge_lost_run_timeout=1):
        async with start_demo_agentos(port=port, ready_timeout_s=60) as demo:
            await killed_while_counting(feishu, chat, demo)
        ended = await answer_to(feishu, chat)
        assert "1 2 3 " in ended.text
        assert "no sign of life" in ended.text
        assert "Stop" not in lines_of(ended)
        await feishu.write(MARTA, chat, "good morning")
        assert "cannot be reached" in (await answer_to(feishu, chat, after=1)).text
