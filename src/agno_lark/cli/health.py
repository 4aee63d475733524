"""`agno-lark health`: the program checks its own daemon."""

import os
import urllib.error
import urllib.request

import click

__all__ = ["check"]


def check(*, host: str | None, port: int | None) -> int:
    """0 when the daemon answers that it is ready, else 1 with a word on why."""
    host = host or os.environ.get("BRIDGE_HOST") or "127.0.0.1"
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - where to ask, not where to listen
    port = port or int(os.environ.get("BRIDGE_PORT") or 7788)
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy
        with opener.open(f"http://{host}:{port}/readyz", timeout=5):
            click.echo("ready")
            return 0
    except urllib.error.HTTPError as error:
        click.echo("not ready" if error.code == 503 else f"not a bridge: HTTP {error.code}", err=True)
    except (OSError, ValueError) as error:
        click.echo(f"no daemon answers on {host}:{port}: {error}", err=True)
    return 1
