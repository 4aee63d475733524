"""What the command line and a ready daemon have imported: not lark_oapi, which takes seconds and 170 MB, nor agno."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from agno_lark.testing import FeishuSandbox

TELL = (
    "import json, sys; print(json.dumps([name for name in ('agno_lark', 'agno', 'lark_oapi') if name in sys.modules]))"
)
HELP = f"""
from agno_lark.cli import cli
cli.main(["--help"], standalone_mode=False)
{TELL}
"""
DAEMON = f"""
import os, signal, sys, threading, time, urllib.error, urllib.request

def look_when_ready():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
    while True:
        try:
            opener.open("http://127.0.0.1:" + os.environ["BRIDGE_PORT"] + "/readyz", timeout=5).close()
            break
        except OSError:
            time.sleep(0.02)
    {TELL}
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=look_when_ready, daemon=True).start()
from agno_lark.cli import main
sys.argv = ["agno-lark", "--env-file", ""]
main()
"""


async def imported_by(script: str, settings: Mapping[str, str]) -> list[str]:
    """Which of the three were imported, as the script itself told in its last line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **settings},
    )
    try:
        async with asyncio.timeout(50):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 0, errors.decode()
    names: list[str] = json.loads(output.splitlines()[-1])
    return names


async def test_the_help_text_needs_neither_lark_oapi_nor_agno() -> None:
    assert await imported_by(HELP, {}) == ["agno_lark"]


async def test_a_ready_daemon_has_imported_neither_lark_oapi_nor_agno(tmp_path: Path, unused_tcp_port: int) -> None:
    async with FeishuSandbox() as feishu:
        settings = {
            "FEISHU_APP_ID": feishu.app_id,
            "FEISHU_APP_SECRET": feishu.app_secret,
            "LARK_API_BASE_URL": feishu.url,
            "AGENTOS_URL": "http://127.0.0.1:9",
            "AGENTOS_TARGET_ID": "demo-agent",
            "FEISHU_STATE_DB": str(tmp_path / "state.sqlite3"),
            "BRIDGE_PORT": str(unused_tcp_port),
            "BRIDGE_DRAIN_TIMEOUT": "0",
        }
        assert await imported_by(DAEMON, settings) == ["agno_lark"]
        assert feishu.deliveries.counts["connections"] == 1
