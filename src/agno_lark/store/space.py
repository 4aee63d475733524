"""Space of the state file: what deleted rows leave behind is handed back to the disk in small steps."""

from agno_lark.store.engine import Tx

__all__ = ["STEP_PAGES", "free_pages", "give_back"]

STEP_PAGES = 64  # of 4 KiB: a quarter of a megabyte a transaction
FREE = "PRAGMA freelist_count"
GIVE_BACK = "PRAGMA incremental_vacuum(64)"


def free_pages(tx: Tx) -> int:
    """How many pages of the file hold nothing."""
    row = tx.one(FREE)
    return int(row[0]) if row else 0


def give_back(tx: Tx) -> int:
    """Cut up to `STEP_PAGES` free pages off the file; returns how many. 0 where the file was not made for it.

    The file itself is shorter after the next checkpoint, which SQLite makes by itself.
    """
    before = free_pages(tx)
    tx.all(GIVE_BACK)  # read to its end: it frees one page a row
    return before - free_pages(tx)
