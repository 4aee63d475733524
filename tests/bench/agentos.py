"""An AgentOS that answers at once and notes when each run arrived: a process of the benchmark.

    python tests/bench/agentos.py stub|demo

`stub` speaks just enough of AgentOS (agentos.md, "Runs") on a bare asyncio server: it costs next to nothing, so what is
measured is the bridge. `demo` is the product's offline AgentOS, agno itself, with `instant` answers. Both answer
`GET /bench/arrivals` with `{message: monotonic seconds}`, which on one machine is everybody's clock, and forget them.
A message that begins with `stream` gets 600 deltas in 3 s from the stub. Prints `ready URL`; ends with standard input.
"""

import asyncio
import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

ARRIVALS = "/bench/arrivals"
AGENT_ID = "demo-agent"
DELTAS, DELTA_S = 600, 0.005
ARRIVED_S: dict[str, float] = {}


def take_arrivals() -> bytes:
    told = json.dumps(ARRIVED_S).encode()
    ARRIVED_S.clear()
    return told


async def serve_stub() -> None:
    server = await asyncio.start_server(_connection, "127.0.0.1", 0, backlog=512, limit=2**20)
    tell_ready(server.sockets[0].getsockname()[1])
    await until_input_ends()
    server.close()  # not waited for: clients keep their connections open


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            arrived_s = time.monotonic()
            lines = head.decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ", 2)
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            if method == "POST" and path.endswith("/runs"):
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                ARRIVED_S[form["message"]] = arrived_s
                await _run(writer, form)
            elif path == ARRIVALS:
                _answer(writer, 200, take_arrivals())
            elif path == "/config":
                config = {"agents": [{"id": AGENT_ID, "name": "Bench"}], "queue": {"durable": False}}
                _answer(writer, 200, json.dumps(config).encode())
            else:
                _answer(writer, 404, b"{}")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _answer(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def _run(writer: asyncio.StreamWriter, form: dict[str, str]) -> None:
    message = form["message"]
    facts = {"run_id": form.get("run_id") or uuid.uuid4().hex, "session_id": form.get("session_id", "")}
    is_long = message.startswith("stream")
    deltas = [f"word{number} " for number in range(DELTAS)] if is_long else [f"ok: {message}"]
    events = [("RunStarted", {}), *(("RunContent", {"content": delta}) for delta in deltas)]
    events.append(("RunCompleted", {"content": "".join(deltas)}))
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    pieces: list[bytes] = []
    for index, (name, more) in enumerate(events):
        data = json.dumps({"event": name, **facts, **more, "event_index": index, "created_at": int(time.time())})
        frame = f"event: {name}\ndata: {data}\n\n".encode()
        pieces.append(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
        if is_long:
            writer.write(pieces.pop())
            await writer.drain()
            await asyncio.sleep(DELTA_S)
    writer.write(b"".join(pieces) + b"0\r\n\r\n")


async def serve_demo() -> None:
    """The demo AgentOS with a recorder in front of it (no server between: plain ASGI)."""
    import uvicorn

    from agno_lark.sandbox.demo_os import DemoSettings, build_app

    app = build_app(DemoSettings(db_path=":memory:", instant=True))

    async def recording(scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if path == ARRIVALS:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": take_arrivals()})
        elif scope["type"] == "http" and scope["method"] == "POST" and path.endswith("/runs"):
            arrived_s, body = time.monotonic(), bytearray()

            async def noting() -> Any:
                event = await receive()
                body.extend(event.get("body", b""))
                if event["type"] == "http.request" and not event.get("more_body"):
                    ARRIVED_S[parse_qs(body.decode())["message"][0]] = arrived_s
                return event

            await app(scope, noting, send)
        else:
            await app(scope, receive, send)

    config = uvicorn.Config(recording, port=0, log_level="warning", access_log=False, lifespan="off", backlog=512)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    tell_ready(server.servers[0].sockets[0].getsockname()[1])
    await until_input_ends()
    server.should_exit = True
    await serving


def tell_ready(port: int) -> None:
    sys.stdout.write(f"ready http://127.0.0.1:{port}\n")
    sys.stdout.flush()


async def until_input_ends() -> None:
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    asyncio.run(serve_demo() if sys.argv[1] == "demo" else serve_stub())
