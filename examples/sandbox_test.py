"""A test of a bot against a local Feishu, without app, key or network: `uv run pytest examples/sandbox_test.py`."""

import asyncio
from contextlib import closing
from pathlib import Path

from agno.agent import Agent
from agno.db.sqlite import SqliteDb

from agno_lark import LarkInterface, Settings
from agno_lark.sandbox.demo_model import DemoModel, ModelCalls
from agno_lark.sandbox.demo_script import Role
from agno_lark.testing import FeishuSandbox

MARTA = "Marta Weiss"  # one of the three people who live in the sandbox


def my_agent(db: SqliteDb) -> Agent:
    """The agent under test; this one answers by rule."""
    return Agent(
        id="mine",
        name="Mine",
        model=DemoModel(role=Role.AGENT, calls=ModelCalls()),
        db=db,
        telemetry=False,
    )


async def conversation(folder: Path) -> None:
    with closing(SqliteDb(db_file=str(folder / "sessions.sqlite3"))) as db:
        await talk(my_agent(db), folder)


async def talk(agent: Agent, folder: Path) -> None:
    async with FeishuSandbox() as feishu:
        settings = Settings.given(
            feishu_app_id=feishu.app_id,
            feishu_app_secret=feishu.app_secret,
            lark_api_base_url=feishu.url,
            feishu_state_db=folder / "state.sqlite3",
        )
        async with LarkInterface(target=agent, settings=settings).bridge.running():
            await feishu.until_connected()
            chat = feishu.direct_chat(MARTA)
            await feishu.write(MARTA, chat, "good morning")

            # What a person sees, not what was called: the bot's newest message, once it no longer grows.
            def answered(_: object) -> bool:
                shown = feishu.last_from_bot(chat)
                return shown is not None and not shown.streaming

            await feishu.until(answered, within_s=10)
            answers = feishu.from_bot(chat)
            assert len(answers) == 1
            assert "good morning" in answers[0].text


def test_my_bot_answers(tmp_path: Path) -> None:
    asyncio.run(conversation(tmp_path))
