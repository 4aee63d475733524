"""Slash commands: what they are called, what they mean when they are accepted, what they answer.

Enters: a message's text. Leaves: a `ParsedCommand`, decided in the accepting transaction (`decide`) and answered by a
control job (`CommandHandler`), which never waits behind a turn. Survives a crash: the decision and the job; the answer
carries the job's uuid, so that carrying it out again shows nothing new.
"""

from agno_lark.commands.handle import COMMAND, SAY, STOP_RUN, CommandHandler, ask_to_stop, say_payload
from agno_lark.commands.parse import NearMiss, ParsedCommand, parse_command
from agno_lark.commands.registry import CommandContext, decide

__all__ = [
    "COMMAND",
    "SAY",
    "STOP_RUN",
    "CommandContext",
    "CommandHandler",
    "NearMiss",
    "ParsedCommand",
    "ask_to_stop",
    "decide",
    "parse_command",
    "say_payload",
]
