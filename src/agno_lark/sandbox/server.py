"""The local Feishu as one ASGI app on one port: OpenAPI, discovery, the WebSocket, the control endpoint, the page."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from agno_lark.sandbox import api_access, api_cardkit, api_chats, api_media, api_messages, api_reactions
from agno_lark.sandbox.calls import Routes
from agno_lark.sandbox.connections import Connection, abort_transport
from agno_lark.sandbox.control import control_router
from agno_lark.sandbox.frames import load_frame_class
from agno_lark.sandbox.gateway import Gateway
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.page import page_router

__all__ = ["build_app", "openapi_routes", "run_sandbox", "serving"]

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 50


def openapi_routes() -> Routes:
    """Every OpenAPI path the sandbox answers."""
    routes = Routes()
    for module in (api_access, api_messages, api_reactions, api_chats, api_media, api_cardkit):
        module.register(routes)
    return routes


def build_app(feishu: LocalFeishu) -> ASGIApp:
    """The whole app around one local Feishu."""
    pages = FastAPI(title="agno-lark sandbox", docs_url=None, redoc_url=None, openapi_url=None)
    pages.include_router(control_router(feishu))
    pages.include_router(page_router(feishu.world))
    pages.add_api_websocket_route("/sandbox/ws", _long_connection(feishu))
    return Gateway(feishu, openapi_routes(), pages)


def _long_connection(feishu: LocalFeishu) -> Callable[[WebSocket], Coroutine[Any, Any, None]]:
    async def endpoint(websocket: WebSocket) -> None:
        """A bot's long connection; the ticket comes from discovery, at most 50 at once."""
        for fault in feishu.faults.take("WS", "/sandbox/ws"):
            if fault.latency_s:
                await asyncio.sleep(fault.latency_s)
            elif fault.reset:
                abort_transport(websocket.scope["state"]["raw_send"])
                return
            else:
                await _refuse(websocket, fault.code or fault.status or 500, fault.message)
                return
        ticket = websocket.query_params.get("device_id", "")
        service_id = websocket.query_params.get("service_id", "")
        if ticket not in feishu.tickets or not service_id.isdigit():
            await _refuse(websocket, 403, "unknown device_id; ask discovery for a new address")
            return
        if len(feishu.deliveries.connections) >= MAX_CONNECTIONS:
            await _refuse(websocket, 514, "the number of connections exceeded the limit", auth_code=1000040350)
            return
        feishu.tickets.discard(ticket)
        await websocket.accept()
        connection = Connection(
            websocket,
            connection_id=ticket,
            service_id=int(service_id),
            config=feishu.client_config.as_json,
            raw_send=websocket.scope["state"]["raw_send"],
        )
        feishu.deliveries.connected(connection)
        try:
            await connection.serve(feishu.deliveries.acked)
        finally:
            feishu.deliveries.disconnected(connection)

    return endpoint


async def _refuse(websocket: WebSocket, status: int, message: str, *, auth_code: int = 0) -> None:
    """A rejected handshake says why in headers (feishu.md section 1)."""
    headers = {
        "handshake-status": str(status),
        "handshake-msg": message,
        "handshake-autherrcode": str(auth_code),
    }
    await websocket.send_denial_response(Response(status_code=403, headers=headers))


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers (whoever runs us owns the signals) and without its tick of 0.1 s."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stop = asyncio.Event()

    async def main_loop(self) -> None:
        await self.stop.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(feishu: LocalFeishu, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve in this event loop until the block ends; yields `http://host:port`. Port 0 takes a free one.

    Ends within a second with clients still connected; the same local Feishu may be served again. Raises OSError where
    the port is taken.
    """
    await asyncio.to_thread(load_frame_class)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=512)
    listener.setblocking(False)
    # asyncio sets this only on sockets made with an explicit protocol; without it each answer waits 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bound: int = listener.getsockname()[1]
    config = uvicorn.Config(
        build_app(feishu),
        http="h11",
        ws="websockets-sansio",
        ws_max_size=4 * 1024 * 1024,
        ws_ping_interval=None,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="sandbox-server")
    try:
        while not server.started:
            if task.done():
                task.result()
                raise OSError(f"the sandbox did not start on {host}:{port}")
            await asyncio.sleep(0.005)
        yield f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"
    finally:
        feishu.deliveries.hang_up()
        feishu.world.close_listeners()
        server.should_exit = True
        server.stop.set()
        await asyncio.shield(task)
        listener.close()


async def run_sandbox(host: str, port: int, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve a new local Feishu until cancelled; `ready` is told its address. Raises OSError where the port is taken."""
    feishu = LocalFeishu.build()
    async with serving(feishu, host, port) as url:
        log.info("the sandbox serves", extra={"action": "sandbox_ready", "url": url})
        if ready is not None:
            ready(url)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            feishu.deliveries.close()
