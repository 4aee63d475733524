"""What goes out to AgentOS, to the letter."""

import json
from collections.abc import Callable
from email.parser import BytesParser
from urllib.parse import parse_qs

import httpx
import pytest

from agno_lark.errors import TargetError
from agno_lark.targets import Attachment, FaultReason, FollowLimits, RemoteTarget, RunRequest, RunView, TargetType
from tests.targets_fixtures import request, seen

Answer = Callable[[httpx.Request], httpx.Response]
DONE = b'event: RunCompleted\ndata: {"run_id":"run-a","event_index":0,"content":"ok"}\n\n'


def stream(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=DONE, headers={"content-type": "text/event-stream; charset=utf-8"})


class Wire:
    """Keeps the requests, with their bodies, and answers them."""

    def __init__(self, answer: Answer = stream, target_type: TargetType = TargetType.AGENT, token: str = "t0k") -> None:
        self.answer = answer
        self.requests: list[httpx.Request] = []
        self.client = httpx.AsyncClient(transport=httpx.MockTransport(self._handle))
        self.target = RemoteTarget(
            base_url="http://agentos.test/base/",
            target_type=target_type,
            target_id="my agent",
            token=token,
            client=self.client,
            limits=FollowLimits(silence_s=5, run_timeout_s=7),
        )

    def _handle(self, asked: httpx.Request) -> httpx.Response:
        self.requests.append(asked)
        return self.answer(asked)

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.requests[-1].content.decode()).items()}


@pytest.mark.parametrize("target_type", list(TargetType))
async def test_a_submission_carries_its_ids_and_asks_for_a_background_stream(target_type: TargetType) -> None:
    wire = Wire(target_type=target_type)
    view = await seen(wire.target.submit(request("哈 & co", "a")), RunView(run_id="run-a"))
    (sent,) = wire.requests
    assert (sent.method, sent.url.raw_path) == ("POST", f"/base/{target_type.value}s/my%20agent/runs".encode())
    assert sent.headers["Authorization"] == "Bearer t0k"
    assert sent.headers["Idempotency-Key"] == "turn-a"
    assert json.loads(wire.form.pop("metadata")) == {"chat": "oc_test", "turn_id": "turn-a"}
    assert {name: value for name, value in wire.form.items() if name != "metadata"} == {
        "message": "哈 & co",
        "session_id": "session-a",
        "user_id": "ou_test",
        "run_id": "run-a",
        "stream": "true",
        "background": "true",
    }
    assert sent.extensions["timeout"]["read"] == 5
    assert view.text == "ok"


async def test_no_token_sends_no_authorization() -> None:
    wire = Wire(token="")
    await seen(wire.target.submit(request("hi", "a")), RunView())
    assert "Authorization" not in wire.requests[0].headers


@pytest.mark.parametrize("turn_id", ["回合", "x" * 513, "line\nbreak"])
async def test_a_turn_id_that_is_no_header_is_digested(turn_id: str) -> None:
    keys = set()
    for _ in range(2):
        wire = Wire()
        one = RunRequest(message="hi", session_id="s", user_id="u", run_id="r", turn_id=turn_id)
        await seen(wire.target.submit(one), RunView())
        keys.add(wire.requests[0].headers["Idempotency-Key"])
        assert json.loads(wire.form["metadata"])["turn_id"] == turn_id
    assert [len(key) for key in keys] == [64]


async def test_attachments_go_along_as_uploads() -> None:
    wire = Wire()
    files = (Attachment(name="图 1.png", mime_type="image/png", content=b"\x89PNG"),)
    one = RunRequest(message="see", session_id="s", user_id="u", run_id="r", turn_id="t", attachments=files)
    await seen(wire.target.submit(one), RunView())
    sent = wire.requests[0]
    head = f"Content-Type: {sent.headers['content-type']}\r\n\r\n".encode()
    parts = [part for part in BytesParser().parsebytes(head + sent.content).walk() if not part.is_multipart()]
    names = [part.get_param("name", header="content-disposition") for part in parts]
    assert sorted(map(str, names)) == sorted(
        ["message", "session_id", "user_id", "run_id", "metadata", "stream", "background", "files"]
    )
    upload = parts[-1]
    assert (upload.get_content_type(), upload.get_payload(decode=True)) == ("image/png", b"\x89PNG")


async def test_attachments_for_a_workflow_are_refused_before_anything_is_sent() -> None:
    wire = Wire(target_type=TargetType.WORKFLOW)
    files = (Attachment(name="a", mime_type="text/plain", content=b"a"),)
    one = RunRequest(message="see", session_id="s", user_id="u", run_id="r", turn_id="t", attachments=files)
    with pytest.raises(TargetError) as caught:
        await seen(wire.target.follow(one), RunView())
    assert (caught.value.reason, wire.requests) == (FaultReason.INVALID, [])


async def test_a_continuation_sends_its_payload_as_json() -> None:
    wire = Wire()
    payload = {"tools": [{"tool_call_id": "c", "confirmed": True}], "input": "go on"}
    await seen(wire.target.continue_run("run/1", "s", "u", payload), RunView())
    assert wire.requests[0].url.raw_path == b"/base/agents/my%20agent/runs/run%2F1/continue"
    assert json.loads(wire.form["tools"]) == payload["tools"]
    assert (wire.form["input"], wire.form["user_id"], wire.form["background"]) == ("go on", "u", "true")


@pytest.mark.parametrize(("after_index", "told"), [(-1, None), (0, "0"), (41, "41")])
async def test_a_resume_tells_the_last_index_only_when_there_is_one(after_index: int, told: str | None) -> None:
    wire = Wire()
    await seen(wire.target.resume("run-a", "s", after_index), RunView())
    assert wire.form.get("last_event_index") == told
    assert wire.form["session_id"] == "s"


async def test_the_plain_stream_is_asked_for_once_the_background_is_refused() -> None:
    detail = {"detail": "Background execution requires a database to be configured on the agent"}

    def without_database(asked: httpx.Request) -> httpx.Response:
        return httpx.Response(400, json=detail) if b"background=true" in asked.content else stream(asked)

    wire = Wire(without_database)
    for name in ("a", "b"):
        await seen(wire.target.submit(request("hi", name)), RunView())
    assert [b"background=true" in sent.content for sent in wire.requests] == [True, False, False]
    assert wire.requests[-1].extensions["timeout"]["read"] == 7
    assert wire.target.resumable is False


async def test_junk_between_events_is_counted_and_passed_over() -> None:
    def junk(_: httpx.Request) -> httpx.Response:
        return httpx.Response(
            200, content=b"data: {oops\n\ndata: [1]\n\n" + DONE, headers={"content-type": "text/event-stream"}
        )

    wire = Wire(junk)
    assert (await seen(wire.target.submit(request("hi", "a")), RunView())).text == "ok"
    assert wire.target.events_skipped == 2


async def test_a_run_in_the_database_alone_comes_as_one_snapshot() -> None:
    def stored(asked: httpx.Request) -> httpx.Response:
        if asked.method == "GET":
            return httpx.Response(200, json={"run_id": "run-a", "status": "COMPLETED", "content": "whole"})
        replay = b'event: replay\ndata: {"run_id":"run-a","status":"COMPLETED","total_events":0}\n\n'
        return httpx.Response(200, content=replay, headers={"content-type": "text/event-stream"})

    wire = Wire(stored)
    events = [one async for one in wire.target.resume("run-a", "s")]
    assert [one.name for one in events] == ["replay", "RunSnapshot"]
    assert dict(wire.requests[-1].url.params) == {"session_id": "s"}


@pytest.mark.parametrize(
    ("job", "ticket"),
    [
        (httpx.Response(200, json={"id": "run-a", "status": "queued"}), "queued"),
        (httpx.Response(200, json={"id": "run-a", "status": "running"}), "running"),
        (httpx.Response(200, json={"id": "run-a", "status": "failed"}), None),
        (httpx.Response(404, json={"detail": "no such job"}), None),
        (httpx.Response(403, json={"detail": "an admin scope is needed"}), None),
    ],
    ids=["waits", "is worked on", "given up", "unknown", "not told"],
)
@pytest.mark.parametrize("durable", [True, False])
async def test_a_run_going_on_in_the_database_alone_is_told_with_its_ticket(
    job: httpx.Response, ticket: str | None, durable: bool
) -> None:
    answers = {
        "/base/config": httpx.Response(200, json={"queue": {"durable": durable}}),
        "/base/queue/jobs/run-a": job,
        "/base/agents/my agent/runs/run-a": httpx.Response(200, json={"run_id": "run-a", "status": "PENDING"}),
    }

    def stored(asked: httpx.Request) -> httpx.Response:
        replay = b'event: replay\ndata: {"run_id":"run-a","status":"PENDING","total_events":0}\n\n'
        stream_of_it = httpx.Response(200, content=replay, headers={"content-type": "text/event-stream"})
        return answers[asked.url.path] if asked.method == "GET" else stream_of_it

    wire = Wire(stored)
    *_, last = [one async for one in wire.target.resume("run-a", "s")]
    assert last.data.get("queue_ticket") == (ticket if durable else None)
