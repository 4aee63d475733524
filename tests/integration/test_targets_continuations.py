"""A paused run is continued once, whatever becomes of the answer: on an AgentOS with a queue and on one without."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.job_queue.config import QueueConfig
from agno.job_queue.store import InMemoryQueueStore
from agno.os import AgentOS
from agno.team import Team
from agno.tools import Function

from agno_lark.errors import TargetError
from agno_lark.sandbox.demo_model import DemoModel, ModelCalls
from agno_lark.sandbox.demo_script import Role, forecast
from agno_lark.targets import (
    Continuation,
    FaultReason,
    FollowLimits,
    RemoteTarget,
    RunRef,
    RunState,
    RunView,
    TargetType,
)
from tests.demo_agentos_fixtures import CuttingProxy
from tests.targets_fixtures import request, seen

QUICK = FollowLimits(silence_s=1.0, run_timeout_s=20, backoff_first_s=0.05, backoff_max_s=0.3, missing_grace_s=1.0)
KINDS = [TargetType.AGENT, TargetType.TEAM]


@pytest.fixture(params=[False, True], ids=["no-queue", "durable-queue"])
def durable_queue(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@dataclass(kw_only=True)
class Asker:
    """An AgentOS whose agent and whose team ask before they look the weather up; `looked_up` is what they did then."""

    url: str = ""
    looked_up: list[str] = field(default_factory=list)

    def get_weather(self, city: str) -> str:
        """The weather in a city."""
        self.looked_up.append(city)
        return forecast(city)


@pytest.fixture
async def asker(tmp_path: Path, durable_queue: bool) -> AsyncIterator[Asker]:
    asker = Asker()
    with closing(SqliteDb(db_file=str(tmp_path / "runs.sqlite3"))) as db:
        tool = Function.from_callable(asker.get_weather)
        tool.requires_confirmation = True
        model, leader = (DemoModel(role=role, calls=ModelCalls()) for role in (Role.AGENT, Role.LEADER))
        agent = Agent(id="asking", model=model, tools=[tool], db=db, telemetry=False)
        team = Team(id="asking", members=[agent], model=leader, tools=[tool], db=db, telemetry=False)
        queue = QueueConfig(durable=durable_queue, db=InMemoryQueueStore() if durable_queue else None)
        app = AgentOS(agents=[agent], teams=[team], queue=queue, telemetry=False).get_app()
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
        serving = asyncio.create_task(server.serve(), name="asker")
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.01)
        asker.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        yield asker
        server.should_exit = True
        await serving


@asynccontextmanager
async def target_at(url: str, target_type: TargetType) -> AsyncIterator[RemoteTarget]:
    target = RemoteTarget(base_url=url, target_type=target_type, target_id="asking", limits=QUICK)
    try:
        yield target
    finally:
        await target.aclose()


async def paused_run(asker: Asker, target_type: TargetType, name: str) -> tuple[RunView, Continuation]:
    question = request("weather in Rome", name)
    async with target_at(asker.url, target_type) as target:
        paused = await seen(target.follow(question), RunView(run_id=question.run_id))
    assert (paused.state, asker.looked_up) == (RunState.PAUSED, [])
    (requirement,) = paused.requirements
    ref = RunRef(
        run_id=paused.run_id, session_id=question.session_id, user_id=question.user_id, after_index=paused.last_index
    )
    tool = {**requirement["tool_execution"], "confirmed": True}
    if target_type is TargetType.AGENT:
        return paused, Continuation(ref=ref, payload={"tools": [tool]})
    decided = {**requirement, "confirmation": True, "tool_execution": tool}
    return paused, Continuation(ref=ref, payload={"requirements": [decided]})


def continuations(proxy: CuttingProxy) -> int:
    return sum(b"/continue HTTP" in chunk for chunk in proxy.requests)


@pytest.mark.parametrize("target_type", KINDS)
async def test_a_continuation_whose_answer_is_cut_is_carried_out_once(asker: Asker, target_type: TargetType) -> None:
    """Cut before any answer, in the headers, after them, and in the middle of an event."""
    for after_bytes in (0, 40, 400, 900):
        paused, continuation = await paused_run(asker, target_type, f"{after_bytes}")
        async with CuttingProxy(asker.url) as proxy, target_at(proxy.url, target_type) as target:
            proxy.cut_after_bytes = after_bytes
            over = await seen(target.follow(continuation), paused)
            assert proxy.connections > 1, f"cut after {after_bytes} bytes"
            assert continuations(proxy) == 1
        assert (over.state, asker.looked_up) == (RunState.COMPLETED, ["Rome"])
        assert over.text == f"{paused.text}Here it is: {forecast('Rome')}. Enjoy!"
        asker.looked_up.clear()


class Swallowing(CuttingProxy):
    """Continuations do not get through: the connection is reset, as if the answer had been lost."""

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        if answers:
            return await super()._pump(reader, writer, answers=True)
        while chunk := await reader.read(65536):
            self.requests.append(chunk)
            if b"/continue HTTP" in chunk:
                return self.cut()
            writer.write(chunk)
        return None


@pytest.mark.parametrize("target_type", KINDS)
async def test_a_continuation_that_never_arrived_is_told_and_does_not_go_out_again(
    asker: Asker, target_type: TargetType
) -> None:
    """From here it looks like one whose answer was lost, until the run has been paused for a while longer."""
    paused, continuation = await paused_run(asker, target_type, "swallowed")
    async with Swallowing(asker.url) as proxy, target_at(proxy.url, target_type) as target:
        with pytest.raises(TargetError) as caught:
            await seen(target.follow(continuation), paused)
        found = await target.find(paused.run_id, continuation.ref.session_id)
        assert continuations(proxy) == 1
    assert caught.value.reason == FaultReason.INTERRUPTED
    assert found is not None
    assert (found.state, asker.looked_up) == (RunState.PAUSED, [])
