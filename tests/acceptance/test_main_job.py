"""The main job, end to end: a message in Feishu gets a streamed answer from an AgentOS."""

from pathlib import Path

import pytest

from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to, bridge_between

MARTA = "Marta Weiss"


@pytest.mark.parametrize("kind", ["agent", "team", "workflow"])
async def test_each_kind_of_target_answers(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path, kind: str
) -> None:
    async with bridge_between(feishu, agentos, tmp_path, agentos_target_type=kind):
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "good morning")
        shown = await answer_to(feishu, chat)
        assert "good morning" in shown.text
        assert "Done" in shown.text
        assert len(feishu.from_bot(chat)) == 1


async def test_a_card_types_and_ends_complete(feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        chat = feishu.direct_chat(MARTA)
        message = await feishu.write(MARTA, chat, "long markdown please")
        await feishu.until(lambda _: message.reactions, within_s=1)
        await feishu.until(lambda _: any("token by token" in seen.text for seen in feishu.from_bot(chat)))
        shown = await answer_to(feishu, chat)
        assert "That is all." in shown.text
        assert "Stop" not in [line.strip() for line in shown.text.splitlines()]
        card = feishu.card_of(shown.message_id)
        assert card is not None
        assert len(card.history) >= 4, "it was shown growing"
        await feishu.until(lambda _: not message.reactions, within_s=2)


async def test_a_tool_call_is_a_folded_step_and_text_before_and_after_it_is_kept(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "weather in Rome")
        shown = await answer_to(feishu, chat)
        assert "Let me look up the weather in Rome." in shown.text
        assert "Enjoy!" in shown.text
        assert "Steps (1)" in shown.text
        assert "get_weather" in shown.text


async def test_repeated_deltas_are_all_shown(feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "repeat")
        shown = await answer_to(feishu, chat)
        assert "110" in shown.text


async def test_a_failing_model_ends_in_a_card_that_says_what_to_do(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    async with bridge_between(feishu, agentos, tmp_path):
        chat = feishu.direct_chat("林悦")
        await feishu.write("林悦", chat, "请失败")
        shown = await answer_to(feishu, chat)
        assert "智能体运行出错" in shown.text
        assert "失败" in shown.text
