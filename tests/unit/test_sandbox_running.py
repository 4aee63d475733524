"""`run_sandbox`, as the command line runs it."""

import asyncio
import socket

import httpx
import pytest

from agno_lark.sandbox import run_sandbox
from tests.sandbox_fixtures import until


async def running(host: str = "127.0.0.1", port: int = 0) -> tuple[asyncio.Task[None], str]:
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run_sandbox(host, port, ready=address.set_result))
    await until(lambda: task.done() or address.done(), within_s=10)
    if task.done():
        await task
    return task, await address


async def test_it_tells_its_address_serves_the_page_and_ends_when_cancelled() -> None:
    task, url = await running()
    async with httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as http:
        assert (await http.get("/")).status_code == 200
        assert (await http.get("/sandbox/state")).json()["connections"] == 0
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert loop.time() - started_s < 2.5
    async with httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get("/")


async def test_a_port_that_is_taken_is_an_os_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await running(port=taken.getsockname()[1])


async def test_it_listens_on_ipv6_loopback_too() -> None:
    task, url = await running(host="::1")
    assert url.startswith("http://[::1]:")
    async with httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as http:
        assert (await http.get("/sandbox/state")).status_code == 200
    task.cancel()
    await asyncio.wait({task})
