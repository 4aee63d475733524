"""`agno-lark demo`: sandbox, offline AgentOS and bridge, one command, one address."""

import asyncio
import contextlib
import logging
import tempfile
from pathlib import Path
from typing import Any

import click

__all__ = ["run_demo"]


USUAL_PORT = 7799


def run_demo(*, port: int | None) -> int:
    """Run all three until a signal. `port` None: the usual one, or a free one where that is taken. Returns the exit
    code. Raises `SettingsError` when the given port is taken."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    logging.getLogger("agno_lark.app").setLevel(logging.ERROR)  # that anybody may write to it is the demo's point
    return asyncio.run(_run(port))


async def _run(port: int | None) -> int:
    from agno_lark.app import Bridge
    from agno_lark.cli.serving import free_or, listen, serve_bridge, stop_on_signals, told_to_listen
    from agno_lark.sandbox.agentos import start_demo_agentos
    from agno_lark.sandbox.server import run_sandbox
    from agno_lark.settings import Settings, TargetKind

    with stop_on_signals() as stop:
        async with contextlib.AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="agno-lark-demo-"))
            click.echo("Starting a local Feishu, an offline AgentOS and the bridge (half a minute the first time) …")
            address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            chosen = free_or(USUAL_PORT) if port is None else port
            sandbox = asyncio.create_task(run_sandbox("127.0.0.1", chosen, ready=address.set_result), name="sandbox")
            stack.push_async_callback(_end, sandbox)
            waited: set[asyncio.Future[Any]] = {address, sandbox}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if sandbox.done():
                told_to_listen(sandbox, "127.0.0.1", chosen)
            starting = asyncio.create_task(stack.enter_async_context(start_demo_agentos()))
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if not starting.done():
                await _end(starting)
                return 0
            agentos = starting.result()
            settings = Settings.given(
                feishu_app_id="cli_sandbox",
                feishu_app_secret="sandbox-secret",  # noqa: S106 - the sandbox's own, printed by it
                lark_api_base_url=address.result(),
                agentos_url=agentos.url,
                agentos_target_type=TargetKind.AGENT,
                agentos_target_id="demo-agent",
                feishu_state_db=Path(folder, "state.sqlite3"),
                feishu_allowed_chat_ids=frozenset(),
                bridge_drain_timeout=2,
            )
            bridge = Bridge(settings, address="the demo")
            bound = stack.enter_context(listen("127.0.0.1", 0))
            await serve_bridge(bridge, bound, stop, lambda: _tell(address.result()))
            click.echo("\nThe demo has ended.")
            if bridge.failure is not None:
                raise bridge.failure
    return 0


def _tell(address: str) -> None:
    click.echo(f"\n  Open {address} in a browser and write to the bot.\n\nCtrl-C ends the demo.")


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
