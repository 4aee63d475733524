"""Which proxy, if any, a connection goes through: one answer for HTTP and WebSocket alike."""

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from agno_lark.errors import SettingsError

__all__ = ["proxy_for"]

_SECURE = {"https", "wss"}
_SCHEMES = {"http", "https", "socks5", "socks5h"}  # what httpx and websockets both speak


def proxy_for(url: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The proxy URL for `url`, or `None` for a direct connection.

    Reads HTTPS_PROXY (https, wss) or HTTP_PROXY (http, ws), then ALL_PROXY; small letters win, as everywhere. NO_PROXY
    holds hosts, domain suffixes (`.corp` and `corp` alike), `host:port` or `*`. Loopback is never proxied. Raises
    `SettingsError` for a proxy neither client can speak to; its message leaves out the proxy's user and password.
    """
    env = os.environ if environ is None else environ
    target = urlsplit(url)
    host = (target.hostname or "").rstrip(".").lower()
    secure = target.scheme.lower() in _SECURE
    port = target.port or (443 if secure else 80)
    if not host or _is_loopback(host) or _is_exempt(host, port, _read(env, "no_proxy")[1]):
        return None
    for name in ("https_proxy" if secure else "http_proxy", "all_proxy"):
        spelled, value = _read(env, name)
        if value:
            return _checked(spelled, value)
    return None


def _read(env: Mapping[str, str], name: str) -> tuple[str, str]:
    for spelled in (name, name.upper()):
        value = env.get(spelled, "").strip()
        if value:
            return spelled, value
    return name, ""


def _checked(name: str, value: str) -> str:
    if "://" not in value:
        value = f"http://{value}"
    scheme, rest = value.split("://", 1)
    scheme = scheme.lower()
    if scheme == "socks":
        scheme = "socks5"
    proxy = f"{scheme}://{rest}"
    try:
        parts = urlsplit(proxy)
        usable = scheme in _SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError([f"{name}: expected a proxy like http://host:port or socks5://host:port"])
    return proxy


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_exempt(host: str, port: int, no_proxy: str) -> bool:
    return any(_matches(entry, host, port) for entry in no_proxy.replace(",", " ").lower().split())


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    try:
        # `//` makes it a network location, so that `host:port` and `[::1]:port` are read as in a URL.
        parts = urlsplit(f"//{entry}" if entry.count(":") < 2 or entry.startswith("[") else f"//[{entry}]")
        name, wanted_port = (parts.hostname or "").strip("."), parts.port
    except ValueError:
        return False
    name = name.removeprefix("*.")
    if wanted_port is not None and wanted_port != port:
        return False
    return bool(name) and (host == name or host.endswith(f".{name}"))
