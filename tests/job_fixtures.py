"""Jobs on a database in memory, without threads: transactions are plain calls, time stands where it is put."""

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from typing import Concatenate

from agno_lark.jobs import NewJob, Queue, enqueue
from agno_lark.sessions import session_id
from agno_lark.store import Tx
from agno_lark.store.migrate import migrate
from agno_lark.turns import TURN, NewRun, open_run


class JobTable:
    """Runs transaction functions one by one at `now_ms`."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.now_ms = 1_000_000
        self.signals: set[str] = set()
        self._tokens = itertools.count(1)
        migrate(self.connection, self.now_ms)

    def new_token(self) -> str:
        return f"token-{next(self._tokens)}"

    def do[**P, T](self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.connection.execute("BEGIN")
        try:
            result = fn(Tx(self.connection, self.now_ms, self.signals), *args, **kwargs)
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result

    def rows(self, sql: str) -> list[sqlite3.Row]:
        return self.connection.execute(sql).fetchall()


def accept_turn(table: JobTable, name: str, *, scope: str = "feishu:agent:a:chat_oc_1", text: str = "hello") -> None:
    """A turn of the scope as intake accepts it: its job and its row."""
    session = session_id(scope, 1)
    run = NewRun(
        turn_id=name,
        seq=table.do(enqueue, NewJob(id=name, kind=TURN, queue=Queue.TURNS, lane=session, payload={"text": text})),
        scope=scope,
        generation=1,
        session_id=session,
        target_type="agent",
        target_id="a",
        app_id="cli",
        tenant_key="t",
        requester="ou_a",
        chat_id="oc_1",
        chat_type="p2p",
        thread_id=None,
        message_id=f"om_{name}",
        language="en",
    )
    table.do(open_run, run)


@contextlib.contextmanager
def job_table() -> Iterator[JobTable]:
    table = JobTable()
    try:
        yield table
    finally:
        table.connection.close()
