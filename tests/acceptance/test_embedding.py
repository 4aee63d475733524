"""`LarkInterface` around an agent that lives on another AgentOS: spoken to over HTTP, and let go of at the end."""

import gc
from pathlib import Path

from agno_lark import LarkInterface, build_remote_target
from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.targets import RemoteTarget
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to, settings_for

MARTA = "Marta Weiss"


async def test_a_remote_agent_answers_in_each_life_of_the_app_and_no_connection_is_left(
    feishu: FeishuSandbox, agentos: DemoAgentOS, tmp_path: Path
) -> None:
    settings = settings_for(feishu, agentos.url, tmp_path)
    bridge = LarkInterface(target=build_remote_target(settings), settings=settings).bridge
    chat = feishu.direct_chat(MARTA)
    for life in range(2):
        async with bridge.running():
            assert isinstance(bridge._target, RemoteTarget)
            await feishu.until(lambda _: bridge.is_ready(), within_s=10)
            await feishu.write(MARTA, chat, "good morning")
            assert f"Message {life + 1} of this session" in (await answer_to(feishu, chat, after=life)).text
    gc.collect()  # an open session would be a ResourceWarning, and that an error
