"""The HTTP edge of the OpenAPI: read a request, let faults happen, check token and rates, call the handler, answer.

It is plain ASGI in front of the FastAPI app (page, control, WebSocket): a thousand calls a second pass here, and a
fault must be able to break the connection itself.
"""

import asyncio
import ipaddress
import logging
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agno_lark.sandbox.calls import Answer, Call, Routes, Upload, read_json
from agno_lark.sandbox.connections import abort_transport
from agno_lark.sandbox.events import json_bytes
from agno_lark.sandbox.faults import HttpFault
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.refusals import Refused

__all__ = ["Gateway"]

log = logging.getLogger(__name__)

PLATFORM = ("/open-apis/", "/callback/")


class Gateway:
    """ASGI: the platform's own paths here, all others to `pages`."""

    def __init__(self, feishu: LocalFeishu, routes: Routes, pages: ASGIApp) -> None:
        self._feishu = feishu
        self._routes = routes
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PLATFORM):
            await self._platform(scope, receive, send)
        else:
            if scope["type"] == "http" and not _is_local_name(scope):
                await _respond(send, Answer(raw=b"open this page by its IP address or as localhost", status=403))
                return
            if scope["type"] == "websocket":
                scope["state"] = {**scope.get("state", {}), "raw_send": send}
            await self._pages(scope, receive, send)

    async def _platform(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = await _body(receive)
        if raw is None:
            return  # nobody waits for an answer, and half a body asks for nothing
        method, path = scope["method"], scope["path"]
        answer: Answer | None = None
        for fault in self._feishu.faults.take(method, path):
            if fault.latency_s:
                await asyncio.sleep(fault.latency_s)
                continue
            if fault.after_effect:
                await self._carry_out(scope, raw)
            if fault.reset:
                abort_transport(send)
                return
            answer = _faulty(fault)
        if answer is None:
            answer = await self._carry_out(scope, raw)
        await _respond(send, answer)

    async def _carry_out(self, scope: Scope, raw: bytes) -> Answer:
        """The call's effect and its answer."""
        method, path = scope["method"], scope["path"]
        feishu = self._feishu
        log_id = feishu.world.new_id("")
        found = self._routes.find(method, path)
        if found is None:
            feishu.world.counts["unknown"] += 1
            return Answer(raw=b"404 page not found", status=404, headers={"content-type": "text/plain"})
        route, params = found
        feishu.world.counts[route.api] += 1
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            if not route.public:
                feishu.tokens.check(headers.get("authorization"))
                feishu.within_api_rate(route.api)
            is_form = headers.get("content-type", "").startswith("multipart/form-data")
            call = Call(
                method=method,
                path=path,
                params=params,
                query=parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True),
                body={} if is_form else read_json(raw),
                form=await _form(scope, raw) if is_form else {},
                base_url=headers.get("host", ""),
            )
            return route.handler(feishu, call)
        except Refused as refused:
            feishu.world.counts[f"{route.api}!{refused.code}"] += 1
            body = {"code": refused.code, "msg": refused.message, "error": {"log_id": log_id}}
            return Answer(body=body, status=refused.http, headers=refused.headers)
        except Exception:
            log.exception("the sandbox itself failed", extra={"action": "sandbox_error", "api": route.api})
            body = {"code": 2200, "msg": "internal error (a bug of the sandbox)", "error": {"log_id": log_id}}
            return Answer(body=body, status=500)


def _is_local_name(scope: Scope) -> bool:
    """Whether Host is an address or localhost: a name of somebody's own could point here from a page elsewhere."""
    host = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"host"), "")
    name = host.removeprefix("[").split("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _faulty(fault: HttpFault) -> Answer:
    status = fault.status or 500
    if fault.body is not None:
        return Answer(raw=fault.body.encode(), status=status, headers={"content-type": "text/plain", **fault.headers})
    if fault.code is None:
        return Answer(raw=b"", status=status, headers=fault.headers)
    return Answer(body={"code": fault.code, "msg": fault.message}, status=status, headers=fault.headers)


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None where the client went away before its end."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _form(scope: Scope, raw: bytes) -> dict[str, str | Upload]:
    async def replay() -> Message:
        return {"type": "http.request", "body": raw, "more_body": False}

    fields: dict[str, str | Upload] = {}
    async with Request(scope, replay).form(max_part_size=64 * 1024 * 1024) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                data = await value.read()
                fields[name] = Upload(name=value.filename or "", content_type=value.content_type or "", data=data)
            else:
                fields[name] = value
    return fields


async def _respond(send: Send, answer: Answer) -> None:
    if answer.body is not None:
        raw = json_bytes(answer.body)
        headers: dict[str, Any] = {"content-type": "application/json; charset=utf-8", **answer.headers}
    else:
        raw, headers = answer.raw, dict(answer.headers)
    headers["content-length"] = str(len(raw))
    encoded = [(name.lower().encode("latin-1"), str(value).encode("utf-8")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": raw})
