"""Old runs go; those that are not over, those nobody knows the end of, and what a conversation still needs stay."""

from agno_lark.store import Tx

__all__ = ["forget_runs"]

# Where several people write into one conversation, AgentOS knows it by the one who began it (`earlier_requesters`): so
# each person's first run there is kept as long as the conversation is the scope's current one.
FORGET = """
DELETE FROM runs WHERE turn_id IN (
    SELECT old.turn_id FROM runs AS old
    WHERE old.finished_ms < :before AND old.state IN ('completed', 'failed', 'cancelled')
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = old.turn_id)
    AND old.turn_id NOT IN (SELECT outbox.turn_id FROM outbox WHERE outbox.turn_id IS NOT NULL)
    AND NOT (
        old.chat_type <> 'p2p'
        AND old.run_id IS NOT NULL
        AND EXISTS (
            SELECT 1 FROM session_scopes AS current
            WHERE current.scope = old.scope AND current.generation = old.generation
        )
        AND NOT EXISTS (
            SELECT 1 FROM runs AS first
            WHERE first.session_id = old.session_id AND first.seq < old.seq
            AND first.requester = old.requester AND first.run_id IS NOT NULL
        )
    )
    ORDER BY old.finished_ms LIMIT :most
)
"""


def forget_runs(tx: Tx, before_ms: int, most: int) -> int:
    """Delete up to `most` runs that ended before this time, oldest first; returns how many. A run stays as long as its
    job does, and as long as its answer is on its way, so jobs and replies are forgotten first."""
    return tx.execute(FORGET, {"before": before_ms, "most": most})
