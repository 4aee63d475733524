"""`agno-lark`: the daemon."""

import asyncio

import click

from agno_lark.settings import Settings, load_settings

__all__ = ["serve"]


def serve(*, host: str | None, port: int | None, env_file: str) -> int:
    """Run until a signal. Returns the exit code. Raises errors of the tree, which `main` tells."""
    settings = load_settings(env_file=env_file)
    overrides = {name: value for name, value in (("bridge_host", host), ("bridge_port", port)) if value is not None}
    settings = settings.model_copy(update=overrides)
    from agno_lark.observe import configure_logs

    configure_logs(settings.log_level, settings.log_format)
    return asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    from agno_lark.app import Bridge
    from agno_lark.cli.serving import listen, serve_bridge, stop_on_signals

    bound = listen(settings.bridge_host, settings.bridge_port)
    address = "http://{}:{}".format(*bound.getsockname()[:2])
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
