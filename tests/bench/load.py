"""People who write: many chats at once, in each one message after the other."""

import asyncio
import json
import os
import random
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agno_lark.sandbox.records import Card
from agno_lark.testing import FeishuSandbox
from tests.bench.measures import most_within, spread_ms
from tests.bench.processes import Running, fsync_times_s
from tests.bench.watch import Watch

__all__ = ["Load", "Scene", "run_load"]

CARD_CALLS = ("card.create", "card.update", "card.element.content", "card.settings")
RATE_CODES = ("99991400", "230020", "300317", "11232", "230049")


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """`word` begins every message; the AgentOS stub streams for 3 s where it is `stream`.

    `pause_s`: before each message a person thinks, for up to twice as long. 0: all write at the same moment, and again
    as soon as they are answered, which no bot stands for long without a queue.
    """

    chats: int
    messages: int
    word: str = "hello"
    pause_s: float = 0.0
    answer_within_s: float = 45.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Where a load runs: the local Feishu, who is measured, and the AgentOS behind them."""

    feishu: FeishuSandbox
    watch: Watch
    bot: Running
    agentos: Running
    disk: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class _Turn:
    text: str
    question: str
    asked_s: float


async def run_load(scene: Scene, load: Load) -> dict[str, Any]:
    """Run it and return its row of the report. Every wait is bounded."""
    feishu, bot = scene.feishu, scene.bot
    names = [_person(feishu, number) for number in range(load.chats)]
    counts = Counter(feishu.world.counts)
    redelivered = feishu.deliveries.counts["redeliveries"]
    cards = set(feishu.world.cards)
    ours = Running(os.getpid())
    load_before, fsync_before = os.getloadavg()[0], fsync_times_s(scene.disk)
    await asyncio.to_thread(_arrivals, scene.agentos.told)
    scene.watch.lags_s.clear()
    bot.forget_peak()
    cpu_before = [part.cpu_s() for part in (bot, ours, scene.agentos)]
    started_s = time.monotonic()
    turns = [turn for chat in await asyncio.gather(*(_chat(scene, load, name) for name in names)) for turn in chat]
    ended_s = max((scene.watch.complete.get(turn.question, started_s) for turn in turns), default=started_s)
    await _quiet(feishu)
    lags_s = list(scene.watch.lags_s)
    cpu_s = [part.cpu_s() - before for part, before in zip((bot, ours, scene.agentos), cpu_before, strict=True)]
    peak_mb = bot.peak_rss_mb()
    arrived = await asyncio.to_thread(_arrivals, scene.agentos.told)
    fsync = [*fsync_before, *fsync_times_s(scene.disk)]
    calls = Counter(feishu.world.counts)
    calls.subtract(counts)
    new_cards = [feishu.world.cards[card_id] for card_id in feishu.world.cards if card_id not in cards]
    answered = [turn for turn in turns if turn.question in scene.watch.complete]
    return {
        "chats": load.chats,
        "messages_per_chat": load.messages,
        "pause_s": load.pause_s,
        "turns": len(turns),
        "unanswered": len(turns) - len(answered),
        "wrong_answers": sum(not _is_right(scene, turn) for turn in answered),
        "redelivered": feishu.deliveries.counts["redeliveries"] - redelivered,
        **_times(scene, turns, arrived),
        "turns_per_s": round(len(answered) / max(ended_s - started_s, 0.001), 1),
        "card_operations_per_turn": round(sum(calls[call] for call in CARD_CALLS) / max(len(turns), 1), 2),
        "calls_per_turn": {k: round(n / len(turns), 2) for k, n in sorted(calls.items()) if n > 0 and "!" not in k},
        "refusals": {name: n for name, n in sorted(calls.items()) if n > 0 and "!" in name},
        "rate_refusals": sum(n for name, n in calls.items() if name.rpartition("!")[2] in RATE_CODES),
        "most_operations_on_a_card_in_a_second": _busiest(new_cards),
        "peak_rss_mb": peak_mb,
        "cpu_ms_per_turn": {
            name: round(spent * 1000 / max(len(turns), 1), 1)
            for name, spent in zip(("bot", "sandbox", "agentos"), cpu_s, strict=True)
        },
        "sandbox_lag_ms": spread_ms(lags_s),
        "fsync_ms": spread_ms(fsync),
        "load_average": [round(load_before, 2), round(os.getloadavg()[0], 2)],
    }


def _person(feishu: FeishuSandbox, number: int) -> str:
    """The name of one of as many people as it takes, each with a direct chat."""
    name = f"Person {number}"
    if all(person.name != name for person in feishu.world.people):
        feishu.world.add_person(name)
    return name


async def _chat(scene: Scene, load: Load, name: str) -> list[_Turn]:
    turns: list[_Turn] = []
    thinking = random.Random(name)  # the same pauses for everyone who is measured
    chat_id = scene.feishu.direct_chat(name)
    for number in range(load.messages):
        await asyncio.sleep(thinking.uniform(0, 2 * load.pause_s))
        text = f"{load.word} {name} {number}"
        asked_s = time.monotonic()
        message = await scene.feishu.write(name, chat_id, text)
        turns.append(_Turn(text=text, question=message.message_id, asked_s=asked_s))
        if not await scene.watch.answer_to(message.message_id, load.answer_within_s):
            break
    return turns


async def _quiet(feishu: FeishuSandbox) -> None:
    """Wait until no call has come for a second (what follows an answer belongs to its turn), 60 s at most."""
    deadline_s = time.monotonic() + 60
    before = -1
    while (now := sum(feishu.world.counts.values())) != before and time.monotonic() < deadline_s:
        before = now
        await asyncio.sleep(1)


def _arrivals(agentos_url: str) -> dict[str, float]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{agentos_url}/bench/arrivals", timeout=10) as answer:
        found: dict[str, float] = json.load(answer)
        return found


def _times(scene: Scene, turns: Iterable[_Turn], arrived: dict[str, float]) -> dict[str, Any]:
    watch = scene.watch
    attempts = {parcel.message_id: parcel.attempts for parcel in scene.feishu.deliveries.parcels.values()}
    acks: list[float] = []
    own: list[float] = []
    posts: list[float] = []
    cards: list[float] = []
    ends: list[float] = []
    for turn in turns:
        first = attempts[turn.question][0].message_id if attempts.get(turn.question) else ""
        left_s = watch.left.get(first)
        if left_s is None:
            continue
        if first in watch.acked:
            acks.append(watch.acked[first] - left_s)
            own.append(watch.own_ms[first] / 1000)
        if turn.text in arrived:
            posts.append(arrived[turn.text] - left_s)
        if turn.question in watch.seen:
            cards.append(watch.seen[turn.question] - left_s)
        if turn.question in watch.complete:
            ends.append(watch.complete[turn.question] - left_s)
    return {
        "ack_ms": spread_ms(acks),
        "ack_as_told_by_the_bot_ms": spread_ms(own),
        "event_to_post_ms": spread_ms(posts),
        "event_to_card_ms": spread_ms(cards),
        "event_to_answer_ms": spread_ms(ends),
    }


def _is_right(scene: Scene, turn: _Turn) -> bool:
    world = scene.feishu.world
    text = world.show(world.message(scene.watch.answers[turn.question])).text
    return ("word599" if turn.text.startswith("stream") else f"ok: {turn.text}") in text


def _busiest(cards: Iterable[Card]) -> int:
    """The most operations any card saw within any second (Feishu allows 10)."""
    return max((most_within((edit.at_ms for edit in card.history), 1000) for card in cards), default=0)
