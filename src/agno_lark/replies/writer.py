"""The streaming writer: one card a turn, always the newest view, never faster than Feishu allows.

The text is ours (`RunView.text`): the SDK's stream controller drops repeated deltas (feishu.md section 3). Each write
sends the whole text so far; what could not be written in time is simply overtaken by a newer view.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agno_lark import crash
from agno_lark.errors import StoreError
from agno_lark.feishu.answers import SentMessage
from agno_lark.feishu.api import OpenApi
from agno_lark.feishu.codes import CallRefused, ErrorKind
from agno_lark.locale import Lang, say
from agno_lark.replies.answer import ANSWER_ID, FinalPart, answer_text, final_parts, frame, running_card
from agno_lark.replies.elements import Card
from agno_lark.replies.ending import Ending
from agno_lark.replies.place import Place
from agno_lark.replies.poster import Poster
from agno_lark.targets import RunView

__all__ = ["PLAINER_HELPS", "CardMemory", "CardWriter", "Progress", "of_round"]

logger = logging.getLogger(__name__)

AFTER_S = 0.02  # the run's submission goes first
BEHIND_FIRST_S, BEHIND_MOST_S = 0.02, 1.0  # between looks whether the answer before this one is shown
GAP_S = 0.25  # between two updates of one card: calm to read, and room for other cards under the app's limits
SLOW_GAP_S = 1.0  # between two writes of a whole card, once it cannot stream any more
LONG_CHARS = 20_000
SEQUENCE_BLOCK = 200  # numbers reserved at a time, so that not every update costs a commit
SEQUENCE_JUMP = 10_000  # after "sequence" was refused: somebody (a former life) is further than we know
FILE_NAME = "answer.md"
# The next rung helps where it is the card that displeases; where the place or the app does, it cannot.
PLAINER_HELPS = frozenset({ErrorKind.CARD_REFUSED, ErrorKind.TOO_LONG, ErrorKind.AUDIT, ErrorKind.OTHER})


@dataclass(kw_only=True, slots=True)
class CardMemory:
    """What is remembered of a turn's card, now and over a restart.

    `keep_card(card_id, sequence)`, `keep_message(message_id)` and `keep_sequence(up_to)` write it down and return once
    it is on disk.
    """

    card_id: str | None
    message_id: str | None
    sequence: int
    keep_card: Callable[[str, int], Awaitable[None]] = field(repr=False)
    keep_message: Callable[[str], Awaitable[None]] = field(repr=False)
    keep_sequence: Callable[[int], Awaitable[None]] = field(repr=False)


@dataclass(kw_only=True, slots=True)
class Progress:
    """How far the writing of an answer has come: `done` parts, noted by `keep(number)` before the next is begun.

    `round` tells apart sends more than an hour after each other: only within an hour does the same uuid keep Feishu
    from showing a message twice.
    """

    done: int = 0
    round: int = 0
    keep: Callable[[int], Awaitable[None]] = field(repr=False)

    def uuid(self, turn_id: str, name: str) -> str:
        return f"{of_round(turn_id, self.round)}-{name}"


def of_round(name: str, number: int) -> str:
    """The beginning of a uuid: another one in each round, and the bare name in the first."""
    return f"{name}~{number}" if number else name


class CardWriter:
    """`start()`, any number of `show(view)`, `hold()` at the run's end, then `deliver(…)` until it succeeds.

    `abandon()` leaves the card as it is. `heading` is a side fact that stands above the answer.
    """

    def __init__(
        self,
        api: OpenApi,
        poster: Poster,
        place: Place,
        memory: CardMemory,
        *,
        turn_id: str,
        lang: Lang,
        heading: str = "",
    ) -> None:
        self._api = api
        self._poster = poster
        self._place = place
        self._memory = memory
        self._turn_id = turn_id
        self._lang = lang
        self._heading = heading
        self._view = RunView()
        self._stopping = False
        self._ended = asyncio.Event()
        self._opened = asyncio.Event()
        self._reserved = memory.sequence
        self._may_stream = True  # until Feishu says that the mode has ended
        self._streaming = memory.card_id is None  # a card of a former life may have stopped streaming
        self._shown_text = ""
        self._shown_frame: tuple[object, ...] = ()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.operations = 0  # writes to this card, for the log and benchmarks

    def start(self, earlier_waits: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Show the card; from here on it follows `show`. It is not made as long as `earlier_waits()`: what was asked
        before it is answered above it."""
        self._task = asyncio.create_task(self._follow(earlier_waits), name=f"card-{self._turn_id}")

    def show(self, view: RunView) -> None:
        """The run looks like this now. Never waits."""
        self._view = view
        self._changed.set()

    def stopping(self) -> None:
        """Somebody pressed Stop: say so instead of the button."""
        self._stopping = True
        self._changed.set()

    def hold(self) -> None:
        """The run is over: what is shown stays as it is until `deliver`. Never waits."""
        self._ended.set()
        self._changed.set()

    async def deliver(self, ending: Ending, progress: Progress) -> None:
        """Write the complete answer, from the part on that is not done yet; returns once Feishu has all of it.

        Raises `CallRefused` where Feishu cannot take it now, or will not take it in any form: see `retryable`. Called
        again it goes on where it was.
        """
        await self._settle()
        parts = await _parts_of(ending, self._lang, self._heading)
        if ending.resolved is not None:
            await self._rewrite(parts[0])
            return
        posted = parts
        if progress.round:
            posted = await _parts_of(replace(ending, again=True), self._lang, self._heading)
        for number in range(progress.done + 1, len(parts) + 1):
            if number == 1 and self._memory.card_id is not None:
                await self._write_first(self._memory.card_id, parts[0], posted[0], progress)
            else:
                await self._post(posted[number - 1], progress, "card" if number == 1 else f"p{number}")
            if number < len(parts):
                crash.reached("reply.part_sent")
                await progress.keep(number)
                progress.done = number

    @property
    def message_id(self) -> str | None:
        """The message that shows the (first part of the) answer, as far as it is known."""
        return self._memory.message_id

    async def _settle(self) -> None:
        """Let a card that is just being made appear, then write nothing more of a run under way: an update still on its
        way has a lower sequence, so it cannot undo the final one."""
        self.hold()
        if self._task is None:
            return
        opened = asyncio.create_task(self._opened.wait(), name=f"card-opened-{self._turn_id}")
        try:
            await asyncio.wait({self._task, opened}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
        await self.abandon()

    async def close_streaming(self) -> None:
        """After `deliver`: the final card says that it does not stream; this closes the mode where that alone should
        not. Failing harms nobody."""
        card_id = self._memory.card_id
        if card_id is None:
            return
        try:
            async with self._api.limits.card(card_id):
                settings = {"config": {"streaming_mode": False}}
                await self._api.update_card_settings(card_id, settings, await self._next_sequence())
            self.operations += 1
        except CallRefused as error:
            self._log("a card's streaming mode was not closed", error)

    async def abandon(self) -> None:
        """Stop writing; whoever takes the turn over goes on with this card."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled() and (fault := self._task.exception()) is not None:
            logger.error("a card was left behind", extra={"action": "card_fault"}, exc_info=fault)
        self._task = None

    async def _follow(self, earlier_waits: Callable[[], Awaitable[bool]] | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), AFTER_S)
        if earlier_waits is not None and self._memory.card_id is None:
            await self._wait_behind(earlier_waits)
        if self._ended.is_set() and self._memory.card_id is None:
            return  # the answer is there before the card: deliver() sends it as it is
        try:
            await self._open()
        except (CallRefused, StoreError) as error:
            self._log("a card could not be shown", error)
            return  # deliver() tries again, by other ways
        self._opened.set()
        while self._memory.card_id is not None and not self._ended.is_set():
            await self._changed.wait()
            self._changed.clear()
            try:
                async with self._api.limits.card(self._memory.card_id):
                    await self._write_newest(self._memory.card_id)
                await asyncio.sleep(GAP_S if self._may_stream else SLOW_GAP_S)
            except StoreError:  # logged by the store; the next change tries again
                continue
            except CallRefused as error:
                self._log("a card update was refused", error)
                if error.kind is ErrorKind.SEQUENCE:
                    await self._jump()
                elif error.kind is ErrorKind.STREAMING_CLOSED:
                    self._may_stream = False
                    self._changed.set()
                elif not error.retryable:
                    return

    async def _wait_behind(self, earlier_waits: Callable[[], Awaitable[bool]]) -> None:
        pause_s = BEHIND_FIRST_S
        while not self._ended.is_set():
            with contextlib.suppress(StoreError):  # logged by the store; then it is looked at again
                if not await earlier_waits():
                    return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), pause_s)
            pause_s = min(2 * pause_s, BEHIND_MOST_S)

    async def _open(self) -> None:
        if self._memory.card_id is None:
            view = self._view
            card_id = await self._api.create_card(self._running_card(view))
            crash.reached("turn.card_made")
            self._remember_shown(view, answer_text(view, self._lang))
            self._reserved = SEQUENCE_BLOCK
            await self._memory.keep_card(card_id, self._reserved)
            self._memory.card_id = card_id
        if self._memory.message_id is None:
            await self._send_entity(self._memory.card_id)

    async def _send_entity(self, card_id: str) -> None:
        sent = await self._poster.card_entity(self._place, card_id, f"{self._turn_id}-card")
        crash.reached("turn.card_sent")
        await self._memory.keep_message(sent.message_id)
        self._memory.message_id = sent.message_id

    async def _write_newest(self, card_id: str) -> None:
        view = self._view
        text = answer_text(view, self._lang)
        same_frame = frame(view, stopping=self._stopping) == self._shown_frame
        if same_frame and text == self._shown_text:
            return
        sequence = await self._next_sequence()
        if same_frame and self._streaming and self._may_stream:
            await self._api.update_element_content(card_id, ANSWER_ID, text, sequence)
        else:
            await self._api.update_card(card_id, self._running_card(view), sequence)
            self._streaming = self._may_stream
        self.operations += 1
        self._remember_shown(view, text)

    def _running_card(self, view: RunView) -> Card:
        return running_card(
            view,
            turn_id=self._turn_id,
            lang=self._lang,
            stopping=self._stopping,
            streaming=self._may_stream,
            heading=self._heading,
        )

    def _remember_shown(self, view: RunView, text: str) -> None:
        self._shown_text = text
        self._shown_frame = frame(view, stopping=self._stopping)

    async def _write_first(self, card_id: str, part: FinalPart, posted: FinalPart, progress: Progress) -> None:
        """Into the card that is there. What is sent anew has another uuid than that card's message had."""
        try:
            if self._memory.message_id is None:
                await self._send_entity(card_id)
            if await self._taken(part, lambda card, rung: self._replace(card_id, card)):
                return
        except CallRefused as error:
            if error.retryable:
                raise
            self._log("the card could not be completed; the answer follows as a message", error)
            await self._post(posted, progress, "new")
        else:
            await self._post_plainly(posted, progress, "t1")
        with contextlib.suppress(CallRefused):  # where it is seen, it must not look as if it still ran
            await self._replace(card_id, part.stub)

    async def _post(self, part: FinalPart, progress: Progress, name: str) -> None:
        """As a message of its own: a card, a plainer card, then no card at all."""
        uuid = progress.uuid(self._turn_id, name)

        async def send(card: Card, rung: int) -> None:
            self._note_sent(await self._poster.card(self._place, card, f"{uuid}{'b' * rung}"), name)

        if not await self._taken(part, send):
            await self._post_plainly(part, progress, f"{name}t")

    async def _post_plainly(self, part: FinalPart, progress: Progress, name: str) -> None:
        """As text; refused, as a file; refused too, a word that there is an answer, and who can help."""
        uuid = progress.uuid(self._turn_id, name)
        try:
            self._note_sent(await self._poster.text(self._place, part.text, uuid), name)
            return
        except CallRefused as error:
            if error.kind not in PLAINER_HELPS:
                raise
            self._log("an answer's text was refused; a file follows", error)
        try:
            key = await self._api.upload_file(part.text.encode(), FILE_NAME)
            await self._poster.file(self._place, key, f"{uuid}f")
        except CallRefused as error:
            if error.retryable:
                raise
            self._log("an answer's file was refused; a notice follows", error)
            told = say("turn.not_shown", self._lang, reason=str(error.kind), run=part.run_id or self._turn_id)
            await self._poster.text(self._place, told, f"{uuid}n")

    def _note_sent(self, sent: SentMessage, name: str) -> None:
        if not name.startswith("p"):  # not a later part's
            self._memory.message_id = sent.message_id

    async def _rewrite(self, part: FinalPart) -> None:
        """What was decided about a turn, onto the card that asked. It was an answer already: nothing new is sent."""
        try:
            if self._memory.card_id is not None:
                await self._replace(self._memory.card_id, part.card)
            elif self._memory.message_id is not None:
                await self._api.patch_message(self._memory.message_id, json.dumps(part.card, ensure_ascii=False))
        except CallRefused as error:
            if error.retryable:
                raise
            self._log("a decided card stays as it was", error)

    async def _taken(self, part: FinalPart, offer: Callable[[Card, int], Awaitable[object]]) -> bool:
        """Offer the card, then the plainer one; False when neither is taken. What a plainer one cannot help with is
        raised."""
        for rung, card in enumerate((part.card, part.plain)):
            try:
                await offer(card, rung)
                return True
            except CallRefused as error:
                if error.kind not in PLAINER_HELPS:
                    raise
                self._log("a final card was refused; a plainer one follows", error)
        return False

    async def _replace(self, card_id: str, card: Card) -> None:
        for is_last in (False, True):
            try:
                async with self._api.limits.card(card_id):
                    await self._api.update_card(card_id, card, await self._next_sequence())
                self.operations += 1
                return
            except CallRefused as error:
                if error.kind is not ErrorKind.SEQUENCE or is_last:
                    raise
                await self._jump()

    async def _next_sequence(self) -> int:
        following = self._memory.sequence + 1
        if following > self._reserved:
            self._reserved = following + SEQUENCE_BLOCK
            await self._memory.keep_sequence(self._reserved)
        self._memory.sequence = following
        return following

    async def _jump(self) -> None:
        self._memory.sequence += SEQUENCE_JUMP
        self._reserved = self._memory.sequence
        await self._memory.keep_sequence(self._reserved)

    def _log(self, message: str, error: CallRefused | StoreError) -> None:
        what = {"kind": error.kind, "code": error.code} if isinstance(error, CallRefused) else {}
        logger.warning(message, extra={"action": "card_refused", "turn": self._turn_id, "reason": str(error)} | what)


async def _parts_of(ending: Ending, lang: Lang, heading: str) -> list[FinalPart]:
    """The final parts; of a long answer in a thread, for reading its Markdown takes a while."""
    if len(ending.view.text) < LONG_CHARS:
        return final_parts(ending, lang, heading)
    return await asyncio.to_thread(final_parts, ending, lang, heading)
