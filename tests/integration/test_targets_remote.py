"""RemoteTarget against a real AgentOS process: agent, team and workflow."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from agno.utils.http import aclose_default_clients

from agno_lark.errors import TargetError
from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.targets import (
    CancelOutcome,
    FaultReason,
    RemoteTarget,
    RunRef,
    RunState,
    RunView,
    StepKind,
    StepState,
    Target,
    TargetType,
    fold,
)
from agno_lark.targets.embedding import remote_component
from agno_lark.targets.local import target_for
from tests.demo_agentos_fixtures import demo_agentos, free_port
from tests.targets_fixtures import request, seen

TOKEN = "demo-token"
TYPES = list(TargetType)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoAgentOS]:
    db_path: Path = tmp_path_factory.mktemp("demo") / "sessions.sqlite3"
    with demo_agentos(token=TOKEN, db_path=db_path) as running:
        yield running


@asynccontextmanager
async def remote(
    demo: DemoAgentOS, target_type: TargetType, *, target_id: str = "", token: str = TOKEN, url: str = ""
) -> AsyncIterator[RemoteTarget]:
    ids = {TargetType.AGENT: demo.agent_id, TargetType.TEAM: demo.team_id, TargetType.WORKFLOW: demo.workflow_id}
    target = RemoteTarget(
        base_url=url or demo.url, target_type=target_type, target_id=target_id or ids[target_type], token=token
    )
    try:
        yield target
    finally:
        await target.aclose()


async def ask(target: Target, message: str, name: str, *, session: str = "") -> RunView:
    one = request(message, name, session=session)
    return await seen(target.follow(one), RunView(run_id=one.run_id))


@pytest.mark.parametrize("target_type", TYPES)
async def test_an_answer_streams_and_ends(demo: DemoAgentOS, target_type: TargetType) -> None:
    async with remote(demo, target_type) as target:
        assert isinstance(target, Target)
        view = RunView(run_id=f"run-stream-{target_type}")
        texts: list[str] = []
        async for one in target.follow(request("hello", f"stream-{target_type}")):
            view = fold(view, one)
            texts.append(view.text)
    assert view.state is RunState.COMPLETED
    assert "hello" in view.text
    assert len(set(texts)) > 5
    assert view.run_id == f"run-stream-{target_type}"


@pytest.mark.parametrize("target_type", TYPES)
async def test_repeated_deltas_arrive_as_they_are(demo: DemoAgentOS, target_type: TargetType) -> None:
    async with remote(demo, target_type) as target:
        assert (await ask(target, "repeat", f"repeat-{target_type}")).text == "110"


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_tool_call_shows_as_a_step_with_text_on_both_sides(demo: DemoAgentOS, target_type: TargetType) -> None:
    async with remote(demo, target_type) as target:
        view = await ask(target, "weather in Rome", f"tool-{target_type}")
    (tool,) = [step for step in view.steps if step.kind is StepKind.TOOL]
    assert (tool.name, tool.args, tool.state) == ("get_weather", "city=Rome", StepState.DONE)
    assert view.text.startswith("Let me look up the weather in Rome.")
    assert view.text.endswith("Enjoy!")


async def test_a_team_s_members_show_as_steps(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.TEAM) as target:
        view = await ask(target, "shall we go?", "members")
    assert [(step.kind, step.name, step.state) for step in view.steps] == [
        (StepKind.MEMBER, "Researcher", StepState.DONE),
        (StepKind.MEMBER, "Writer", StepState.DONE),
    ]
    assert "The team's view" in view.text


async def test_a_workflow_s_steps_show_in_order(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.WORKFLOW) as target:
        view = await ask(target, "hello", "steps")
    assert [step.name for step in view.steps] == ["Draft", "Review"]


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_model_that_fails_ends_the_run_with_its_reason(demo: DemoAgentOS, target_type: TargetType) -> None:
    async with remote(demo, target_type) as target:
        view = await ask(target, "please fail", f"fail-{target_type}")
    assert view.state is RunState.FAILED
    assert view.error is not None
    assert view.error.reason is FaultReason.MODEL_ERROR
    assert "the demo model failed, as asked" in view.error.message


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_cancelled_run_ends_with_the_cancelled_event(demo: DemoAgentOS, target_type: TargetType) -> None:
    one = request("count to 500", f"cancel-{target_type}")
    view = RunView(run_id=one.run_id)
    outcome = None
    async with remote(demo, target_type) as target:
        async with asyncio.timeout(20):
            async for event in target.follow(one):
                view = fold(view, event)
                if view.text and outcome is None:
                    outcome = await target.cancel(one.run_id, one.session_id)
        assert await target.cancel(one.run_id, one.session_id) is CancelOutcome.ALREADY_OVER
    assert outcome is CancelOutcome.REQUESTED
    assert view.state is RunState.CANCELLED
    assert view.text.startswith("1 ")
    assert all(step.state is StepState.STOPPED for step in view.steps)


async def test_cancelling_a_run_nobody_knows_says_so(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.AGENT) as target:
        assert await target.cancel("run-never", "session-never") is CancelOutcome.NOT_FOUND


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_run_is_found_by_its_id_and_by_its_turn(demo: DemoAgentOS, target_type: TargetType) -> None:
    name = f"find-{target_type}"
    async with remote(demo, target_type) as target:
        view = await ask(target, "repeat", name)
        await ask(target, "hello", f"{name}-other", session=f"session-{name}")
        by_id = await target.find(f"run-{name}", f"session-{name}")
        by_turn = await target.find_by_turn(f"session-{name}", f"turn-{name}")
        assert await target.find("run-never", f"session-{name}") is None
        assert await target.find_by_turn(f"session-{name}", "turn-never") is None
        assert await target.find_by_turn("session-never", f"turn-{name}") is None
    assert by_id is not None
    assert (by_id.run_id, by_id.state, by_id.content) == (view.run_id, RunState.COMPLETED, "110")
    if target_type is TargetType.WORKFLOW:
        # agno 3.1.10 drops the metadata of workflow runs outside of a durable queue. When this fails: rejoice.
        assert (by_turn, by_id.metadata) == (None, {})
        return
    assert by_turn is not None
    assert by_turn.run_id == view.run_id
    assert by_id.metadata["turn_id"] == f"turn-{name}"
    assert by_id.metadata["chat"] == "oc_test"


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_running_run_is_found_as_running(demo: DemoAgentOS, target_type: TargetType) -> None:
    one = request("count to 500", f"running-{target_type}")
    async with remote(demo, target_type) as target:
        events = target.submit(one)
        await anext(events)
        found = await target.find(one.run_id, one.session_id)
        by_turn = await target.find_by_turn(one.session_id, one.turn_id)
        await target.cancel(one.run_id, one.session_id)
        await events.aclose()
    assert found is not None
    assert found.state is RunState.RUNNING
    assert (by_turn is None) == (target_type is TargetType.WORKFLOW)


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_finished_run_is_replayed_to_the_same_view(demo: DemoAgentOS, target_type: TargetType) -> None:
    name = f"replay-{target_type}"
    async with remote(demo, target_type) as target:
        view = await ask(target, "weather in Oslo", name)
        again = await seen(
            target.follow(RunRef(run_id=f"run-{name}", session_id=f"session-{name}")), RunView(run_id=f"run-{name}")
        )
    assert again == view


@pytest.mark.parametrize("target_type", TYPES)
async def test_sessions_stay_apart_and_remember(demo: DemoAgentOS, target_type: TargetType) -> None:
    async with remote(demo, target_type) as target:
        await ask(target, "my cat is Tom", f"m1-{target_type}", session=f"memory-{target_type}")
        remembered = await ask(target, "what did I say", f"m2-{target_type}", session=f"memory-{target_type}")
        elsewhere = await ask(target, "what did I say", f"m3-{target_type}", session=f"other-{target_type}")
    assert "1. my cat is Tom" in remembered.text
    assert elsewhere.text == "This is your first message."


async def test_an_agent_without_a_database_falls_back_and_says_so(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.AGENT, target_id=demo.plain_agent_id) as target:
        assert (await target.describe()).resumable is False, "also before the first run: AgentOS names no database"
        view = await ask(target, "repeat", "plain")
        info = await target.describe()
        again = await ask(target, "repeat", "plain-again")
    assert (view.text, view.state, view.last_index) == ("110", RunState.COMPLETED, -1)
    assert again.text == "110"
    assert info.resumable is False
    assert "nothing can be resumed" in info.note


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_target_describes_itself(demo: DemoAgentOS, target_type: TargetType) -> None:
    async with remote(demo, target_type) as target:
        info = await target.describe()
    assert (info.type, info.reachable, info.durable_queue) == (target_type, True, False)
    assert info.name == f"Demo {target_type.value}"
    assert info.note == ""


async def test_a_target_that_is_not_there_describes_that(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.AGENT, target_id="nobody") as missing:
        info = await missing.describe()
        assert (info.reachable, info.note) == (True, "this AgentOS lists no agent nobody")
    async with remote(demo, TargetType.AGENT, url=f"http://127.0.0.1:{free_port()}") as down:
        assert (await down.describe()).reachable is False


async def test_a_wrong_token_target_or_port_has_its_reason(demo: DemoAgentOS) -> None:
    cases = [
        (remote(demo, TargetType.AGENT, token="wrong"), FaultReason.UNAUTHORIZED),
        (remote(demo, TargetType.TEAM, token=""), FaultReason.UNAUTHORIZED),
        (remote(demo, TargetType.AGENT, target_id="nobody"), FaultReason.NOT_FOUND),
        (remote(demo, TargetType.WORKFLOW, target_id="no/body"), FaultReason.NOT_FOUND),
        (remote(demo, TargetType.AGENT, url=f"http://127.0.0.1:{free_port()}"), FaultReason.UNREACHABLE),
        (remote(demo, TargetType.AGENT, url=f"{demo.url}/nowhere"), FaultReason.NOT_FOUND),
    ]
    for number, (opening, reason) in enumerate(cases):
        async with opening as target:
            with pytest.raises(TargetError) as caught:
                await ask(target, "hello", f"wrong-{number}")
        assert caught.value.reason == reason
        assert "wrong" not in str(caught.value)


async def test_something_that_is_no_agentos_is_told_apart(demo: DemoAgentOS) -> None:
    def web_page(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, html="<html>hello</html>")

    async with httpx.AsyncClient(transport=httpx.MockTransport(web_page)) as client:
        target = RemoteTarget(base_url=demo.url, target_type=TargetType.AGENT, target_id="x", client=client)
        for asking in (ask(target, "hello", "page"), target.find("r", "s")):
            with pytest.raises(TargetError) as caught:
                await asking
            assert caught.value.reason == FaultReason.PROTOCOL
        await target.aclose()
        assert not client.is_closed


@pytest.mark.parametrize("target_type", TYPES)
async def test_agno_s_remote_objects_present_the_token(demo: DemoAgentOS, target_type: TargetType) -> None:
    ids = {TargetType.AGENT: demo.agent_id, TargetType.TEAM: demo.team_id, TargetType.WORKFLOW: demo.workflow_id}
    built = remote_component(base_url=demo.url, target_type=target_type, target_id=ids[target_type], token=TOKEN)
    assert built.name == f"Demo {target_type.value}"
    names = [event.event async for event in built.arun("repeat", session_id=f"embed-{target_type}", stream=True)]
    assert names[-1].endswith("Completed")
    await aclose_default_clients()  # agno keeps one client for the whole process
    target = target_for(built)
    assert (await ask(target, "repeat", f"embed-{target_type}")).text == "110"
    await target.aclose()


def test_an_address_that_is_none_is_refused() -> None:
    for base_url in ("", "agentos", "ftp://agentos", "http://"):
        with pytest.raises(ValueError, match="http"):
            RemoteTarget(base_url=base_url, target_type=TargetType.AGENT, target_id="x")


async def test_model_calls_are_counted_by_session_and_run(demo: DemoAgentOS) -> None:
    async with remote(demo, TargetType.AGENT) as target:
        await ask(target, "weather in Rome", "counted")
    async with httpx.AsyncClient() as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        counts = (await client.get(f"{demo.url}/demo/model-calls", headers=headers)).json()
    assert counts["by_session"]["session-counted"] == 2
    assert counts["by_run"]["run-counted"] == 2
    assert counts["total"] >= 2
