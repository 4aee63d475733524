"""What a job is, the states it can be in, and which state may follow which."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agno_lark.store import Row, Tx

__all__ = ["TRANSITIONS", "Job", "JobState", "LeaseLost", "NewJob", "Outcome", "Queue", "payload_of"]


class Queue(StrEnum):
    """Queues with places of their own, so that a control job never waits for a turn's place, nor either for Feishu."""

    TURNS = "turns"  # a person's message that becomes a run
    CONTROL = "control"  # commands, stop buttons, notices: short, and never behind the turn they concern
    REPLIES = "replies"  # the outbox: what somebody must see, on its way to Feishu


class JobState(StrEnum):
    """Where a job is. The last four are ends; from `unknown` a person may still let it go."""

    QUEUED = "queued"  # accepted; waits for its turn in the lane, or for `available_ms`
    RUNNING = "running"  # somebody holds its lease
    DONE = "done"  # carried out, and what the person must see was shown
    FAILED = "failed"  # it cannot be done, and the person was told so
    CANCELLED = "cancelled"  # somebody entitled took it back
    UNKNOWN = "unknown"  # an effect had begun and nobody can tell how it ended; never run again by itself


# Every move there is. The guarded UPDATEs of queue.py are made from it, and so is the diagram in the README.
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELLED}),
    JobState.RUNNING: frozenset(
        {JobState.QUEUED, JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN}
    ),
    JobState.DONE: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
    JobState.UNKNOWN: frozenset({JobState.CANCELLED}),  # somebody has looked: asked again, or let it go
}


def payload_of(row: Row) -> dict[str, Any]:
    """The job's payload; {} where nobody can read it, which its handler then answers for."""
    try:
        found = json.loads(row["payload"])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class LeaseLost(Exception):
    """The lease is somebody else's by now: whatever was about to be written was not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """What to enqueue. `payload` is JSON; it is erased when the job is done or cancelled (it may hold a person's
    words), and kept where somebody may still want it carried out: failed and unknown."""

    id: str
    kind: str
    queue: Queue
    lane: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    available_ms: int = 0  # not before this time; 0: at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A claimed job: ours until `lease_until_ms`, under `lease_token`."""

    seq: int
    id: str
    kind: str
    queue: Queue
    lane: str
    payload: Mapping[str, Any]
    attempts: int  # this one included
    created_ms: int
    lease_token: str
    lease_until_ms: int
    effect: str | None  # set when a former attempt had begun something that cannot be taken back

    @classmethod
    def from_row(cls, row: Row) -> "Job":
        return cls(
            seq=row["seq"],
            id=row["id"],
            kind=row["kind"],
            queue=Queue(row["queue"]),
            lane=row["lane"],
            payload=payload_of(row),
            attempts=row["attempts"],
            created_ms=row["created_ms"],
            lease_token=row["lease_token"],
            lease_until_ms=row["lease_until_ms"],
            effect=row["effect"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a handler's work ended: one of the end states, or QUEUED to try again after `delay_ms`.

    `also(tx)` runs in the transaction that writes the outcome, and not at all when the lease was lost. `after()` runs
    once that is committed: tidying up that may be lost in a crash.
    """

    state: JobState = JobState.DONE
    error: str = ""
    delay_ms: int = 0
    also: Callable[[Tx], None] | None = None
    after: Callable[[], Awaitable[None]] | None = None
