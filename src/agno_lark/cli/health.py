"""`agno-lark health`: the program checks its own daemon."""

import http.client
import json
import os
import urllib.error
import urllib.request

import click

from agno_lark.settings import given_dotenv

__all__ = ["check"]


def check(*, host: str | None, port: int | None, env_file: str) -> int:
    """0 when the daemon answers that it is ready, else 1 with a word on why."""
    given = {**given_dotenv(env_file), **os.environ}
    host = host or given.get("BRIDGE_HOST") or "127.0.0.1"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - where to ask, not where to listen
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    address = f"{host}:{port or given.get('BRIDGE_PORT') or 7788}"
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy
        with opener.open(f"http://{address}/readyz", timeout=5):
            click.echo("ready")
            return 0
    except urllib.error.HTTPError as error:
        click.echo(f"not ready{_why(error)}" if error.code == 503 else f"not a bridge: HTTP {error.code}", err=True)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        click.echo(f"no daemon answers on {address}: {getattr(reason, 'strerror', None) or reason}", err=True)
    return 1


def _why(refusal: urllib.error.HTTPError) -> str:
    """The bridge's own word for it, where it was a bridge that answered."""
    try:
        return f": {json.load(refusal)['why']}"
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return ""
