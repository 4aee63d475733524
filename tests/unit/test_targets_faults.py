"""Refusals and broken connections get the reason that tells what to do."""

import json

import httpx
import pytest

from agno_lark.targets import FaultReason
from agno_lark.targets.faults import fault_of_frame, fault_of_status, fault_of_transport


def body(detail: object) -> bytes:
    return json.dumps({"detail": detail}).encode()


@pytest.mark.parametrize(
    ("status", "detail", "reason", "retryable"),
    [
        (400, "Background execution requires a database to be configured", FaultReason.BACKGROUND_UNSUPPORTED, False),
        (400, "Background execution is not supported for remote agents", FaultReason.BACKGROUND_UNSUPPORTED, False),
        (400, "Unsupported file type", FaultReason.INVALID, False),
        (401, "Invalid token", FaultReason.UNAUTHORIZED, False),
        (403, "Insufficient permissions", FaultReason.UNAUTHORIZED, False),
        (403, "Run has a pending admin approval", FaultReason.APPROVAL_PENDING, False),
        (404, "Agent not found", FaultReason.NOT_FOUND, False),
        (409, "already continuing", FaultReason.CONFLICT, False),
        (422, "x", FaultReason.INVALID, False),
        (429, "Job queue is full", FaultReason.BUSY, True),
        (500, "Internal server error", FaultReason.SERVER_ERROR, True),
        (503, "", FaultReason.SERVER_ERROR, True),
        (302, "", FaultReason.PROTOCOL, False),
    ],
)
def test_a_status_means_a_reason(status: int, detail: str, reason: FaultReason, retryable: bool) -> None:
    fault = fault_of_status(status, body(detail), asked="run")
    assert (fault.reason, fault.retryable, fault.http_status) == (reason, retryable, status)
    assert detail in str(fault)


def test_what_the_person_wrote_is_not_repeated() -> None:
    """FastAPI's 422 repeats the input it refuses."""
    rows = [{"loc": ["body", "stream"], "msg": "not a bool", "input": "my secret"}, "junk"]
    fault = fault_of_status(422, body(rows), asked="run")
    assert "my secret" not in str(fault)
    assert "not a bool" in str(fault)


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"detail": 7}', b"[" * 100_000])
def test_a_body_that_says_nothing_is_survived(answer: bytes) -> None:
    assert str(fault_of_status(502, answer, asked="run")) == "AgentOS answered 502 to run"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx.ConnectError("x"), FaultReason.UNREACHABLE),
        (httpx.ConnectTimeout("x"), FaultReason.UNREACHABLE),
        (httpx.ProxyError("x"), FaultReason.UNREACHABLE),
        (httpx.ReadTimeout("x"), FaultReason.INTERRUPTED),
        (httpx.WriteError("x"), FaultReason.INTERRUPTED),
        (httpx.RemoteProtocolError("x"), FaultReason.INTERRUPTED),
    ],
)
def test_a_broken_connection_tells_whether_anything_was_sent(error: Exception, reason: FaultReason) -> None:
    assert fault_of_transport(error, asked="run").reason == reason


def test_an_error_frame_tells_a_lost_run_from_a_lost_stream() -> None:
    lost = fault_of_frame({"error": "Run x not found in buffer or database"}, asked="resume a run")
    torn = fault_of_frame({"error": "stream tail failed: boom"}, asked="resume a run")
    assert (lost.reason, torn.reason) == (FaultReason.NOT_FOUND, FaultReason.INTERRUPTED)
