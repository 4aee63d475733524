"""A local Feishu: what the bridge talks to when there is no real one.

In: the bot's OpenAPI calls and WebSocket frames; what people do, by the page, `agno_lark.testing` or the control
endpoint. Out: events, answers with the platform's own codes, and a record of everything a person would see.
Nothing survives the process: a crash empties this world.
"""

from collections.abc import Callable

__all__ = ["run_sandbox"]


async def run_sandbox(host: str, port: int, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve a new local Feishu until cancelled; see `server.run_sandbox`, which is imported only now (it is heavy)."""
    from agno_lark.sandbox import server

    await server.run_sandbox(host, port, ready=ready)
