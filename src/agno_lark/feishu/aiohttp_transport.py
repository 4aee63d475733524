"""httpx's requests carried by aiohttp, which takes an eighth of the CPU that httpcore does (tests/bench/turns.py).

Ours, and not the package that does the same, because of one thing that must be right: whether a request may have
reached the other side. That package reports a connection lost after sending as one that was never made, and callers
then send again what may have been carried out.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator

import aiohttp
import httpx

__all__ = ["AiohttpTransport"]


class AiohttpTransport(httpx.AsyncBaseTransport):
    """For one event loop. `max_connections` None: no cap. `keepalive_s`: idle connections are dropped after that.

    Raises as httpx's own transport does: `ConnectError` and `ConnectTimeout` mean that nothing was sent; `ReadError`,
    `ReadTimeout` and `RemoteProtocolError` that it may have been. Nothing is sent twice here.
    """

    def __init__(self, *, verify: ssl.SSLContext, max_connections: int | None, keepalive_s: float) -> None:
        self._verify = verify
        self._max_connections = max_connections
        self._keepalive_s = keepalive_s
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        limits = request.extensions.get("timeout", {})
        body = await request.aread()
        with _as_httpx(request):
            response = await self._opened().request(
                request.method,
                str(request.url),
                headers=request.headers.multi_items(),
                data=body or None,
                skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(sock_connect=limits.get("connect"), sock_read=limits.get("read")),
            )
        return httpx.Response(
            response.status,
            headers=response.raw_headers,
            stream=_Body(response, request),
            request=request,
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": (response.reason or "").encode()},
        )

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._verify, limit=self._max_connections or 0, keepalive_timeout=self._keepalive_s
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,  # httpx does that
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
            # aiohttp repeats a GET, PUT or DELETE by itself when a kept-alive connection breaks; then nobody would know
            # that the first one may have been carried out. (No public switch; a test holds this one.)
            self._session._retry_connection = False
        return self._session


class _Body(httpx.AsyncByteStream):
    """The answer's bytes, as they arrive."""

    def __init__(self, response: aiohttp.ClientResponse, request: httpx.Request) -> None:
        self._response = response
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx(self._request):
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()  # somebody stopped reading: the connection is of no more use


@contextlib.contextmanager
def _as_httpx(request: httpx.Request) -> Iterator[None]:
    """aiohttp's errors as httpx's, by whether the request may have gone out."""
    try:
        yield
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise httpx.UnsupportedProtocol(str(error), request=request) from error
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx.ConnectTimeout(str(error), request=request) from error
    except aiohttp.ClientConnectorError as error:  # no name, no route, refused, no TLS
        raise httpx.ConnectError(str(error), request=request) from error
    except (TimeoutError, aiohttp.ServerTimeoutError) as error:
        raise httpx.ReadTimeout(str(error), request=request) from error
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:  # lost once it was made
        raise httpx.ReadError(str(error), request=request) from error
    except (aiohttp.ClientError, ValueError) as error:
        raise httpx.RemoteProtocolError(str(error), request=request) from error
