"""An AgentOS with a durable queue: the same key attaches to the same run."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest

from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.targets import CancelOutcome, RemoteTarget, RunState, RunView, TargetType, fold
from tests.demo_agentos_fixtures import demo_agentos
from tests.targets_fixtures import request, seen

TYPES = list(TargetType)


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoAgentOS]:
    with demo_agentos(durable_queue=True) as running:
        yield running


@asynccontextmanager
async def remote(demo: DemoAgentOS, target_type: TargetType) -> AsyncIterator[RemoteTarget]:
    ids = {TargetType.AGENT: demo.agent_id, TargetType.TEAM: demo.team_id, TargetType.WORKFLOW: demo.workflow_id}
    target = RemoteTarget(base_url=demo.url, target_type=target_type, target_id=ids[target_type])
    try:
        yield target
    finally:
        await target.aclose()


async def model_calls(demo: DemoAgentOS, session_id: str) -> int:
    async with httpx.AsyncClient() as client:
        counts = (await client.get(f"{demo.url}/demo/model-calls")).json()
    return int(counts["by_session"].get(session_id, 0))


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_second_submission_attaches_to_the_first_run(demo: DemoAgentOS, target_type: TargetType) -> None:
    one = request("count to 4", f"again-{target_type}")
    async with remote(demo, target_type) as target:
        assert await target.attaches()
        first = RunView(run_id=one.run_id)
        async with aclosing(target.submit(one)) as events:
            async for event in events:
                first = fold(first, event)
                if first.text:
                    break
        live = await seen(target.follow(one), RunView(run_id=one.run_id))
        late = await seen(target.follow(one), RunView(run_id=one.run_id))
    assert first.run_id == live.run_id == late.run_id != one.run_id
    assert live.text.split() == late.text.split() == ["1", "2", "3", "4"]
    assert (live.state, late.state) == (RunState.COMPLETED, RunState.COMPLETED)
    assert await model_calls(demo, one.session_id) == (2 if target_type is TargetType.WORKFLOW else 1)


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_finished_run_is_found_by_its_turn(demo: DemoAgentOS, target_type: TargetType) -> None:
    one = request("repeat", f"turn-{target_type}")
    async with remote(demo, target_type) as target:
        view = await seen(target.follow(one), RunView(run_id=one.run_id))
        found = await target.find_by_turn(one.session_id, one.turn_id)
    assert found is not None
    assert (found.run_id, found.content, found.state) == (view.run_id, "110", RunState.COMPLETED)


async def test_the_next_run_of_a_session_starts_when_the_first_is_cancelled(demo: DemoAgentOS) -> None:
    first, second = request("count to 100", "q1", session="queue"), request("hello", "q2", session="queue")
    async with remote(demo, TargetType.AGENT) as target:
        going = target.follow(first)
        running = fold(RunView(run_id=first.run_id), await anext(going))
        waiting = target.follow(second)
        assert await target.cancel(running.run_id, "queue") is CancelOutcome.REQUESTED
        assert (await seen(going, running)).state is RunState.CANCELLED
        assert (await seen(waiting, RunView(run_id=second.run_id))).state is RunState.COMPLETED


async def test_the_queue_is_described(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.AGENT) as target:
        assert (await target.describe()).durable_queue is True
