"""Where a message is: accepted, behind whom it waits, handed over, answered, or unknown and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from agno_lark.feishu.jsontext import whole_text
from agno_lark.jobs import JobState
from agno_lark.store import Row, Tx
from agno_lark.turns import RunPhase, RunRow, find_run, run_of_turn

__all__ = ["JobLine", "Whereabouts", "list_jobs", "whereabouts"]

REPLIES_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class JobLine:
    """A job, without its payload. Times are UTC epoch ms."""

    id: str
    kind: str
    state: str
    lane: str
    attempts: int
    created_ms: int
    available_ms: int
    started_ms: int | None
    finished_ms: int | None
    effect: str | None
    error: str | None

    @classmethod
    def from_row(cls, row: Row) -> "JobLine":
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True, slots=True)
class Whereabouts:
    """`where` is one of accepted, waiting, running, replying, replied, failed, cancelled, unknown; `why` a sentence.

    `behind` are the unfinished jobs of the same conversation that come first, oldest first (`behind_count` of them, at
    most three told). `answer` is the message that answers. `message_id`, `run_id` and the like are None where there are
    none; times are UTC epoch ms.
    """

    where: str
    why: str
    message_id: str | None
    job: JobLine
    behind: tuple[str, ...]
    behind_count: int
    run_id: str | None
    run_state: str | None
    accepted_ms: int
    submitted_ms: int | None
    finished_ms: int | None
    replied_ms: int | None
    answer: str | None
    retry_of: str | None
    replies: tuple[JobLine, ...]


COLUMNS = "id, kind, state, lane, attempts, created_ms, available_ms, started_ms, finished_ms, effect, error"
JOB = f"SELECT {COLUMNS}, seq FROM jobs WHERE id = :id"
AHEAD = "SELECT id FROM jobs WHERE lane = :lane AND seq < :seq AND state IN ('queued', 'running') ORDER BY seq LIMIT 3"
AHEAD_COUNT = "SELECT COUNT(*) AS n FROM jobs WHERE lane = :lane AND seq < :seq AND state IN ('queued', 'running')"
BY_MESSAGE = "SELECT job_id FROM dedup_messages WHERE kind = 'message' AND key = :key AND job_id IS NOT NULL"
TURN_BY_MESSAGE = "SELECT turn_id FROM runs WHERE message_id = :key ORDER BY seq DESC LIMIT 1"
BY_ANSWER = "SELECT turn_id FROM runs WHERE card_message_id = :key"
REPLY_NAMES = ("reply", "resolved")
SENT_AGAIN = "SELECT id FROM outbox WHERE turn_id = :turn ORDER BY created_ms"  # under another name


def whereabouts(tx: Tx, given: str) -> Whereabouts | None:
    """What became of a message, by its id (`om_…`; its newest turn, where it was asked again), its answer's, its job's
    or its run's (six characters or more); None where nothing is known of it (any more)."""
    job_id = _job_meant(tx, whole_text(given.strip().strip("`")))
    job = tx.one(JOB, {"id": job_id}) if job_id else None
    if job is None:
        return None
    run = run_of_turn(tx, job["id"])
    names = [f"{job['id']}-{name}" for name in REPLY_NAMES]
    names += [row["id"] for row in tx.all(SENT_AGAIN, {"turn": job["id"]}) if row["id"] not in names]
    replies = [row for name in names if (row := tx.one(JOB, {"id": name}))]
    ahead = [row["id"] for row in tx.all(AHEAD, dict(job))] if job["state"] == JobState.QUEUED else []
    count = tx.all(AHEAD_COUNT, dict(job))[0]["n"] if ahead else 0
    where, why = _verdict(tx, JobLine.from_row(job), run, [JobLine.from_row(row) for row in replies], ahead, count)
    return Whereabouts(
        where=where,
        why=why,
        message_id=run.message_id if run else _message_of(tx, job["id"]),
        job=JobLine.from_row(job),
        behind=tuple(ahead),
        behind_count=count,
        run_id=run.run_id if run else None,
        run_state=str(run.state) if run else None,
        accepted_ms=job["created_ms"],
        submitted_ms=run.submitted_ms if run else None,
        finished_ms=job["finished_ms"],
        replied_ms=run.replied_ms if run else _sent_ms(replies),
        answer=run.card_message_id if run else None,
        retry_of=run.retry_of if run else None,
        replies=tuple(JobLine.from_row(row) for row in replies),
    )


def _job_meant(tx: Tx, given: str) -> str | None:
    for sql, column in ((TURN_BY_MESSAGE, "turn_id"), (BY_MESSAGE, "job_id"), (BY_ANSWER, "turn_id")):
        if given.startswith("om_") and (row := tx.one(sql, {"key": given})):
            return str(row[column])
    if tx.one(JOB, {"id": given}):
        return given
    run = find_run(tx, given)
    return run.turn_id if run else None


MESSAGE_OF = "SELECT key FROM dedup_messages WHERE kind = 'message' AND job_id = :job LIMIT 1"


def _message_of(tx: Tx, job_id: str) -> str | None:
    row = tx.one(MESSAGE_OF, {"job": job_id})
    return str(row["key"]) if row else None


def _sent_ms(replies: Sequence[Row]) -> int | None:
    return next((row["finished_ms"] for row in replies if row["state"] == JobState.DONE), None)


def _verdict(
    tx: Tx, job: JobLine, run: RunRow | None, replies: list[JobLine], ahead: list[str], count: int
) -> tuple[str, str]:
    if job.state == JobState.QUEUED:
        if ahead:
            more = f" and {count - 1} more" if count > 1 else ""
            return "waiting", f"it waits for its turn behind {ahead[0]}{more} of the same conversation"
        if job.available_ms > tx.now_ms:
            again_s = (job.available_ms - tx.now_ms) / 1000
            return "waiting", f"it is tried again in {again_s:.0f} s: {job.error or 'no error was told'}"
        return "accepted", "it is the next of its conversation, and waits for a free place"
    if job.state == JobState.RUNNING:
        return "running", _running(job, run)
    if job.state == JobState.UNKNOWN:
        return "unknown", _unknown(job, run)
    open_reply = next((reply for reply in replies if reply.state in (JobState.QUEUED, JobState.RUNNING)), None)
    if open_reply is not None:
        tried = f"; tried {open_reply.attempts} times, last: {open_reply.error}" if open_reply.error else ""
        return "replying", f"it has been carried out, and its answer is on its way to Feishu{tried}"
    lost = next((reply for reply in replies if reply.state == JobState.FAILED), None)
    if lost is not None and not (run and run.replied_ms):  # else it was sent again since
        return "failed", f"its answer could not be shown: {lost.error}"
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        why = f" ({job.error})" if job.error else ""
        told = "the person was told" if replies or (run and run.replied_ms) else "nobody was told"
        return str(job.state), f"it ended as {job.state}{why}; {told}"
    if replies and all(reply.state == JobState.CANCELLED for reply in replies) and not (run and run.replied_ms):
        return "cancelled", "it has been carried out, but its answer was taken back before it was shown"
    return "replied", "its answer is shown" if replies or run else "it is done"


def _running(job: JobLine, run: RunRow | None) -> str:
    match run.state if run else None:
        case None:
            return f"it is being carried out (attempt {job.attempts})"
        case RunPhase.SUBMITTED:
            return "its run was handed to the AgentOS, which has not answered yet"
        case RunPhase.RUNNING:
            return "its run goes on at the AgentOS"
        case _:
            return "it is being carried out"


def _unknown(job: JobLine, run: RunRow | None) -> str:
    effect = f" after: {job.effect}" if job.effect else ""
    reason = f" ({job.error})" if job.error else ""
    asked = "; the person was asked what to do" if run is not None and run.replied_ms else ""
    return f"it was interrupted{effect}{reason}, and nobody can tell how that ended{asked}"


LIST = f"""
SELECT {COLUMNS} FROM jobs WHERE (:state = '' OR state = :state) AND (:lane = '' OR lane = :lane)
    AND (:kind = '' OR kind = :kind)
ORDER BY seq DESC LIMIT :most
"""


def list_jobs(tx: Tx, *, state: str = "", lane: str = "", kind: str = "", most: int = 50) -> list[JobLine]:
    """Jobs, newest first; "" stands for any."""
    given = {"state": state, "lane": lane, "kind": kind, "most": most}
    return [JobLine.from_row(row) for row in tx.all(LIST, given)]
