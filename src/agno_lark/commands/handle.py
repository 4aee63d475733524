"""The handlers of control jobs: a command's answer, and a sentence of our own."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from agno_lark.clock import Clock
from agno_lark.errors import TargetError
from agno_lark.jobs import Job, JobState, Lease, NewJob, Outcome, Queue, enqueue
from agno_lark.locale import Lang, say
from agno_lark.replies import Place, put_card
from agno_lark.replies.elements import Card, plain
from agno_lark.replies.notes import note_card
from agno_lark.store import Store, Tx
from agno_lark.targets import CancelOutcome, Target
from agno_lark.turns import RunPhase, RunRow, run_of_turn, was_superseded

from . import conversation, runs

__all__ = ["COMMAND", "SAY", "STOP_RUN", "CommandHandler", "ask_to_stop", "say_payload"]

logger = logging.getLogger(__name__)

COMMAND = "command"  # payload: name, decided, place, language, scope, generation
SAY = "say"  # payload: phrase, values, place, language
STOP_RUN = "stop_run"  # payload: turn_id; Stop was pressed or /cancel written
CANCEL_TRIES = 6  # a run just handed over may not be known to its AgentOS yet
CANCEL_WAIT_S = 0.5
CANCEL_AGAIN_MS = 5_000  # then, while the AgentOS cannot be asked and the turn is not over


def say_payload(phrase: str, place: Place, language: Lang, **values: str) -> Mapping[str, Any]:
    """Payload of a job of kind `say`."""
    return {"phrase": phrase, "values": values, "place": place.as_json(), "language": language}


def ask_to_stop(tx: Tx, job_id: str, turn_id: str) -> None:
    """Enqueue the request to the AgentOS; the wish itself is the caller's to record. In a lane of the turn's own: an
    AgentOS that does not answer must not hold up the scope's next command."""
    lane = f"control:stop:{turn_id}"
    enqueue(tx, NewJob(id=job_id, kind=STOP_RUN, queue=Queue.CONTROL, lane=lane, payload={"turn_id": turn_id}))


class CommandHandler:
    """Carries control jobs out. `stopping(turn_id)` lets a turn's open card say that it is being stopped."""

    def __init__(
        self,
        *,
        store: Store,
        target: Target,
        target_name: Callable[[], str],
        clock: Clock,
        stopping: Callable[[str], None],
    ) -> None:
        self._store = store
        self._target = target
        self._target_name = target_name
        self._clock = clock
        self._stopping = stopping

    async def command(self, job: Job, lease: Lease) -> Outcome:
        """Answer a command whose meaning was fixed when it was accepted."""
        payload = job.payload
        decided, lang = payload["decided"], payload["language"]
        return _reply(job, await self._answer(payload["name"], decided, payload, lang))

    async def say(self, job: Job, lease: Lease) -> Outcome:
        """Say one sentence of ours."""
        payload = job.payload
        values = {name: plain(value) for name, value in payload["values"].items()}
        return _reply(job, note_card(say(payload["phrase"], payload["language"], **values)))

    async def stop_run(self, job: Job, lease: Lease) -> Outcome:
        """Ask the AgentOS to stop a run; the wish itself was recorded when it was accepted."""
        if await self._stop(job.payload["turn_id"]):
            return Outcome()
        return Outcome(state=JobState.QUEUED, error="AgentOS could not be asked", delay_ms=CANCEL_AGAIN_MS)

    async def _answer(self, name: str, decided: Mapping[str, Any], payload: Mapping[str, Any], lang: Lang) -> Card:
        match name:
            case "new":
                return conversation.answer_new(decided, lang)
            case "cancel":
                return runs.answer_cancel(decided, lang)
            case "retry" | "dismiss":
                return runs.answer_decision(name, decided, lang)
            case "status":
                facts = await self._store.transact(runs.read_status, payload["scope"])
                now_ms = self._clock.now_ms()
                return runs.answer_status(facts, payload["generation"], self._target_name(), now_ms, lang)
            case _:
                return conversation.answer_help(self._target_name(), lang)

    async def _stop(self, turn_id: str) -> bool:
        """True when there is nothing more to ask; False while the AgentOS cannot be reached."""
        self._stopping(turn_id)
        unheard = False
        for attempt in range(CANCEL_TRIES):
            row = await self._store.transact(_stoppable, turn_id)
            if row is None or row.run_id is None:
                return True
            try:
                if await self._target.cancel(row.run_id, row.session_id) is not CancelOutcome.NOT_FOUND:
                    return True
                unheard = False
            except TargetError as error:
                logger.warning(
                    "a run could not be stopped",
                    extra={"action": "run_cancel_failed", "turn": turn_id, "reason": error.reason},
                )
                if not error.retryable:
                    return True
                unheard = True
            await asyncio.sleep(CANCEL_WAIT_S * 2**attempt)
        return not unheard


def _reply(job: Job, card: Card) -> Outcome:
    """Done, and its answer is in the outbox: one transaction."""
    place, language = Place.from_json(job.payload["place"]), job.payload["language"]

    def put(tx: Tx) -> None:
        put_card(tx, card, reply_id=f"{job.id}-reply", lane=job.lane, place=place, language=language)

    return Outcome(also=put)


def _stoppable(tx: Tx, turn_id: str) -> RunRow | None:
    """The turn's row while there may be something to stop on the AgentOS."""
    row = run_of_turn(tx, turn_id)
    if row is None:
        return None
    handed_over = {RunPhase.SUBMITTED, RunPhase.RUNNING, RunPhase.PAUSED}
    return row if row.state in handed_over or was_superseded(row) else None
