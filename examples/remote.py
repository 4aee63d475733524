"""Ask the AgentOS of your settings one question, without Feishu: a check of AGENTOS_* before the bridge is started.

    uv run python examples/remote.py "hello"

`build_remote_target` returns agno's own RemoteAgent, RemoteTeam or RemoteWorkflow, so it can be used wherever agno
takes one. The bridge itself needs no such object: it reads the same settings.
"""



import asyncio
import sys

from agno.utils.http import aclose_default_clients

from agno_lark import Settings, SettingsError, build_remote_target, load_settings


async def ask(settings: Settings, question: str) -> str:
    """The answer of the agent, team or workflow that the settings name."""
    remote = build_remote_target(settings)
    try:
        run = await remote.arun(question, stream=False)
    finally:
        await aclose_default_clients()  # agno's connections, before the event loop is gone
    return str(run.content)


def main() -> int:
    try:
        settings = load_settings()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(asyncio.run(ask(settings, " ".join(sys.argv[1:]) or "hello")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
