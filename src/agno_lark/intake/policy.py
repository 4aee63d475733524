"""Who may talk to the bot, and when it is spoken to. Pure."""

from enum import StrEnum

from agno_lark.commands import ParsedCommand, parse_command
from agno_lark.feishu.events import CardClick, IncomingMessage
from agno_lark.feishu.text import MeantText
from agno_lark.sessions import Scope
from agno_lark.settings import Settings
from agno_lark.turns import RunRow

__all__ = ["LATE_MS", "Admission", "admit_message", "is_of_a_former_life", "late_by_ms", "may_decide", "may_talk"]

LATE_MS = 8 * 3_600_000  # beyond Feishu's last redelivery (about 7 h): whoever asked has long gone on
START_SLACK_MS = 30_000  # two clocks are compared, Feishu's and ours


class Admission(StrEnum):
    """What becomes of a message. Only the first two are answered."""

    ADMITTED = "admitted"
    DENIED = "denied"  # a direct message of somebody without access: they are told how to get it
    OWN = "own"  # the bot's own message, echoed
    BOT = "bot"  # another bot's, and those are not answered
    NOT_ADDRESSED = "not_addressed"  # talk in a group that does not mention the bot
    FOREIGN_CHAT = "foreign_chat"  # a chat that is not on the list
    FOREIGN_USER = "foreign_user"  # in a group, somebody who is not on the list


def admit_message(message: IncomingMessage, meant: MeantText, settings: Settings, bot_open_id: str) -> Admission:
    """Direct messages always count as addressed to the bot; messages in groups when they mention it, or are one of its
    commands and mention nobody."""
    if message.sender_open_id == bot_open_id:
        return Admission.OWN
    if message.sender_type != "user" and not settings.feishu_allow_bots:
        return Admission.BOT
    is_direct = message.chat_type == "p2p"
    if not is_direct and not meant.mentions_bot and not _is_bare_command(message, meant):
        return Admission.NOT_ADDRESSED
    if may_talk(message.sender_open_id, message.chat_id, settings, is_direct=is_direct):
        return Admission.ADMITTED
    if is_direct:
        return Admission.DENIED
    chats = settings.feishu_allowed_chat_ids
    return Admission.FOREIGN_CHAT if chats and message.chat_id not in chats else Admission.FOREIGN_USER


def _is_bare_command(message: IncomingMessage, meant: MeantText) -> bool:
    """Only apps that may read all of a group get to see one. Words behind `/new` would start a run: they need a
    mention, as all talk does."""
    if message.mentions or meant.mentions_all or message.message_type not in ("text", "post"):
        return False
    command = parse_command(meant.text)
    return isinstance(command, ParsedCommand) and (not command.rest or command.name == "cancel")


def is_of_a_former_life(created_ms: int, started_ms: int) -> bool:
    """Written before this bridge began: a stop of that time was meant for what ran then (cases.md no. 2)."""
    return 0 < created_ms < started_ms - START_SLACK_MS


def late_by_ms(created_ms: int, now_ms: int) -> int | None:
    """The age of a message that came too late to be run without asking; None for any other."""
    return now_ms - created_ms if 0 < created_ms < now_ms - LATE_MS else None


def may_decide(row: RunRow, click: CardClick, settings: Settings) -> bool:
    """Who presses a button must be let in there, and have a say in the turn's conversation: would they write into the
    same scope? So in a group's own conversations it is the asker alone, in shared ones anybody in it. Who asked always
    has, also under settings that have changed since."""
    is_direct = row.chat_type == "p2p"
    if click.tenant_key != row.tenant_key:
        return False
    if not may_talk(click.operator_open_id, row.chat_id, settings, is_direct=is_direct):
        return False
    if click.operator_open_id == row.requester:
        return True
    if is_direct:
        return False
    scope = Scope.of(
        target_type=row.target_type,
        target_id=row.target_id,
        chat_id=row.chat_id,
        is_group=True,
        thread_id=row.thread_id,
        user_id=click.operator_open_id,
        mode=settings.feishu_group_session_mode,
    )
    return str(scope) == row.scope


def may_talk(open_id: str, chat_id: str, settings: Settings, *, is_direct: bool) -> bool:
    """Both lists must agree, where they are set; a person who is named may always write directly."""
    users, chats = settings.feishu_allowed_user_ids, settings.feishu_allowed_chat_ids
    if users and open_id not in users:
        return False
    return not chats or chat_id in chats or (is_direct and open_id in users)
