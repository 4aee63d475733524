"""The state database: one SQLite file under WAL, one writer thread, group commit.

Enters: plain functions `fn(tx, …)` holding SQL and decisions, run by `await store.transact(fn, …)`.
Leaves: their return values, after the commit and never before; `tx.signal(name)` wakes listeners after the commit.
Survives a crash: everything answered. What was not answered may or may not be there, so callers are repeatable.
"""

from agno_lark.store.engine import Row, Store, Tx
from agno_lark.store.lock import InstanceLock, holder_of, other_of_app
from agno_lark.store.migrate import SCHEMA_VERSION
from agno_lark.store.outside import read_once, write_once
from agno_lark.store.trouble import Reason, Trouble

__all__ = [
    "SCHEMA_VERSION",
    "InstanceLock",
    "Reason",
    "Row",
    "Store",
    "Trouble",
    "Tx",
    "holder_of",
    "other_of_app",
    "read_once",
    "write_once",
]
