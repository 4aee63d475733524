"""The AgentOS is called with the proxy rules that hold for Feishu: this machine is never proxied."""

import asyncio

import pytest

from agno_lark.errors import TargetError
from agno_lark.targets import RemoteTarget, TargetType
from agno_lark.targets.protocol import FaultReason


async def test_an_agentos_on_this_machine_is_called_past_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    called = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    target = RemoteTarget(base_url=f"http://127.0.0.1:{port}", target_type=TargetType.AGENT, target_id="a")
    async with server:
        with pytest.raises(TargetError) as caught:
            await target.find("run", "session")
        await asyncio.wait_for(called.wait(), 5)
    assert caught.value.reason != FaultReason.UNREACHABLE
    await target.aclose()
