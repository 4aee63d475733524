"""The processes of a benchmark: started, waited for, measured through /proc, and ended."""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from agno_lark.testing import FeishuSandbox

__all__ = ["HERE", "Running", "bridge_settings", "environment", "free_port", "fsync_times_s", "spawn", "until_ready"]

HERE = Path(__file__).parent
_TICKS = os.sysconf("SC_CLK_TCK")


class Running:
    """A process by its id; also our own."""

    def __init__(self, pid: int, told: str = "") -> None:
        self.pid = pid
        self.told = told  # what it printed after `ready `

    def forget_peak(self) -> None:
        """Start the peak of memory anew from what is in use now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_rss_mb(self) -> float:
        """Resident memory at its highest since `forget_peak`, MB of 2**20 bytes."""
        return self._status_mb("VmHWM:")

    def rss_mb(self) -> float:
        """Resident memory now, MB of 2**20 bytes."""
        return self._status_mb("VmRSS:")

    def _status_mb(self, name: str) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return round(int(line.split()[1]) / 1024, 1)
        raise LookupError(f"this system does not tell {name}")

    def cpu_s(self) -> float:
        """Seconds of processor time so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, with bytecode written to (and read from) a cache, and none of our own settings in it."""
    ours = ("FEISHU_", "AGENTOS_", "LARK_", "BRIDGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "agno-lark-bench-bytecode"))
    return {**kept, **(more or {})}


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def bridge_settings(feishu: FeishuSandbox, agentos_url: str, folder: Path, port: int) -> dict[str, str]:
    """The daemon's settings, as environment variables."""
    return {
        "FEISHU_APP_ID": feishu.app_id,
        "FEISHU_APP_SECRET": feishu.app_secret,
        "LARK_API_BASE_URL": feishu.url,
        "AGENTOS_URL": agentos_url,
        "AGENTOS_TARGET_ID": "demo-agent",
        "FEISHU_STATE_DB": str(folder / "state.sqlite3"),
        "BRIDGE_PORT": str(port),
        "BRIDGE_DRAIN_TIMEOUT": "2",
    }


@contextlib.asynccontextmanager
async def spawn(*command: str, env: Mapping[str, str] | None = None, log: Path | None = None) -> AsyncIterator[Running]:
    """`python *command`, warnings off; its stderr goes to `log`. Ends with SIGTERM, after 15 s with SIGKILL.

    A process that prints `ready …` is waited for when its command names one of our scripts that do (see `until_ready`
    for the daemon).
    """
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("wb")) if log else asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=environment(env),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            told = ""
            if Path(command[0]).name in ("agentos.py", "sdk_bot.py"):
                told = await _ready(process.stdout)
            yield Running(process.pid, told)
        finally:
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(15):
                    await process.communicate()
            except TimeoutError:
                process.kill()
                await process.communicate()


async def _ready(stdout: asyncio.StreamReader) -> str:
    async with asyncio.timeout(60):
        while line := await stdout.readline():
            if line.startswith(b"ready "):
                return line[6:].decode().strip()
    raise RuntimeError("a process of the benchmark ended before it was ready")


async def _http_status(port: int, path: str) -> int:
    """The status of a GET on this machine; 0 where nobody answers."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return 0
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        answer = await reader.read()
        return int(answer.split(b" ", 2)[1]) if answer else 0
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def until_ready(port: int, *, within_s: float = 30) -> float:
    """Ask /readyz every 10 ms until it says 200; returns when that was (monotonic seconds)."""
    async with asyncio.timeout(within_s):
        while await _http_status(port, "/readyz") != 200:
            await asyncio.sleep(0.01)
    return time.monotonic()


def fsync_times_s(folder: Path, count: int = 100) -> list[float]:
    """How long this disk takes to make 4 KiB appended to a file durable: the floor under every commit."""
    path = folder / "fsync.probe"
    times: list[float] = []
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(4096))
            started_s = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started_s)
    path.unlink()
    return times
