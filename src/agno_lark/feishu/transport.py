"""One HTTP client and one TLS context for everything that goes to Feishu, with our proxy rules and no others."""

import functools
import ssl

import httpx

from agno_lark.feishu.aiohttp_transport import AiohttpTransport
from agno_lark.feishu.proxy import proxy_for

__all__ = ["USER_AGENT", "http_client", "tls_context"]

USER_AGENT = "agno-lark"


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Certificates from SSL_CERT_FILE or SSL_CERT_DIR, else the bundled ones; the same for HTTP and WebSocket."""
    return httpx.create_ssl_context()


def http_client(
    base_url: str,
    *,
    timeout_s: float,
    connect_timeout_s: float = 10.0,
    max_connections: int | None = 64,
    keepalive_s: float = 30.0,
) -> httpx.AsyncClient:
    """A pool of kept-alive HTTP/1.1 connections, to be closed by the caller. aiohttp carries it, but for proxies, whose
    kinds httpx knows better."""
    # httpx's own reading of the environment differs from what websockets does (feishu.proxy decides for both).
    proxy = proxy_for(base_url)
    timeout = httpx.Timeout(timeout_s, connect=min(connect_timeout_s, timeout_s), pool=None)
    headers = {"User-Agent": USER_AGENT}
    if proxy is None:
        carrier = AiohttpTransport(verify=tls_context(), max_connections=max_connections, keepalive_s=keepalive_s)
        return httpx.AsyncClient(
            base_url=base_url, transport=carrier, trust_env=False, timeout=timeout, headers=headers
        )
    limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=32, keepalive_expiry=keepalive_s)
    return httpx.AsyncClient(
        base_url=base_url,
        verify=tls_context(),
        trust_env=False,
        proxy=proxy,
        timeout=timeout,
        limits=limits,
        headers=headers,
    )
