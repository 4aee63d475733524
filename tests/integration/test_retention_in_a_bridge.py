"""A bridge at work forgets what it has kept long enough, and nobody who writes meanwhile notices."""

from pathlib import Path

import pytest

from agno_lark import retention
from agno_lark.store import Store, Tx
from agno_lark.testing import FeishuSandbox
from tests.break_fixtures import MARTA, PlayedTarget, answer, bridge_on
from tests.bridge_fixtures import answer_to

OLD = """
INSERT INTO jobs (id, kind, queue, lane, state, payload, created_ms, available_ms, finished_ms)
VALUES (:id, 'turn', 'turns', 'lane', :state, '{}', 1, 1, 1)
"""
LEFT = "SELECT id FROM jobs WHERE id LIKE 'old-%'"


def fill(tx: Tx) -> None:
    for number in range(3_000):
        tx.execute(OLD, {"id": f"old-{number}", "state": "done" if number else "unknown"})


async def test_old_jobs_go_while_a_person_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FIRST_S", 0.05)
    async with Store.open(tmp_path / "state.sqlite3") as store:
        await store.transact(fill)
    async with FeishuSandbox() as feishu:
        chat = feishu.direct_chat(MARTA)
        async with bridge_on(feishu, PlayedTarget(answer), tmp_path) as bridge:
            assert bridge._store is not None
            written, left = 0, {""}
            while left != {"old-0"}:
                await feishu.write(MARTA, chat, "hello")
                assert "the answer" in (await answer_to(feishu, chat, after=written)).text
                written += 1
                left = {row["id"] for row in await bridge._store.read(LEFT)}
                assert "old-0" in left, "nobody knows how it ended"
