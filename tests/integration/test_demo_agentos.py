"""The demo AgentOS as a process: starts, says where it is, and goes."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from agno_lark.sandbox.agentos import DemoNotReady, start_demo_agentos
from agno_lark.sandbox.demo_calls import read_calls
from agno_lark.targets import RemoteTarget, RunView, TargetType
from tests.targets_fixtures import request, seen


async def test_it_is_ready_when_it_says_so_and_gone_afterwards() -> None:
    async with start_demo_agentos(instant=True) as demo:
        async with httpx.AsyncClient() as client:
            config = (await client.get(f"{demo.url}/config")).json()
        target = RemoteTarget(base_url=demo.url, target_type=TargetType.AGENT, target_id=demo.agent_id)
        view = await seen(target.follow(request("what is this?", "instant")), RunView(run_id="run-instant"))
        await target.aclose()
    assert {row["id"] for row in config["agents"]} >= {demo.agent_id, demo.plain_agent_id}
    assert [row["id"] for row in config["teams"]] == [demo.team_id]
    assert [row["id"] for row in config["workflows"]] == [demo.workflow_id]
    assert view.text == "ok"
    assert demo.process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(demo.pid, 0)


async def test_a_start_that_fails_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(DemoNotReady, match="Address already in use"):
        await start_demo_agentos(port=taken.getsockname()[1]).__aenter__()


def test_starting_it_does_not_import_agno() -> None:
    code = (
        "import sys, agno_lark.sandbox.agentos, agno_lark.targets; print(sorted(m for m in sys.modules if m == 'agno'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_ctrl_c_ends_it_without_a_traceback() -> None:
    async with start_demo_agentos() as demo:
        demo.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(10):
            await demo.process.wait()
    assert demo.process.returncode == 0
    assert not [line for line in demo.log if "Traceback" in line]


async def test_the_count_of_model_calls_outlives_a_kill(tmp_path: Path) -> None:
    db_path, calls_path = tmp_path / "sessions.sqlite3", tmp_path / "calls.jsonl"
    async with start_demo_agentos(db_path=db_path, calls_path=calls_path) as demo:
        target = RemoteTarget(base_url=demo.url, target_type=TargetType.AGENT, target_id=demo.agent_id)
        async with aclosing(target.follow(request("count slowly to 100", "killed"))) as events:
            async for event in events:
                if event.name == "RunContent":
                    break
        demo.process.kill()
        await demo.process.wait()
        await target.aclose()
    async with start_demo_agentos(db_path=db_path, calls_path=calls_path) as demo:
        target = RemoteTarget(base_url=demo.url, target_type=TargetType.AGENT, target_id=demo.agent_id)
        await seen(target.follow(request("hello", "after")), RunView(run_id="run-after"))
        await target.aclose()
        async with httpx.AsyncClient() as client:
            counted = (await client.get(f"{demo.url}/demo/model-calls")).json()
    assert counted["by_run"] == {"run-killed": 1, "run-after": 1}
    assert [(call.run_id, call.turn_id) for call in read_calls(calls_path)] == [
        ("run-killed", "turn-killed"),
        ("run-after", "turn-after"),
    ]
