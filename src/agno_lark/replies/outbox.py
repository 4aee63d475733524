"""The outbox: replies not yet confirmed. Each is a row, and a job of kind `reply` that carries it to Feishu.

A row is written in the transaction that decides it, and goes in the one that notes Feishu's confirmation. In between
the job is tried again, with growing pauses or as long as Feishu asks for, over restarts too, for a day.
"""

import json
import logging
from dataclasses import dataclass, fields, replace
from typing import Protocol

from agno_lark import crash
from agno_lark.clock import Clock
from agno_lark.feishu.codes import CallRefused, ErrorKind
from agno_lark.feishu.jsontext import read_object, whole_text
from agno_lark.jobs import Job, JobState, Lease, NewJob, Outcome, Prepared, Queue, enqueue
from agno_lark.locale import Lang, say
from agno_lark.replies.elements import Card
from agno_lark.replies.ending import Ending, ending_from_json, ending_to_json
from agno_lark.replies.notes import card_text
from agno_lark.replies.parts import showable
from agno_lark.replies.place import Place
from agno_lark.replies.poster import Poster
from agno_lark.replies.writer import PLAINER_HELPS, CardWriter, Progress, of_round
from agno_lark.store import Row, Store, Tx
from agno_lark.targets import RunView, StepState, close_running

__all__ = [
    "REPLY",
    "Deliverer",
    "OpenReplies",
    "cancel_reply",
    "forget_replies",
    "put_answer",
    "put_card",
    "reply_lane",
    "send_again",
    "waiting_replies",
]

logger = logging.getLogger(__name__)

REPLY = "reply"
WAITS_MS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000)  # between tries; the last one for an hour,
LATER_MS, LATER_AFTER_MS = 300_000, 3_600_000  # and from then on this one
TOLD_AT = frozenset({2, 8, 20, 100})  # tries after which the log says that an answer still waits
GIVE_UP_MS, GIVE_UP_TRIES = 24 * 3_600_000, 24  # both: it may have slept for days, with the machine
UUID_HOLDS_MS = 55 * 60_000  # Feishu shows the same uuid once within an hour
# What somebody can set right meanwhile: the app's rights. Everything else that is final stays so.
_MENDABLE = frozenset({ErrorKind.SCOPE_MISSING, ErrorKind.PERMISSION})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """A row of `outbox`."""

    id: str
    turn_id: str | None
    place: Place
    language: Lang
    content: str
    parts_done: int
    unsure_since_ms: int | None
    round: int
    created_ms: int

    @classmethod
    def from_row(cls, row: Row) -> "_Entry":
        values = {each.name: row[each.name] for each in fields(cls)}
        return cls(**values | {"place": Place.from_json(json.loads(row["place"]))})


PUT = """
INSERT INTO outbox (id, turn_id, place, language, content, created_ms)
VALUES (:id, :turn, :place, :language, :content, :now)
"""


def put_answer(tx: Tx, ending: Ending, *, reply_id: str, turn_id: str, lane: str, place: Place, language: Lang) -> None:
    """Let the person see how their turn ended. `lane` is the conversation: its answers are shown in their order."""
    _put(tx, reply_id, turn_id, lane, place, language, ending_to_json(ending))


def put_card(tx: Tx, card: Card, *, reply_id: str, lane: str, place: Place, language: Lang) -> None:
    """Let the person see a card of ours; where no card is taken, its words."""
    content = whole_text(json.dumps({"card": card, "text": card_text(card)}, ensure_ascii=False))
    _put(tx, reply_id, None, lane, place, language, content)


def _put(tx: Tx, reply_id: str, turn_id: str | None, lane: str, place: Place, language: Lang, content: str) -> None:
    given = {"id": reply_id, "turn": turn_id, "language": language, "content": content, "now": tx.now_ms}
    tx.execute(PUT, given | {"place": json.dumps(place.as_json())})
    enqueue(tx, NewJob(id=reply_id, kind=REPLY, queue=Queue.REPLIES, lane=reply_lane(lane)))


def reply_lane(lane: str) -> str:
    """The lane of a conversation's replies: open as long as one of them is not confirmed."""
    return f"reply:{lane}"


BEGIN = """
UPDATE outbox SET
    round = round + CASE WHEN unsure_since_ms < :long_ago THEN 1 ELSE 0 END,
    unsure_since_ms = CASE WHEN unsure_since_ms >= :long_ago THEN unsure_since_ms ELSE :now END
WHERE id = :id
RETURNING *
"""
SURE = "UPDATE outbox SET unsure_since_ms = NULL WHERE id = :id"
PART_DONE = "UPDATE outbox SET parts_done = :done WHERE id = :id"
CONFIRM = "DELETE FROM outbox WHERE id = :id"


def _begin(tx: Tx, reply_id: str) -> _Entry | None:
    """The entry, about to be sent: from here on nobody knows whether Feishu has it, until an answer says so."""
    row = tx.one(BEGIN, {"id": reply_id, "now": tx.now_ms, "long_ago": tx.now_ms - UUID_HOLDS_MS})
    return _Entry.from_row(row) if row else None


def _sure(tx: Tx, reply_id: str) -> None:
    """Feishu has said no: it has not got it."""
    tx.execute(SURE, {"id": reply_id})


def _part_done(tx: Tx, reply_id: str, done: int) -> None:
    tx.execute(PART_DONE, {"id": reply_id, "done": done})


AGAIN = "UPDATE outbox SET id = :new, created_ms = :now WHERE id = :id"
ORPHANS = """
DELETE FROM outbox WHERE id IN (
    SELECT outbox.id FROM outbox LEFT JOIN jobs ON jobs.id = outbox.id
    WHERE outbox.created_ms < :before AND (jobs.id IS NULL OR jobs.finished_ms < :before) LIMIT :most)
"""


def send_again(tx: Tx, reply_id: str, new_id: str, lane: str) -> bool:
    """A reply that failed is tried once more, under a new job in the same lane; False where nothing is kept of it."""
    if not tx.execute(AGAIN, {"id": reply_id, "new": new_id, "now": tx.now_ms}):
        return False
    enqueue(tx, NewJob(id=new_id, kind=REPLY, queue=Queue.REPLIES, lane=lane))
    return True


def cancel_reply(tx: Tx, reply_id: str) -> None:
    """Nobody is to see it any more."""
    tx.execute(CONFIRM, {"id": reply_id})


def forget_replies(tx: Tx, before_ms: int, most: int) -> int:
    """Delete up to `most` replies that could not be shown, and that nobody asked for since; how many it was."""
    return tx.execute(ORPHANS, {"before": before_ms, "most": most})


WAITING = """
SELECT COUNT(*) AS n, MIN(outbox.created_ms) AS oldest_ms, MAX(jobs.error) AS error
FROM outbox JOIN jobs ON jobs.id = outbox.id AND jobs.state IN ('queued', 'running')
"""


async def waiting_replies(store: Store) -> dict[str, object]:
    """What is not confirmed yet: how many (`waiting`), since when the oldest waits (`since_ms`, UTC epoch ms, or None),
    and an `error` that keeps one from being shown. Reads only. Raises `StoreError`."""
    (row,) = await store.read(WAITING)
    return {"waiting": row["n"], "since_ms": row["oldest_ms"], "error": row["error"]}


class OpenReplies(Protocol):
    """Where the card of a turn is: the writer that streamed it, or one made anew. Turns know."""

    async def card_of(self, turn_id: str) -> tuple[CardWriter, RunView | None]:
        """The turn's writer and, where it was open in this process, the view it showed last."""
        ...

    def shown(self, tx: Tx, turn_id: str, message_id: str | None) -> None:
        """Note that Feishu has the whole answer."""
        ...

    async def put_away(self, turn_id: str) -> None:
        """It cannot be shown for a while: keep of it in memory what is nowhere else, which is nothing."""
        ...

    async def done_with(self, turn_id: str) -> None:
        """Tidy up what may be lost in a crash: the emoji, the card's streaming mode."""
        ...


class Deliverer:
    """The handler of jobs of kind `reply`."""

    def __init__(self, *, store: Store, poster: Poster, replies: OpenReplies, clock: Clock) -> None:
        self._store = store
        self._poster = poster
        self._replies = replies
        self._clock = clock

    def prepare(self, tx: Tx, job: Job) -> Prepared:
        """In the claim's own transaction."""
        return Prepared(value=_begin(tx, job.id))

    async def handle(self, job: Job, lease: Lease) -> Outcome:
        """Send it, or as much of it as is missing."""
        entry: _Entry | None = lease.prepared
        if entry is None:
            return Outcome()
        crash.reached("reply.sending")
        try:
            message_id = await self._send(entry)
        except CallRefused as error:
            return self._refused(job, entry, error)
        crash.reached("reply.sent")
        return Outcome(
            also=lambda tx: self._confirm(tx, entry, message_id),
            after=lambda: self._tidy_up(entry),
        )

    async def give_up(self, job: Job, outcome: Outcome) -> Outcome:
        """A fault of ours kept it from being rendered: at least its words go out, as they are."""
        entry = await self._store.transact(_begin, job.id)
        if entry is None:
            return outcome
        try:
            sent = await self._poster.text(entry.place, _words(entry), f"{of_round(entry.id, entry.round)}-plain")
        except CallRefused as error:
            return self._refused(job, entry, error)
        return replace(
            outcome,
            also=lambda tx: self._confirm(tx, entry, sent.message_id),
            after=lambda: self._tidy_up(entry),
        )

    async def _send(self, entry: _Entry) -> str | None:
        if entry.turn_id is None:
            return await self._send_card(entry)

        async def keep(done: int) -> None:
            await self._store.transact(_part_done, entry.id, done)

        writer, last_seen = await self._replies.card_of(entry.turn_id)
        ending = ending_from_json(entry.content)
        if last_seen is not None and ending.superseded and len(last_seen.text) >= len(ending.view.text):
            steps = close_running(last_seen.steps, StepState.STOPPED, None)
            ending = replace(ending, view=replace(last_seen, state=ending.view.state, steps=steps))
        await writer.deliver(ending, Progress(done=entry.parts_done, round=entry.round, keep=keep))
        return writer.message_id

    async def _send_card(self, entry: _Entry) -> str:
        content = json.loads(entry.content)
        uuid = of_round(entry.id, entry.round)
        try:
            sent = await self._poster.card(entry.place, content["card"], uuid)
        except CallRefused as error:
            if error.kind not in PLAINER_HELPS:
                raise
            sent = await self._poster.text(entry.place, content["text"], f"{uuid}t")
        return sent.message_id

    def _refused(self, job: Job, entry: _Entry, error: CallRefused) -> Outcome:
        age_ms = self._clock.now_ms() - entry.created_ms
        is_over = age_ms >= GIVE_UP_MS and job.attempts >= GIVE_UP_TRIES
        if (error.retryable or error.kind in _MENDABLE) and not is_over:
            is_soon = age_ms < LATER_AFTER_MS or job.attempts < len(WAITS_MS)
            wait_ms = WAITS_MS[min(job.attempts, len(WAITS_MS)) - 1] if is_soon else LATER_MS
            asked_ms = int((error.retry_after_s or 0) * 1000)
            if job.attempts in TOLD_AT:
                logger.warning(
                    "an answer waits for Feishu",
                    extra={"action": "reply_waits", "reply": entry.id, "tries": job.attempts, "reason": str(error)},
                )
            return Outcome(
                state=JobState.QUEUED,
                error=str(error),
                delay_ms=min(max(wait_ms, asked_ms), LATER_MS),
                also=None if error.uncertain else lambda tx: _sure(tx, entry.id),
                after=(lambda: self._put_away(entry)) if job.attempts >= len(WAITS_MS) else None,
            )
        logger.error(
            "an answer could not be shown",
            extra={"action": "answer_not_shown", "reply": entry.id, "kind": error.kind, "code": error.code},
        )
        return Outcome(state=JobState.FAILED, error=str(error), after=lambda: self._tidy_up(entry))

    def _confirm(self, tx: Tx, entry: _Entry, message_id: str | None) -> None:
        tx.execute(CONFIRM, {"id": entry.id})
        if entry.turn_id is not None:
            self._replies.shown(tx, entry.turn_id, message_id)

    async def _put_away(self, entry: _Entry) -> None:
        if entry.turn_id is not None:
            await self._replies.put_away(entry.turn_id)

    async def _tidy_up(self, entry: _Entry) -> None:
        crash.reached("reply.confirmed")
        if entry.turn_id is not None:
            await self._replies.done_with(entry.turn_id)


def _words(entry: _Entry) -> str:
    """What can be said of a reply without rendering it; of one that nobody can read, that there was one."""
    try:
        found = read_object(entry.content)
        view = found.get("view")
        words = (view if isinstance(view, dict) else found).get("text")
    except ValueError:
        words = None
    if isinstance(words, str) and words.strip():
        return showable(words)
    return say("reply.unreadable", entry.language, id=entry.id)
