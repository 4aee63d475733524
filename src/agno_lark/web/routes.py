"""`GET /feishu/status`, `/healthz`, `/readyz`."""

from typing import Any

from fastapi import APIRouter, Response

from agno_lark.app import Bridge
from agno_lark.errors import StoreError

__all__ = ["bridge_router"]


def bridge_router(bridge: Bridge) -> APIRouter:
    """The three routes. None of them tells a secret or anybody's words, so none asks for a token."""
    router = APIRouter(tags=["Feishu"])

    @router.get("/feishu/status")
    async def status(response: Response, message_id: str = "") -> dict[str, Any]:
        """How the bridge is doing: connection, queue, counts. `?message_id=om_…` also tells where that message is."""
        told = await bridge.status()
        if message_id:
            try:
                told["message"] = await bridge.whereabouts(message_id)
            except StoreError as error:
                response.status_code = 503
                told["message"] = {"error": str(error)}
        return told

    @router.get("/healthz")
    @router.head("/healthz", include_in_schema=False)
    async def healthz(response: Response) -> dict[str, str]:
        """200 while the process works; 503 once it cannot go on and should be restarted."""
        if bridge.failure is not None:
            response.status_code = 503
            return {"status": "failed", "why": str(bridge.failure)}
        return {"status": "ok"}

    @router.get("/readyz")
    @router.head("/readyz", include_in_schema=False)
    async def readyz(response: Response) -> dict[str, str]:
        """200 while events arrive and can be stored; otherwise 503."""
        why = bridge.not_ready_why()
        if why is not None:
            response.status_code = 503
            return {"status": "not ready", "why": why}
        return {"status": "ready"}

    return router
