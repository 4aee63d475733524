"""HTTP and WebSocket go through the same proxy, or around it (a real CONNECT proxy, a real SOCKS5 one)."""

import asyncio
import contextlib
import socket
from typing import Self

import pytest

from agno_lark.errors import ConnectionRefused
from agno_lark.feishu import CallRefused, Connection, ConnectionLimits, Event, OpenApi, RetryRules, proxy_for
from agno_lark.feishu import link as link_module
from agno_lark.feishu import transport as transport_module
from tests.feishu_server import HttpServer, Reply, TinyFeishu, event, running

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Proxy:
    """Speaks CONNECT and SOCKS5, plain HTTP forwarding too; every host leads to 127.0.0.1."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            if first == b"\x05":
                port = await self._socks(reader, writer)
                onward = b""
            else:
                head = first + await reader.readuntil(b"\r\n\r\n")
                method, target = head.split(b" ", 2)[:2]
                where = target.decode().removeprefix("http://").split("/", 1)
                self.asked.append(f"{method.decode()} {where[0]}")
                port = int(where[0].rpartition(":")[2])
                onward = b"" if method == b"CONNECT" else head.replace(target, f"/{where[1]}".encode(), 1)
                if method == b"CONNECT":
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            self._writers.append(far_writer)
            far_writer.write(onward)
            await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = socket.inet_ntoa(await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2))
        self.asked.append(f"SOCKS {host}:{port}")
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        return port

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()


@pytest.fixture(autouse=True)
def _no_proxies_but_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def pretend_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is never proxied: here it is taken for a host out there, so that the rest of the rules applies."""

    def far(url: str) -> str | None:
        return proxy_for(url.replace("127.0.0.1", "feishu.test"))

    monkeypatch.setattr(transport_module, "proxy_for", far)
    monkeypatch.setattr(link_module, "proxy_for", far)


async def accept(_event: Event) -> None:
    return None


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_discovery_and_socket_both_go_through_the_proxy(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_far_away(monkeypatch)
    async with Proxy() as proxy, TinyFeishu() as feishu:
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:{proxy.port}")
        async with running(Connection("cli_1", "s", feishu.url, accept, limits=ConnectionLimits(pace=0.02)).run):
            socket_ = await feishu.socket()
            await socket_.send_event(event())
            assert (await socket_.ack())[0] == 200
        ports = {int(asked.rpartition(":")[2]) for asked in proxy.asked}
        assert ports == {feishu.http.port, feishu.ws_port}
        if scheme == "http":
            assert any(asked.startswith("CONNECT") for asked in proxy.asked)


async def test_no_proxy_leads_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_far_away(monkeypatch)
    async with Proxy() as proxy, TinyFeishu() as feishu:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", ".test")
        async with running(Connection("cli_1", "s", feishu.url, accept).run):
            await feishu.socket()
        assert proxy.asked == []


async def test_loopback_is_never_proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Proxy() as proxy, TinyFeishu() as feishu:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        async with running(Connection("cli_1", "s", feishu.url, accept).run):
            await feishu.socket()
        assert proxy.asked == []


async def test_calls_go_through_the_proxy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_far_away(monkeypatch)
    token = Reply(json={"code": 0, "tenant_access_token": "t", "expire": 7200, "bot": {"open_id": "ou_bot"}})
    async with Proxy() as proxy, HttpServer(lambda _seen: token) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with OpenApi("cli_1", "s", server.url) as api:
            assert (await api.bot_info()).open_id == "ou_bot"
        assert len(server.seen) == 2
        assert all(asked.endswith(f":{server.port}") for asked in proxy.asked)
        assert proxy.asked


async def test_a_proxy_that_is_down_is_a_failure_that_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_far_away(monkeypatch)
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with OpenApi("cli_1", "s", "http://127.0.0.1:2", retries=RetryRules(first_wait_s=0.01)) as api:
        with pytest.raises(CallRefused) as caught:
            await api.bot_info()
    assert caught.value.retryable


async def test_a_socket_the_proxy_refuses_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_far_away(monkeypatch)
    async with TinyFeishu(ReconnectCount=1) as feishu:
        monkeypatch.setattr(link_module, "proxy_for", lambda _url: "socks5://127.0.0.1:1")
        with pytest.raises(ConnectionRefused, match=r"allows \(1\)"):
            await asyncio.wait_for(
                Connection("cli_1", "s", feishu.url, accept, limits=ConnectionLimits(pace=0.02)).run(), 5
            )
        assert len(feishu.http.seen) == 2
