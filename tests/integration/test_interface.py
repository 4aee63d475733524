"""`LarkInterface` in a real AgentOS app: it starts and drains with the app, and answers with the app's own agent."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.os import AgentOS
from fastapi import FastAPI

from agno_lark import FeishuInterface, LarkInterface, Settings, SettingsError
from agno_lark.sandbox.demo_model import DemoModel, ModelCalls
from agno_lark.sandbox.demo_script import Role
from agno_lark.targets import TargetType
from agno_lark.targets.local import LocalTarget
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to

MARTA = "Marta Weiss"


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox() as sandbox:
        yield sandbox


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """An agent of the app, with its database, which is closed at the end."""
    with contextlib.closing(SqliteDb(db_file=str(tmp_path / "agent.sqlite3"))) as db:
        yield Agent(id="helper", model=DemoModel(role=Role.AGENT, calls=ModelCalls()), db=db, telemetry=False)


def settings_of(feishu: FeishuSandbox, folder: Path) -> Settings:
    return Settings.given(
        feishu_app_id=feishu.app_id,
        feishu_app_secret=feishu.app_secret,
        lark_api_base_url=feishu.url,
        feishu_state_db=folder / "state.sqlite3",
        bridge_drain_timeout=1,
    )


@contextlib.asynccontextmanager
async def living(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """The app with its lifespan, without a socket."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client,
    ):
        yield client


async def test_an_agent_of_the_app_answers_and_the_routes_are_there(
    feishu: FeishuSandbox, tmp_path: Path, agent: Agent
) -> None:
    interface = LarkInterface(target=agent, settings=settings_of(feishu, tmp_path))
    app = AgentOS(agents=[agent], interfaces=[interface], telemetry=False).get_app()
    async with living(app) as client:
        await feishu.until(lambda _: interface.bridge.is_ready(), within_s=10)
        assert (await client.get("/readyz")).status_code == 200
        status = (await client.get("/feishu/status")).json()
        assert status["target"]["id"] == "helper"
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "good morning")
        assert "good morning" in (await answer_to(feishu, chat)).text
    assert feishu.connection_count == 0


async def test_a_slow_run_of_the_app_is_stopped(feishu: FeishuSandbox, tmp_path: Path, agent: Agent) -> None:
    interface = FeishuInterface(target=agent, settings=settings_of(feishu, tmp_path))
    app = AgentOS(agents=[agent], interfaces=[interface], telemetry=False).get_app()
    async with living(app):
        await feishu.until(lambda _: interface.bridge.is_ready(), within_s=10)
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "count slowly to 60")
        card = await feishu.until(lambda _: next((s for s in feishu.from_bot(chat) if "1 2 " in s.text), None))
        assert card is not None
        await feishu.press(MARTA, card.message_id, "Stop")
        assert "Stopped" in (await answer_to(feishu, chat)).text


async def test_two_apps_live_in_one_agentos_under_their_prefixes(
    feishu: FeishuSandbox, tmp_path: Path, agent: Agent
) -> None:
    async with FeishuSandbox(salt="other") as other:
        interfaces = [
            LarkInterface(target=agent, settings=settings_of(feishu, tmp_path / "one"), prefix="/one"),
            LarkInterface(target=agent, settings=settings_of(other, tmp_path / "two"), prefix="/two"),
        ]
        app = AgentOS(agents=[agent], interfaces=[*interfaces], telemetry=False).get_app()
        async with living(app) as client:
            await feishu.until(lambda _: all(interface.bridge.is_ready() for interface in interfaces), within_s=10)
            assert (await client.get("/one/readyz")).status_code == 200
            assert (await client.get("/two/readyz")).status_code == 200
            chat = other.direct_chat(MARTA)
            await other.write(MARTA, chat, "over here")
            assert "over here" in (await answer_to(other, chat)).text
            assert not feishu.from_bot()


async def test_it_connects_before_feishu_tells_it_who_it_is(
    feishu: FeishuSandbox, tmp_path: Path, agent: Agent
) -> None:
    """The console saves the long-connection mode only while the app is connected, published or not."""
    refusal = feishu.faults.fail("/open-apis/bot/v3/info", times=None, status=400, code=11205)
    bridge = LarkInterface(target=agent, settings=settings_of(feishu, tmp_path)).bridge
    async with bridge.running():
        await feishu.until_connected()
        assert not bridge.is_ready()
        assert bridge.failure is None
        refusal.left = 0
        await feishu.until(lambda _: bridge.is_ready(), within_s=10)


async def test_refused_settings_do_not_bring_the_app_down(feishu: FeishuSandbox, tmp_path: Path, agent: Agent) -> None:
    wrong = settings_of(feishu, tmp_path).model_copy(update={"feishu_app_id": "cli_other"})
    interface = LarkInterface(target=agent, settings=wrong)
    app = AgentOS(agents=[agent], interfaces=[interface], telemetry=False).get_app()
    async with living(app) as client:
        await feishu.until(lambda _: interface.bridge.failure is not None, within_s=10)
        health = await client.get("/healthz")
        assert health.status_code == 503
        assert "FEISHU_APP_ID" in health.json()["why"]
        assert (await client.get("/agents")).status_code == 200, "the app itself goes on"


def test_a_target_is_wrapped_by_what_it_is(feishu_settings: Settings, tmp_path: Path, agent: Agent) -> None:
    interface = LarkInterface(target=agent, settings=feishu_settings)
    target = interface.bridge._target
    assert isinstance(target, LocalTarget)
    assert (target.type, target.id) == (TargetType.AGENT, "helper")
    again = LarkInterface(target=target, settings=feishu_settings)
    assert again.bridge._target is target


def test_what_is_no_target_is_refused(feishu_settings: Settings) -> None:
    with pytest.raises((TypeError, ValueError), match="str"):
        LarkInterface(target="helper", settings=feishu_settings)


def test_without_settings_the_environment_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agent: Agent
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FEISHU_APP_ID", "FEISHU_APP_SECRET", "AGENTOS_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError) as caught:
        LarkInterface(target=agent)
    assert len(caught.value.problems) == 2, "an app with its own target needs no AgentOS"


@pytest.fixture
def feishu_settings(tmp_path: Path) -> Any:
    return Settings.given(feishu_app_id="cli_a", feishu_app_secret="s", feishu_state_db=tmp_path / "s")
