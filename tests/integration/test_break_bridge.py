"""The bridge as a part of somebody's process: started twice, stopped at the wrong moment, ended by its own fault."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from agno_lark.app import Bridge
from agno_lark.errors import AlreadyRunningError, SettingsError, StoreError
from agno_lark.feishu.answers import BotInfo
from agno_lark.feishu.api import OpenApi
from agno_lark.interface import LarkInterface
from agno_lark.replies import Reactions, reactions
from agno_lark.settings import Settings
from agno_lark.testing import FeishuSandbox
from agno_lark.web import bridge_router
from tests.break_fixtures import MARTA, PlayedTarget, answer, bridge_on, played_settings
from tests.bridge_fixtures import answer_to


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


async def test_a_fault_of_its_own_is_known_at_once_and_shows_in_health(
    feishu: FeishuSandbox, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(PlayedTarget):
        async def describe(self) -> Any:
            raise ZeroDivisionError("a bug")

    bridge = Bridge(played_settings(feishu, tmp_path), Broken(answer))
    app = FastAPI()
    app.include_router(bridge_router(bridge))
    async with bridge.running():
        await asyncio.wait_for(bridge.ended.wait(), 5)
        assert bridge.failure is not None
        assert [record.message for record in caplog.records if record.exc_info] == [
            "the bridge ended by a fault of its own"
        ]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://bridge") as http:
            assert (await http.get("/healthz")).status_code == 503


async def test_a_bridge_can_be_started_again_after_it_has_stopped(feishu: FeishuSandbox, tmp_path: Path) -> None:
    target, chat = PlayedTarget(answer), feishu.direct_chat(MARTA)
    bridge = Bridge(played_settings(feishu, tmp_path), target)
    for life in range(2):
        async with bridge.running():
            await feishu.until(lambda _: bridge.is_ready(), within_s=10)
            assert not bridge.ended.is_set()
            await feishu.write(MARTA, chat, "hello")
            await answer_to(feishu, chat, after=life)
        assert not bridge.is_ready()


async def test_a_bridge_that_runs_is_not_started_beside_itself(feishu: FeishuSandbox, tmp_path: Path) -> None:
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        with pytest.raises(AlreadyRunningError):
            await bridge.running().__aenter__()
        assert bridge.is_ready()


@pytest.mark.parametrize("make", [Bridge, lambda settings: LarkInterface(settings=settings)])
def test_settings_that_name_nobody_who_answers_are_refused_by_name(make: Callable[[Settings], object]) -> None:
    with pytest.raises(SettingsError) as caught:
        make(Settings.given(feishu_app_id="cli_a", feishu_app_secret="s"))
    assert "AGENTOS_URL" in str(caught.value)
    assert "AGENTOS_TARGET_ID" in str(caught.value)


async def test_a_stop_waits_for_no_reaction(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reactions, "CLOSE_S", 0.1)
    asked = asyncio.Event()

    async def slow(self: OpenApi, message_id: str, emoji: str) -> str:
        asked.set()
        await asyncio.sleep(300)
        return "never"

    monkeypatch.setattr(OpenApi, "add_reaction", slow)
    bridge = Bridge(played_settings(feishu, tmp_path, bridge_drain_timeout=0), PlayedTarget(answer))
    async with bridge.running():
        await feishu.until(lambda _: bridge.is_ready(), within_s=10)
        await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        await asyncio.wait_for(asked.wait(), 5)
        started = time.monotonic()
    assert time.monotonic() - started < 10, "it was the five minutes of the call"


async def test_a_reaction_that_cannot_be_remembered_harms_no_stop_and_is_still_taken_away() -> None:
    removed: list[str] = []

    class Api:
        async def add_reaction(self, message_id: str, emoji: str) -> str:
            return "r1"

        async def delete_reaction(self, message_id: str, reaction_id: str) -> None:
            removed.append(reaction_id)

    async def full(turn_id: str, reaction_id: str | None) -> None:
        raise StoreError("the disk is full")

    api: Any = Api()
    held = Reactions(api, full)
    held.take("t1", "om_1")
    held.take("t2", "om_2")
    await held.clear("t1", "om_1", None)
    await held.close()
    assert removed == ["r1"]


async def test_an_app_that_has_no_bot_yet_is_asked_again(
    feishu: FeishuSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty id of its own the bridge would take nobody's mention for its own, and say nothing."""
    monkeypatch.setattr("agno_lark.app.BOT_INFO_WAITS_S", (0.01,))
    ask, answers = OpenApi.bot_info, [BotInfo(open_id="", name="")]

    async def no_bot_at_first(self: OpenApi) -> BotInfo:
        return answers.pop() if answers else await ask(self)

    monkeypatch.setattr(OpenApi, "bot_info", no_bot_at_first)
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path):
        chat = feishu.world.chat("Team").chat_id
        await feishu.write(MARTA, chat, "hello", mention_bot=True)
        await answer_to(feishu, chat)


async def test_an_interface_whose_routes_are_made_twice_lives_once(feishu: FeishuSandbox, tmp_path: Path) -> None:
    """AgentOS asks for them again when its components change (`AgentOS.resync`, agno 3.1.10)."""
    interface = LarkInterface(PlayedTarget(answer), settings=played_settings(feishu, tmp_path))
    app = FastAPI()
    app.include_router(interface.get_router())
    app.include_router(interface.get_router())
    for _ in range(2):
        async with app.router.lifespan_context(app):
            await feishu.until(lambda _: interface.bridge.is_ready(), within_s=10)
        assert not interface.bridge.is_ready()
