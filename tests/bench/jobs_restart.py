"""A daemon that finds ten thousand queued jobs at its start: when the first one runs, and what memory it takes.

All is real but Feishu and the AgentOS: the sandbox with lifted rates (in this process), the stub of
tests/bench/agentos.py, and the daemon without the gates of app and chat (tests/bench/bridge_lifted.py).
"""

import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agno_lark.intake.accept import Origin, Talk, accept_message
from agno_lark.replies import Place
from agno_lark.sandbox.records import Message
from agno_lark.sessions import Scope
from agno_lark.store import Store
from agno_lark.testing import FeishuSandbox, Limits
from tests.bench.jobs_work import TARGET, size_mb
from tests.bench.processes import HERE, Running, bridge_settings, free_port, fsync_times_s, spawn, until_ready

__all__ = ["restart"]

LIFTED = Limits(api_per_s=0, api_per_min=0, sends_per_chat_per_s=0)
WITHIN_S = 1_800.0
LEFT = "SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running')"
OVER = "SELECT COUNT(*) FROM jobs WHERE kind = 'reply' AND state = 'done'"
FIRST = "SELECT MIN(started_ms) FROM jobs"
ENDS = "SELECT state, COUNT(*) FROM jobs WHERE kind = 'turn' GROUP BY state"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Life:
    """The daemon's life, watched from outside. Times are seconds of the wall clock (`time.time`)."""

    started_s: float
    ready_s: float
    first_s: float
    ended_s: float
    memory: list[tuple[float, float]]  # share of the answers shown, resident MB


async def restart(*, queued: int, lanes: int) -> dict[str, Any]:
    """Accept `queued` messages over `lanes` chats, as a bridge had that was killed then; start the daemon; wait until
    all are answered. `first_running_after_ready_s` is negative where the first job ran before /readyz said 200."""
    with tempfile.TemporaryDirectory(prefix="agno-lark-bench-") as name:
        folder = Path(name)
        state = folder / "state.sqlite3"
        async with (
            FeishuSandbox(limits=LIFTED, keep_history=False) as feishu,
            spawn(str(HERE / "agentos.py"), "stub") as agentos,
        ):
            messages = await _accept(feishu, state, queued, lanes)
            size, load, fsync = size_mb(state), os.getloadavg()[0], fsync_times_s(folder)
            port = free_port()
            env = bridge_settings(feishu, agentos.told, folder, port)
            started_s = time.time()
            command = (str(HERE / "bridge_lifted.py"), "--env-file", "")
            async with spawn(*command, env=env, log=folder / "bridge.log") as bridge:
                life = await _watch(bridge, port, state, queued, started_s)
                peak_mb = bridge.peak_rss_mb()
            answers = _answers(feishu, messages)
            return {
                "queued": queued,
                "lanes": lanes,
                "ready_after_s": round(life.ready_s - started_s, 2),
                "first_running_after_s": round(life.first_s - started_s, 2),
                "first_running_after_ready_s": round(life.first_s - life.ready_s, 2),
                "all_done_after_s": round(life.ended_s - started_s, 1),
                "jobs_per_s": round(queued / (life.ended_s - life.first_s), 1),
                "ends": _ends(state),
                "lost": sum(answers[message.message_id] == 0 for message in messages),
                "doubled": sum(answers[message.message_id] > 1 for message in messages),
                "rss_mb": {f"{share}%": _memory_at(life.memory, share / 100) for share in (1, 10, 25, 50, 75, 100)},
                "peak_rss_mb": peak_mb,
                "size_mb": size,
                "fsync_ms_median": round(sorted(fsync)[len(fsync) // 2] * 1000, 2),
                "load_average": [round(load, 2), round(os.getloadavg()[0], 2)],
            }


async def _accept(feishu: FeishuSandbox, state: Path, queued: int, lanes: int) -> list[Message]:
    """The messages in the sandbox, each with its job in the state file; no event tells of them."""
    people = [feishu.world.add_person(f"Person {lane}") for lane in range(lanes)]
    chats = [feishu.world.direct_chat(person.name) for person in people]
    messages: list[Message] = []
    async with Store.open(state) as store:
        for first in range(0, queued, lanes):
            round_of_all: list[Message] = []
            for lane in range(min(lanes, queued - first)):
                text = f"hello {lane} {first}"
                message = feishu.world.place(chats[lane], people[lane].open_id, "text", {"text": text})
                round_of_all.append(message)
            accepted = [
                store.transact(
                    accept_message, f"turn-{m.message_id}", _origin(feishu, m, people[n].open_id), _talk(m), TARGET
                )
                for n, m in enumerate(round_of_all)
            ]
            await asyncio.gather(*accepted)
            messages += round_of_all
    return messages


def _talk(message: Message) -> Talk:
    return Talk(text=str(message.content["text"]))


def _origin(feishu: FeishuSandbox, message: Message, sender: str) -> Origin:
    return Origin(
        app_id=feishu.app_id,
        tenant_key="tenant",
        event_id=f"event-{message.message_id}",
        sender=sender,
        chat_type="p2p",
        place=Place(chat_id=message.chat_id, message_id=message.message_id, thread_id=None),
        scope=Scope(target_type=TARGET[0], target_id=TARGET[1], chat_id=message.chat_id),
        language="en",
    )


async def _watch(bridge: Running, port: int, state: Path, queued: int, started_s: float) -> _Life:
    """Look on until no job is left."""
    await until_ready(port, within_s=60)
    ready_s = time.time()
    memory: list[tuple[float, float]] = []
    with closing(sqlite3.connect(f"{state.as_uri()}?mode=ro", uri=True, timeout=30)) as reader:
        async with asyncio.timeout(WITHIN_S):
            while left := reader.execute(LEFT).fetchone()[0]:
                memory.append((reader.execute(OVER).fetchone()[0] / queued, bridge.rss_mb()))
                await asyncio.sleep(0.5)
                if sys.stderr.isatty():
                    sys.stderr.write(f"  {left} jobs left \r")
        ended_s = time.time()
        memory.append((1.0, bridge.rss_mb()))
        first_s = reader.execute(FIRST).fetchone()[0] / 1000
    return _Life(started_s=started_s, ready_s=ready_s, first_s=first_s, ended_s=ended_s, memory=memory)


def _memory_at(memory: list[tuple[float, float]], share: float) -> float:
    return next(mb for done, mb in memory if done >= share)


def _ends(state: Path) -> dict[str, int]:
    with closing(sqlite3.connect(f"{state.as_uri()}?mode=ro", uri=True)) as reader:
        return dict(reader.execute(ENDS).fetchall())


def _answers(feishu: FeishuSandbox, messages: list[Message]) -> Counter[str]:
    """How many right answers each message has on its person's screen."""
    texts = {message.message_id: str(message.content["text"]) for message in messages}
    counts: Counter[str] = Counter()
    for message in feishu.world.messages.values():
        question = message.parent_id or ""
        if message.sender_is_bot and question in texts and not message.recalled:
            counts[question] += f"ok: {texts[question]}" in feishu.world.show(message).text
    return counts
