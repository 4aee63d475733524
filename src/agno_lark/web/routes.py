"""`GET /feishu/status`, `/healthz`, `/readyz`."""

import logging
from typing import Any

from fastapi import APIRouter, Response

from agno_lark.app import Bridge
from agno_lark.errors import StoreError

__all__ = ["bridge_router"]

logger = logging.getLogger(__name__)


def bridge_router(bridge: Bridge) -> APIRouter:
    """The three routes. None of them tells a secret or anybody's words, so none asks for a token."""
    router = APIRouter(tags=["Feishu"])

    @router.get("/feishu/status")
    async def status(response: Response) -> dict[str, Any]:
        """How the bridge is doing: connection, queue, counts."""
        try:
            return await bridge.status()
        except StoreError as error:
            response.status_code = 503
            return {"ready": False, "failure": str(error)}

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
        if not bridge.is_ready():
            response.status_code = 503
            return {"status": "not ready"}
        return {"status": "ready"}

    return router
