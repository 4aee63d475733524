"""Ask the AgentOS of your settings one question, without Feishu: a check of AGENTOS_* before the bridge is started.

    uv run python examples/remote.py "hello"

`build_remote_target` returns agno's own RemoteAgent, RemoteTeam or RemoteWorkflow, so it can be used wherever agno
takes one. The bridge itself needs no such object: it reads the same settings.
"""

import asyncio
import sys

import httpx
from agno.exceptions import AgnoError
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


def why(error: Exception, settings: Settings) -> str:
    """What went wrong, as a sentence for whoever fills in the settings."""
    url, kind, name = settings.agentos_url, settings.agentos_target_type, settings.agentos_target_id
    match error:
        case httpx.HTTPStatusError(response=httpx.Response(status_code=401 | 403)):
            return f"{url} refused the access: AGENTOS_TOKEN must be its OS_SECURITY_KEY."
        case httpx.HTTPStatusError(response=httpx.Response(status_code=404)):
            return f"{url} has no {kind} {name!r}: see {url}/config for its ids, then set AGENTOS_TARGET_ID."
        case httpx.HTTPStatusError(response=response):
            return f"{url} answered {response.status_code}: look into its log."
        case _:
            return f"{url} gave no answer ({error}): is the AgentOS running there, and is AGENTOS_URL right?"


def main() -> int:
    try:
        settings = load_settings()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    try:
        print(asyncio.run(ask(settings, " ".join(sys.argv[1:]) or "hello")))
    except (httpx.HTTPError, AgnoError) as error:
        print(why(error, settings), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
