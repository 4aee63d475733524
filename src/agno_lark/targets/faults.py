"""What a refused or broken request means. Pure: from status, body or exception to a `TargetError`."""

import json
from collections.abc import Mapping
from typing import Any

import httpx

from agno_lark.errors import TargetError
from agno_lark.targets.protocol import FaultReason

__all__ = ["fault_of_frame", "fault_of_status", "fault_of_transport"]

_DETAIL_CHARS = 300

_BY_STATUS = {
    401: FaultReason.UNAUTHORIZED,
    403: FaultReason.UNAUTHORIZED,
    404: FaultReason.NOT_FOUND,
    409: FaultReason.CONFLICT,
    429: FaultReason.BUSY,
}

_NOTHING_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


def fault_of_status(status: int, body: bytes, *, asked: str) -> TargetError:
    """The error for an answer that is not the one asked for. `asked`: what was asked, for the operator."""
    detail = _detail(body)
    return TargetError(
        f"AgentOS answered {status} to {asked}" + (f": {detail}" if detail else ""),
        reason=_reason(status, detail),
        retryable=status >= 500 or status in (408, 429),
        http_status=status,
    )


def fault_of_transport(error: Exception, *, asked: str) -> TargetError:
    """The error for a request without an answer. UNREACHABLE: nothing was sent. INTERRUPTED: it may have been."""
    sent = not isinstance(error, _NOTHING_SENT)
    what = "the connection to AgentOS broke during" if sent else "AgentOS cannot be reached for"
    reason = FaultReason.INTERRUPTED if sent else FaultReason.UNREACHABLE
    return TargetError(f"{what} {asked}: {type(error).__name__}", reason=reason, retryable=True)


def fault_of_frame(data: Mapping[str, Any], *, asked: str) -> TargetError:
    """The error for an `event: error` frame: what a stream says when the headers have gone out already."""
    said = str(data.get("error") or "")[:_DETAIL_CHARS]
    gone = "not found in buffer or database" in said
    reason = FaultReason.NOT_FOUND if gone else FaultReason.INTERRUPTED
    return TargetError(f"AgentOS ended the stream of {asked}: {said}", reason=reason, retryable=not gone)


def _reason(status: int, detail: str) -> FaultReason:
    if status == 403 and "approval" in detail.lower():
        return FaultReason.APPROVAL_PENDING
    if status == 400 and detail.startswith("Background execution"):
        return FaultReason.BACKGROUND_UNSUPPORTED
    if status >= 500 or status == 408:
        return FaultReason.SERVER_ERROR
    if status < 400:
        return FaultReason.PROTOCOL
    return _BY_STATUS.get(status, FaultReason.INVALID)


def _detail(body: bytes) -> str:
    """FastAPI's `detail`, without the values it repeats (they may be the person's message)."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    detail = answer.get("detail") if isinstance(answer, dict) else None
    if isinstance(detail, list):
        rows = [row for row in detail if isinstance(row, dict)]
        detail = "; ".join(f"{row.get('loc')}: {row.get('msg')}" for row in rows)
    return detail[:_DETAIL_CHARS] if isinstance(detail, str) else ""
