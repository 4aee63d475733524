"""The `agno-lark` command as an operator meets it: exit codes, signals, restarts, logs."""

import asyncio
import signal
from pathlib import Path

import httpx
import pytest

from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to
from tests.daemon_fixtures import Operator

MARTA = "Marta Weiss"
WORDS = "the-word-that-must-not-be-logged"


@pytest.fixture
def no_database(tmp_path: Path) -> str:
    path = tmp_path / "damaged.sqlite3"
    path.write_bytes(b"this was a database once, now it is a text that is long enough to look like one")
    return str(path)


async def test_it_serves_status_and_health_and_ends_on_a_signal(operator: Operator, feishu: FeishuSandbox) -> None:
    daemon = await operator.start()
    await daemon.ready()
    async with httpx.AsyncClient(base_url=daemon.url, trust_env=False) as client:
        status = (await client.get("/feishu/status")).json()
        assert status["connection"]["state"] == "connected"
        assert status["connection"]["last_frame_age_ms"] is None or status["connection"]["last_frame_age_ms"] >= 0
        assert feishu.app_secret not in str(status)
        assert (await client.get("/healthz")).json() == {"status": "ok"}
    port = daemon.url.rsplit(":", 1)[1]
    assert (await (await operator.start("health", "--port", port)).ends())[0] == 0
    daemon.process.send_signal(signal.SIGTERM)
    code, output = await daemon.ends()
    assert code == 0
    assert "Traceback" not in output
    assert (await (await operator.start("health", "--port", port)).ends())[0] == 1


async def test_a_second_daemon_on_the_same_state_file_names_the_first(operator: Operator) -> None:
    first = await operator.start()
    await first.ready()
    code, output = await (await operator.start()).ends()
    assert code == 3
    assert f"process {first.process.pid}" in output
    assert first.url in output


@pytest.mark.parametrize(
    ("env", "code", "told"),
    [
        ({"FEISHU_APP_SECRET": "wrong"}, 5, "FEISHU_APP_SECRET"),
        ({"FEISHU_APP_ID": "", "BRIDGE_PORT": "x"}, 2, "2 settings are wrong"),
        ({"BRIDGE_HOST": "203.0.113.9"}, 2, "cannot listen on 203.0.113.9"),
        ({"FEISHU_STATE_DB": "DAMAGED"}, 4, "not a database"),
    ],
)
async def test_what_is_wrong_is_told_with_its_exit_code_and_no_traceback(
    operator: Operator, no_database: str, env: dict[str, str], code: int, told: str
) -> None:
    given = {name: no_database if value == "DAMAGED" else value for name, value in env.items()}
    ended, output = await (await operator.start(**given)).ends()
    assert ended == code
    assert told in output
    assert "Traceback" not in output
    assert "wrong" not in env.values() or "'wrong'" not in output


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_turn_that_is_interrupted_goes_on_in_the_same_card(
    operator: Operator, feishu: FeishuSandbox, agentos: DemoAgentOS, how: signal.Signals
) -> None:
    first = await operator.start()
    await first.ready()
    chat = feishu.direct_chat(MARTA)
    await feishu.write(MARTA, chat, "count slowly to 12")
    await feishu.until(lambda _: any("1 2 3 " in shown.text for shown in feishu.from_bot(chat)), within_s=10)
    first.process.send_signal(how)
    await first.ends()
    second = await operator.start()
    await second.ready()
    shown = await answer_to(feishu, chat)
    assert "1 2 3 4 5 6 7 8 9 10 11 12" in shown.text
    assert "Done" in shown.text
    assert len(feishu.from_bot(chat)) == 1
    async with httpx.AsyncClient(base_url=agentos.url, trust_env=False) as client:
        calls = (await client.get("/demo/model-calls")).json()["by_session"]
    assert [count for session, count in calls.items() if chat in session] == [1], "the model was asked once"


async def test_a_second_signal_forces_the_end(operator: Operator, feishu: FeishuSandbox) -> None:
    daemon = await operator.start(BRIDGE_DRAIN_TIMEOUT="60")
    await daemon.ready()
    chat = feishu.direct_chat(MARTA)
    await feishu.write(MARTA, chat, "count slowly to 30")
    await feishu.until(lambda _: any("1 2 " in shown.text for shown in feishu.from_bot(chat)), within_s=10)
    daemon.process.send_signal(signal.SIGINT)
    await asyncio.sleep(0.5)
    assert daemon.process.returncode is None, "it waits for the turn"
    daemon.process.send_signal(signal.SIGINT)
    code, output = await daemon.ends(within_s=3)
    assert code == 1
    assert "forced" in output


async def test_logs_hold_no_words_and_no_secrets(operator: Operator, feishu: FeishuSandbox) -> None:
    daemon = await operator.start(AGENTOS_TOKEN="agentos-token-1234")
    await daemon.ready()
    chat = feishu.direct_chat(MARTA)
    await feishu.write(MARTA, chat, f"say {WORDS}")
    assert WORDS in (await answer_to(feishu, chat)).text
    daemon.process.send_signal(signal.SIGTERM)
    _, output = await daemon.ends()
    assert "turn_ended" in output
    for secret in (WORDS, feishu.app_secret, "agentos-token-1234", "device_id", "Bearer"):
        assert secret not in output
