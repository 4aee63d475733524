"""Cases from the field (cases.md), each with what is right: redelivery over a restart, strange events, two bridges of
one app, a busy person. No. 2 is in test_open_turns, no. 8 in test_card_writer."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agno_lark.app import Bridge
from agno_lark.clock import SystemClock
from agno_lark.retention import Retention, rules
from agno_lark.targets import FollowStart, RunEvent, RunRequest
from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import MARTA, LaterClock, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to

MESSAGES = "im.message.receive_v1"
EVENTS = Path(__file__).parents[1] / "data" / "payloads" / "events"


@pytest.fixture
async def feishu() -> AsyncIterator[FeishuSandbox]:
    async with FeishuSandbox(redelivery_s=(0.2, 0.5), strict_cards=True) as sandbox:
        yield sandbox


def count(bridge: Bridge, name: str) -> int:
    assert bridge._intake is not None
    return bridge._intake.counts[name]


def envelope(feishu: FeishuSandbox) -> dict[str, Any]:
    (parcel,) = [each for each in feishu.deliveries.parcels.values() if each.event_type == MESSAGES]
    body: dict[str, Any] = json.loads(parcel.payload)
    return body


@pytest.mark.parametrize("later_s", [300, 3600, 6 * 3600], ids=["5 min", "1 h", "6 h"])
async def test_1_a_redelivery_over_a_restart_is_no_second_run(
    feishu: FeishuSandbox, tmp_path: Path, later_s: int
) -> None:
    target, chat = PlayedTarget(answer), feishu.direct_chat(MARTA)
    async with bridge_on(feishu, target, tmp_path):
        await feishu.write(MARTA, chat, "hello")
        await answer_to(feishu, chat)
    again = envelope(feishu)
    renamed = json.loads(json.dumps(again))
    renamed["header"]["event_id"] = "another-event-of-the-same-message"
    async with bridge_on(feishu, target, tmp_path, clock=LaterClock(later_s)) as bridge:
        assert bridge._store is not None
        await Retention(bridge._store, rules(bridge.settings), clock=LaterClock(later_s)).clean()
        feishu.deliveries.post_raw(again)
        feishu.deliveries.post_raw(renamed)
        await feishu.until(lambda _: count(bridge, "message.duplicate") == 2)
    assert len(target.starts) == 1
    assert len(feishu.from_bot(chat)) == 1


async def test_14_events_nobody_asked_for_are_acknowledged_and_counted(feishu: FeishuSandbox, tmp_path: Path) -> None:
    read = json.loads((EVENTS / "message_read.json").read_text("utf-8"))
    kinds = {"im.message.message_read_v1": read}
    for name in ("im.chat.access_event.bot_p2p_chat_entered_v1", "nobody.knows_v9"):
        kinds[name] = {"schema": "2.0", "header": {**read["header"], "event_id": name, "event_type": name}, "event": {}}
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
        for body in kinds.values():
            feishu.deliveries.post_raw(body)
        await feishu.until(lambda _: feishu.deliveries.counts["acks_200"] == 3)
        for name in kinds:
            assert count(bridge, f"ignored.{name}") == 1
        assert feishu.deliveries.counts["acks_500"] == 0


async def test_15_a_second_bridge_of_the_app_on_another_state_file_is_warned_of(
    feishu: FeishuSandbox, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On the same state file the second start is refused: test_daemon."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path / "one"):
        assert "another bridge of the same app" not in caplog.text
        async with bridge_on(feishu, PlayedTarget(answer), tmp_path / "two"):
            assert "another bridge of the same app runs here" in caplog.text
    caplog.clear()
    async with bridge_on(feishu, PlayedTarget(answer), tmp_path / "one"):
        assert "another bridge of the same app" not in caplog.text


async def test_18_five_messages_while_a_run_is_under_way_wait_in_order_and_are_told(
    feishu: FeishuSandbox, tmp_path: Path
) -> None:
    import asyncio

    chat, go_on = feishu.direct_chat(MARTA), asyncio.Event()

    async def slow_first(start: FollowStart) -> AsyncGenerator[RunEvent]:
        assert isinstance(start, RunRequest)
        if start.message == "first":
            await go_on.wait()
        async for event in answer(start, f"answer to {start.message}"):
            yield event

    target = PlayedTarget(slow_first)
    asked = ["first", *(f"number {number}" for number in range(1, 6))]
    async with bridge_on(feishu, target, tmp_path) as bridge:
        sent = [await feishu.write(MARTA, chat, text) for text in asked]
        await feishu.until(lambda _: count(bridge, "message.turn") == 6)
        await feishu.write(MARTA, chat, "/status")
        status = await feishu.until(lambda _: next((s for s in feishu.from_bot(chat) if "Waiting" in s.text), None))
        assert status is not None
        assert status.text.count("- waiting") == 5
        last = await bridge.whereabouts(sent[-1].message_id)
        assert last is not None
        assert (last["where"], last["behind_count"]) == ("waiting", 5)
        go_on.set()
        await feishu.until(lambda _: len(target.submissions) == 6 and not active(feishu, chat), within_s=20)
    assert [each.message for each in target.submissions] == asked
    texts = [shown.text for shown in feishu.from_bot(chat)]
    for text in asked:
        assert sum(f"answer to {text}" in shown for shown in texts) == 1


def active(feishu: FeishuSandbox, chat: str) -> bool:
    shown = feishu.from_bot(chat)
    return len(shown) < 7 or any(each.streaming for each in shown)


def test_the_clock_of_the_machine_set_back_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No case of the field's, but of its kind: what waits for a time must not wait an hour longer for it."""
    import time

    clock, wall_ns = SystemClock(), time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns - 3_600_000_000_000)
    first = clock.now_ms()
    assert first >= wall_ns // 1_000_000
    assert clock.now_ms() >= first
