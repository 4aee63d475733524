"""The offline AgentOS: `python -m agno_lark.sandbox.agentos --port N` serves it, `start_demo_agentos` runs that.

It is a process of its own, so that it can be killed, and so that whoever starts it never imports agno. When it is
ready it prints one line: `agno-lark demo AgentOS ready on http://127.0.0.1:PORT`.
"""

import argparse
import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import threading
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agno_lark.errors import AgnoLarkError

__all__ = ["AGENT_ID", "PLAIN_AGENT_ID", "TEAM_ID", "WORKFLOW_ID", "DemoAgentOS", "DemoNotReady", "start_demo_agentos"]

AGENT_ID = "demo-agent"
PLAIN_AGENT_ID = "demo-agent-plain"
TEAM_ID = "demo-team"
WORKFLOW_ID = "demo-workflow"

_READY = "agno-lark demo AgentOS ready on "
_TOKEN_VARIABLE = "AGNO_LARK_DEMO_TOKEN"  # noqa: S105 - the name of a variable
_STOP_S = 3.0
_LOG_LINES = 40


class DemoNotReady(AgnoLarkError):
    """The demo AgentOS ended, or kept silent, before it was ready; the message holds its last lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAgentOS:
    """A running demo AgentOS. `log`: its last lines, as they come."""

    url: str
    pid: int
    process: asyncio.subprocess.Process
    log: deque[str]
    agent_id: str = AGENT_ID
    plain_agent_id: str = PLAIN_AGENT_ID
    team_id: str = TEAM_ID
    workflow_id: str = WORKFLOW_ID


@contextlib.asynccontextmanager
async def start_demo_agentos(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    db_path: str | os.PathLike[str] | None = None,
    token: str = "",
    durable_queue: bool = False,
    instant: bool = False,
    calls_path: str | os.PathLike[str] = "",
    ready_timeout_s: float = 45.0,
) -> AsyncGenerator[DemoAgentOS]:
    """Start it as a process, wait until it is ready, yield it, and end it (SIGTERM, after 3 s SIGKILL).

    `port` 0: any free one. `db_path` None: a temporary file, gone at the end. `calls_path`: a file that gets a line for
    each call of a model (demo_calls), so that their count outlives the process. The process also ends by itself when
    this one dies. Raises DemoNotReady.
    """
    with contextlib.ExitStack() as stack:
        if db_path is None:
            folder = tempfile.TemporaryDirectory(prefix="agno-lark-demo-", ignore_cleanup_errors=True)
            db_path = Path(stack.enter_context(folder), "sessions.sqlite3")
        options = ["--host", host, "--port", str(port), "--db", os.fspath(db_path), "--exit-with-parent"]
        options += ["--durable-queue"] * durable_queue + ["--instant"] * instant
        options += ["--calls", os.fspath(calls_path)] if calls_path else []
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agno_lark.sandbox.agentos", *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "AGNO_TELEMETRY": "false", "PYTHONUNBUFFERED": "1", _TOKEN_VARIABLE: token},
        )
        log: deque[str] = deque(maxlen=_LOG_LINES)
        reader: asyncio.Task[None] | None = None
        try:
            url = await _wait_ready(process, log, ready_timeout_s)
            reader = asyncio.create_task(_drain(process, log), name="demo-agentos-output")
            yield DemoAgentOS(url=url, pid=process.pid, process=process, log=log)
        finally:
            await asyncio.shield(_stop(process, reader))


async def _wait_ready(process: asyncio.subprocess.Process, log: deque[str], timeout_s: float) -> str:
    try:
        async with asyncio.timeout(timeout_s):
            async for line in _lines(process):
                log.append(line)
                if line.startswith(_READY):
                    return line.removeprefix(_READY)
    except TimeoutError:
        log.append(f"(not ready within {timeout_s:g} s)")
    raise DemoNotReady("\n".join(["the demo AgentOS did not start:", *log]))


async def _drain(process: asyncio.subprocess.Process, log: deque[str]) -> None:
    async for line in _lines(process):
        log.append(line)


async def _lines(process: asyncio.subprocess.Process) -> AsyncGenerator[str]:
    while process.stdout is not None and (raw := await process.stdout.readline()):
        yield raw.decode(errors="replace").rstrip()


async def _stop(process: asyncio.subprocess.Process, reader: asyncio.Task[None] | None) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.stdin is not None:
        process.stdin.close()
    if reader is not None:
        await reader
    elif process.stdout is not None:
        await process.stdout.read()  # to its end, so that the pipe is closed before the loop is


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m agno_lark.sandbox.agentos", description="An offline demo AgentOS.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7777, help="0 for any free one")
    parser.add_argument("--db", default="", help="file of the sessions; a temporary one when left out")
    parser.add_argument("--durable-queue", action="store_true", help="accept runs into a queue (kept in memory)")
    parser.add_argument("--instant", action="store_true", help='answer "ok" to everything, at once')
    parser.add_argument("--calls", default="", help="file that gets a JSON line for each call of a model")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when standard input is closed")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. The token callers must present is taken from AGNO_LARK_DEMO_TOKEN."""
    options = _arguments(argv)
    os.environ["AGNO_TELEMETRY"] = "false"
    listener = socket.create_server((options.host, options.port), family=_family(options.host), backlog=2048)
    with contextlib.ExitStack() as stack:
        stack.callback(listener.close)
        db_path = options.db
        if not db_path:
            db_path = str(Path(stack.enter_context(tempfile.TemporaryDirectory()), "sessions.sqlite3"))
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, also while agno is being imported
            _serve(options, listener, db_path)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _serve(options: argparse.Namespace, listener: socket.socket, db_path: str) -> None:
    import uvicorn

    from agno_lark.sandbox.demo_os import DemoSettings, build_app

    class ReadyServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started and not self.should_exit:
                host = f"[{options.host}]" if ":" in options.host else options.host
                sys.stdout.write(f"{_READY}http://{host}:{listener.getsockname()[1]}\n")
                sys.stdout.flush()

    settings = DemoSettings(
        db_path=db_path,
        token=os.environ.get(_TOKEN_VARIABLE, ""),
        durable_queue=options.durable_queue,
        instant=options.instant,
        calls_path=options.calls,
    )
    config = uvicorn.Config(build_app(settings), log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = ReadyServer(config)
    if options.exit_with_parent:

        def exit_with_parent() -> None:
            # Not through sys.stdin: its lock, held by this thread, would abort the interpreter on its way out.
            while os.read(0, 1024):
                pass
            server.should_exit = True

        threading.Thread(target=exit_with_parent, name="exit-with-parent", daemon=True).start()
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
