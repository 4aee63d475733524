"""Old dedup keys go, once Feishu has stopped delivering what they stand for."""

from agno_lark.store import Tx

__all__ = ["forget_keys"]

FORGET = """
DELETE FROM dedup_messages WHERE (app_id, kind, key) IN (
    SELECT app_id, kind, key FROM dedup_messages WHERE seen_ms < :before ORDER BY seen_ms LIMIT :most
)
"""


def forget_keys(tx: Tx, before_ms: int, most: int) -> int:
    """Delete up to `most` dedup keys seen before this time, oldest first; returns how many."""
    return tx.execute(FORGET, {"before": before_ms, "most": most})
