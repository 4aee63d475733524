"""Reading a command out of a text. Pure.

A command is the first word: a slash (also the full-width one), letters, and nothing else: `/etc/hosts` is talk. What is
no command goes to the agent; a word that is nearly one, standing alone, gets a hint instead.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = ["ALIASES", "NAMES", "NearMiss", "ParsedCommand", "parse_command"]

NAMES = ("new", "status", "cancel", "retry", "dismiss", "help")
ALIASES = {"stop": "cancel"}

_COMMAND = re.compile(r"[/／]([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)
_NEARLY = 0.66  # of difflib's ratio: /nwe, /cancle, /stauts, /hepl; not /weather
_RUN_ID_LIKE = re.compile(r"[0-9a-fA-F-]{6,}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedCommand:
    """`name` is the canonical one, in lower case; `rest` is what follows it."""

    name: str
    rest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NearMiss:
    """`given` is what was typed, `meant` the command it resembles, both with their slash."""

    given: str
    meant: str


def parse_command(text: str) -> ParsedCommand | NearMiss | None:
    """The command in `text`, a near miss, or None for talk."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None:
        return None
    word, rest = match[1].lower(), (match[2] or "").strip()
    name = ALIASES.get(word, word)
    if name in NAMES:
        return ParsedCommand(name=name, rest=rest)
    if rest and not _RUN_ID_LIKE.fullmatch(rest):
        return None
    close = get_close_matches(word, (*NAMES, *ALIASES), n=1, cutoff=_NEARLY)
    return NearMiss(given=f"/{match[1]}", meant=f"/{close[0]}") if close else None
