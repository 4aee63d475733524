"""The SQL of generations. They begin at 1; `/new` raises them, in the transaction that accepts it."""

from agno_lark.store import Tx

__all__ = ["current_generation", "raise_generation"]

ENTER = """
INSERT INTO session_scopes (scope, generation, created_ms, updated_ms) VALUES (:scope, 1, :now, :now)
ON CONFLICT (scope) DO UPDATE SET updated_ms = :now
RETURNING generation
"""
RAISE = """
INSERT INTO session_scopes (scope, generation, created_ms, updated_ms) VALUES (:scope, 2, :now, :now)
ON CONFLICT (scope) DO UPDATE SET generation = session_scopes.generation + 1, updated_ms = :now
RETURNING generation
"""


def current_generation(tx: Tx, scope: str) -> int:
    """The generation a message of this scope belongs to now; a scope seen for the first time begins."""
    row = tx.one(ENTER, {"scope": scope, "now": tx.now_ms})
    assert row is not None  # noqa: S101 - an upsert returns its row
    return int(row["generation"])


def raise_generation(tx: Tx, scope: str) -> int:
    """Begin the next generation and return it: what is accepted after this belongs to it."""
    row = tx.one(RAISE, {"scope": scope, "now": tx.now_ms})
    assert row is not None  # noqa: S101 - an upsert returns its row
    return int(row["generation"])
