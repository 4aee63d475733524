"""The handler of jobs of kind `turn`: submit, follow, show, close. Its steps are design.md's, "A turn, and where it may
die"; the card is made beside the submission, so that the agent never waits for Feishu."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agno_lark import crash
from agno_lark.clock import Clock, Ids
from agno_lark.errors import StoreError, TargetError
from agno_lark.jobs import Job, JobState, Lease, Outcome, Prepared, begin_effect, is_open, still_open
from agno_lark.replies import (
    CardMemory,
    CardWriter,
    Ending,
    Place,
    Reactions,
    ending_to_json,
    reply_lane,
    view_from_json,
)
from agno_lark.store import Store, Tx
from agno_lark.targets import (
    FaultReason,
    RunRef,
    RunRequest,
    RunState,
    RunView,
    StepState,
    Target,
    close_running,
    fold,
    is_news,
)
from agno_lark.turns import rows
from agno_lark.turns.begin import place_of, request_of
from agno_lark.turns.ends import log_end, outcome_of
from agno_lark.turns.rows import RunPhase, RunRow

__all__ = ["OpenCard", "TurnHandler"]

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.5  # a submission may still be arriving when it is first looked for
UNREACHABLE_S, UNREACHABLE_AGAIN_S = 10.0, 1.0  # an AgentOS that is being restarted is waited for: nothing was sent
SEEN_EVERY_S = 2.0  # what the person has seen is noted so often, for when both ends of it die
STOP_GRACE_S = 60.0  # of silence, once a stop was asked for
LOOKS_MOST = 8  # while the AgentOS cannot be reached, with doubling pauses: about five minutes
LOOKS_AFTER_LOSS = 4  # about ten seconds, while somebody waits
GATEWAY_LOST_IT = frozenset({408, 502, 504})  # said by what stands before an AgentOS: it may have got the request

type OpenCard = Callable[[Place, CardMemory, RunRow], CardWriter]


@dataclass(slots=True)
class _Turn:
    """One turn under way: its row as read at the start, its card, and the run as it looks now."""

    row: RunRow
    card: CardWriter
    view: RunView = field(default_factory=RunView)
    seen: RunView | None = None  # what a former life had shown
    noted: str = ""  # the text noted last
    noted_s: float = 0.0
    is_stopped: bool = False  # somebody asked for it
    patience: asyncio.Timeout | None = None  # how long the run is still waited for; without end until it is hurried

    @property
    def is_hurried(self) -> bool:
        return self.patience is not None and self.patience.when() is not None

    def hurry(self) -> None:
        """A stop was asked for: from now on the run may be silent for so long, and no longer. Its own end decides how
        it ended, but an AgentOS that died in the middle of it will never tell one."""
        if self.patience is not None:
            self.patience.reschedule(asyncio.get_running_loop().time() + STOP_GRACE_S)


class TurnHandler:
    """Carries turns out, and knows the cards of those under way in this process (`OpenReplies`)."""

    def __init__(
        self, *, store: Store, target: Target, open_card: OpenCard, reactions: Reactions, clock: Clock, ids: Ids
    ) -> None:
        self._store = store
        self._target = target
        self._open_card = open_card
        self._reactions = reactions
        self._clock = clock
        self._ids = ids
        self._active: dict[str, _Turn] = {}
        self._ended: dict[str, _Turn] = {}  # over, but their answer is not shown yet

    def prepare(self, tx: Tx, job: Job) -> Prepared:
        """In the claim's own transaction: the run's id is minted and its submission recorded, so that nothing but that
        one commit lies between a turn's time and its run. A turn that somebody stopped meanwhile is not submitted."""
        run_id = self._ids.new()
        is_behind = is_open(tx, reply_lane(job.lane))
        row = rows.mark_submitted(tx, job.id, run_id)
        if row is None:
            return Prepared(value=(rows.run_of_turn(tx, job.id), None, is_behind))
        begin_effect(tx, job, "submit")
        return Prepared(value=(row, run_id, is_behind), effect_begun=True)

    async def handle(self, job: Job, lease: Lease) -> Outcome:
        """A turn whose run has not been handed over yet."""
        row, run_id, is_behind = lease.prepared
        if row is None:
            raise _no_row(job)
        crash.reached("turn.claimed")
        turn = self._begin(row, is_behind=is_behind)
        try:
            if run_id is None:
                turn.view = RunView(state=RunState.CANCELLED)
                return self._end(turn, RunPhase.CANCELLED)
            return await self._follow(turn, request_of(row, run_id, job.payload["text"]))
        finally:
            await self._leave(turn)

    async def reconcile(self, job: Job, lease: Lease) -> Outcome:
        """A turn that was interrupted after its run may have been handed over: look, then follow, or say so.

        An AgentOS that knows nothing of it, asked twice, has not got it: then it is submitted (with the same run id and
        key, so that one arriving late is no second run where the AgentOS has a durable queue). But a run that had
        answered, and is gone now, has been carried out in part: it is never begun again, the person is told. The same
        where the target keeps no runs at all, so that nobody can tell.
        """
        row = await self._row(job)
        turn = self._begin(row)
        try:
            run_id = row.run_id or self._ids.new()
            if (row.target_type, row.target_id) != (self._target.type, self._target.id):
                turn.view = RunView(run_id=run_id)  # the settings name another one now, who knows nothing of it
                return self._end(turn, RunPhase.UNKNOWN)
            try:
                found = await self._look(row, run_id)
            except TargetError as error:
                if row.state is RunPhase.RUNNING:  # it has arrived: no doubt about that
                    return await self._follow(turn, RunRef(run_id=run_id, session_id=row.session_id))
                return self._end(turn, RunPhase.UNKNOWN, details=str(error))
            if found is not None:
                return await self._follow(turn, RunRef(run_id=found, session_id=row.session_id, user_id=row.requester))
            if row.cancel_requested_ms is not None:
                turn.view = RunView(state=RunState.CANCELLED)
                return self._end(turn, RunPhase.CANCELLED)
            info = await self._target.describe()
            if info.resumable is False:  # it keeps no runs: that it knows none proves nothing
                turn.view = RunView(run_id=run_id)
                return self._end(turn, RunPhase.UNKNOWN)
            if row.state is not RunPhase.SUBMITTED:
                turn.view = RunView(run_id=run_id)
                return self._end(turn, RunPhase.FAILED, fault=FaultReason.INTERRUPTED)
            return await self._follow(turn, request_of(row, run_id, job.payload["text"]))
        finally:
            await self._leave(turn)

    async def give_up(self, job: Job, outcome: Outcome) -> Outcome:
        """A bug of ours ended the turn: say so on its card. Where a run had been handed over, say that it may go on."""
        turn = self._begin(await self._row(job))
        try:
            turn.view = RunView(run_id=turn.row.run_id or "")
            phase = RunPhase.UNKNOWN if outcome.state is JobState.UNKNOWN else RunPhase.FAILED
            return self._end(turn, phase, fault="internal", details=outcome.error)
        finally:
            await self._leave(turn)

    def stopping(self, turn_id: str) -> None:
        """Show on the turn's card, where it is open in this process, that a stop was asked for."""
        if turn := self._active.get(turn_id):
            turn.is_stopped = True
            turn.card.stopping()
            if not turn.is_hurried:
                turn.hurry()

    def superseded(self, turn_id: str) -> None:
        """The turn was taken from its handler for a newer message; its card waits for the word that says so."""
        if turn := self._active.get(turn_id):
            self._hold(turn)

    async def card_of(self, turn_id: str) -> tuple[CardWriter, RunView | None]:
        """See `OpenReplies`."""
        self.superseded(turn_id)  # who still is at work on a turn that has its answer has lost it
        if turn := self._ended.get(turn_id):
            return turn.card, turn.view
        row = await self._read_row(turn_id)
        if row is None:
            raise LookupError(f"turn {turn_id} has an answer but no row in runs")
        return self._card(row), None

    def shown(self, tx: Tx, turn_id: str, message_id: str | None) -> None:
        """See `OpenReplies`."""
        rows.mark_replied(tx, turn_id, message_id)

    async def put_away(self, turn_id: str) -> None:
        """See `OpenReplies`."""
        if turn := self._ended.pop(turn_id, None):
            await turn.card.abandon()

    async def done_with(self, turn_id: str) -> None:
        """See `OpenReplies`."""
        turn = self._ended.pop(turn_id, None)
        row = await self._read_row(turn_id)
        if row is None:
            return
        await self._reactions.clear(turn_id, row.message_id, row.reaction_id)
        await (turn.card if turn else self._card(row)).close_streaming()

    async def tidy_up(self) -> None:
        """Once at the start: a former life may have died between Feishu's confirmation and `done_with`."""
        with contextlib.suppress(StoreError):  # logged by the store; it is only an emoji
            for found in await self._store.read(rows.UNTIDY, {}):
                with contextlib.suppress(ValueError):  # a row of another version
                    await self.done_with(found["turn_id"])

    async def close(self) -> None:
        """At the stop: what is not shown by then is shown at the next start, so no card is written to any more."""
        while self._ended:
            _, turn = self._ended.popitem()
            await turn.card.abandon()

    async def _row(self, job: Job) -> RunRow:
        row = await self._read_row(job.id)
        if row is None:
            raise _no_row(job)
        return row

    async def _read_row(self, turn_id: str) -> RunRow | None:
        found = await self._store.read(rows.BY_TURN, {"turn": turn_id})
        return RunRow.from_row(found[0]) if found else None

    def _card(self, row: RunRow) -> CardWriter:
        transact, turn_id = self._store.transact, row.turn_id
        memory = CardMemory(
            card_id=row.card_id,
            message_id=row.card_message_id,
            sequence=row.card_sequence,
            keep_card=lambda card_id, sequence: transact(rows.remember_card, turn_id, card_id, sequence),
            keep_message=lambda message_id: transact(rows.remember_card_message, turn_id, message_id),
            keep_sequence=lambda up_to: transact(rows.reserve_sequence, turn_id, up_to),
        )
        return self._open_card(place_of(row), memory, row)

    def _begin(self, row: RunRow, *, is_behind: bool = True) -> _Turn:
        """`is_behind`: an earlier answer of the conversation may still wait to be shown."""
        lane = reply_lane(row.session_id)
        turn = _Turn(row, self._card(row), seen=view_from_json(row.seen), noted_s=self._clock.monotonic_s())
        self._active[row.turn_id] = turn
        if row.cancel_requested_ms is not None:
            turn.is_stopped = True
            turn.card.stopping()
        turn.card.start((lambda: still_open(self._store, lane)) if is_behind else None)
        return turn

    async def _leave(self, turn: _Turn) -> None:
        if self._active.get(turn.row.turn_id) is turn:  # and not one that took it over
            del self._active[turn.row.turn_id]
        if self._ended.get(turn.row.turn_id) is not turn:  # else its answer goes on with the card
            await turn.card.abandon()
            await self._note_seen(turn)

    async def _note_seen(self, turn: _Turn) -> None:
        """Note the view where it has grown: should this process and the AgentOS both die, its text is still known."""
        turn.noted_s = self._clock.monotonic_s()
        if turn.view.text == turn.noted or (turn.seen and len(turn.view.text) < len(turn.seen.text)):
            return
        kept = Ending(view=replace(turn.view, reasoning="", requirements=()), elapsed_ms=0)
        with contextlib.suppress(StoreError):  # logged by the store; the next one tries again
            await self._store.transact(rows.remember_seen, turn.row.turn_id, ending_to_json(kept))
            turn.noted = turn.view.text

    def _hold(self, turn: _Turn) -> None:
        turn.card.hold()
        self._ended[turn.row.turn_id] = turn

    async def _look(self, row: RunRow, run_id: str, *, most: int = LOOKS_MOST) -> str | None:
        """The id under which the AgentOS has this turn's run, or None when it twice said it has none."""
        missing = 0
        for attempt in range(most):
            try:
                found = await self._target.find(run_id, row.session_id)
                found = found or await self._target.find_by_turn(row.session_id, row.turn_id)
                if found is not None:
                    return found.run_id
                missing += 1
                if missing == 2:
                    return None
            except TargetError as error:
                if not error.retryable or attempt == most - 1:
                    raise
            await asyncio.sleep(LOOK_AGAIN_S * (1 if missing else 2**attempt))
        return None

    async def _follow(self, turn: _Turn, start: RunRequest | RunRef) -> Outcome:
        """Stay with the run to its end.

        agno keeps a session for the user who began it and answers another one's run with 404 (agno.os.middleware.
        user_scope, 3.1.10), so in a shared conversation the run is then submitted as that user's; nothing had begun.
        The true sender is in the metadata.
        """
        users: list[str] | None = None
        sent_again = False
        give_up_s = self._clock.monotonic_s() + UNREACHABLE_S
        while True:
            if isinstance(start, RunRequest):
                crash.reached("turn.submitting")
            try:
                await self._watch(turn, start)
                break
            except TargetError as error:
                if error.reason == FaultReason.UNREACHABLE and isinstance(start, RunRequest):
                    if turn.is_stopped:
                        turn.view = RunView(state=RunState.CANCELLED)
                        return self._end(turn, RunPhase.CANCELLED)
                    if self._clock.monotonic_s() < give_up_s:
                        await asyncio.sleep(UNREACHABLE_AGAIN_S)
                        continue
                if isinstance(start, RunRequest) and _may_have_arrived(turn, error):
                    looked = await self._look_after(turn, start, error, sent_again=sent_again)
                    if isinstance(looked, Outcome):
                        return looked
                    start, sent_again = looked, True
                    continue
                refused = error.reason == FaultReason.NOT_FOUND and turn.view.state is RunState.SUBMITTED
                if refused and isinstance(start, RunRequest) and _is_shared(turn.row):
                    if users is None:
                        users = await self._store.transact(rows.earlier_requesters, turn.row)
                    if users:
                        start = replace(start, user_id=users.pop(0))
                        continue
                # Only a submission's own 404 speaks of the agent; later on it is the run that is gone.
                gone = error.reason == FaultReason.NOT_FOUND and not (refused and isinstance(start, RunRequest))
                fault = FaultReason.INTERRUPTED if gone else error.reason
                return self._end(turn, RunPhase.FAILED, fault=fault, details=str(error))
        crash.reached("turn.ended")
        view = turn.view
        if view.error is not None:
            return self._end(turn, RunPhase.FAILED, fault=view.error.reason, details=view.error.message)
        ends = {
            RunState.COMPLETED: RunPhase.COMPLETED,
            RunState.CANCELLED: RunPhase.CANCELLED,
            RunState.PAUSED: RunPhase.PAUSED,
        }
        if view.state in ends:
            return self._end(turn, ends[view.state])
        return self._end(turn, RunPhase.FAILED, fault=FaultReason.INTERRUPTED)

    async def _look_after(
        self, turn: _Turn, start: RunRequest, error: TargetError, *, sent_again: bool
    ) -> RunRequest | RunRef | Outcome:
        """The answer to a submission was lost: follow its run where there is one. Where an AgentOS without a durable
        queue twice says that there is none, it has not got it: it is sent once more. Where it cannot be asked, keeps no
        runs, or a durable queue may hold it unseen, nobody can tell."""
        row = turn.row
        info = await self._target.describe()
        if info.resumable is False:
            return self._end(turn, RunPhase.UNKNOWN, details=str(error))
        try:
            found = await self._look(row, start.run_id, most=LOOKS_AFTER_LOSS)
        except TargetError:
            return self._end(turn, RunPhase.UNKNOWN, details=str(error))
        if found is not None:
            return RunRef(run_id=found, session_id=row.session_id, user_id=row.requester)
        if info.durable_queue is not False:
            return self._end(turn, RunPhase.UNKNOWN, details=str(error))
        if sent_again:
            return self._end(turn, RunPhase.FAILED, fault=error.reason, details=str(error))
        return start

    async def _watch(self, turn: _Turn, start: RunRequest | RunRef) -> None:
        """Fold every event into the turn's view and show it, until the run ends or pauses. Raises `TargetError`."""
        turn.view = RunView(run_id=start.run_id)
        try:
            async with asyncio.timeout(None) as turn.patience:
                if turn.row.cancel_requested_ms is not None:
                    turn.hurry()
                await self._fold(turn, start)
        except TimeoutError as error:
            told = f"a stop was asked for, and nothing was heard for {STOP_GRACE_S:.0f} s"
            raise TargetError(told, reason="stop_unheard") from error
        finally:
            turn.patience = None

    async def _fold(self, turn: _Turn, start: RunRequest | RunRef) -> None:
        row, told_run_id = turn.row, ""
        async with aclosing(self._target.follow(start)) as events:
            async for event in events:
                crash.reached("turn.submitted")
                turn.view = fold(turn.view, event)
                if turn.is_hurried and is_news(event):
                    turn.hurry()
                turn.card.show(_as_seen(turn))
                if self._clock.monotonic_s() - turn.noted_s >= SEEN_EVERY_S:
                    await self._note_seen(turn)
                if turn.view.text:
                    crash.reached("turn.following")
                if turn.view.run_id != told_run_id and turn.view.state is not RunState.SUBMITTED:
                    try:
                        stop = await self._store.transact(rows.mark_running, row.turn_id, turn.view.run_id)
                    except StoreError:  # logged by the store; the run goes on, so the next event tries again
                        continue
                    told_run_id = turn.view.run_id
                    crash.reached("turn.running")
                    if stop:
                        await self._ask_to_stop(told_run_id, row.session_id)

    async def _ask_to_stop(self, run_id: str, session_id: str) -> None:
        try:
            await self._target.cancel(run_id, session_id)
        except TargetError as error:
            logger.warning("a run could not be stopped", extra={"action": "run_cancel_failed", "reason": error.reason})

    def _end(
        self, turn: _Turn, phase: RunPhase, *, fault: FaultReason | str | None = None, details: str = ""
    ) -> Outcome:
        """How it ended, for the job runner, which closes run and job and puts the answer into the outbox, all in one
        transaction."""
        row = turn.row
        if phase not in (RunPhase.COMPLETED, RunPhase.PAUSED):
            turn.view = _as_seen(turn)
        if phase is not RunPhase.PAUSED:  # nothing of it goes on, whatever it was at
            turn.view = replace(turn.view, steps=close_running(turn.view.steps, StepState.STOPPED, None))
        ending = Ending(
            view=turn.view,
            elapsed_ms=self._clock.now_ms() - row.accepted_ms,
            fault=fault,
            details=details,
            turn_id=row.turn_id,
            unknown=phase is RunPhase.UNKNOWN,
            begun=phase is RunPhase.UNKNOWN and (row.state is RunPhase.RUNNING or bool(turn.view.text)),
        )
        log_end(row, phase, ending, card_operations=turn.card.operations)
        self._hold(turn)
        return outcome_of(row, phase, ending)


def _as_seen(turn: _Turn) -> RunView:
    """The view, with what the person had seen before where more was seen than is known now: it stays on the card."""
    view, seen = turn.view, turn.seen
    if seen is None or len(seen.text) <= len(view.text):
        return view
    return replace(view, text=seen.text, steps=view.steps or seen.steps)


def _may_have_arrived(turn: _Turn, error: TargetError) -> bool:
    lost = error.reason == FaultReason.INTERRUPTED or error.http_status in GATEWAY_LOST_IT
    return lost and turn.view.state is RunState.SUBMITTED


def _is_shared(row: RunRow) -> bool:
    """Several people write into this conversation: a group's, or a topic's, without a user in its scope."""
    return row.chat_type != "p2p" and not row.scope.endswith(f":user:{row.requester}")


def _no_row(job: Job) -> LookupError:
    return LookupError(f"turn {job.id} has a job but no row in runs")
