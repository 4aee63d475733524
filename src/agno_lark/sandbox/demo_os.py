"""The demo AgentOS as an ASGI app: an agent, a team and a workflow on the demo model. Imports agno (about 2 s)."""

from dataclasses import dataclass

from agno.agent import Agent
from agno.db.base import BaseDb
from agno.db.in_memory import InMemoryDb
from agno.db.sqlite import SqliteDb
from agno.job_queue.config import QueueConfig
from agno.job_queue.store import InMemoryQueueStore
from agno.os import AgentOS
from agno.os.settings import AgnoAPISettings
from agno.team import Team
from agno.workflow import Step, Workflow
from agno.workflow.types import HumanReview, OnError
from fastapi import FastAPI

from agno_lark.sandbox.demo_calls import ModelCalls
from agno_lark.sandbox.demo_model import DemoModel
from agno_lark.sandbox.demo_script import Role, calculate, forecast

__all__ = ["DemoSettings", "build_app"]

_HISTORY_RUNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """`db_path`: file of the sessions. `token`: what callers must present, "" for none. `calls_path`: file that keeps
    the model's calls over a restart, "" for none."""

    db_path: str
    token: str = ""
    durable_queue: bool = False
    instant: bool = False
    calls_path: str = ""


def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: name of the city
    """
    return forecast(city)


def calculator(expression: str) -> str:
    """The value of an arithmetic expression.

    Args:
        expression: such as 2*(3+4)
    """
    return calculate(expression)


def build_app(settings: DemoSettings) -> FastAPI:
    """The app. `demo-agent-plain` has no database: it can't run in the background."""
    calls = ModelCalls(path=settings.calls_path)
    db: BaseDb = SqliteDb(db_file=settings.db_path)
    if settings.instant:  # a benchmark would mostly measure the file otherwise
        db = InMemoryDb()  # type: ignore[no-untyped-call]
    base_app = FastAPI(title="agno-lark demo AgentOS")

    @base_app.get("/demo/model-calls")
    async def model_calls() -> dict[str, object]:
        return calls.as_json()

    agent_os = AgentOS(
        id="agno-lark-demo",
        name="agno-lark demo",
        agents=[_agent(calls, settings, db), _plain_agent(calls, settings)],
        teams=[_team(calls, settings, db)],
        workflows=[_workflow(calls, settings, db)],
        settings=AgnoAPISettings(os_security_key=settings.token or None, docs_enabled=False),
        queue=QueueConfig(
            # 100 chats at once must not wait for each other in the demo itself
            max_concurrency=0,
            durable=settings.durable_queue,
            db=InMemoryQueueStore() if settings.durable_queue else None,
        ),
        base_app=base_app,
        telemetry=False,
    )
    return agent_os.get_app()


def _model(role: Role, calls: ModelCalls, settings: DemoSettings, name: str = "") -> DemoModel:
    return DemoModel(role=role, calls=calls, member_name=name, instant=settings.instant)


def _agent(calls: ModelCalls, settings: DemoSettings, db: BaseDb) -> Agent:
    return Agent(
        id="demo-agent",
        name="Demo agent",
        model=_model(Role.AGENT, calls, settings),
        tools=[get_weather, calculator],
        db=db,
        add_history_to_context=True,
        num_history_runs=_HISTORY_RUNS,
        telemetry=False,
    )


def _plain_agent(calls: ModelCalls, settings: DemoSettings) -> Agent:
    return Agent(
        id="demo-agent-plain",
        name="Demo agent without a database",
        model=_model(Role.AGENT, calls, settings),
        tools=[get_weather, calculator],
        telemetry=False,
    )


def _team(calls: ModelCalls, settings: DemoSettings, db: BaseDb) -> Team:
    members = [
        Agent(id=f"demo-{name.lower()}", name=name, model=_model(Role.MEMBER, calls, settings, name), telemetry=False)
        for name in ("Researcher", "Writer")
    ]
    return Team(
        id="demo-team",
        name="Demo team",
        model=_model(Role.LEADER, calls, settings),
        members=list(members),
        tools=[get_weather, calculator],
        db=db,
        add_history_to_context=True,
        num_history_runs=_HISTORY_RUNS,
        telemetry=False,
    )


def _workflow(calls: ModelCalls, settings: DemoSettings, db: BaseDb) -> Workflow:
    def worker(role: Role, name: str) -> Agent:
        tools = [get_weather, calculator] if role is Role.AGENT else None
        return Agent(id=f"demo-{name}", name=name, model=_model(role, calls, settings), tools=tools, telemetry=False)

    def step(role: Role, name: str, *, history: bool) -> Step:
        return Step(
            name=name,
            agent=worker(role, name),
            max_retries=0,
            human_review=HumanReview(on_error=OnError.fail),
            add_workflow_history=history,
            num_history_runs=_HISTORY_RUNS,
        )

    return Workflow(
        id="demo-workflow",
        name="Demo workflow",
        steps=[step(Role.AGENT, "Draft", history=True), step(Role.REVIEWER, "Review", history=False)],
        db=db,
        telemetry=False,
    )
