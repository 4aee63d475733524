"""agno objects in this process behind the same protocol."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agno.agent import Agent, RemoteAgent
from agno.db.sqlite import SqliteDb
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.team import Team
from agno.tools import Function
from agno.workflow import Step, Workflow

from agno_lark.errors import TargetError
from agno_lark.sandbox.demo_model import DemoModel, ModelCalls
from agno_lark.sandbox.demo_script import Role, forecast
from agno_lark.targets import (
    Attachment,
    CancelOutcome,
    Continuation,
    FaultReason,
    RemoteTarget,
    RunRef,
    RunRequest,
    RunSnapshot,
    RunState,
    RunView,
    Target,
    TargetType,
    fold,
)
from agno_lark.targets.embedding import remote_component
from agno_lark.targets.local import LocalTarget, target_for, type_of
from tests.targets_fixtures import request, seen

TYPES = list(TargetType)


def get_weather(city: str) -> str:
    """The weather in a city."""
    return forecast(city)


def component(target_type: TargetType, db: SqliteDb | None = None) -> Any:
    calls = ModelCalls()
    agent = Agent(
        id="local-agent",
        model=DemoModel(role=Role.AGENT, calls=calls),
        tools=[get_weather],
        db=db if target_type is TargetType.AGENT else None,
        telemetry=False,
    )
    if target_type is TargetType.AGENT:
        return agent
    if target_type is TargetType.TEAM:
        model = DemoModel(role=Role.LEADER, calls=calls)
        return Team(id="local-team", members=[agent], model=model, tools=[get_weather], db=db, telemetry=False)
    return Workflow(id="local-workflow", steps=[Step(name="only", agent=agent)], db=db, telemetry=False)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SqliteDb]:
    """Closed at the end: an open one is a ResourceWarning in whatever test comes later."""
    with closing(SqliteDb(db_file=str(tmp_path / "local.sqlite3"))) as made:
        yield made


@pytest.fixture(params=TYPES)
async def target(request: pytest.FixtureRequest, db: SqliteDb) -> AsyncIterator[LocalTarget]:
    local = LocalTarget(component(request.param, db))
    yield local
    await local.aclose()


async def ask(target: Target, one: RunRequest) -> RunView:
    return await seen(target.follow(one), RunView(run_id=one.run_id))


async def test_an_answer_streams_with_its_steps(target: LocalTarget) -> None:
    assert isinstance(target, Target)
    view = await ask(target, request("weather in Rome", "local"))
    assert (view.state, view.run_id) == (RunState.COMPLETED, "run-local")
    assert view.text.startswith("Let me look up")
    assert view.text.endswith("Enjoy!")
    assert [step.name for step in view.steps if step.name == "get_weather"] == ["get_weather"]


async def test_repeated_deltas_arrive_as_they_are(target: LocalTarget) -> None:
    assert (await ask(target, request("repeat", "local-repeat"))).text == "110"


async def test_a_listener_may_leave_and_come_back(target: LocalTarget) -> None:
    one = request("count fast to 6", "local-left")
    view = RunView(run_id=one.run_id)
    following = target.follow(one)
    async for event in following:
        view = fold(view, event)
        if view.text.endswith("2 "):
            break
    await following.aclose()
    ref = RunRef(run_id=one.run_id, session_id=one.session_id, after_index=view.last_index)
    view = await seen(target.follow(ref), view)
    assert (view.text.split(), view.state) == (["1", "2", "3", "4", "5", "6"], RunState.COMPLETED)
    assert await seen(target.resume(one.run_id, one.session_id), RunView(run_id=one.run_id)) == view


async def test_a_slow_run_is_cancelled(target: LocalTarget) -> None:
    one = request("count to 500", "local-cancel")
    view = RunView(run_id=one.run_id)
    outcome = None
    async with asyncio.timeout(20):
        async for event in target.follow(one):
            view = fold(view, event)
            if view.text and outcome is None:
                outcome = await target.cancel(one.run_id, one.session_id)
    assert outcome is CancelOutcome.REQUESTED
    assert view.state is RunState.CANCELLED
    assert await target.cancel(one.run_id, one.session_id) is CancelOutcome.ALREADY_OVER
    assert await target.cancel("run-never", one.session_id) is CancelOutcome.NOT_FOUND


async def test_a_run_is_found_in_memory_and_in_the_database(db: SqliteDb) -> None:
    one = request("repeat", "local-find")
    first = LocalTarget(component(TargetType.AGENT, db))
    await ask(first, one)
    second = LocalTarget(component(TargetType.AGENT, db))
    for found in (
        await first.find(one.run_id, one.session_id),
        await first.find_by_turn(one.session_id, one.turn_id),
        await second.find(one.run_id, one.session_id),
        await second.find_by_turn(one.session_id, one.turn_id),
    ):
        assert found is not None
        assert (found.run_id, found.content, found.state) == (one.run_id, "110", RunState.COMPLETED)
        assert found.metadata["turn_id"] == one.turn_id
    replayed = await seen(second.resume(one.run_id, one.session_id), RunView(run_id=one.run_id))
    assert (replayed.text, replayed.state) == ("110", RunState.COMPLETED)


async def test_a_run_nobody_knows_is_not_found(target: LocalTarget) -> None:
    assert await target.find("run-never", "session-never") is None
    assert await target.find_by_turn("session-never", "turn-never") is None
    with pytest.raises(TargetError) as caught:
        await seen(target.resume("run-never", "session-never"), RunView())
    assert caught.value.reason == FaultReason.NOT_FOUND


async def test_a_model_that_fails_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    local = LocalTarget(component(TargetType.AGENT))
    view = await ask(local, request("please fail", "local-fail"))
    assert view.state is RunState.FAILED
    assert view.error is not None
    assert "the demo model failed" in view.error.message


async def test_runs_side_by_side_do_not_mix() -> None:
    local = LocalTarget(component(TargetType.AGENT))
    views = await asyncio.gather(*(ask(local, request(f"count fast to {n}", f"side-{n}")) for n in range(1, 6)))
    assert [len(view.text.split()) for view in views] == [1, 2, 3, 4, 5]


async def test_closing_ends_the_runs_that_are_going() -> None:
    local = LocalTarget(component(TargetType.AGENT))
    one = request("count to 500", "local-close")
    following = local.follow(one)
    view = fold(RunView(run_id=one.run_id), await anext(following))
    await local.aclose()
    assert (await seen(following, view)).state is RunState.CANCELLED


async def test_only_so_many_finished_runs_are_remembered() -> None:
    local = LocalTarget(component(TargetType.AGENT), kept_runs=2)
    for n in range(4):
        await ask(local, request("/bench", f"kept-{n}"))
    assert [await local.find(f"run-kept-{n}", "") is not None for n in range(4)] == [False, False, True, True]


async def test_attachments_reach_an_agent_and_are_refused_for_a_workflow() -> None:
    files = (
        Attachment(name="a.png", mime_type="image/png", content=b"png"),
        Attachment(name="b.pdf", mime_type="application/pdf", content=b"pdf"),
        Attachment(name="c.xyz", mime_type="chemical/x-xyz", content=b"xyz"),
    )
    one = RunRequest(message="repeat", session_id="s", user_id="u", run_id="r", turn_id="t", attachments=files)
    assert (await ask(LocalTarget(component(TargetType.AGENT)), one)).text == "110"
    with pytest.raises(TargetError) as caught:
        await ask(LocalTarget(component(TargetType.WORKFLOW)), one)
    assert caught.value.reason == FaultReason.INVALID


async def test_a_target_describes_itself(target: LocalTarget) -> None:
    info = await target.describe()
    assert (info.type, info.id) == (target.type, f"local-{target.type.value}")
    assert info.reachable


@pytest.mark.parametrize("target_type", TYPES)
def test_agno_s_remote_objects_are_built_and_recognised(target_type: TargetType) -> None:
    built = remote_component(base_url="http://127.0.0.1:9/", target_type=target_type, target_id="x y")
    assert type(built).__name__ == f"Remote{target_type.value.capitalize()}"
    assert type_of(built) is target_type


async def test_a_paused_run_is_continued_where_it_stopped(db: SqliteDb) -> None:
    agent = component(TargetType.AGENT, db)
    agent.tools = [Function.from_callable(get_weather)]
    agent.tools[0].requires_confirmation = True
    local = LocalTarget(agent)
    one = request("weather in Rome", "local-pause")
    paused = await ask(local, one)
    assert paused.state is RunState.PAUSED
    (requirement,) = paused.requirements
    assert requirement["tool_execution"]["tool_name"] == "get_weather"
    decided = {
        **requirement,
        "confirmation": True,
        "tool_execution": {**requirement["tool_execution"], "confirmed": True},
    }
    ref = RunRef(run_id=one.run_id, session_id=one.session_id, user_id=one.user_id, after_index=paused.last_index)
    over = await seen(local.follow(Continuation(ref=ref, payload={"requirements": [decided]})), paused)
    assert over.state is RunState.COMPLETED
    assert over.text == f"{paused.text}Here it is: {forecast('Rome')}. Enjoy!"


async def test_a_run_left_running_by_another_process_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    local = LocalTarget(component(TargetType.AGENT))
    stored = RunSnapshot(run_id="run-left", session_id="session-left", state=RunState.RUNNING)

    async def found(run_id: str, session_id: str) -> RunSnapshot:
        return stored

    monkeypatch.setattr(local, "find", found)
    with pytest.raises(TargetError) as caught:
        await seen(local.follow(RunRef(run_id="run-left", session_id="session-left")), RunView())
    assert caught.value.reason == FaultReason.LOST


class FailsAtFirst(DemoModel):
    """Breaks off in the middle of its first answer."""

    async def ainvoke_stream(self, messages: list[Message], **kwargs: Any) -> AsyncIterator[ModelResponse]:
        self.calls.note(session_id="", run_id="")
        yield ModelResponse(role="assistant", content="half ")
        if self.calls.as_json()["total"] == 1:
            raise RuntimeError("overloaded")
        yield ModelResponse(role="assistant", content="whole")


async def test_a_run_that_agno_tries_again_is_answered_once() -> None:
    model = FailsAtFirst(role=Role.AGENT, calls=ModelCalls())
    agent = Agent(id="again", model=model, retries=1, delay_between_retries=0, telemetry=False)
    view = await ask(LocalTarget(agent), request("hi", "again"))
    assert (view.text, view.state) == ("half whole", RunState.COMPLETED)
    assert model.calls.as_json()["total"] == 2


async def test_a_remote_object_is_spoken_to_over_http() -> None:
    target = target_for(RemoteAgent(base_url="http://127.0.0.1:9", agent_id="x"), token="t")
    assert isinstance(target, RemoteTarget)
    assert (target.id, target.type) == ("x", TargetType.AGENT)
    await target.aclose()
    assert isinstance(target_for(component(TargetType.TEAM)), LocalTarget)


def test_something_else_is_no_target() -> None:
    with pytest.raises(TypeError, match="Agent, Team or Workflow"):
        LocalTarget(object())
