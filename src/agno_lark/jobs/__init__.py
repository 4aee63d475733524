"""Durable jobs: what is to be done, in which order, by whom, and what became of it.

Enters: `enqueue(tx, NewJob(…))`, called inside the transaction that decides the job.
Leaves: a call of the handler registered for the job's kind, under a lease; its outcome, written under that lease's
token and no other. Within a lane one job runs at a time, in order of acceptance; lanes run side by side.
Survives a crash: everything. A job whose lease is lost is queued again, unless an effect had begun: then its reconciler
looks first. The claim is the only door to execution.
"""

from agno_lark.jobs.job import TRANSITIONS, Job, JobState, LeaseLost, NewJob, Outcome, Queue
from agno_lark.jobs.queue import (
    amend_payload,
    begin_effect,
    cancel_queued,
    claim,
    counts,
    enqueue,
    extend,
    finish,
    forget_payload,
    hurry,
    is_open,
    kept_payload,
    recover,
    release,
    resolve_unknown,
    revoke,
    running_in_lane,
    settle_clock,
    still_open,
    void_former_life,
)
from agno_lark.jobs.runner import JobKind, Lease, Prepared, Runner

__all__ = [
    "TRANSITIONS",
    "Job",
    "JobKind",
    "JobState",
    "Lease",
    "LeaseLost",
    "NewJob",
    "Outcome",
    "Prepared",
    "Queue",
    "Runner",
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
