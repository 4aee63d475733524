"""The demo AgentOS for tests: its process is looked after by a loop of its own, in a thread.

A fixture that lives longer than one test can't use the test's event loop: nobody would read the process's output.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from agno_lark.sandbox.agentos import DemoAgentOS, start_demo_agentos


@contextmanager
def demo_agentos(
    *,
    token: str = "",
    durable_queue: bool = False,
    instant: bool = False,
    db_path: Path | None = None,
    calls_path: Path | str = "",
    port: int = 0,
) -> Iterator[DemoAgentOS]:
    """A running demo AgentOS, for as long as the block lasts. The options are those of `start_demo_agentos`."""
    ready: Future[DemoAgentOS] = Future()
    done = threading.Event()

    async def look_after() -> None:
        try:
            async with start_demo_agentos(
                token=token,
                durable_queue=durable_queue,
                instant=instant,
                db_path=db_path,
                calls_path=calls_path,
                port=port,
            ) as demo:
                ready.set_result(demo)
                await asyncio.to_thread(done.wait)
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=lambda: asyncio.run(look_after()), name="demo-agentos")
    thread.start()
    try:
        yield ready.result()
    finally:
        done.set()
        thread.join()


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class CuttingProxy:
    """A TCP proxy in front of an AgentOS. Cuts what goes through it when told to, by reset or in silence.

    `cut_after_bytes`: of one connection's answers, the next that comes so far; with `mute_at_cut` nothing more comes of
    it instead of a reset.
    """

    def __init__(self, target_url: str) -> None:
        host, port = target_url.removeprefix("http://").rsplit(":", 1)
        self._target = (host, int(port))
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.url = ""
        self.connections = 0
        self.requests: list[bytes] = []
        self.cut_after_bytes: int | None = None
        self.mute_at_cut = False
        self.mute = False
        self.refuse = False

    async def __aenter__(self) -> "CuttingProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()  # ends the tasks too: their streams are at their end
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    def cut(self) -> None:
        """Reset every connection that is open."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refuse:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._writers |= {writer, far_writer}
            up = asyncio.create_task(self._pump(reader, far_writer, answers=False))
            await self._pump(far_reader, writer, answers=True)
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
            for end in (writer, far_writer):
                end.transport.abort()
                self._writers.discard(end)
        finally:
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        passed = 0
        try:
            while chunk := await reader.read(65536):
                if not answers:
                    self.requests.append(chunk)
                elif self.mute:
                    continue
                elif self.cut_after_bytes is not None and passed + len(chunk) > self.cut_after_bytes:
                    writer.write(chunk[: self.cut_after_bytes - passed])
                    await writer.drain()
                    self.cut_after_bytes = None
                    if self.mute_at_cut:
                        await reader.read()
                    return
                passed += len(chunk)
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            return
