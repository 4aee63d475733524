"""An agent, team or workflow on an AgentOS, over HTTP. Source of every path and field: agentos.md, "Runs".

agno's own client drops events it doesn't know and takes no Idempotency-Key, hence httpx.
"""

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import httpx

from agno_lark.clock import Clock, SystemClock
from agno_lark.errors import TargetError
from agno_lark.feishu.transport import http_client
from agno_lark.targets.faults import fault_of_frame, fault_of_status, fault_of_transport
from agno_lark.targets.follow import follow
from agno_lark.targets.protocol import (
    TERMINAL_STATES,
    CancelOutcome,
    FaultReason,
    FollowLimits,
    FollowStart,
    RunEvent,
    RunRequest,
    RunSnapshot,
    RunState,
    TargetInfo,
    TargetType,
)
from agno_lark.targets.run_view import ending
from agno_lark.targets.snapshots import (
    newest_of_turn,
    open_ticket,
    run_snapshot,
    runs_untold,
    snapshot_event,
    target_name,
)
from agno_lark.targets.sse import SseParser, SseTooLong, run_event

__all__ = ["RemoteTarget"]

logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 30.0
_KEY_CHARS = 512
_LOOK_BACK_RUNS = 20
_NOT_RESUMABLE = (
    "this target has no database of its own on the AgentOS, or is remote there too: a run ends when the connection "
    "is cut, and nothing can be resumed"
)


class RemoteTarget:
    """A `Target` on an AgentOS.

    `base_url`: the AgentOS's address, without a trailing path. `token`: sent as Bearer when not empty. `client`: used
    as it is and left open; without one, a client is made that honours HTTPS_PROXY, ALL_PROXY and NO_PROXY.
    `events_skipped`: frames whose data was no JSON object. Raises ValueError for an address that is no URL.
    """

    def __init__(
        self,
        *,
        base_url: str,
        target_type: TargetType,
        target_id: str,
        token: str = "",
        client: httpx.AsyncClient | None = None,
        limits: FollowLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        url = httpx.URL(base_url.rstrip("/"))
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError("base_url must be an http or https address")
        self._type = target_type
        self._id = target_id
        self._base = str(url).rstrip("/")
        self._runs = f"{self._base}/{target_type.value}s/{quote(target_id, safe='')}/runs"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._owned = client is None
        # Streams stay open as long as runs do: no cap. Idle connections go before the server closes them.
        self._client = client or http_client(
            self._base, timeout_s=_ANSWER_TIMEOUT_S, max_connections=None, keepalive_s=3.0
        )
        self._limits = limits or FollowLimits()
        self._clock = clock or SystemClock()
        self._resumable: bool | None = None
        self._durable_queue: bool | None = None
        self.events_skipped = 0

    @property
    def type(self) -> TargetType:
        return self._type

    @property
    def id(self) -> str:
        return self._id

    @property
    def resumable(self) -> bool | None:
        """False once the AgentOS has refused a background run; True once it has taken one; None before."""
        return self._resumable

    async def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
        if request.attachments and self._type is TargetType.WORKFLOW:
            raise TargetError("workflows take no attachments", reason=FaultReason.INVALID)
        form = {
            "message": request.message,
            "session_id": request.session_id,
            "user_id": request.user_id,
            "run_id": request.run_id,
            "metadata": json.dumps({**request.metadata, "turn_id": request.turn_id}, ensure_ascii=False),
        }
        headers = {"Idempotency-Key": _key(request.turn_id)}
        files = [("files", (file.name, file.content, file.mime_type)) for file in request.attachments]
        async with aclosing(self._run_stream(self._runs, form, headers=headers, files=files)) as events:
            async for event in events:
                yield event

    async def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
        form = {"session_id": session_id} | ({"last_event_index": str(after_index)} if after_index >= 0 else {})
        replayed = ended = False
        url = f"{self._runs}/{quote(run_id, safe='')}/resume"
        async with aclosing(self._stream(url, form, asked="resume a run")) as events:
            async for event in events:
                replayed = replayed or event.name == "replay"
                ended = ended or ending(event, run_id) is not None
                yield event
        if replayed and not ended and (snapshot := await self.find(run_id, session_id)) is not None:
            waits = snapshot.state is RunState.RUNNING
            yield snapshot_event(snapshot, ticket=await self._ticket(run_id) if waits else "")

    async def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]:
        form = {"session_id": session_id, "user_id": user_id} | {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in payload.items()
        }
        url = f"{self._runs}/{quote(run_id, safe='')}/continue"
        async with aclosing(self._run_stream(url, form)) as events:
            async for event in events:
                yield event

    async def follow(self, start: FollowStart) -> AsyncGenerator[RunEvent]:
        async with aclosing(follow(self, start, limits=self._limits, clock=self._clock)) as events:
            async for event in events:
                yield event

    async def cancel(self, run_id: str, session_id: str) -> CancelOutcome:
        # A target that can't be resumed stores no runs, or refuses to tell of them.
        known = None if self._resumable is False else await self.find(run_id, session_id)
        if known is not None and known.state in TERMINAL_STATES:
            return CancelOutcome.ALREADY_OVER
        # Sent also for a run that isn't stored (yet): AgentOS keeps the wish for one that is just arriving.
        url = f"{self._runs}/{quote(run_id, safe='')}/cancel"
        status, _ = await self._call("POST", url, asked="cancel a run", params={"session_id": session_id})
        unknown = known is None and self._resumable is not False
        return CancelOutcome.NOT_FOUND if unknown or status == 404 else CancelOutcome.REQUESTED

    async def find(self, run_id: str, session_id: str) -> RunSnapshot | None:
        url = f"{self._runs}/{quote(run_id, safe='')}"
        _, answer = await self._call("GET", url, asked="look a run up", params={"session_id": session_id})
        return run_snapshot(answer, session_id)

    async def find_by_turn(self, session_id: str, turn_id: str) -> RunSnapshot | None:
        _, answer = await self._call("GET", self._runs, asked="list runs", params={"session_id": session_id})
        if (found := newest_of_turn(answer, session_id, turn_id)) is not None:
            return found
        for run_id in runs_untold(answer)[:_LOOK_BACK_RUNS]:
            run = await self.find(run_id, session_id)
            if run is not None and run.metadata.get("turn_id") == turn_id:
                return run
        return None

    async def attaches(self) -> bool:
        """Whether a second submission under the same key attaches to the first run (asked once). Raises TargetError."""
        if self._durable_queue is None:
            _, config = await self._call("GET", f"{self._base}/config", asked="describe itself")
            self._durable_queue = target_name(config, self._type, self._id)[1]
        return self._durable_queue is True and self._resumable is not False

    async def describe(self) -> TargetInfo:
        note = _NOT_RESUMABLE if self._resumable is False else ""
        info: dict[str, Any] = {"type": self._type, "id": self._id, "address": self._base, "resumable": self._resumable}
        try:
            _, config = await self._call("GET", f"{self._base}/config", asked="describe itself")
        except TargetError as error:
            reachable = error.reason != FaultReason.UNREACHABLE
            return TargetInfo(
                name=self._id, reachable=reachable, note=str(error) + (f"; {note}" if note else ""), **info
            )
        name, self._durable_queue = target_name(config, self._type, self._id)
        if self._resumable is None and name is not None and not await self._has_database():
            info["resumable"], note = False, _NOT_RESUMABLE
        if name is None:
            note = "; ".join(filter(None, [f"this AgentOS lists no {self._type.value} {self._id}", note]))
        return TargetInfo(name=name or self._id, reachable=True, durable_queue=self._durable_queue, note=note, **info)

    async def _ticket(self, run_id: str) -> str:
        """The status of a durable queue's ticket for the run, or "": a run whose turn has not come has no stream yet.

        An AgentOS that checks JWTs tells its administrators only.
        """
        try:
            if not await self.attaches():
                return ""
            _, job = await self._call("GET", f"{self._base}/queue/jobs/{quote(run_id, safe='')}", asked="ask its queue")
        except TargetError:
            return ""
        return open_ticket(job)

    async def _has_database(self) -> bool:
        """Whether the target keeps its runs; without one AgentOS refuses to run it in the background. True in doubt."""
        try:
            _, told = await self._call("GET", self._runs.removesuffix("/runs"), asked="describe the target")
        except TargetError:
            return True
        return not isinstance(told, Mapping) or "name" not in told or bool(told.get("db_id"))

    async def aclose(self) -> None:
        if self._owned:
            await self._client.aclose()

    async def _run_stream(
        self, url: str, form: Mapping[str, str], *, headers: Mapping[str, str] | None = None, files: Any = None
    ) -> AsyncGenerator[RunEvent]:
        """A run in the background; where AgentOS can't, the plain stream, from then on."""
        if self._resumable is not False:
            body = {**form, "stream": "true", "background": "true"}
            try:
                async with aclosing(self._stream(url, body, asked="run", headers=headers, files=files)) as events:
                    async for event in events:
                        self._resumable = True
                        yield event
                return
            except TargetError as error:
                if error.reason != FaultReason.BACKGROUND_UNSUPPORTED:
                    raise
            self._resumable = False
            logger.warning(_NOT_RESUMABLE, extra={"action": "target.plain_stream", "target_id": self._id})
        body = {**form, "stream": "true", "background": "false"}
        # No heartbeats here, and to break this stream off cancels the run: patience as long as a run may be silent.
        patience_s = self._limits.run_timeout_s
        async with aclosing(
            self._stream(url, body, asked="run", headers=headers, files=files, silence_s=patience_s)
        ) as events:
            async for event in events:
                yield event

    async def _stream(
        self,
        url: str,
        form: Mapping[str, str],
        *,
        asked: str,
        headers: Mapping[str, str] | None = None,
        files: Any = None,
        silence_s: float | None = None,
    ) -> AsyncGenerator[RunEvent]:
        parser = SseParser()
        timeout = httpx.Timeout(_ANSWER_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S, read=silence_s or self._limits.silence_s)
        sent = {**self._headers, **(headers or {}), "Accept": "text/event-stream"}
        try:
            async with self._client.stream(
                "POST", url, data=dict(form), files=files or None, headers=sent, timeout=timeout
            ) as response:
                if response.status_code != 200:
                    raise fault_of_status(response.status_code, await response.aread(), asked=asked)
                if "text/event-stream" not in response.headers.get("content-type", ""):
                    raise TargetError("the answer is no event stream: is this an AgentOS?", reason=FaultReason.PROTOCOL)
                async for chunk in response.aiter_bytes():
                    for frame in parser.feed(chunk):
                        event = run_event(frame)
                        if event is None:
                            self.events_skipped += 1
                        elif event.name == "error":
                            raise fault_of_frame(event.data, asked=asked)
                        else:
                            yield event
        except httpx.RequestError as error:
            raise fault_of_transport(error, asked=asked) from error
        except SseTooLong as error:
            raise TargetError(str(error), reason=FaultReason.PROTOCOL) from error

    async def _call(
        self, method: str, url: str, *, asked: str, params: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of a plain request; (404, None) when AgentOS knows no such thing."""
        timeout = httpx.Timeout(_ANSWER_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S)
        try:
            response = await self._client.request(
                method, url, params=dict(params or {}), headers=self._headers, timeout=timeout
            )
        except httpx.RequestError as error:
            raise fault_of_transport(error, asked=asked) from error
        if response.status_code == 404:
            return 404, None
        if response.status_code != 200:
            raise fault_of_status(response.status_code, response.content, asked=asked)
        try:
            return 200, response.json()
        except ValueError as error:
            raise TargetError("the answer is no JSON: is this an AgentOS?", reason=FaultReason.PROTOCOL) from error


def _key(turn_id: str) -> str:
    """The turn id where it fits into a header, its digest where not."""
    fits = turn_id.isascii() and turn_id.isprintable() and 0 < len(turn_id) <= _KEY_CHARS
    return turn_id if fits else sha256(turn_id.encode()).hexdigest()
