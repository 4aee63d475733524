"""What will happen in a chaos run, by its seed: who writes what and when, and what is broken when. Pure.

The same seed, length and number of messages give the same plan; what processes make of it differs from run to run.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DEEDS_A_MINUTE", "GROUPS", "TOPICS", "Deed", "DeedKind", "Kind", "Writing", "deeds", "people", "writings"]

GROUPS = ("Kitchen", "Workshop", "Harbour")
TOPICS = "Notice board"
QUIET_SHARE = 0.1  # at the end: what was broken last is mended while people still write
_LETTERS = "bcdfghjkmnpqrstvwxz"  # no vowel: no token holds a word the demo agent obeys


class Kind(StrEnum):
    """What a message asks for."""

    ECHO = "echo"  # the agent repeats it
    TOOL = "tool"  # the agent calls a tool: two requests to the model
    COUNT = "count"  # half a second to three
    LONG = "long"  # a page, some seconds
    STOP = "stop"  # a long count, whose Stop button is pressed
    NEW = "new"  # /new with a first message
    STATUS = "status"
    HELP = "help"


_WEIGHTS = {
    Kind.ECHO: 66,
    Kind.TOOL: 9,
    Kind.COUNT: 8,
    Kind.LONG: 1,
    Kind.STOP: 2,
    Kind.NEW: 2,
    Kind.STATUS: 7,
    Kind.HELP: 5,
}
_BURSTS = (1, 1, 1, 2, 2, 3, 4, 6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Writing:
    """A message somebody will write `at_s` seconds after the beginning. `place`: a group's name, or "" for the direct
    chat. Its right answer holds every one of `needles` once; it takes `model_calls` requests to the model."""

    at_s: float
    person: str
    place: str
    text: str
    kind: Kind
    needles: tuple[str, ...]
    model_calls: int


class DeedKind(StrEnum):
    """What the saboteur can do."""

    BRIDGE_KILL = "bridge_kill"  # kill -9, started again
    BRIDGE_TERM = "bridge_term"  # SIGTERM, started again
    AGENTOS_KILL = "agentos_kill"  # kill -9, started again
    DROP = "drop"  # every WebSocket breaks
    SILENCE = "silence"  # every WebSocket falls silent
    OUTAGE = "outage"  # nothing of Feishu listens
    HANDSHAKE = "handshake"  # the next WebSockets are refused
    TOKENS = "tokens"  # every token stops working
    FAIL = "fail"  # HTTP 500, before or after the effect
    RESET = "reset"  # the connection breaks, before or after the effect
    RATE = "rate"  # 99991400 or 230020
    SLOW = "slow"  # answers come late
    DUPLICATE = "duplicate"
    RENAME = "rename"  # once more, under a new event id
    DELAY = "delay"
    REORDER = "reorder"
    SPLIT = "split"  # in parts, shuffled


DEEDS_A_MINUTE = {
    DeedKind.BRIDGE_KILL: 4.0,
    DeedKind.BRIDGE_TERM: 1.0,
    DeedKind.AGENTOS_KILL: 1.6,
    DeedKind.DROP: 2.0,
    DeedKind.SILENCE: 0.6,
    DeedKind.OUTAGE: 0.6,
    DeedKind.HANDSHAKE: 1.0,
    DeedKind.TOKENS: 1.0,
    DeedKind.FAIL: 8.0,
    DeedKind.RESET: 8.0,
    DeedKind.RATE: 4.0,
    DeedKind.SLOW: 3.0,
    DeedKind.DUPLICATE: 12.0,
    DeedKind.RENAME: 10.0,
    DeedKind.DELAY: 10.0,
    DeedKind.REORDER: 8.0,
    DeedKind.SPLIT: 4.0,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Deed:
    """One thing the saboteur will do. `chance` in 0..1 decides whatever else it needs."""

    at_s: float
    kind: DeedKind
    chance: float


def people(count: int) -> list[tuple[str, str]]:
    """(name, language) of each; every fourth writes Chinese."""
    return [(f"Person {number}", "zh" if number % 4 == 3 else "en") for number in range(count)]


def deeds(seed: int, seconds: float) -> list[Deed]:
    """All of the saboteur's deeds in order of time, each kind at its rate (at least one of each), evenly spread."""
    chooser = random.Random(f"{seed}-deeds")
    busy_s = seconds * (1 - QUIET_SHARE)
    found: list[Deed] = []
    for kind, a_minute in DEEDS_A_MINUTE.items():
        count = max(1, round(a_minute * seconds / 60))
        for number in range(count):
            at_s = busy_s * (number + chooser.random()) / count
            found.append(Deed(at_s=max(1.0, at_s), kind=kind, chance=chooser.random()))
    return sorted(found, key=lambda deed: deed.at_s)


def writings(seed: int, seconds: float, messages: int, who: Sequence[tuple[str, str]]) -> list[Writing]:
    """All messages in order of time: bursts of one to six by one person in one place, each person at least one burst
    where there are messages enough."""
    chooser = random.Random(f"{seed}-writings")
    found: list[Writing] = []
    turns = list(who)
    chooser.shuffle(turns)
    while len(found) < messages:
        name, language = turns.pop() if turns else chooser.choice(who)
        place = chooser.choice((*GROUPS, TOPICS)) if chooser.random() < 0.18 else ""
        at_s = chooser.uniform(0, seconds * 0.97)
        left = messages - len(found) - len(turns)
        for _ in range(max(1, min(chooser.choice(_BURSTS), left))):
            found.append(_writing(chooser, len(found), at_s, name, language, place))
            at_s += chooser.uniform(0.02, 0.9)
    return sorted(found, key=lambda one: one.at_s)


def _writing(chooser: random.Random, number: int, at_s: float, name: str, language: str, place: str) -> Writing:
    kind = chooser.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    if kind is Kind.TOOL and language == "zh":  # a city's name has no room for a token in Chinese
        kind = Kind.ECHO
    if kind in (Kind.STOP, Kind.LONG) and place:
        kind = Kind.ECHO
    text, needles = _words(chooser, kind, _token(number), is_zh=language == "zh")
    calls = {Kind.STATUS: 0, Kind.HELP: 0, Kind.TOOL: 2}.get(kind, 1)
    return Writing(at_s=at_s, person=name, place=place, text=text, kind=kind, needles=needles, model_calls=calls)


def _token(number: int) -> str:
    letters = ""
    for _ in range(5):
        number, digit = divmod(number, len(_LETTERS))
        letters = _LETTERS[digit] + letters
    return letters


def _words(chooser: random.Random, kind: Kind, token: str, *, is_zh: bool) -> tuple[str, tuple[str, ...]]:
    """What to write, and what the right answer holds: its middle and its end."""
    match kind:
        case Kind.TOOL:
            city = token.capitalize()
            return f"weather in {city}", (f"Here it is: {city}:", "Enjoy!")
        case Kind.COUNT:
            until = chooser.randint(5, 30)
            return (f"快数到 {until}" if is_zh else f"count to {until} fast"), ("1 2 3 4", f"{until - 1} {until}")
        case Kind.LONG if is_zh:
            return "写一篇长文", ("简短的导览", "再按停止")
        case Kind.LONG:
            return "a long answer please", ("A short tour", "press Stop")
        case Kind.STOP:
            return ("快数到 60" if is_zh else "count to 60 fast"), ("59 60",)
        case Kind.STATUS:
            return "/status", ()
        case Kind.HELP:
            return "/help", ()
        case _:
            command = "/new " if kind is Kind.NEW else ""
            if is_zh:
                return f"{command}请记住 {token}", (f"你说的是：请记住 {token}", "条消息。）")
            return f"{command}please note {token}", (f"You said: please note {token}", "of this session.)")
