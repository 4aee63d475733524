"""`agno-lark jobs` and `/feishu/status?message_id=` beside a daemon that runs."""

import json
from typing import Any

import httpx

from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to
from tests.daemon_fixtures import Operator

MARTA = "Marta Weiss"


async def jobs(operator: Operator, *args: str) -> tuple[int, Any]:
    code, output = await (await operator.start("jobs", *args, "--json")).ends()
    return code, json.loads(output)


async def test_an_operator_finds_a_message_takes_one_back_and_asks_a_failed_one_again(
    operator: Operator, feishu: FeishuSandbox, agentos: DemoAgentOS
) -> None:
    daemon = await operator.start()
    await daemon.ready()
    chat = feishu.direct_chat(MARTA)
    running = await feishu.write(MARTA, chat, "count slowly to 60")
    waiting = await feishu.write(MARTA, chat, "say never")
    await feishu.until(lambda _: any("2" in shown.text for shown in feishu.from_bot(chat)), within_s=15)

    async with httpx.AsyncClient(base_url=daemon.url, trust_env=False) as client:
        status = (await client.get("/feishu/status", params={"message_id": waiting.message_id})).json()
        assert status["message"]["where"] == "waiting"
        assert status["message"]["behind_count"] == 1
        assert (await client.get("/feishu/status", params={"message_id": "om_nobody"})).json()["message"] is None

    code, found = await jobs(operator, "show", running.message_id)
    assert (code, found["where"], found["run_state"]) == (0, "running", "running")
    code, told = await jobs(operator, "cancel", waiting.message_id)
    assert (code, told["done"]) == (0, True)
    code, told = await jobs(operator, "cancel", found["run_id"])
    assert (code, told["done"]) == (0, True)
    # A daemon that runs sees both at its next look, within seconds.
    ended = await feishu.until(lambda _: complete(feishu, chat, 2), within_s=20)
    assert ended is not None
    assert not any("never" in text for text in ended)
    assert sum("Stopped" in text for text in ended) == 2

    failed = await feishu.write(MARTA, chat, "please fail")
    await answer_to(feishu, chat, after=2)
    assert (await jobs(operator, "show", failed.message_id))[1]["where"] == "failed"
    code, told = await jobs(operator, "retry", failed.message_id)
    assert (code, told["done"]) == (0, True)
    again = await answer_to(feishu, chat, after=3, within_s=20)
    assert "Asked again; what came of it" in again.text
    first_time = (await jobs(operator, "show", failed.message_id))[1]["retry_of"]
    code, told = await jobs(operator, "retry", first_time)
    assert (code, told["done"]) == (1, False)


def complete(feishu: FeishuSandbox, chat: str, count: int) -> list[str] | None:
    shown = feishu.from_bot(chat)
    done = len(shown) == count and not any(each.streaming for each in shown)
    return [each.text for each in shown] if done else None
