"""The `runs` table: one row a turn, from its acceptance to its end."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from agno_lark.locale import Lang
from agno_lark.store import Row, Tx

__all__ = [
    "BY_TURN",
    "OVER",
    "RUN_TRANSITIONS",
    "NewRun",
    "RunPhase",
    "RunRow",
    "active_runs",
    "close_run",
    "earlier_requesters",
    "find_run",
    "last_language",
    "mark_replied",
    "mark_running",
    "mark_submitted",
    "newest_open",
    "open_run",
    "prefix_bounds",
    "recent_runs",
    "remember_card",
    "remember_card_message",
    "remember_reaction",
    "remember_seen",
    "request_cancel",
    "reserve_sequence",
    "resolve_stale_run",
    "resolve_unknown_run",
    "run_of_turn",
    "short_run_id",
]


class RunPhase(StrEnum):
    """How far a turn has come. The last four are ends; a paused one waits for a person."""

    WAITING = "waiting"  # accepted; not handed to the AgentOS yet
    SUBMITTED = "submitted"  # about to be handed over, or handed over and nothing heard yet
    RUNNING = "running"  # the AgentOS has answered with an event
    PAUSED = "paused"  # the run waits for a decision
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # handed over, and nobody can tell whether it arrived; a person may still let it go


OVER = frozenset({RunPhase.COMPLETED, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.UNKNOWN})
RUN_TRANSITIONS: Mapping[RunPhase, frozenset[RunPhase]] = {
    RunPhase.WAITING: frozenset({RunPhase.SUBMITTED, RunPhase.FAILED, RunPhase.CANCELLED}),
    RunPhase.SUBMITTED: frozenset({RunPhase.RUNNING, RunPhase.PAUSED}) | OVER,
    RunPhase.RUNNING: frozenset({RunPhase.PAUSED}) | OVER,
    RunPhase.PAUSED: frozenset({RunPhase.RUNNING}) | OVER,
} | {end: frozenset({RunPhase.CANCELLED} if end is RunPhase.UNKNOWN else ()) for end in OVER}


def _leads_to(target: RunPhase) -> str:
    """The condition under which a run may become `target`: from the phases that RUN_TRANSITIONS names."""
    sources = sorted(phase for phase, following in RUN_TRANSITIONS.items() if target in following)
    return f"state IN ({', '.join(repr(str(phase)) for phase in sources)})"


UNFINISHED = f"state IN ({', '.join(repr(str(phase)) for phase in sorted(set(RunPhase) - OVER))})"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRun:
    """What is known of a turn when its message is accepted. Ids as Feishu gives them; `requester` is an open id."""

    turn_id: str
    seq: int
    scope: str
    generation: int
    session_id: str
    target_type: str
    target_id: str
    app_id: str
    tenant_key: str
    requester: str
    chat_id: str
    chat_type: str
    thread_id: str | None
    message_id: str
    language: Lang
    retry_of: str | None = None  # the turn in whose stead this one was asked for


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRow(NewRun):
    """A row of `runs`. Times are UTC epoch milliseconds; None means it has not happened."""

    run_id: str | None
    state: RunPhase
    reason: str | None
    cancel_requested_ms: int | None
    accepted_ms: int
    submitted_ms: int | None
    finished_ms: int | None
    reaction_id: str | None
    card_id: str | None
    card_message_id: str | None
    card_sequence: int
    replied_ms: int | None
    seen: str | None

    @classmethod
    def from_row(cls, row: Row) -> "RunRow":
        found = dict(zip(row.keys(), row, strict=True))  # asked by name, a row looks through its columns each time
        values = {name: found[name] for name in _RUN_ROW}
        return cls(**values | {"state": RunPhase(found["state"])})


_RUN_ROW = tuple(field.name for field in fields(RunRow))


def short_run_id(run_id: str | None) -> str:
    """What people see and type of a run id: its first eight characters."""
    return (run_id or "")[:8] or "–"


OPEN = """
INSERT INTO runs (turn_id, seq, scope, generation, session_id, target_type, target_id, app_id, tenant_key, requester,
    chat_id, chat_type, thread_id, message_id, language, retry_of, state, accepted_ms)
VALUES (:turn_id, :seq, :scope, :generation, :session_id, :target_type, :target_id, :app_id, :tenant_key, :requester,
    :chat_id, :chat_type, :thread_id, :message_id, :language, :retry_of, 'waiting', :now)
"""


def open_run(tx: Tx, run: NewRun) -> None:
    """Write a turn's row, in the transaction that accepts its message."""
    values = {field.name: getattr(run, field.name) for field in fields(run)}
    tx.execute(OPEN, values | {"now": tx.now_ms})


BY_TURN = "SELECT * FROM runs WHERE turn_id = :turn"


def run_of_turn(tx: Tx, turn_id: str) -> RunRow | None:
    """The turn's row."""
    row = tx.one(BY_TURN, {"turn": turn_id})
    return RunRow.from_row(row) if row else None


SUBMITTED = f"""
UPDATE runs SET state = 'submitted', run_id = :run, submitted_ms = :now
WHERE turn_id = :turn AND {_leads_to(RunPhase.SUBMITTED)} AND cancel_requested_ms IS NULL
RETURNING *
"""


def mark_submitted(tx: Tx, turn_id: str, run_id: str) -> RunRow | None:
    """The run is about to be handed over under `run_id`: its row; None when somebody asked to stop it before."""
    row = tx.one(SUBMITTED, {"turn": turn_id, "run": run_id, "now": tx.now_ms})
    return RunRow.from_row(row) if row else None


RUNNING = f"""
UPDATE runs SET state = 'running', run_id = :run
WHERE turn_id = :turn AND ({_leads_to(RunPhase.RUNNING)} OR state = 'running')
RETURNING cancel_requested_ms
"""


def mark_running(tx: Tx, turn_id: str, run_id: str) -> bool:
    """The AgentOS answered, with this run id; True when a stop was asked for meanwhile."""
    row = tx.one(RUNNING, {"turn": turn_id, "run": run_id})
    return row is not None and row["cancel_requested_ms"] is not None


CLOSE = {
    phase: f"""
UPDATE runs SET state = '{phase}', reason = :reason, finished_ms = :now, seen = NULL
WHERE turn_id = :turn AND {UNFINISHED} AND ({_leads_to(phase)} OR state = '{phase}')
"""
    for phase in (*sorted(OVER), RunPhase.PAUSED)
}


def close_run(tx: Tx, turn_id: str, state: RunPhase, reason: str | None = None) -> bool:
    """Write how the turn ended, or that it paused; False when its end was written before."""
    finished = None if state is RunPhase.PAUSED else tx.now_ms
    return bool(tx.execute(CLOSE[state], {"turn": turn_id, "reason": reason, "now": finished}))


REQUEST_CANCEL = f"""
UPDATE runs SET cancel_requested_ms = COALESCE(cancel_requested_ms, :now) WHERE turn_id = :turn AND {UNFINISHED}
"""


RESOLVE = f"""
UPDATE runs SET state = 'cancelled', reason = :reason, finished_ms = :now
WHERE turn_id = :turn AND {_leads_to(RunPhase.CANCELLED)} AND state = 'unknown'
"""


def resolve_unknown_run(tx: Tx, turn_id: str, reason: str) -> bool:
    """Somebody has looked at an unknown turn; False when it is not unknown (any more)."""
    return bool(tx.execute(RESOLVE, {"turn": turn_id, "reason": reason, "now": tx.now_ms}))


RESOLVE_STALE = "UPDATE runs SET reason = :reason WHERE turn_id = :turn AND state = 'cancelled' AND reason = 'stale'"


def resolve_stale_run(tx: Tx, turn_id: str, reason: str) -> bool:
    """Somebody has decided about a turn that came too late; False when nothing is open about it."""
    return bool(tx.execute(RESOLVE_STALE, {"turn": turn_id, "reason": reason}))


def request_cancel(tx: Tx, turn_id: str) -> bool:
    """Record that the turn shall stop; False when it is over. The run's own end decides how it ended."""
    return bool(tx.execute(REQUEST_CANCEL, {"turn": turn_id, "now": tx.now_ms}))


# `+seq` keeps SQLite from walking the scope's whole history for the sake of its order: only the active ones are read.
ACTIVE = """
SELECT * FROM runs WHERE scope = :scope AND state IN ('waiting', 'submitted', 'running') AND finished_ms IS NULL
ORDER BY +seq LIMIT :most
"""


def active_runs(tx: Tx, scope: str, most: int = 1000) -> list[RunRow]:
    """Turns of the scope that are not over, oldest first; those that wait for their turn are among them."""
    return [RunRow.from_row(row) for row in tx.all(ACTIVE, {"scope": scope, "most": most})]


RECENT = """
SELECT * FROM runs WHERE scope = :scope AND state NOT IN ('waiting', 'submitted', 'running')
ORDER BY seq DESC LIMIT :most
"""


def recent_runs(tx: Tx, scope: str, most: int = 5) -> list[RunRow]:
    """Turns of the scope that have ended or paused, newest first."""
    return [RunRow.from_row(row) for row in tx.all(RECENT, {"scope": scope, "most": most})]


NEWEST_OPEN = """
SELECT runs.* FROM runs JOIN jobs ON jobs.id = runs.turn_id
WHERE runs.scope = :scope AND jobs.payload <> '{}'
    AND (runs.state = 'unknown' OR runs.reason = 'stale' OR (:failed AND runs.state = 'failed'))
ORDER BY runs.seq DESC LIMIT 1
"""


def newest_open(tx: Tx, scope: str, *, failed: bool) -> RunRow | None:
    """The scope's newest turn that somebody may still decide about; `failed`: also one that simply failed."""
    row = tx.one(NEWEST_OPEN, {"scope": scope, "failed": failed})
    return RunRow.from_row(row) if row else None


EARLIER = """
SELECT requester FROM runs WHERE session_id = :session AND seq < :seq AND run_id IS NOT NULL AND requester <> :requester
GROUP BY requester ORDER BY MIN(seq) LIMIT 5
"""


def earlier_requesters(tx: Tx, row: RunRow) -> list[str]:
    """Who else has had runs in this session before, first one first."""
    given = {"session": row.session_id, "seq": row.seq, "requester": row.requester}
    return [found["requester"] for found in tx.all(EARLIER, given)]


LANGUAGE = "SELECT language FROM runs WHERE requester = :requester ORDER BY seq DESC LIMIT 1"


def last_language(tx: Tx, requester: str) -> Lang | None:
    """The language of this person's last turn."""
    row = tx.one(LANGUAGE, {"requester": requester})
    return row["language"] if row else None


# A prefix is compared as text between two bounds, so that an index can serve and no wildcard can be smuggled in.
BY_PREFIX = "SELECT * FROM runs WHERE run_id >= :prefix AND run_id < :beyond ORDER BY seq DESC LIMIT 2"
PREFIX_LEAST = 6


def prefix_bounds(given: str) -> dict[str, str] | None:
    """Between which ids those lie that begin so, as `:prefix` and `:beyond`; None where too little is given to mean
    one."""
    return {"prefix": given, "beyond": given + "\U0010ffff"} if len(given) >= PREFIX_LEAST else None


def find_run(tx: Tx, given: str) -> RunRow | None:
    """The run with this id, or with an id that begins so (six characters at least, and only one such run)."""
    if (bounds := prefix_bounds(given)) is None:
        return None
    rows = tx.all(BY_PREFIX, bounds)
    exact = [row for row in rows if row["run_id"] == given]
    found = exact or (rows if len(rows) == 1 else [])
    return RunRow.from_row(found[0]) if found else None


CARD = "UPDATE runs SET card_id = :card, card_sequence = :sequence WHERE turn_id = :turn"
CARD_MESSAGE = "UPDATE runs SET card_message_id = :message WHERE turn_id = :turn"
SEQUENCE = "UPDATE runs SET card_sequence = :sequence WHERE turn_id = :turn AND card_sequence < :sequence"
REACTION = "UPDATE runs SET reaction_id = :reaction WHERE turn_id = :turn"


def remember_card(tx: Tx, turn_id: str, card_id: str, sequence: int) -> None:
    """The card entity made for this turn; `sequence` is the highest number that may have been used on it."""
    tx.execute(CARD, {"turn": turn_id, "card": card_id, "sequence": sequence})


def remember_card_message(tx: Tx, turn_id: str, message_id: str) -> None:
    """The message that carries the card."""
    tx.execute(CARD_MESSAGE, {"turn": turn_id, "message": message_id})


def reserve_sequence(tx: Tx, turn_id: str, up_to: int) -> None:
    """Sequence numbers up to this one may be used from now on; after a crash the next is above them (gaps are fine)."""
    tx.execute(SEQUENCE, {"turn": turn_id, "sequence": up_to})


REPLIED = """
UPDATE runs SET replied_ms = COALESCE(replied_ms, :now), card_message_id = COALESCE(:message, card_message_id),
    card_id = CASE WHEN card_message_id IS NULL OR :message IS NULL OR card_message_id = :message THEN card_id END
WHERE turn_id = :turn
"""


def mark_replied(tx: Tx, turn_id: str, message_id: str | None) -> None:
    """Feishu has the whole answer; `message_id` is where (its first part) stands: not always the card that streamed."""
    tx.execute(REPLIED, {"turn": turn_id, "message": message_id, "now": tx.now_ms})


# What a former life had no time for, once its answer was confirmed.
UNTIDY = """
SELECT turn_id FROM runs WHERE reaction_id IS NOT NULL AND replied_ms IS NOT NULL ORDER BY replied_ms DESC LIMIT 200
"""


SEEN = f"UPDATE runs SET seen = :seen WHERE turn_id = :turn AND {UNFINISHED}"


def remember_seen(tx: Tx, turn_id: str, seen: str) -> None:
    """What the person has seen of the run so far: kept for the case that neither it nor we survive."""
    tx.execute(SEEN, {"turn": turn_id, "seen": seen})


def remember_reaction(tx: Tx, turn_id: str, reaction_id: str | None) -> None:
    """The reaction on the person's message that says it was taken; None once it is removed."""
    tx.execute(REACTION, {"turn": turn_id, "reaction": reaction_id})
