"""Old jobs go; those that are not over, and those nobody knows the end of, stay."""

from agno_lark.store import Tx

__all__ = ["forget_jobs"]

FORGET = """
DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE finished_ms < :before AND state IN ('done', 'failed', 'cancelled')
    AND id NOT IN (SELECT turn_id FROM outbox WHERE turn_id IS NOT NULL)
    ORDER BY finished_ms LIMIT :most
)
"""


def forget_jobs(tx: Tx, before_ms: int, most: int) -> int:
    """Delete up to `most` jobs that ended before this time, oldest first; returns how many. An unknown one stays until
    somebody has resolved it, and any one until its answer was seen: that may ask what to do with it."""
    return tx.execute(FORGET, {"before": before_ms, "most": most})
