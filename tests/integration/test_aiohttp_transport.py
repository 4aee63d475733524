"""The transport tells the truth about what may have been sent, and streams as it arrives."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from agno_lark.feishu.aiohttp_transport import AiohttpTransport

type Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def talking_to(answer: Answer) -> AsyncIterator[httpx.AsyncClient]:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = AiohttpTransport(verify=ssl.create_default_context(), max_connections=8, keepalive_s=5)
    timeout = httpx.Timeout(0.3)
    async with (
        server,
        httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=timeout) as client,
    ):
        yield client


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def test_a_connection_lost_after_the_request_is_no_connection_never_made() -> None:
    seen: list[bytes] = []

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head(reader))

    async with talking_to(cut) as client:
        for method in ("POST", "PUT", "GET"):
            with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
                await client.request(method, "/")
    assert len(seen) == 3, "nothing is sent twice"


async def test_a_kept_connection_that_breaks_is_not_tried_again_behind_our_back() -> None:
    seen: list[bytes] = []

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        seen.append(await head(reader))

    async with talking_to(answer_once) as client:
        assert (await client.put("/")).text == "ok"
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await client.put("/")
    assert len(seen) == 2


async def test_nobody_listening_and_no_such_name_mean_that_nothing_was_sent() -> None:
    transport = AiohttpTransport(verify=ssl.create_default_context(), max_connections=None, keepalive_s=5)
    async with httpx.AsyncClient(transport=transport) as client:
        for url in ("http://127.0.0.1:9/", "http://name.invalid/"):
            with pytest.raises(httpx.ConnectError):
                await client.post(url)
        with pytest.raises(httpx.UnsupportedProtocol):
            await client.get("ftp://127.0.0.1/")


async def test_silence_is_a_read_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        await asyncio.sleep(1)

    async with talking_to(silent) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/")


async def test_junk_is_a_protocol_error() -> None:
    async def junk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"this is no HTTP\r\n\r\n")

    async with talking_to(junk) as client:
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await client.get("/")


async def test_a_body_arrives_as_it_is_sent_and_a_cut_in_it_is_seen() -> None:
    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"one", b"two"):
            writer.write(b"3\r\n" + piece + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with talking_to(stream) as client, client.stream("GET", "/") as response:
        chunks = response.aiter_raw()
        assert [await anext(chunks), await anext(chunks)] == [b"one", b"two"]
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await anext(chunks)


async def test_compressed_answers_forms_and_headers_are_httpx_s_own() -> None:
    import gzip

    got: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = await head(reader)
        length = int(lines.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        got.extend([lines, await reader.readexactly(length)])
        body = gzip.compress("哈哈".encode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-A: 1\r\nX-A: 2\r\n")
        writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async with talking_to(answer) as client:
        response = await client.post("/a?b=c%20d", data={"x": "y"}, files={"f": ("n.txt", b"data")})
    assert response.text == "哈哈"
    assert response.headers.get_list("x-a") == ["1", "2"]
    assert got[0].startswith(b"POST /a?b=c%20d HTTP/1.1\r\n")
    assert got[0].lower().count(b"content-type: multipart/form-data") == 1
    assert got[0].lower().count(b"content-length") == 1
    assert b'name="f"; filename="n.txt"' in got[1]


async def test_leaving_a_stream_half_way_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await reader.read()
        closed.set()

    async with talking_to(endless) as client:
        async with client.stream("GET", "/") as response:
            assert await anext(response.aiter_raw()) == b"a"
        await asyncio.wait_for(closed.wait(), 2)
