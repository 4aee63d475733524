"""One round of the benchmark: the bridge, then the SDK's channel, each alone on the machine, over the same loads."""

import contextlib
import os
import platform
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agno_lark.testing import FeishuSandbox, Limits
from tests.bench.load import Load, Scene, run_load
from tests.bench.processes import HERE, Running, bridge_settings, free_port, spawn, until_ready
from tests.bench.watch import Watch

__all__ = ["LIFTED", "STRICT", "Rules", "describe_machine", "one_round"]

SYSTEMS = ("bridge", "sdk")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """Which rates hold in the local Feishu, and whether the bridge keeps its own gates for them."""

    name: str
    told: str
    limits: Limits
    lifted: bool


STRICT = Rules(
    name="feishu",
    told="Feishu's rates hold in the sandbox (50/s and 1000/min an API, 5 sends/s a chat, 10 operations/s a card), "
    "and the bridge keeps its gates below them: 14 turns/s an app is then the most there can be",
    limits=Limits(),
    lifted=False,
)
LIFTED = Rules(
    name="lifted",
    told="rates of app and chat are lifted, in the sandbox and in the bridge; a card's hold: what the code can do",
    limits=Limits(api_per_s=0, api_per_min=0, sends_per_chat_per_s=0),
    lifted=True,
)


async def one_round(rules: Rules, system: str, loads: Sequence[Load], *, agentos_kind: str) -> list[dict[str, Any]]:
    """The rows of one system under one set of rules, one a load."""
    with tempfile.TemporaryDirectory(prefix="agno-lark-bench-") as name:
        folder = Path(name)
        async with contextlib.AsyncExitStack() as stack:
            agentos = await stack.enter_async_context(spawn(str(HERE / "agentos.py"), agentos_kind))
            feishu = await stack.enter_async_context(FeishuSandbox(limits=rules.limits))
            watch = Watch(feishu)
            stack.enter_context(watch.on())
            start = _bridge if system == "bridge" else _sdk
            bot = await stack.enter_async_context(start(feishu, agentos.told, folder, rules))
            await feishu.until_connected(within_s=30)
            scene = Scene(feishu=feishu, watch=watch, bot=bot, agentos=agentos, disk=folder)
            await run_load(scene, Load(chats=1, messages=2, word="warm-up"))
            return [{"rules": rules.name, "system": system, **await run_load(scene, load)} for load in loads]


@contextlib.asynccontextmanager
async def _bridge(feishu: FeishuSandbox, agentos_url: str, folder: Path, rules: Rules) -> AsyncIterator[Running]:
    port = free_port()
    env = bridge_settings(feishu, agentos_url, folder, port)
    command = [str(HERE / "bridge_lifted.py")] if rules.lifted else ["-m", "agno_lark.cli"]
    async with spawn(*command, "--env-file", "", env=env, log=folder / "bridge.log") as bot:
        await until_ready(port)
        yield bot


@contextlib.asynccontextmanager
async def _sdk(feishu: FeishuSandbox, agentos_url: str, folder: Path, rules: Rules) -> AsyncIterator[Running]:
    command = (str(HERE / "sdk_bot.py"), feishu.url, feishu.app_id, feishu.app_secret, agentos_url)
    async with spawn(*command, log=folder / "sdk.log") as bot:
        yield bot


def describe_machine() -> dict[str, Any]:
    """What the numbers were taken on, and by whom they were disturbed."""
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "state_folder": _filesystem(Path(tempfile.gettempdir())),
    }


def _filesystem(folder: Path) -> str:
    """Kind of the file system that holds the state database."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    resolved = str(folder.resolve())
    fitting = [mount for mount in mounts if resolved == mount[1] or resolved.startswith(mount[1].rstrip("/") + "/")]
    return max(fitting, key=lambda mount: len(mount[1]))[2] if fitting else "unknown"
