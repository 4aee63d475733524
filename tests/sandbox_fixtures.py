"""A small bot for the sandbox's own tests: OpenAPI calls over httpx, frames over websockets, nothing of the bridge."""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import websockets

from agno_lark.sandbox.frames import load_frame_class
from agno_lark.testing import FeishuSandbox

type Json = dict[str, Any]
type Reply = Callable[[Json], tuple[int, Json | None]]


class Line:
    """A long connection. `events` is what arrived; `reply` decides each ack; None as its answer acks nothing."""

    def __init__(
        self, socket: websockets.ClientConnection, reply: Callable[[Json], tuple[int, Json | None] | None]
    ) -> None:
        self.socket = socket
        self.reply = reply
        self.events: list[Json] = []
        self.frames: list[Any] = []
        self.pongs: list[bytes] = []
        self._parts: dict[str, dict[int, bytes]] = {}

    async def run(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for data in self.socket:
                frame = load_frame_class()()
                frame.ParseFromString(data)
                await self._take(frame)

    async def _take(self, frame: Any) -> None:
        headers = {h.key: h.value for h in frame.headers}
        if frame.method == 0:
            self.pongs.append(frame.payload)
            return
        self.frames.append(frame)
        parts = self._parts.setdefault(headers["message_id"], {})
        parts[int(headers["seq"])] = frame.payload
        if len(parts) < int(headers["sum"]):
            return
        event = json.loads(b"".join(parts[n] for n in sorted(parts)))
        self.events.append(event)
        answer = self.reply(event)
        if answer is None:
            return
        code, data = answer
        body: Json = {"code": code}
        if data is not None:
            body["data"] = base64.b64encode(json.dumps(data).encode()).decode()
        frame.payload = json.dumps(body).encode()
        await self.socket.send(frame.SerializeToString())

    async def ping(self) -> None:
        frame = load_frame_class()()
        frame.SeqID = frame.LogID = 0
        frame.service, frame.method = 1, 0
        header = frame.headers.add()
        header.key, header.value = "type", "ping"
        await self.socket.send(frame.SerializeToString())


class Bot:
    """Calls with the tenant token; `call` returns (HTTP status, body)."""

    def __init__(self, feishu: FeishuSandbox, http: httpx.AsyncClient) -> None:
        self.feishu = feishu
        self.http = http
        self.token = ""

    async def log_in(self) -> str:
        body = {"app_id": self.feishu.app_id, "app_secret": self.feishu.app_secret}
        answer = await self.http.post("/open-apis/auth/v3/tenant_access_token/internal", json=body)
        self.token = answer.json()["tenant_access_token"]
        return self.token

    async def raw(self, method: str, path: str, body: Json | None = None, **more: Any) -> httpx.Response:
        if not self.token:
            await self.log_in()
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        return await self.http.request(method, "/open-apis" + path, json=body, headers=headers, **more)

    async def call(self, method: str, path: str, body: Json | None = None, **more: Any) -> tuple[int, Json]:
        answer = await self.raw(method, path, body, **more)
        return answer.status_code, answer.json()

    async def ok(self, method: str, path: str, body: Json | None = None, **more: Any) -> Json:
        status, answer = await self.call(method, path, body, **more)
        assert (status, answer["code"]) == (200, 0), answer
        data: Json = answer.get("data", answer)
        return data

    async def code(self, method: str, path: str, body: Json | None = None, **more: Any) -> int:
        _, answer = await self.call(method, path, body, **more)
        code: int = answer["code"]
        return code

    async def send(self, chat: str, msg_type: str = "text", content: Json | None = None, **more: Any) -> Json:
        receive_id = self.feishu.world.chat(chat).chat_id
        body = {
            "receive_id": receive_id,
            "msg_type": msg_type,
            "content": json.dumps(content or {"text": "hi"}),
            **more,
        }
        return await self.ok("POST", "/im/v1/messages?receive_id_type=chat_id", body)

    async def new_card(self, card: Json) -> str:
        data = await self.ok("POST", "/cardkit/v1/cards", {"type": "card_json", "data": json.dumps(card)})
        card_id: str = data["card_id"]
        return card_id

    async def show_card(self, card: Json, chat: str = "Team") -> tuple[str, str]:
        """(card_id, message_id) of a new entity that was sent."""
        card_id = await self.new_card(card)
        message = await self.send(chat, "interactive", {"type": "card", "data": {"card_id": card_id}})
        return card_id, message["message_id"]

    async def discover(self) -> Json:
        body = {"AppID": self.feishu.app_id, "AppSecret": self.feishu.app_secret}
        answer: Json = (await self.http.post("/callback/ws/endpoint", json=body, headers={"locale": "zh"})).json()
        return answer

    @contextlib.asynccontextmanager
    async def line(self, reply: Callable[[Json], tuple[int, Json | None] | None] | None = None) -> AsyncIterator[Line]:
        """An open long connection; by default every event is acked 200 with nothing."""
        url = (await self.discover())["data"]["URL"]
        async with websockets.connect(url, proxy=None) as socket:
            line = Line(socket, reply or (lambda event: (200, None)))
            task = asyncio.create_task(line.run())
            try:
                yield line
            finally:
                await socket.close()
                await task


class StillSeconds:
    """A clock whose seconds stand still, so that rates do not depend on how quick the machine is."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return 1000.0


@contextlib.asynccontextmanager
async def sandbox_and_bot(**options: Any) -> AsyncIterator[tuple[FeishuSandbox, Bot]]:
    async with (
        FeishuSandbox(**options) as feishu,
        httpx.AsyncClient(base_url=feishu.url, trust_env=False, verify=False) as http,
    ):
        yield feishu, Bot(feishu, http)


async def until(holds: Callable[[], Any], within_s: float = 3.0) -> None:
    """Wait for something true; a bounded wait, not a sleep."""
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.005)


def stream_card(*elements: Json, streaming: bool = True) -> Json:
    shown = list(elements) or [{"tag": "markdown", "content": "…", "element_id": "answer"}]
    return {"schema": "2.0", "config": {"streaming_mode": streaming, "update_multi": True}, "body": {"elements": shown}}
