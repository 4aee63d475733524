"""Where to connect: Feishu is asked for a WebSocket address, and says how to behave there (feishu.md section 1)."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from agno_lark.errors import ConnectionRefused, FeishuError
from agno_lark.feishu.jsontext import read_object

__all__ = [
    "ClientConfig",
    "Endpoint",
    "NotConnected",
    "discover",
    "read_config",
    "read_discovery",
    "read_rejection",
    "refusal",
]

FEISHU_URL, LARK_URL = "https://open.feishu.cn", "https://open.larksuite.com"
_PATH = "/callback/ws/endpoint"
_BUSY = {1, 1000040343}
TOO_MANY_CONNECTIONS = 1000040350


class NotConnected(FeishuError):
    """This attempt failed; a later one may not. The message says why, for the status page and the log."""

    retryable = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientConfig:
    """How Feishu wants the connection kept. `reconnect_count`: attempts in a row, -1 for ever."""

    ping_interval_s: int = 120
    reconnect_interval_s: int = 120
    reconnect_jitter_s: int = 30
    reconnect_count: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One address, good for one connection: its URL holds a ticket, so it is never logged."""

    url: str = field(repr=False)
    device_id: str
    service_id: int
    config: ClientConfig


async def discover(client: httpx.AsyncClient, app_id: str, app_secret: str, *, base_url: str) -> Endpoint:
    """Ask for an address. Raises `ConnectionRefused` (final) or `NotConnected` (try again)."""
    try:
        response = await client.post(
            _PATH, json={"AppID": app_id, "AppSecret": app_secret}, headers={"locale": "zh"}, follow_redirects=False
        )
    except httpx.HTTPError as error:
        raise NotConnected(f"{base_url} could not be reached ({type(error).__name__})") from error
    return read_discovery(response.status_code, response.content, base_url=base_url)


def read_discovery(http_status: int, content: bytes, *, base_url: str) -> Endpoint:
    """The answer as an address, or the error it stands for. Pure."""
    if http_status != 200:
        raise NotConnected(f"{base_url} answered HTTP {http_status}")
    try:
        answer = read_object(content)
    except ValueError as error:
        raise NotConnected(f"{base_url} did not answer as Feishu does") from error
    code = answer.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        raise NotConnected(f"{base_url} did not answer as Feishu does")
    if code != 0:
        raise refusal(code, _text(answer.get("msg")), base_url=base_url)
    data = answer.get("data")
    return _endpoint(data if isinstance(data, dict) else {})


def refusal(code: int, said: str, *, base_url: str) -> ConnectionRefused | NotConnected:
    """The error for a code other than 0, from discovery or a handshake. Pure.

    Too many connections is the one code we treat otherwise than the SDK: connections that a killed process left behind
    are counted for some minutes, so it heals by waiting, and a daemon that gave up on it would never come back.
    """
    if code in _BUSY:
        return NotConnected(f"Feishu is busy (code {code})")
    if code == TOO_MANY_CONNECTIONS:
        return NotConnected(
            f"this app has as many long connections as Feishu allows, 50 (code {code}): stop other programs that use "
            "the same FEISHU_APP_ID; it is tried again"
        )
    return ConnectionRefused(_final_sentence(code, said, base_url), code=code)


def _final_sentence(code: int, said: str, base_url: str) -> str:
    if code in {514, 1000040344}:
        return (
            f"Feishu does not accept the app's credentials (code {code}): check FEISHU_APP_ID and FEISHU_APP_SECRET "
            "against the developer console, 'Credentials'"
        )
    if code == 1000040351:
        if "larksuite" in base_url:
            hint = f"set LARK_API_BASE_URL={FEISHU_URL}"
        elif "feishu" in base_url:
            hint = f"set LARK_API_BASE_URL={LARK_URL}"
        else:
            hint = f"set LARK_API_BASE_URL to {FEISHU_URL} or {LARK_URL}"
        return f"the app belongs to the other of Feishu and Lark, not to {base_url} (code {code}): {hint}"
    if code == 403:
        return (
            f"Feishu forbids this app the long connection (code {code}): only a self-built app may hold one; choose it "
            "in the developer console under 'Events', and publish a version (FEISHU_APP_ID names the app)"
        )
    words = " ".join(said.split())[:200]
    return f"Feishu refused the long connection for good (code {code}: {words!r}); check FEISHU_APP_ID and its console"


def read_rejection(headers: Mapping[str, str], http_status: int, *, base_url: str) -> FeishuError:
    """The error a rejected handshake stands for. Pure.

    A handshake refused with 514 means its ticket, not the secret: discovery has just accepted that. Only 403 is final.
    """
    status, said = headers.get("handshake-status", ""), headers.get("handshake-msg", "")
    auth_code = headers.get("handshake-autherrcode", "")
    if status == "403":
        return refusal(403, said, base_url=base_url)
    if status == "514" and auth_code == str(TOO_MANY_CONNECTIONS):
        return refusal(TOO_MANY_CONNECTIONS, said, base_url=base_url)
    told = f", handshake-status {status[:20]}" if status else ""
    return NotConnected(f"the WebSocket handshake was rejected with HTTP {http_status}{told}")


def read_config(value: Any, otherwise: ClientConfig) -> ClientConfig:
    """A `ClientConfig` as Feishu sends it; a number out of range leaves what was (1..86400 s, count from -1)."""
    if not isinstance(value, Mapping):
        return otherwise
    return ClientConfig(
        ping_interval_s=_whole(value.get("PingInterval"), 1, 86400, otherwise.ping_interval_s),
        reconnect_interval_s=_whole(value.get("ReconnectInterval"), 1, 86400, otherwise.reconnect_interval_s),
        # 0 is taken as "no jitter", which the SDK would turn into its default.
        reconnect_jitter_s=_whole(value.get("ReconnectNonce"), 0, 86400, otherwise.reconnect_jitter_s),
        reconnect_count=_whole(value.get("ReconnectCount"), -1, 10000, otherwise.reconnect_count),
    )


def _endpoint(data: Mapping[str, Any]) -> Endpoint:
    url = _text(data.get("URL"))
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        host = parts.hostname or ""
    except ValueError as error:
        raise NotConnected("Feishu gave no usable WebSocket address") from error
    device_id, service_id = query.get("device_id", [""])[0], query.get("service_id", [""])[0]
    if not host or not device_id or not (service_id.isascii() and service_id.isdecimal() and len(service_id) < 10):
        raise NotConnected("Feishu's WebSocket address lacks its device_id or service_id")
    if parts.scheme != "wss" and not (parts.scheme == "ws" and _is_loopback(host)):
        raise NotConnected("Feishu's WebSocket address is not encrypted")
    return Endpoint(
        url=url,
        device_id=device_id,
        service_id=int(service_id),
        config=read_config(data.get("ClientConfig"), ClientConfig()),
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _whole(value: Any, least: int, most: int, otherwise: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    return otherwise


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
