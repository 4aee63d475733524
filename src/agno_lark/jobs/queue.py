"""The SQL of jobs. Each function takes the transaction first; each outcome is fenced by the lease's token.

A lane's row names its head, the oldest unfinished job, and when that may be claimed. So a claim looks at lanes, never
at the jobs behind their heads, and costs the same with ten jobs waiting as with fifty thousand.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agno_lark.jobs.job import TRANSITIONS, Job, JobState, LeaseLost, NewJob, Outcome, Queue, payload_of
from agno_lark.store import Store, Tx

__all__ = [
    "Claimed",
    "Recovered",
    "amend_payload",
    "begin_effect",
    "cancel_queued",
    "claim",
    "counts",
    "enqueue",
    "extend",
    "finish",
    "forget_payload",
    "hurry",
    "is_open",
    "kept_payload",
    "recover",
    "release",
    "resolve_unknown",
    "revoke",
    "running_in_lane",
    "settle_clock",
    "still_open",
    "void_former_life",
]


def _leaves(source: JobState, *targets: JobState) -> str:
    """The condition under which a job may be moved from `source` to any of these; a move that is not in TRANSITIONS is
    a fault of this module, met when it is imported."""
    odd = set(targets) - TRANSITIONS[source]
    if odd:
        raise ValueError(f"no job goes from {source} to {sorted(odd)}")
    return f"state = '{source}'"


ENDS = tuple(state for state in JobState if state not in (JobState.QUEUED, JobState.RUNNING))

INSERT = """
INSERT INTO jobs (id, kind, queue, lane, state, payload, created_ms, available_ms)
VALUES (:id, :kind, :queue, :lane, 'queued', :payload, :now, :available)
RETURNING seq
"""
OPEN_LANE = """
INSERT INTO lanes (lane, queue, head_seq, ready_ms) VALUES (:lane, :queue, :seq, :available)
ON CONFLICT (lane) DO NOTHING
"""


def enqueue(tx: Tx, job: NewJob) -> int:
    """Add a job at the end of its lane; returns its seq, the order of acceptance. Wakes the runner after the commit."""
    available = max(job.available_ms, tx.now_ms)
    row = tx.one(
        INSERT,
        {
            "id": job.id,
            "kind": job.kind,
            "queue": job.queue,
            "lane": job.lane,
            "payload": json.dumps(job.payload, ensure_ascii=False),
            "now": tx.now_ms,
            "available": available,
        },
    )
    assert row is not None  # noqa: S101 - RETURNING of an INSERT that did not raise
    seq: int = row["seq"]
    tx.execute(OPEN_LANE, {"lane": job.lane, "queue": job.queue, "seq": seq, "available": available})
    tx.signal(job.queue)
    return seq


READY = """
SELECT lane, head_seq FROM lanes WHERE queue = :queue AND ready_ms <= :now ORDER BY ready_ms, head_seq LIMIT :most
"""
CLAIM = f"""
UPDATE jobs SET state = 'running', attempts = attempts + 1, started_ms = :now,
    lease_token = :token, lease_owner = :owner, lease_until_ms = :until
WHERE seq = :seq AND {_leaves(JobState.QUEUED, JobState.RUNNING)}
RETURNING *
"""
BUSY_LANE = "UPDATE lanes SET ready_ms = NULL WHERE lane = :lane"
NEXT_READY = "SELECT MIN(ready_ms) AS ms FROM lanes WHERE queue = :queue AND ready_ms > :now"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """Jobs that are ours now, and when the next one becomes ready by time alone (UTC ms, None: none will)."""

    jobs: tuple[Job, ...]
    next_ready_ms: int | None


def claim(tx: Tx, queue: Queue, owner: str, new_token: Callable[[], str], *, most: int, lease_ms: int) -> Claimed:
    """Take the heads of up to `most` idle lanes, oldest first. The only door to execution."""
    found: list[Job] = []
    for lane in tx.all(READY, {"queue": queue, "now": tx.now_ms, "most": most}):
        row = tx.one(
            CLAIM,
            {
                "seq": lane["head_seq"],
                "now": tx.now_ms,
                "token": new_token(),
                "owner": owner,
                "until": tx.now_ms + lease_ms,
            },
        )
        tx.execute(BUSY_LANE, {"lane": lane["lane"]})
        if row is not None:
            found.append(Job.from_row(row))
    upcoming = tx.one(NEXT_READY, {"queue": queue, "now": tx.now_ms})
    return Claimed(jobs=tuple(found), next_ready_ms=upcoming["ms"] if upcoming else None)


READY_LANES = """
SELECT COUNT(*) AS n FROM (SELECT 1 FROM lanes WHERE queue = :queue AND ready_ms <= :now LIMIT :most) AS ready
"""


def ready_lanes(tx: Tx, queue: Queue, most: int) -> int:
    """How many lanes have a job that could be claimed now; counted up to `most`."""
    row = tx.one(READY_LANES, {"queue": queue, "now": tx.now_ms, "most": most})
    return int(row["n"]) if row else 0


EXTEND = """
UPDATE jobs SET lease_until_ms = :until WHERE id = :id AND state = 'running' AND lease_token = :token
"""


def extend(tx: Tx, leases: Iterable[tuple[str, str]], *, lease_ms: int) -> frozenset[str]:
    """Prolong leases, given as (job id, token); returns the ids of those that are not ours any more."""
    until = tx.now_ms + lease_ms
    return frozenset(
        job_id for job_id, token in leases if not tx.execute(EXTEND, {"id": job_id, "token": token, "until": until})
    )


EFFECT = "UPDATE jobs SET effect = :effect WHERE id = :id AND state = 'running' AND lease_token = :token"


def begin_effect(tx: Tx, job: Job, effect: str) -> None:
    """Record, under the lease, that something is about to be done that cannot be taken back. Raises `LeaseLost`."""
    if not tx.execute(EFFECT, {"id": job.id, "token": job.lease_token, "effect": effect}):
        raise LeaseLost(job.id)


FINISH = f"""
UPDATE jobs SET state = :state, finished_ms = :now, error = :error,
    payload = CASE WHEN :state IN ('failed', 'unknown') THEN payload ELSE '{{}}' END,
    lease_token = NULL, lease_owner = NULL, lease_until_ms = NULL
WHERE id = :id AND {_leaves(JobState.RUNNING, *ENDS)} AND lease_token = :token
"""
AGAIN = f"""
UPDATE jobs SET state = 'queued', available_ms = :available, error = :error,
    lease_token = NULL, lease_owner = NULL, lease_until_ms = NULL
WHERE id = :id AND {_leaves(JobState.RUNNING, JobState.QUEUED)} AND lease_token = :token AND effect IS NULL
"""


def finish(tx: Tx, job: Job, outcome: Outcome) -> None:
    """Write a job's outcome under its token, and let its lane go on, in one transaction with `outcome.also`.

    Raises `LeaseLost` (nothing is written) when the token is not the job's any more, and when a job with an effect
    begun is to be queued again: that is never right.
    """
    mine = {"id": job.id, "token": job.lease_token, "error": outcome.error or None}
    if outcome.state is JobState.QUEUED:
        available = tx.now_ms + outcome.delay_ms
        if not tx.execute(AGAIN, mine | {"available": available}):
            raise LeaseLost(job.id)
        _wait_until(tx, job.lane, job.queue, available)
    else:
        if not tx.execute(FINISH, mine | {"state": outcome.state, "now": tx.now_ms}):
            raise LeaseLost(job.id)
        _advance(tx, job.lane, job.queue)
    if outcome.also is not None:
        outcome.also(tx)


NEXT_IN_LANE = "SELECT seq, available_ms FROM jobs WHERE lane = :lane AND state = 'queued' ORDER BY seq LIMIT 1"
MOVE_HEAD = "UPDATE lanes SET head_seq = :seq, ready_ms = :ready WHERE lane = :lane"
CLOSE_LANE = "DELETE FROM lanes WHERE lane = :lane"
READY_AT = "UPDATE lanes SET ready_ms = :ready WHERE lane = :lane"


def _advance(tx: Tx, lane: str, queue: str) -> None:
    following = tx.one(NEXT_IN_LANE, {"lane": lane})
    if following is None:
        tx.execute(CLOSE_LANE, {"lane": lane})
    else:
        tx.execute(MOVE_HEAD, {"lane": lane, "seq": following["seq"], "ready": following["available_ms"]})
        tx.signal(queue)


def _wait_until(tx: Tx, lane: str, queue: str, ready_ms: int) -> None:
    tx.execute(READY_AT, {"lane": lane, "ready": ready_ms})
    tx.signal(queue)


CANCEL_QUEUED = f"""
UPDATE jobs SET state = 'cancelled', finished_ms = :now, error = :reason,
    payload = CASE WHEN :keep THEN payload ELSE '{{}}' END
WHERE id = :id AND {_leaves(JobState.QUEUED, JobState.CANCELLED)}
RETURNING seq, lane, queue
"""
IS_HEAD = "SELECT 1 FROM lanes WHERE lane = :lane AND head_seq = :seq"


def cancel_queued(tx: Tx, job_id: str, reason: str, *, keep_payload: bool = False) -> bool:
    """Take back a job that nobody has claimed; False when it is running, over or unheard of. `keep_payload`: it is only
    set aside, and somebody may ask for it again."""
    row = tx.one(CANCEL_QUEUED, {"id": job_id, "now": tx.now_ms, "reason": reason, "keep": keep_payload})
    if row is None:
        return False
    if tx.one(IS_HEAD, {"lane": row["lane"], "seq": row["seq"]}):
        _advance(tx, row["lane"], row["queue"])
    return True


HELD_BY = "SELECT lease_token FROM jobs WHERE id = :id AND state = 'running'"
REVOKE = f"""
UPDATE jobs SET state = :state, finished_ms = :now, error = :reason,
    payload = CASE WHEN :state = 'unknown' THEN payload ELSE '{{}}' END,
    lease_token = NULL, lease_owner = NULL, lease_until_ms = NULL
WHERE id = :id AND {_leaves(JobState.RUNNING, JobState.CANCELLED, JobState.UNKNOWN)} AND lease_token = :token
RETURNING lane, queue
"""


def revoke(tx: Tx, job_id: str, state: JobState, reason: str) -> bool:
    """Take a running job from its holder, under the token it holds now, and end it as CANCELLED or UNKNOWN; whatever
    that holder writes later is refused. False when nobody runs it."""
    assert state in (JobState.CANCELLED, JobState.UNKNOWN)  # noqa: S101 - nobody has seen it done, or fail
    held = tx.one(HELD_BY, {"id": job_id})
    given = {"id": job_id, "state": state, "reason": reason, "now": tx.now_ms}
    row = tx.one(REVOKE, given | {"token": held["lease_token"]}) if held else None
    if row is None:
        return False
    _advance(tx, row["lane"], row["queue"])
    return True


RESOLVE = f"""
UPDATE jobs SET state = 'cancelled', finished_ms = :now, error = :reason, payload = '{{}}'
WHERE id = :id AND {_leaves(JobState.UNKNOWN, JobState.CANCELLED)}
"""
FORGET_PAYLOAD = "UPDATE jobs SET payload = '{}' WHERE id = :id AND state IN ('failed', 'cancelled')"
PAYLOAD = "SELECT payload FROM jobs WHERE id = :id AND state NOT IN ('queued', 'running')"
LANE_RUNS = """
SELECT jobs.id FROM lanes JOIN jobs ON jobs.seq = lanes.head_seq WHERE lanes.lane = :lane AND jobs.state = 'running'
"""


def resolve_unknown(tx: Tx, job_id: str, reason: str) -> bool:
    """Somebody has looked: an unknown job is let go. False when it is not unknown (any more)."""
    return bool(tx.execute(RESOLVE, {"id": job_id, "reason": reason, "now": tx.now_ms}))


def kept_payload(tx: Tx, job_id: str) -> dict[str, Any]:
    """What is still kept of an ended job's payload; empty where it was erased, or the job is not over."""
    row = tx.one(PAYLOAD, {"id": job_id})
    return payload_of(row) if row else {}


AMEND = "UPDATE jobs SET payload = :payload WHERE id = :id AND state = 'unknown'"


def amend_payload(tx: Tx, job_id: str, **more: object) -> None:
    """Keep something more with an unknown job, until somebody has decided about it."""
    payload = json.dumps(kept_payload(tx, job_id) | more, ensure_ascii=False)
    tx.execute(AMEND, {"id": job_id, "payload": payload})


def forget_payload(tx: Tx, job_id: str) -> None:
    """Erase what was kept of a job that ended: it has been asked for again, or never will be."""
    tx.execute(FORGET_PAYLOAD, {"id": job_id})


def running_in_lane(tx: Tx, lane: str) -> str | None:
    """The id of the lane's running job."""
    row = tx.one(LANE_RUNS, {"lane": lane})
    return str(row["id"]) if row else None


HURRY = "UPDATE jobs SET available_ms = :now WHERE id = :id AND state = 'queued' RETURNING seq, lane, queue"


def hurry(tx: Tx, job_id: str) -> bool:
    """A job that waits for a time is ready now; False when it is not queued."""
    row = tx.one(HURRY, {"id": job_id, "now": tx.now_ms})
    if row is not None and tx.one(IS_HEAD, {"lane": row["lane"], "seq": row["seq"]}):
        _wait_until(tx, row["lane"], row["queue"], tx.now_ms)
    return row is not None


LANE = "SELECT 1 FROM lanes WHERE lane = :lane"


def is_open(tx: Tx, lane: str) -> bool:
    """Whether the lane has unfinished jobs."""
    return tx.one(LANE, {"lane": lane}) is not None


async def still_open(store: Store, lane: str) -> bool:
    """As `is_open`, for those who look again and again. Raises `StoreError`."""
    return bool(await store.read(LANE, {"lane": lane}))


VOID_FORMER = "UPDATE jobs SET lease_until_ms = 0 WHERE state = 'running' AND lease_owner = :owner"
EXPIRED = "SELECT * FROM jobs WHERE state = 'running' AND lease_until_ms < :now ORDER BY lease_until_ms, seq"
REQUEUE = f"""
UPDATE jobs SET state = 'queued', available_ms = :now, lease_token = NULL, lease_owner = NULL, lease_until_ms = NULL
WHERE seq = :seq AND {_leaves(JobState.RUNNING, JobState.QUEUED)} AND lease_token = :token
"""
TAKE_OVER = """
UPDATE jobs SET attempts = attempts + 1, lease_token = :new, lease_owner = :owner, lease_until_ms = :until
WHERE seq = :seq AND state = 'running' AND lease_token = :token
RETURNING *
"""


def void_former_life(tx: Tx, owner: str) -> int:
    """End the leases this instance held before it was restarted; called while holding the instance lock."""
    return tx.execute(VOID_FORMER, {"owner": owner})


DELAY_MOST_MS = 15 * 60 * 1000
EARLIER_JOBS = """
UPDATE jobs SET available_ms = :now WHERE state = 'queued' AND available_ms > :beyond
"""
EARLIER_LANES = "UPDATE lanes SET ready_ms = :now WHERE ready_ms > :beyond"


def settle_clock(tx: Tx) -> int:
    """Jobs that wait for a time further away than any delay there is were written while the clock was ahead: they are
    ready now. Called at the start. Returns how many lanes that woke."""
    given = {"now": tx.now_ms, "beyond": tx.now_ms + DELAY_MOST_MS}
    tx.execute(EARLIER_JOBS, given)
    return tx.execute(EARLIER_LANES, given)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """`requeued`: how many wait again; `to_reconcile`: ours now, with an effect begun, for the reconciler."""

    requeued: int
    to_reconcile: tuple[Job, ...]


def recover(tx: Tx, owner: str, new_token: Callable[[], str], *, lease_ms: int) -> Recovered:
    """Deal with every lease that ran out: no effect begun → queued again; an effect begun → taken over, to be looked
    at. Nothing is executed here."""
    requeued = 0
    taken: list[Job] = []
    for row in tx.all(EXPIRED, {"now": tx.now_ms}):
        held = {"seq": row["seq"], "token": row["lease_token"]}
        if row["effect"] is None:
            requeued += tx.execute(REQUEUE, held | {"now": tx.now_ms})
            _wait_until(tx, row["lane"], row["queue"], tx.now_ms)
        else:
            mine = {"new": new_token(), "owner": owner, "until": tx.now_ms + lease_ms}
            ours = tx.one(TAKE_OVER, held | mine)
            if ours is not None:
                taken.append(Job.from_row(ours))
    return Recovered(requeued=requeued, to_reconcile=tuple(taken))


GIVE_UP_LEASE = "UPDATE jobs SET lease_until_ms = 0 WHERE id = :id AND state = 'running' AND lease_token = :token"


def release(tx: Tx, job: Job) -> None:
    """Let go of a job that was interrupted: whoever recovers next finds its lease run out."""
    tx.execute(GIVE_UP_LEASE, {"id": job.id, "token": job.lease_token})


# One half a state, so that each finds its index: finished jobs are kept for days, and there may be a million.
COUNTS = """
SELECT queue, state, COUNT(*) AS n FROM jobs WHERE state = 'queued' GROUP BY queue, state
UNION ALL
SELECT queue, state, COUNT(*) AS n FROM jobs WHERE state = 'running' GROUP BY queue, state
UNION ALL
SELECT queue, state, COUNT(*) AS n FROM jobs WHERE state = 'unknown' GROUP BY queue, state
"""


async def counts(store: Store) -> dict[str, int]:
    """Unfinished and unknown jobs as {"turns.queued": n, …}. Reads only: it answers also while nothing can be
    written."""
    return {f"{row['queue']}.{row['state']}": row["n"] for row in await store.read(COUNTS)}
