"""`agno-lark sandbox`: a local Feishu."""

import asyncio
import logging

import click

from agno_lark.errors import SettingsError
from agno_lark.settings import is_loopback

__all__ = ["run"]


def run(*, host: str, port: int) -> int:
    """Serve until a signal. Returns the exit code."""
    if not is_loopback(host):
        raise SettingsError([f"--host: expected a loopback address, got {host!r}; the sandbox has no passwords"])
    logging.basicConfig(level=logging.WARNING)
    return asyncio.run(_run(host, port))


async def _run(host: str, port: int) -> int:
    from agno_lark.cli.serving import stop_on_signals, told_to_listen
    from agno_lark.sandbox.server import run_sandbox

    def ready(address: str) -> None:
        click.echo(f"Local Feishu: open {address} in a browser. For your bot's settings:")
        click.echo(f"  LARK_API_BASE_URL={address}")
        click.echo("  FEISHU_APP_ID=cli_sandbox\n  FEISHU_APP_SECRET=sandbox-secret")
        click.echo("Ctrl-C ends it.")

    with stop_on_signals() as stop:
        serving = asyncio.create_task(run_sandbox(host, port, ready=ready), name="sandbox")
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if serving.done():
            told_to_listen(serving, host, port)
        serving.cancel()
        await asyncio.wait({serving})
    return 0
