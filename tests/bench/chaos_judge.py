"""Was the promise kept? Pure: what people see, what the models were asked and what the bridge wrote down go in; what is
wrong, and what is right but has to be explained, comes out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agno_lark.locale import PHRASES
from agno_lark.sandbox.demo_calls import ModelCall
from tests.bench.chaos_plan import Kind

__all__ = ["FAULTS", "Asked", "Down", "Facts", "Seen", "Turn", "Verdict", "judge"]

# What is wrong, whatever happened; each is a list of sentences in the verdict.
FAULTS = {
    "lost": "messages without a complete answer",
    "doubled": "messages answered more than once",
    "out_of_order": "runs, or their answers, not in the order of acceptance within their lane",
    "submitted_twice": "turns for which more was asked of the model than one run takes",
    "wrong": "answers that are not the message's",
    "growing": "cards that never came to an end",
    "left": "jobs and turns neither finished nor given up",
    "unexplained": "turns without an answer of the agent's, and nothing happened that explains it",
    "crashed": "processes that ended though nobody ended them",
}
_NEAR_MS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A message somebody wrote."""

    message_id: str
    person: str
    text: str
    kind: Kind
    needles: tuple[str, ...]
    model_calls: int
    written_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A message of the bot's, as people see it at the end. `to`: the message it answers; `place`: its chat; `position`:
    where it stands among all messages; `grows`: it streams, or has a Stop button."""

    message_id: str
    to: str
    place: str
    position: int
    text: str
    grows: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A row of `runs`. Times are UTC milliseconds."""

    turn_id: str
    message_id: str
    seq: int
    session_id: str
    state: str
    reason: str | None
    run_id: str | None
    accepted_ms: int
    submitted_ms: int | None
    finished_ms: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Down:
    """A time in which something did not work. `what`: bridge, agentos or feishu."""

    what: str
    from_ms: int
    until_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """All that is known at the end. `jobs`: (id, kind, state, error) of those that are
    not done, and of replies that are not confirmed."""

    asked: Sequence[Asked]
    seen: Sequence[Seen]
    turns: Sequence[Turn]
    calls: Sequence[ModelCall]
    jobs: Sequence[tuple[str, str, str, str | None]] = ()
    downs: Sequence[Down] = ()
    crashes: Sequence[str] = ()


@dataclass(kw_only=True, slots=True)
class Verdict:
    """`wrongs`: for each of FAULTS a sentence a case. `explained`: why turns have no answer of the agent's, counted.
    `answers`: how the answers say they ended, counted."""

    wrongs: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in FAULTS})
    explained: Counter[str] = field(default_factory=Counter)
    explanations: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def is_good(self) -> bool:
        return not any(self.wrongs.values())

    def as_json(self) -> dict[str, Any]:
        """Counts first, then every case."""
        return {
            **{name: len(cases) for name, cases in self.wrongs.items()},
            "unknown": sum(self.explained.values()),
            "explained": dict(self.explained.most_common()),
            "answers": dict(self.answers.most_common()),
            "wrongs": {name: cases for name, cases in self.wrongs.items() if cases},
            "explanations": self.explanations,
        }


def judge(facts: Facts) -> Verdict:
    """See FAULTS."""
    verdict = Verdict()
    turns: dict[str, Turn] = {}
    for turn in facts.turns:
        if (first := turns.setdefault(turn.message_id, turn)) is not turn:
            verdict.wrongs["doubled"].append(f"a message became two turns: {first} and {turn}")
    answers = _answers(facts, verdict)
    for asked in facts.asked:
        _judge_message(asked, turns.get(asked.message_id), answers[asked.message_id], facts, verdict)
    _judge_order(facts, answers, verdict)
    _judge_submissions(facts, verdict)
    for job_id, kind, state, error in facts.jobs:
        if state in ("queued", "running"):
            verdict.wrongs["left"].append(f"job {job_id} ({kind}) is {state}; last error: {error}")
    for turn in facts.turns:
        if turn.state in ("waiting", "submitted", "running"):
            verdict.wrongs["left"].append(f"{turn}")
    verdict.wrongs["crashed"] += facts.crashes
    return verdict


# -- what people see -------------------------------------------------------------------------------------------------


def _words(key: str) -> str:
    """One of the phrase's words in any language, as a pattern; its values are wild."""
    return "|".join(re.sub(r"\\\{[a-z]+\\\}", ".+", re.escape(words)) for words in PHRASES[key].values())


_ENDS = {
    name: re.compile(rf"(?m)^(?:<[^>]*>)?(?:{_words(key)}) · ")
    for name, key in {
        "completed": "turn.done",
        "failed": "turn.failed",
        "cancelled": "turn.cancelled",
        "unknown": "turn.unknown",
        "paused": "turn.paused",
    }.items()
}
_PART = re.compile(rf"(?m)^(?:<[^>]*>)?(?:{_words('turn.part')})(?:</[^>]*>)?$")
_TITLES = {
    Kind.STATUS: re.compile(_words("status.title")),
    Kind.HELP: re.compile(_words("help.title")),
}


def _end_of(text: str) -> str:
    """How an answer says that its turn ended, "" where it does not say."""
    found = [(match.start(), name) for name, pattern in _ENDS.items() for match in pattern.finditer(text)]
    return max(found)[1] if found else ""


def _answers(facts: Facts, verdict: Verdict) -> dict[str, list[Seen]]:
    """The complete answers by the message they answer. Parts but the last count for nothing of their own, nor does a
    bare line of state that stands where another message says it all."""
    answers: dict[str, list[Seen]] = defaultdict(list)
    for seen in facts.seen:
        if seen.grows:
            verdict.wrongs["growing"].append(f"{seen.message_id} to {seen.to}: {seen.text[:80]!r}")
        elif not _PART.search(seen.text):
            answers[seen.to].append(seen)
    for to, found in answers.items():
        whole = [seen for seen in found if not (_end_of(seen.text) and "\n" not in seen.text.strip())]
        answers[to] = whole or found[:1]
    return answers


def _judge_message(asked: Asked, turn: Turn | None, found: list[Seen], facts: Facts, verdict: Verdict) -> None:
    is_command = asked.kind in _TITLES
    name = f"{asked.person}: {asked.text!r} ({asked.message_id}, written {asked.written_ms})"
    if not found:
        where = "never accepted" if turn is None and not is_command else f"its turn is {turn}"
        verdict.wrongs["lost"].append(f"{name}: {where}")
        return
    if len(found) > 1:
        verdict.wrongs["doubled"].append(f"{name}: {[(seen.message_id, seen.text[:80]) for seen in found]}")
    text = found[0].text
    if is_command:
        verdict.answers["command"] += 1
        if not _TITLES[asked.kind].search(text):
            verdict.wrongs["wrong"].append(f"{name}: {text[:200]!r}")
        return
    end = _end_of(text)
    verdict.answers[end or "?"] += 1
    if turn is None:
        verdict.wrongs["wrong"].append(f"{name}: answered, but the bridge knows no turn of it: {text[:200]!r}")
    elif end == "completed" or (end == "cancelled" and asked.kind is Kind.STOP):
        counts = {needle: text.count(needle) for needle in asked.needles}
        is_right = end == "cancelled" or set(counts.values()) <= {1}  # twice: a stream taken up again was not joined
        if not is_right or turn.state != end:
            verdict.wrongs["wrong"].append(f"{name}: {turn.state}, holds {counts}: {text[:200]!r}")
    else:
        _explain(name, turn, end, facts.downs, verdict)


def _explain(name: str, turn: Turn, end: str, downs: Iterable[Down], verdict: Verdict) -> None:
    """An answer that is none of the agent's needs the AgentOS to have been away while its run was to be."""
    since_ms = (turn.submitted_ms or turn.accepted_ms) - _NEAR_MS
    until_ms = (turn.finished_ms or turn.accepted_ms) + _NEAR_MS
    why = f"{turn.state}/{turn.reason}"
    told = f"{name}: {why}, submitted {turn.submitted_ms}, finished {turn.finished_ms}, turn {turn.turn_id}"
    near = [down for down in downs if down.what == "agentos" and since_ms <= down.until_ms and down.from_ms <= until_ms]
    if end != turn.state:
        verdict.wrongs["wrong"].append(f"{told}; but the answer says {end or 'nothing'}")
    elif near and turn.state in ("failed", "unknown"):
        verdict.explained[f"{why}: AgentOS was killed"] += 1
        verdict.explanations.append(f"{told}; AgentOS was away {near[0].from_ms}..{near[0].until_ms}")
    else:
        verdict.wrongs["unexplained"].append(told)


# -- what the models were asked --------------------------------------------------------------------------------------


def _judge_order(facts: Facts, answers: dict[str, list[Seen]], verdict: Verdict) -> None:
    """Within a lane: runs begin, and answers appear, in the order in which their messages were accepted."""
    begun: dict[str, int] = {}
    for number, call in enumerate(facts.calls):
        begun.setdefault(call.turn_id, number)
    lanes: dict[str, list[Turn]] = defaultdict(list)
    for turn in sorted(facts.turns, key=lambda turn: turn.seq):
        lanes[turn.session_id].append(turn)
    for lane, turns in lanes.items():
        ran = [(begun[turn.turn_id], turn) for turn in turns if turn.turn_id in begun]
        shown = [(answers[turn.message_id][0].position, turn) for turn in turns if answers.get(turn.message_id)]
        for what, places in (("began", ran), ("was answered", shown)):
            for (before, earlier), (after, later) in pairwise(places):
                if after < before:
                    verdict.wrongs["out_of_order"].append(
                        f"{lane}: turn {later.turn_id} (seq {later.seq}) {what} before {earlier.turn_id} "
                        f"(seq {earlier.seq})"
                    )


def _judge_submissions(facts: Facts, verdict: Verdict) -> None:
    """One run a turn, and no more requests to the model than one run makes; none for what is no turn."""
    asked = {one.message_id: one for one in facts.asked}
    of_turn: dict[str, list[ModelCall]] = defaultdict(list)
    for call in facts.calls:
        of_turn[call.turn_id].append(call)
    known = {turn.turn_id: turn for turn in facts.turns}
    for turn_id, calls in of_turn.items():
        turn = known.get(turn_id)
        one = asked.get(turn.message_id) if turn else None
        runs = {call.run_id for call in calls}
        if turn is None or one is None:
            verdict.wrongs["submitted_twice"].append(f"model calls of no known turn {turn_id!r}: {sorted(runs)}")
        elif len(runs) > 1 or len(calls) > one.model_calls:
            when = [call.time_ms for call in calls]
            verdict.wrongs["submitted_twice"].append(
                f"{one.text!r}: {len(calls)} calls in runs {sorted(runs)} at {when}; its turn: {turn}"
            )
