"""`agno-lark demo` and `agno-lark sandbox`, as a newcomer meets them."""

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path

import httpx


async def start(folder: Path, *args: str) -> asyncio.subprocess.Process:
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "PATH", "HOME"))}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agno_lark.cli", *args),
        env=kept,
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def read_until(process: asyncio.subprocess.Process, pattern: str, within_s: float = 50) -> re.Match[str]:
    """The first line of the output that matches. Fails with all of it where it ends first."""
    assert process.stdout is not None
    said = ""
    async with asyncio.timeout(within_s):
        while line := (await process.stdout.readline()).decode():
            said += line
            if found := re.search(pattern, line):
                return found
    raise AssertionError(said)


async def answers(address: str, text: str, wanted: str, within_s: float = 15) -> None:
    async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
        asked = {"person": "Marta Weiss", "chat_id": "Marta Weiss", "text": text}
        assert (await client.post("/sandbox/control/write", json=asked)).status_code == 200
        async with asyncio.timeout(within_s):
            while True:
                screen = await client.get("/sandbox/screen", params={"chat_id": "Marta Weiss"})
                if wanted in screen.text:
                    return
                await asyncio.sleep(0.1)


async def test_one_command_ends_in_an_address_where_a_person_is_answered(tmp_path: Path) -> None:
    process = await start(tmp_path, "demo", "--port", "0")
    try:
        address = (await read_until(process, r"Open (http://127\.0\.0\.1:\d+)"))[1]
        async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
            assert "<html" in (await client.get("/")).text
        await answers(address, "good morning", "You said: good morning")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(15):
            assert process.stdout is not None
            rest = (await process.stdout.read()).decode()
            assert await process.wait() == 0
        assert "Traceback" not in rest
        assert not list(tmp_path.iterdir()), "it leaves nothing behind"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_sandbox_says_what_a_bot_needs_and_ends_on_a_signal(tmp_path: Path) -> None:
    process = await start(tmp_path, "sandbox", "--port", "0")
    try:
        address = (await read_until(process, r"LARK_API_BASE_URL=(\S+)"))[1]
        async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
            ids = {"app_id": "cli_sandbox", "app_secret": "sandbox-secret"}
            token = await client.post("/open-apis/auth/v3/tenant_access_token/internal", json=ids)
            assert token.json()["code"] == 0
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in ("demo", "sandbox"):
            process = await start(tmp_path, command, "--port", port)
            assert process.stdout is not None
            said = (await process.stdout.read()).decode()
            assert await process.wait() == 2
            assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in said
            assert "Traceback" not in said
