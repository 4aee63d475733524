"""A very small Feishu for the wire's own tests: discovery, one WebSocket, and scripted answers to calls.

The sandbox is the judge of behaviour; this one only does what a single test tells it, down to what no sandbox would do.
"""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request as Handshake
from websockets.http11 import Response as HandshakeAnswer

from agno_lark.feishu.frames import load_frame_class


@dataclass(kw_only=True)
class Seen:
    """One HTTP request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(kw_only=True)
class Reply:
    """What to answer: `wait_s` first; `cut` closes the socket instead."""

    status: int = 200
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    wait_s: float = 0.0
    cut: bool = False


Answer = Callable[[Seen], Reply]


class HttpServer:
    """HTTP/1.1 with kept-alive connections on loopback; `answer` decides."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.seen: list[Seen] = []
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        seen = Seen(method=method, path=path, headers=headers, body=body)
        self.seen.append(seen)
        reply = self.answer(seen)
        await asyncio.sleep(reply.wait_s)
        if reply.cut:
            return False
        content = reply.content if reply.content is not None else json.dumps(reply.json).encode()
        sent = {"Content-Type": "application/json", "Content-Length": str(len(content)), **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Something", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + content)
        await writer.drain()
        return True


@dataclass(kw_only=True)
class Socket:
    """One bot's WebSocket, from the server's side."""

    ws: ServerConnection
    acks: "asyncio.Queue[Any]" = field(default_factory=asyncio.Queue)
    pings: "asyncio.Queue[Any]" = field(default_factory=asyncio.Queue)

    async def send_event(self, payload: bytes | dict[str, Any], message_id: str = "m1", parts: str = "1/0") -> None:
        """One frame; `parts`: how many there are, and which this is."""
        total, index = parts.split("/")
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        headers = {"type": "event", "message_id": message_id, "sum": total, "seq": index, "trace_id": "t"}
        await self.ws.send(frame(1, headers, data))

    async def ack(self, within_s: float = 3.0) -> tuple[int, Any, dict[str, str]]:
        """The next acknowledgement: code, decoded answer, headers."""
        got = await asyncio.wait_for(self.acks.get(), within_s)
        body = json.loads(got.payload)
        answer = json.loads(base64.b64decode(body["data"])) if "data" in body else None
        return body["code"], answer, {header.key: header.value for header in got.headers}


def frame(method: int, headers: dict[str, str], payload: bytes = b"") -> bytes:
    made = load_frame_class()(SeqID=1, LogID=2, service=33, method=method, payload=payload)
    for key, value in headers.items():
        header = made.headers.add()
        header.key, header.value = key, value
    data: bytes = made.SerializeToString()
    return data


def event(event_id: str = "e1", event_type: str = "im.message.receive_v1", **body: Any) -> dict[str, Any]:
    header = {
        "event_id": event_id,
        "event_type": event_type,
        "app_id": "cli_1",
        "tenant_key": "t",
        "create_time": "1780382407313",
    }
    return {"schema": "2.0", "header": header, "event": body}


class TinyFeishu:
    """Discovery over HTTP and a WebSocket beside it. `sockets` yields each connection as it comes.

    `pong` holds for connections made from then on: whether their pings are answered.
    """

    def __init__(self, **config: int) -> None:
        self.config = {"PingInterval": 5, "ReconnectInterval": 1, "ReconnectNonce": 0, "ReconnectCount": -1, **config}
        self.sockets: asyncio.Queue[Socket] = asyncio.Queue()
        self.discovery: Answer = self._discovery
        self.reject: Callable[[ServerConnection, Handshake], HandshakeAnswer | None] = lambda _ws, _request: None
        self.pong = True
        self.http = HttpServer(self._answer)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(load_frame_class)
        await self.http.__aenter__()
        self._ws: Server = await serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self._shake_hands,
            ping_interval=None,
        )
        self.ws_port: int = next(iter(self._ws.sockets)).getsockname()[1]
        self.url = self.http.url
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._ws.close()
        await self._ws.wait_closed()
        await self.http.__aexit__(*exc)

    async def socket(self, within_s: float = 5.0) -> Socket:
        return await asyncio.wait_for(self.sockets.get(), within_s)

    def address(self) -> str:
        return f"ws://127.0.0.1:{self.ws_port}/ws?device_id=d1&service_id=33&ticket=hush"

    # (both of these look anew each time: tests change the two attributes on the way)
    def _answer(self, seen: Seen) -> Reply:
        return self.discovery(seen)

    def _shake_hands(self, ws: ServerConnection, request: Handshake) -> HandshakeAnswer | None:
        return self.reject(ws, request)

    def _discovery(self, seen: Seen) -> Reply:
        return Reply(json={"code": 0, "msg": "", "data": {"URL": self.address(), "ClientConfig": self.config}})

    async def _serve(self, ws: ServerConnection) -> None:
        socket, pong = Socket(ws=ws), self.pong
        await self.sockets.put(socket)
        async for data in ws:
            got = load_frame_class()()
            got.ParseFromString(data)
            if got.method == 1:
                await socket.acks.put(got)
                continue
            await socket.pings.put(got)
            if pong:
                await ws.send(frame(0, {"type": "pong"}))


@contextlib.asynccontextmanager
async def running(work: Callable[[], Awaitable[None]]) -> AsyncIterator["asyncio.Task[None]"]:
    """`work()` in a task that is cancelled in the end."""

    async def run() -> None:
        await work()

    task = asyncio.create_task(run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
