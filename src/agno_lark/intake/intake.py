"""The door: each event of the connection is read, judged and committed here, before it is acknowledged."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from agno_lark import crash
from agno_lark.clock import Clock, Ids
from agno_lark.commands import ParsedCommand, parse_command
from agno_lark.errors import FeishuError
from agno_lark.feishu.events import (
    CARD_CLICK,
    MESSAGE_RECEIVED,
    CardClick,
    Event,
    IncomingMessage,
    MalformedEvent,
    parse_click,
    parse_message,
)
from agno_lark.feishu.text import MeantText, meant_text
from agno_lark.intake.accept import (
    Accepted,
    Click,
    ClickAnswer,
    Intent,
    Note,
    Origin,
    Talk,
    accept_click,
    accept_message,
)
from agno_lark.intake.policy import Admission, admit_message, is_of_a_former_life, late_by_ms, may_decide
from agno_lark.locale import Lang, language_of_text, say
from agno_lark.replies import DISMISS, RETRY, STOP, Place
from agno_lark.sessions import Scope
from agno_lark.settings import Language, Settings
from agno_lark.store import Store

__all__ = ["Intake"]

logger = logging.getLogger(__name__)

KNOWN_WITHIN_S = 1.5  # of the three seconds Feishu waits for an acknowledgement
_READ = frozenset({"text", "post"})


class Intake:
    """Takes events in for one app, since `started_ms`.

    Called once it is committed: `taken(turn_id, message_id)` for a new turn, `superseded(turn_id)` for one that was
    stopped for a newer message.
    """

    def __init__(
        self,
        *,
        store: Store,
        settings: Settings,
        target: tuple[str, str],
        clock: Clock,
        ids: Ids,
        started_ms: int,
        taken: Callable[[str, str], None],
        superseded: Callable[[str], None],
        bot_open_id: str = "",
    ) -> None:
        self._store = store
        self._settings = settings
        self._bot_open_id = bot_open_id  # until it is known, messages of groups are left to be delivered again
        self._known = asyncio.Event()
        self._target = target
        self._clock = clock
        self._ids = ids
        self._started_ms = started_ms
        self._taken = taken
        self._superseded = superseded
        self.counts: Counter[str] = Counter()  # what became of events, for /feishu/status

    @property
    def bot_open_id(self) -> str:
        """The bot's own open id, "" while it is not known."""
        return self._bot_open_id

    @bot_open_id.setter
    def bot_open_id(self, open_id: str) -> None:
        self._bot_open_id = open_id
        if open_id:
            self._known.set()

    async def accept(self, event: Event) -> Mapping[str, Any] | None:
        """Commit what the event asks for; returns a click's answer. An event that asks for nothing returns at once.

        Raises what keeps it from being committed (`StoreError`, `FeishuError`): then it must not be acknowledged.
        """
        try:
            if event.event_type == MESSAGE_RECEIVED:
                await self._message(parse_message(event))
            elif event.event_type == CARD_CLICK:
                return await self._click(parse_click(event))
            else:
                self.counts[f"ignored.{event.event_type}"] += 1
        except MalformedEvent as error:
            # Another delivery would bring the same bytes: it is acknowledged, and said.
            self.counts["malformed"] += 1
            logger.warning(
                "an event could not be read",
                extra={"action": "event_malformed", "event": event.event_id, "reason": str(error)},
            )
        return None

    async def _message(self, message: IncomingMessage) -> None:
        if message.chat_type != "p2p" and not await self._knows_itself():
            raise FeishuError("the bot's own id is not known yet, so nobody can tell whether it is meant")
        meant = meant_text(message.message_type, message.content, message.mentions, bot_open_id=self.bot_open_id)
        admission = admit_message(message, meant, self._settings, self.bot_open_id)
        if admission not in (Admission.ADMITTED, Admission.DENIED):
            self._refused(admission, message)
            return
        language = self._language(message, meant.text)
        if admission is Admission.DENIED:
            self._refused(admission, message)
            intent: Intent = Note(phrase="hint.denied", values=(("id", message.sender_open_id),))
        else:
            intent = read_intent(message, meant)
        late_ms = late_by_ms(message.created_ms, self._clock.now_ms())
        if isinstance(intent, ParsedCommand) and self._has_passed(intent, message, late_ms):
            self.counts["message.passed"] += 1
            logger.info(
                "a command came too late to mean anything",
                extra={"action": "command_passed", "command": intent.name, "event_id": message.event_id},
            )
            return
        origin = self._origin(message, language, intent, late_ms)
        crash.reached("accept.received")
        accepted = await self._store.transact(accept_message, self._ids.new(), origin, intent, self._target)
        crash.reached("accept.committed")
        self._count(accepted)
        if accepted.superseded is not None:
            self._superseded(accepted.superseded)
        if accepted.turn_id is not None:
            self._taken(accepted.turn_id, message.message_id)

    def _has_passed(self, command: ParsedCommand, message: IncomingMessage, late_ms: int | None) -> bool:
        """What a command asks for is meant for the moment it is written in; only that a stop is not, harms at once."""
        was_before = is_of_a_former_life(message.created_ms, self._started_ms)
        return late_ms is not None or (command.name == "cancel" and was_before)

    async def _knows_itself(self) -> bool:
        """Whether the bot's own id is known; at a start it is, in a moment."""
        if not self.bot_open_id:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._known.wait(), KNOWN_WITHIN_S)
        return bool(self.bot_open_id)

    async def _click(self, click: CardClick) -> Mapping[str, Any]:
        op, turn_id = click.value.get("op"), click.value.get("turn")
        if op not in (STOP, RETRY, DISMISS) or not isinstance(turn_id, str):
            self.counts["click.unknown"] += 1
            lang = self._fixed_language() or "zh"
            return _toast(ClickAnswer(phrase="toast.unknown"), lang)
        pressed = Click(
            app_id=click.app_id,
            event_id=click.event_id,
            message_id=click.message_id,
            op=op,
            turn_id=turn_id,
            operator=click.operator_open_id,
        )
        answer = await self._store.transact(
            accept_click, self._ids.new(), pressed, lambda row: may_decide(row, click, self._settings)
        )
        self.counts[f"click.{answer.phrase}"] += 1
        return _toast(answer, self._fixed_language() or answer.language or "zh")

    def _origin(self, message: IncomingMessage, language: Lang | None, intent: Intent, late_ms: int | None) -> Origin:
        scope = Scope.of(
            target_type=self._target[0],
            target_id=self._target[1],
            chat_id=message.chat_id,
            is_group=message.chat_type != "p2p",
            thread_id=message.thread_id,
            user_id=message.sender_open_id,
            mode=self._settings.feishu_group_session_mode,
        )
        place = Place(chat_id=message.chat_id, message_id=message.message_id, thread_id=message.thread_id)
        return Origin(
            app_id=message.app_id,
            tenant_key=message.tenant_key,
            event_id=message.event_id,
            sender=message.sender_open_id,
            chat_type=message.chat_type,
            place=place,
            scope=scope,
            language=language,
            fallback_language="en" if "larksuite" in self._settings.lark_api_base_url else "zh",
            too_late_ms=late_ms,
            interrupts=self._settings.feishu_private_interrupt
            and isinstance(intent, Talk)
            and message.chat_type == "p2p"
            and message.sender_type == "user",  # what an app sends interrupts nobody
        )

    def _fixed_language(self) -> Lang | None:
        match self._settings.feishu_language:
            case Language.ZH:
                return "zh"
            case Language.EN:
                return "en"
            case Language.AUTO:
                return None

    def _language(self, message: IncomingMessage, text: str) -> Lang | None:
        """A command says nothing of its writer's language, so its letters do not count."""
        written = language_of_text(text) if not text.lstrip().startswith(("/", "／")) else None
        return self._fixed_language() or message.language or written

    def _refused(self, admission: Admission, message: IncomingMessage) -> None:
        self.counts[f"message.{admission}"] += 1
        if admission in (Admission.DENIED, Admission.FOREIGN_CHAT, Admission.FOREIGN_USER):
            logger.info(
                "a message was not let in",
                extra={
                    "action": "message_refused",
                    "why": str(admission),
                    "user": message.sender_open_id,
                    "chat": message.chat_id,
                },
            )

    def _count(self, accepted: Accepted) -> None:
        if not accepted.is_new:
            self.counts["message.duplicate"] += 1
        else:
            self.counts["message.turn" if accepted.turn_id else "message.control"] += 1


def read_intent(message: IncomingMessage, meant: MeantText) -> Intent:
    """What an admitted message is: a command, talk, or something the bridge answers itself. Pure."""
    if message.message_type not in _READ:
        return Note(phrase="hint.unsupported", values=(("kind", message.message_type),))
    command = parse_command(meant.text)
    if command is not None:
        return command
    return Talk(text=meant.text) if meant.text.strip() else Note(phrase="hint.empty")


def _toast(answer: ClickAnswer, lang: Lang) -> Mapping[str, Any]:
    return {"toast": {"type": "success" if answer.is_good else "info", "content": say(answer.phrase, lang)}}
