"""What is asked often never walks through what has long been finished."""

import sqlite3

import pytest

from agno_lark.jobs import queue
from agno_lark.turns import rows
from tests.job_fixtures import job_table

ANY = dict.fromkeys(("now", "queue", "owner", "lane", "scope", "most", "requester", "prefix", "beyond", "turn"), 1)
ASKED_OFTEN = {
    "status: counts": (queue.COUNTS, ("jobs_queued", "jobs_running", "jobs_unknown")),
    "recovery": (queue.EXPIRED, ("jobs_running",)),
    "the next of a lane": (queue.NEXT_IN_LANE, ("jobs_queued",)),
    "when a lane is ready": (queue.NEXT_READY, ("lanes_ready",)),
    "what is active in a scope": (rows.ACTIVE, ("runs_active",)),
    "what was last in a scope": (rows.RECENT, ("runs_by_scope",)),
    "what a former life left": (rows.UNTIDY, ("runs_with_emoji",)),
    "the language of a person": (rows.LANGUAGE, ("runs_by_requester",)),
}


@pytest.mark.parametrize(("sql", "indexes"), ASKED_OFTEN.values(), ids=ASKED_OFTEN.keys())
def test_each_question_has_its_index(sql: str, indexes: tuple[str, ...]) -> None:
    with job_table() as table:
        connection: sqlite3.Connection = table.connection
        plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", ANY)]
        steps = [step for step in plan if "runs" in step or "jobs" in step or "lanes" in step]
        assert all(any(name in step for name in indexes) for step in steps), plan
        assert len(steps) >= 1
