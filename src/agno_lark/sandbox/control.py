"""The control endpoint: all that `agno_lark.testing.FeishuSandbox` can do, as JSON over loopback HTTP.

`POST /sandbox/control/{verb}` with the verb's fields (control_asks.py); `GET /sandbox/state`, `/sandbox/screen`,
`/sandbox/message/{id}`. Errors are `{"error": "..."}`: 400 wrong fields, 403 not from this machine, 404 unknown.
"""

import dataclasses
import ipaddress
import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from agno_lark.sandbox.control_asks import VERBS
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Json
from agno_lark.sandbox.refusals import UnknownThing

__all__ = ["control_router"]


def control_router(feishu: LocalFeishu) -> APIRouter:
    """Routes under /sandbox/."""
    router = APIRouter()

    @router.post("/sandbox/control/{verb}", response_model=None)
    async def control(verb: str, request: Request) -> JSONResponse:
        refused = _stranger(request)
        if refused is not None:
            return refused
        ask = VERBS.get(verb)
        if ask is None:
            return _error(404, f"no verb {verb!r}; there are {', '.join(sorted(VERBS))}")
        # Only a page of this origin may send this type unasked: other sites' scripts stay out.
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _error(415, "send JSON with Content-Type: application/json")
        try:
            body = json.loads(await request.body() or b"{}")
            return JSONResponse({"ok": True, **await ask.model_validate(body).run(feishu)})
        except ValidationError as error:
            wrong = "; ".join(_field(problem) for problem in error.errors())
            return _error(400, f"{verb}: {wrong}. It takes: {ask.fields_told()}")
        except UnknownThing as error:
            return _error(404, str(error))
        except ValueError:
            return _error(400, f"{verb}: the body is not JSON")

    @router.get("/sandbox/state", response_model=None)
    async def state(request: Request) -> JSONResponse:
        return _stranger(request) or JSONResponse(_state(feishu))

    @router.get("/sandbox/screen", response_model=None)
    async def screen(request: Request, chat_id: str, thread_id: str | None = None) -> JSONResponse:
        refused = _stranger(request)
        if refused is not None:
            return refused
        try:
            shown = feishu.world.screen(chat_id, thread_id)
        except UnknownThing as error:
            return _error(404, str(error))
        return JSONResponse({"screen": [dataclasses.asdict(one) for one in shown]})

    @router.get("/sandbox/message/{message_id}", response_model=None)
    async def message(request: Request, message_id: str) -> JSONResponse:
        refused = _stranger(request)
        if refused is not None:
            return refused
        try:
            return JSONResponse(_message(feishu, message_id))
        except UnknownThing as error:
            return _error(404, str(error))

    return router


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)


def _stranger(request: Request) -> JSONResponse | None:
    """Whoever is not on this machine is refused."""
    host = request.client.host if request.client else ""
    try:
        if ipaddress.ip_address(host).is_loopback:
            return None
    except ValueError:
        pass
    return _error(403, "the control endpoint answers this machine only")


def _field(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "body"
    return f"{where}: {problem['msg']}"


def _state(feishu: LocalFeishu) -> Json:
    """Everything but what was said: who is there, what is connected, what was counted."""
    world, deliveries = feishu.world, feishu.deliveries
    return {
        "app": {
            "app_id": world.app.app_id,
            "bot_open_id": world.app.bot_open_id,
            "bot_name": world.app.bot_name,
            "tenant_key": world.app.tenant_key,
        },
        "now_ms": world.clock.now_ms(),
        "people": [dataclasses.asdict(person) for person in world.people],
        "chats": [
            {
                "chat_id": chat.chat_id,
                "name": chat.name,
                "mode": chat.mode,
                "members": chat.members,
                "threads": chat.threads,
                "messages": len(chat.timeline),
            }
            for chat in world.chats.values()
        ],
        "connections": len(deliveries.connections),
        "counts": dict(world.counts),
        "deliveries": dict(deliveries.counts),
        "faults": feishu.faults.as_json(),
    }


def _message(feishu: LocalFeishu, message_id: str) -> Json:
    """One message with all its earlier contents, and its card's edits."""
    world = feishu.world
    message = world.message(message_id)
    card = world.cards.get(message.card_id or "")
    return {
        "shown": dataclasses.asdict(world.show(message)),
        "msg_type": message.msg_type,
        "content": message.content,
        "sent": message.sent,
        "root_id": message.root_id,
        "parent_id": message.parent_id,
        "thread_id": message.thread_id,
        "history": [dataclasses.asdict(earlier) for earlier in message.history],
        "card": None
        if card is None
        else {
            "card_id": card.card_id,
            "sequence": card.sequence,
            "streaming": world.is_streaming(card),
            "counts": dict(card.counts),
            "history": [dataclasses.asdict(edit) for edit in card.history],
        },
    }
