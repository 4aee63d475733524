"""A run is followed over cuts, silence and the death of its AgentOS."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from agno_lark.errors import TargetError
from agno_lark.sandbox.agentos import DemoAgentOS, start_demo_agentos
from agno_lark.targets import FaultReason, FollowLimits, RemoteTarget, RunState, RunView, TargetType, fold
from tests.demo_agentos_fixtures import CuttingProxy, demo_agentos, free_port
from tests.targets_fixtures import request, seen

QUICK = FollowLimits(silence_s=1.0, run_timeout_s=20, backoff_first_s=0.05, backoff_max_s=0.3, missing_grace_s=1.0)
COUNTED = "".join(f"{n} " for n in range(1, 9))
TYPES = list(TargetType)


@pytest.fixture(scope="module", params=[False, True], ids=["no-queue", "durable-queue"])
def demo(request: pytest.FixtureRequest) -> Iterator[DemoAgentOS]:
    with demo_agentos(durable_queue=request.param) as running:
        yield running


@asynccontextmanager
async def proxied(
    demo: DemoAgentOS, target_type: TargetType, limits: FollowLimits = QUICK, *, target_id: str = ""
) -> AsyncIterator[tuple[RemoteTarget, CuttingProxy]]:
    ids = {TargetType.AGENT: demo.agent_id, TargetType.TEAM: demo.team_id, TargetType.WORKFLOW: demo.workflow_id}
    async with CuttingProxy(demo.url) as proxy:
        target = RemoteTarget(
            base_url=proxy.url, target_type=target_type, target_id=target_id or ids[target_type], limits=limits
        )
        try:
            yield target, proxy
        finally:
            await target.aclose()


@pytest.mark.parametrize("target_type", TYPES)
async def test_a_cut_connection_neither_doubles_nor_loses_text(demo: DemoAgentOS, target_type: TargetType) -> None:
    one = request("count fast to 8", f"cut-{demo.pid}-{target_type}")
    view = RunView(run_id=one.run_id)
    cuts = 0
    async with proxied(demo, target_type) as (target, proxy):
        async for event in target.follow(one):
            view = fold(view, event)
            if cuts < 2 and view.text.endswith(("2 ", "5 ")) and proxy.connections == cuts + 1:
                cuts += 1
                proxy.cut()
        submissions = sum(b"/runs HTTP" in chunk for chunk in proxy.requests)
    assert view.text.split() == COUNTED.split()
    assert view.state is RunState.COMPLETED
    assert cuts == 2
    assert submissions == 1


ANSWERS = ("long markdown please", "weather in Rome", "shall we go?", "思考一下")


class RandomlyCut(CuttingProxy):
    """Every connection but the last goes wrong after a random number of bytes: it is reset, or nothing more comes."""

    def __init__(self, target_url: str, chance: random.Random) -> None:
        super().__init__(target_url)
        self._chance = chance
        self._cuts_left = 6

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cuts_left:
            self._cuts_left -= 1
            self.cut_after_bytes = self._chance.randint(0, 4000)
            self.mute_at_cut = self._chance.random() < 0.3
        await super()._serve(reader, writer)


@pytest.mark.parametrize("target_type", TYPES)
async def test_cut_at_random_places_it_is_the_same_answer(demo: DemoAgentOS, target_type: TargetType) -> None:
    ids = {TargetType.AGENT: demo.agent_id, TargetType.TEAM: demo.team_id, TargetType.WORKFLOW: demo.workflow_id}

    async def answer(name: str, question: str, url: str) -> RunView:
        one = request(question, name)
        target = RemoteTarget(base_url=url, target_type=target_type, target_id=ids[target_type], limits=QUICK)
        view = await seen(target.follow(one), RunView(run_id=one.run_id))
        await target.aclose()
        return view

    async def both(seed: int, question: str) -> None:
        name = f"random-{demo.pid}-{target_type}-{seed}"
        whole = await answer(f"{name}-whole", question, demo.url)
        async with RandomlyCut(demo.url, random.Random(seed)) as proxy:
            cut = await answer(name, question, proxy.url)
        assert (cut.text, cut.reasoning, cut.state) == (whole.text, whole.reasoning, RunState.COMPLETED), seed
        assert [(step.kind, step.name, step.state) for step in cut.steps] == [
            (step.kind, step.name, step.state) for step in whole.steps
        ], seed
        assert proxy.connections > 1, seed
        calls = [await model_calls(demo, f"session-{one}") for one in (name, f"{name}-whole")]
        assert calls[0] == calls[1] > 0, f"{seed}: the model was asked no more than without cuts"

    async with asyncio.TaskGroup() as group:
        for seed, question in enumerate(ANSWERS):
            group.create_task(both(seed, question))


async def model_calls(demo: DemoAgentOS, session_id: str) -> int:
    async with httpx.AsyncClient() as client:
        counts = (await client.get(f"{demo.url}/demo/model-calls")).json()
    return int(counts["by_session"].get(session_id, 0))


async def test_a_connection_cut_in_the_middle_of_an_event_is_resumed(demo: DemoAgentOS) -> None:
    one = request("count fast to 8", f"torn-{demo.pid}")
    async with proxied(demo, TargetType.AGENT) as (target, proxy):
        proxy.cut_after_bytes = 1500
        view = await seen(target.follow(one), RunView(run_id=one.run_id))
    assert view.text == COUNTED
    assert proxy.connections >= 2


async def test_a_lost_answer_to_the_submission_is_found_again(demo: DemoAgentOS) -> None:
    """The request arrived, not one byte came back: the model must not be asked twice."""
    one = request("count fast to 8", f"lost-{demo.pid}")
    async with proxied(demo, TargetType.AGENT) as (target, proxy):
        proxy.cut_after_bytes = 0
        view = await seen(target.follow(one), RunView(run_id=one.run_id))
    assert (view.text, view.state) == (COUNTED, RunState.COMPLETED)
    assert await model_calls(demo, one.session_id) == 1


async def test_silence_is_not_an_end(demo: DemoAgentOS) -> None:
    one = request("silence 2", f"silent-{demo.pid}")
    async with proxied(demo, TargetType.AGENT) as (target, proxy):
        view = await seen(target.follow(one), RunView(run_id=one.run_id))
        assert proxy.connections >= 2
    assert (view.text, view.state) == ("Let me see... done.", RunState.COMPLETED)


async def test_a_run_left_by_its_listener_goes_on_and_is_resumed_later(demo: DemoAgentOS) -> None:
    one = request("count fast to 8", f"left-{demo.pid}")
    view = RunView(run_id=one.run_id)
    async with proxied(demo, TargetType.AGENT) as (target, _):
        following = target.follow(one)
        async for event in following:
            view = fold(view, event)
            if view.text.endswith("3 "):
                break
        await following.aclose()
        await asyncio.sleep(0.3)
        view = await seen(target.resume(view.run_id, one.session_id, view.last_index), view)
    assert (view.text, view.state) == (COUNTED, RunState.COMPLETED)


async def test_a_plain_stream_that_is_cut_is_told_as_interrupted(demo: DemoAgentOS) -> None:
    one = request("count to 50", f"plain-{demo.pid}")
    async with proxied(demo, TargetType.AGENT, target_id=demo.plain_agent_id) as (target, proxy):
        following = target.follow(one)
        async for event in following:
            if event.name == "RunContent":
                proxy.cut()
                break
        with pytest.raises(TargetError) as caught:
            await seen(following, RunView(run_id=one.run_id))
    assert caught.value.reason == FaultReason.INTERRUPTED


async def test_a_plain_stream_is_given_as_long_as_a_run_may_be_silent(demo: DemoAgentOS) -> None:
    one = request("silence 2", f"plain-silence-{demo.pid}")
    async with proxied(demo, TargetType.AGENT, target_id=demo.plain_agent_id) as (target, _):
        view = await seen(target.follow(one), RunView(run_id=one.run_id))
    assert view.text == "Let me see... done."


async def test_a_run_that_was_finished_before_agentos_restarted_is_taken_from_its_database(tmp_path: Path) -> None:
    port = free_port()
    one = request("weather in Rome", "restarted")
    async with start_demo_agentos(port=port, db_path=tmp_path / "s.sqlite3") as demo:
        target = RemoteTarget(base_url=demo.url, target_type=TargetType.AGENT, target_id=demo.agent_id, limits=QUICK)
        view = RunView(run_id=one.run_id)
        following = target.follow(one)
        async for event in following:
            view = fold(view, event)
            if view.text.endswith("up "):
                break
        await following.aclose()
        partial = view
        view = await seen(target.resume(one.run_id, one.session_id), RunView(run_id=one.run_id))
        os.kill(demo.pid, signal.SIGKILL)
        await demo.process.wait()
    async with start_demo_agentos(port=port, db_path=tmp_path / "s.sqlite3"):
        again = await seen(target.resume(one.run_id, one.session_id, partial.last_index), partial)
        await target.aclose()
    assert (again.text, again.state) == (view.text, RunState.COMPLETED)
    assert again.text != partial.text


@pytest.mark.parametrize("durable_queue", [False, True], ids=["no-queue", "durable-queue"])
async def test_runs_whose_agentos_was_restarted_end_as_lost_and_keep_their_text(
    tmp_path: Path, durable_queue: bool
) -> None:
    """All kinds at once. The queue is kept in memory here, so that it is gone with the process."""
    port = free_port()
    limits = replace(QUICK, run_timeout_s=50.0, lost_s=2.0)
    begun, restarted = asyncio.Barrier(len(TYPES) + 1), asyncio.Event()

    async def follow(target_type: TargetType, url: str, target_id: str) -> tuple[RunView, TargetError | None]:
        one = request("count fast to 500", f"died-{target_type}")
        view = RunView(run_id=one.run_id)
        target = RemoteTarget(base_url=url, target_type=target_type, target_id=target_id, limits=limits)
        waiting = True
        try:
            async for event in target.follow(one):
                view = fold(view, event)
                if waiting and view.text.endswith("3 "):
                    waiting = False
                    await begun.wait()
            return view, None
        except TargetError as error:
            assert restarted.is_set(), "not while it does not answer"
            stuck = await target.find(view.run_id, one.session_id)
            assert stuck is not None
            assert (stuck.state, stuck.content) == (RunState.RUNNING, "")
            return view, error
        finally:
            await target.aclose()

    database = tmp_path / "s.sqlite3"
    async with asyncio.TaskGroup() as group:
        async with start_demo_agentos(port=port, db_path=database, durable_queue=durable_queue) as demo:
            ids = (demo.agent_id, demo.team_id, demo.workflow_id)
            tasks = [
                group.create_task(follow(target_type, demo.url, target_id))
                for target_type, target_id in zip(TYPES, ids, strict=True)
            ]
            await begun.wait()
            os.kill(demo.pid, signal.SIGKILL)
            await demo.process.wait()
        async with start_demo_agentos(port=port, db_path=database, durable_queue=durable_queue):
            restarted.set()
            ended = await asyncio.gather(*tasks)
    for view, error in ended:
        assert error is not None
        assert error.reason == FaultReason.LOST
        assert view.text.startswith("1 2 3 ")


async def test_a_run_whose_agentos_does_not_come_back_ends_after_the_timeout() -> None:
    one = request("count to 500", "gone")
    limits = replace(QUICK, run_timeout_s=2.0, lost_s=1.0)
    async with start_demo_agentos() as demo:
        target = RemoteTarget(base_url=demo.url, target_type=TargetType.AGENT, target_id=demo.agent_id, limits=limits)
        following = target.follow(one)
        async for event in following:
            if event.name == "RunContent":
                break
        os.kill(demo.pid, signal.SIGKILL)
        await demo.process.wait()
    with pytest.raises(TargetError) as caught:
        await seen(following, RunView(run_id=one.run_id))
    await target.aclose()
    assert caught.value.reason == FaultReason.TIMEOUT
