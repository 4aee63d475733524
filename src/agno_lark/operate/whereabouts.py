"""Where a message is: accepted, behind whom it waits, handed over, answered, or unknown and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from agno_lark.feishu.jsontext import whole_text
from agno_lark.jobs import JobState
from agno_lark.store import Row, Tx
from agno_lark.turns import RunPhase, RunRow, find_run, is_stale, prefix_bounds, run_of_turn

__all__ = ["JobLine", "Whereabouts", "list_jobs", "whereabouts"]


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
    message_id: str | None  # of a turn: what it answers, and its run
    run_id: str | None

    @classmethod
    def from_row(cls, row: Row) -> "JobLine":
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True, slots=True)
class Whereabouts:
    """`where` is one of accepted, waiting, running, replying, replied, asking, failed, cancelled, unknown; `why` a
    sentence. Asking and unknown ones wait for somebody's decision.

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
    asked_again_as: str | None
    replies: tuple[JobLine, ...]


COLUMNS = """
jobs.id, jobs.kind, jobs.state, jobs.lane, jobs.attempts, jobs.created_ms, jobs.available_ms, jobs.started_ms,
jobs.finished_ms, jobs.effect, jobs.error, runs.message_id, runs.run_id
"""
FROM = "FROM jobs LEFT JOIN runs ON runs.turn_id = jobs.id"
JOB = f"SELECT {COLUMNS}, jobs.seq {FROM} WHERE jobs.id = :id"
BY_PREFIX = "SELECT id FROM jobs WHERE id >= :prefix AND id < :beyond ORDER BY id LIMIT 20"
AHEAD = "SELECT id FROM jobs WHERE lane = :lane AND seq < :seq AND state IN ('queued', 'running') ORDER BY seq LIMIT 3"
AHEAD_COUNT = "SELECT COUNT(*) AS n FROM jobs WHERE lane = :lane AND seq < :seq AND state IN ('queued', 'running')"
BY_MESSAGE = "SELECT job_id FROM dedup_messages WHERE kind = 'message' AND key = :key AND job_id IS NOT NULL"
TURN_BY_MESSAGE = "SELECT turn_id FROM runs WHERE message_id = :key ORDER BY seq DESC LIMIT 1"
BY_ANSWER = "SELECT turn_id FROM runs WHERE card_message_id = :key"
REPLY_NAMES = ("reply", "resolved")
ASKED_AGAIN = "SELECT turn_id FROM runs WHERE retry_of = :turn"
SENT_AGAIN = "SELECT id FROM outbox WHERE turn_id = :turn ORDER BY created_ms"  # under another name


def whereabouts(tx: Tx, given: str) -> Whereabouts | None:
    """What became of a message, by its id (`om_…`; its newest turn, where it was asked again), its answer's, its job's
    or its run's (six characters or more of these); None where nothing is known of it (any more)."""
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
        asked_again_as=row["turn_id"] if (row := tx.one(ASKED_AGAIN, {"turn": job["id"]})) else None,
        replies=tuple(JobLine.from_row(row) for row in replies),
    )


def _job_meant(tx: Tx, given: str) -> str | None:
    for sql, column in ((TURN_BY_MESSAGE, "turn_id"), (BY_MESSAGE, "job_id"), (BY_ANSWER, "turn_id")):
        if given.startswith("om_") and (row := tx.one(sql, {"key": given})):
            return str(row[column])
    if tx.one(JOB, {"id": given}):
        return given
    run = find_run(tx, given)
    return run.turn_id if run else _by_prefix(tx, given)


def _by_prefix(tx: Tx, given: str) -> str | None:
    """The one job whose id begins so; what it left behind (its reply, its stop) does not count beside it."""
    if (bounds := prefix_bounds(given)) is None:
        return None
    ids = [str(row["id"]) for row in tx.all(BY_PREFIX, bounds)]
    first = min(ids, key=len, default="")
    return first if ids and all(found == first or found.startswith(f"{first}-") for found in ids) else None


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
        return _waiting(tx, job, ahead, count)
    if job.state == JobState.RUNNING:
        return "running", _running(tx, job, run)
    if job.state == JobState.UNKNOWN:
        return "unknown", _unknown(job, run)
    return _over(job, run, replies)


def _waiting(tx: Tx, job: JobLine, ahead: list[str], count: int) -> tuple[str, str]:
    if ahead:
        more = f" and {count - 1} more" if count > 1 else ""
        return "waiting", f"it waits for its turn behind {ahead[0]}{more} of the same conversation"
    if job.available_ms > tx.now_ms:
        again_s = (job.available_ms - tx.now_ms) / 1000
        return "waiting", f"it is tried again in {again_s:.0f} s: {job.error or 'no error was told'}"
    return "accepted", "it is the next of its conversation, and waits for a free place"


def _running(tx: Tx, job: JobLine, run: RunRow | None) -> str:
    match run.state if run else None:
        case None:
            told = f"it is being carried out (attempt {job.attempts})"
        case RunPhase.SUBMITTED:
            told = "its run was handed to the AgentOS, which has not answered yet"
        case RunPhase.RUNNING:
            told = "its run goes on at the AgentOS"
        case _:
            told = "it is being carried out"
    if run is not None and run.cancel_requested_ms is not None:
        told += f"; a stop was asked for {(tx.now_ms - run.cancel_requested_ms) / 1000:.0f} s ago"
    return told


def _unknown(job: JobLine, run: RunRow | None) -> str:
    when = "while its run was handed over" if job.effect == "submit" else f"after: {job.effect}"
    reason = f" ({job.error})" if job.error else ""
    asked = "; the person was asked what to do" if run is not None and run.replied_ms else ""
    return f"it was interrupted {when}{reason}, and nobody can tell how that ended{asked}"


def _over(job: JobLine, run: RunRow | None, replies: list[JobLine]) -> tuple[str, str]:
    shown = run is not None and run.replied_ms is not None
    done = job.state == JobState.DONE
    waits = next((reply for reply in replies if reply.state in (JobState.QUEUED, JobState.RUNNING)), None)
    if waits is not None:
        what = (
            "it has been carried out, and its answer" if done else f"it ended as {job.state}, and the card that says so"
        )
        tried = f"; tried {waits.attempts} times, last: {waits.error}" if waits.error else ""
        return "replying", f"{what} is on its way to Feishu{tried}"
    if not shown and (lost := next((reply for reply in replies if reply.state == JobState.FAILED), None)):
        return "failed", f"its answer could not be shown: {lost.error}"
    if not shown and replies and all(reply.state == JobState.CANCELLED for reply in replies):
        return "cancelled", "it is over, but its answer was taken back before it was shown"
    if run is not None and is_stale(run):
        return "asking", "it came too late to be run unasked; the person was asked what to do"
    if done:
        return "replied", "its answer is shown" if replies or run else "it is done"
    why = (run.reason if run else None) or job.error
    told = "the person was told" if replies or shown else "nobody was told"
    return str(job.state), f"it ended as {job.state}{f' ({why})' if why else ''}; {told}"


LIST = f"""
SELECT {COLUMNS} {FROM}
WHERE (:state = '' OR jobs.state = :state) AND (:lane = '' OR jobs.lane = :lane) AND (:kind = '' OR jobs.kind = :kind)
    AND (NOT :open OR jobs.state = 'unknown' OR (runs.reason = 'stale' AND jobs.payload <> '{{}}'))
ORDER BY jobs.seq DESC LIMIT :most
"""


def list_jobs(
    tx: Tx, *, state: str = "", lane: str = "", kind: str = "", only_open: bool = False, most: int = 50
) -> list[JobLine]:
    """Jobs, newest first; "" stands for any. `only_open`: those somebody should decide about."""
    given = {"state": state, "lane": lane, "kind": kind, "open": only_open, "most": most}
    return [JobLine.from_row(row) for row in tx.all(LIST, given)]
