"""Serving routes with uvicorn until a signal: the first drains, the second forces."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import click
import uvicorn
from fastapi import FastAPI

from agno_lark.app import Bridge
from agno_lark.errors import SettingsError
from agno_lark.web import bridge_router

__all__ = ["free_or", "in_address", "listen", "serve_bridge", "stop_on_signals", "told_to_listen"]


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, before anything else is started. Raises `SettingsError` when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on for what it accepts: 40 ms an answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        name = "BRIDGE_HOST" if isinstance(error, socket.gaierror) else "BRIDGE_PORT"
        raise SettingsError(
            [f"{name}: cannot listen on {host}:{port} ({error.strerror}); choose another (--host, --port)"]
        ) from error
    return bound


def in_address(host: str) -> str:
    """A host as an address holds it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def free_or(port: int) -> int:
    """`port` where nobody listens on it, else 0 (any free one)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return 0 if probe.connect_ex(("127.0.0.1", port)) == 0 else port


def told_to_listen(serving: asyncio.Task[None], host: str, port: int) -> None:
    """Raise what ended a sandbox that should serve; a port that is taken as a `SettingsError`."""
    try:
        serving.result()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SettingsError([f"--port: cannot listen on {host}:{port} ({reason}); choose another"]) from error


@contextlib.contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets; a second signal ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            click.echo("agno-lark: forced to stop; what was under way goes on at the next start", err=True)
            sys.stderr.flush()
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def serve_bridge(bridge: Bridge, bound: socket.socket, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Run a bridge, with its routes on `bound`, until `stop` or until the bridge cannot go on; then drain it.

    The routes answer meanwhile: they are how an operator sees what it waits for.
    """
    app = FastAPI(title="agno-lark", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(bridge_router(bridge))
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=2, ws="none")
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]  # ours are above
    async with bridge.running():
        serving = asyncio.create_task(server.serve(sockets=[bound]), name="web")
        ready()
        waits = [asyncio.create_task(event.wait()) for event in (stop, bridge.ended)]
        await asyncio.wait({serving, *waits}, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if under_way := bridge.turns_under_way():
            click.echo(
                f"agno-lark stops: it waits up to {bridge.settings.bridge_drain_timeout:g} s for {under_way} "
                f"turn{'s' * (under_way > 1)} under way; stop it again to end at once",
                err=True,
            )
    server.should_exit = True
    await serving
