"""`agno-lark`: the daemon."""

import asyncio
import logging
import os

import click

from agno_lark.errors import SettingsError
from agno_lark.settings import Settings, given_dotenv, load_settings, misspelt

__all__ = ["serve"]

logger = logging.getLogger(__name__)


def serve(*, host: str | None, port: int | None, env_file: str) -> int:
    """Run until a signal. Returns the exit code. Raises errors of the tree, which `main` tells."""
    dotenv = given_dotenv(env_file)
    settings = load_settings(env_file=env_file or None)
    overrides = {
        name: value for name, value in (("bridge_host", host), ("bridge_port", port)) if value not in (None, "")
    }
    settings = settings.model_copy(update=overrides)
    from agno_lark.observe import configure_logs

    configure_logs(settings.log_level, settings.log_format)
    for word in misspelt(dotenv, os.environ):
        logger.warning("a setting's name is unknown", extra={"action": "setting_unknown", "setting": word})
    return asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    from agno_lark.app import Bridge
    from agno_lark.cli.serving import in_address, listen, serve_bridge, stop_on_signals
    from agno_lark.store import InstanceLock

    try:
        bound = listen(settings.bridge_host, settings.bridge_port)
    except SettingsError:
        with InstanceLock.hold(settings.feishu_state_db, "no address"):  # a daemon that runs says more than its port
            raise
    host, port = bound.getsockname()[:2]
    address = f"http://{in_address(host)}:{port}"
    bridge = Bridge(settings, address=address)
    with stop_on_signals() as stop:
        await serve_bridge(
            bridge,
            bound,
            stop,
            lambda: click.echo(f"agno-lark listens on {address} (/feishu/status, /readyz)", err=True),
        )
    if bridge.failure is not None:
        raise bridge.failure
    return 0 if stop.is_set() else 1
