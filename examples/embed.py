"""The bridge inside an AgentOS app: one process that serves the agent and answers in Feishu.

It runs without a key, against the sandbox. In one terminal:

    uv run agno-lark sandbox --port 7799

and in another:

    LARK_API_BASE_URL=http://127.0.0.1:7799 FEISHU_APP_ID=cli_sandbox FEISHU_APP_SECRET=sandbox-secret \\
        uv run python examples/embed.py

Then open http://127.0.0.1:7799 and write to the bot. For a real app put your settings into `.env`, and a real model
into the agent.
"""

import uvicorn
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.os import AgentOS
from fastapi import FastAPI

from agno_lark import LarkInterface
from agno_lark.sandbox.demo_model import DemoModel, ModelCalls
from agno_lark.sandbox.demo_script import Role


def build_app(db_file: str = ".data/embed-sessions.sqlite3") -> FastAPI:
    """An AgentOS with one agent and the bridge. Settings come from the environment and `.env`."""
    agent = Agent(
        id="helper",
        name="Helper",
        # A model of yours goes here. This one answers by rule, so that the example runs offline.
        model=DemoModel(role=Role.AGENT, calls=ModelCalls()),
        db=SqliteDb(db_file=db_file),
        add_history_to_context=True,
    )
    agent_os = AgentOS(agents=[agent], interfaces=[LarkInterface(target=agent)], telemetry=False)
    return agent_os.get_app()


if __name__ == "__main__":
    uvicorn.run(build_app(), host="127.0.0.1", port=7777)
