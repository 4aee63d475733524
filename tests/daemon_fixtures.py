"""The `agno-lark` command in processes of its own, as an operator starts it."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from agno_lark.testing import FeishuSandbox

__all__ = ["Daemon", "Operator"]


@dataclass
class Daemon:
    """A running `agno-lark` process."""

    process: asyncio.subprocess.Process
    url: str

    async def ready(self) -> None:
        async with asyncio.timeout(20), httpx.AsyncClient(trust_env=False) as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/readyz")).status_code == 200:
                        return
                if self.process.returncode is not None:
                    raise AssertionError((await self.output())[-3000:])
                await asyncio.sleep(0.05)

    async def output(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.read()).decode()

    async def ends(self, within_s: float = 15) -> tuple[int, str]:
        async with asyncio.timeout(within_s):
            text = await self.output()
            return await self.process.wait(), text


class Operator:
    """`async with Operator(…)`: starts daemons with the settings of one app, and leaves none behind."""

    def __init__(self, feishu: FeishuSandbox, agentos_url: str, folder: Path) -> None:
        self.folder = folder
        self.env = {
            "PATH": os.environ["PATH"],
            "FEISHU_APP_ID": feishu.app_id,
            "FEISHU_APP_SECRET": feishu.app_secret,
            "LARK_API_BASE_URL": feishu.url,
            "AGENTOS_URL": agentos_url,
            "AGENTOS_TARGET_ID": "demo-agent",
            "FEISHU_STATE_DB": str(folder / "state.sqlite3"),
            "BRIDGE_PORT": "0",
            "BRIDGE_DRAIN_TIMEOUT": "1",
            "LOG_LEVEL": "debug",
        } | {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
        self.daemons: list[Daemon] = []

    async def __aenter__(self) -> "Operator":
        return self

    async def __aexit__(self, *_: object) -> None:
        for daemon in self.daemons:
            if daemon.process.returncode is None:
                daemon.process.kill()
            await daemon.ends()

    async def start(self, *args: str, through: Sequence[str] = (), **env: str) -> Daemon:
        """`through` is a command that runs the one behind it."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [*through, sys.executable, "-m", "agno_lark.cli", *(args or ("--port", str(port)))]
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self.env | env,
            cwd=self.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        daemon = Daemon(process, f"http://127.0.0.1:{port}")
        self.daemons.append(daemon)
        return daemon
