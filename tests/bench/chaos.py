"""Is every message answered exactly once, whatever is killed meanwhile? `python tests/bench/chaos.py [--json]`.

200 people write to the bridge while it, the AgentOS and the sockets are killed at random, and the local Feishu drops,
delays, duplicates, reorders and limits. Then the weather is calm, what is under way comes to its end, and the judge
looks: at everybody's screen, at what the models were asked, and at the bridge's own rows. The exit code is 1 where
anything was lost, doubled, out of order or without an explanation. The JSON is a contract: keys are added, never
renamed. `--keep FOLDER` keeps logs, databases, and who did what when.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agno_lark.sandbox.deliveries import ParcelState
from agno_lark.sandbox.demo_calls import read_calls
from agno_lark.testing import ClientConfig, FeishuSandbox
from tests.bench import chaos_rows
from tests.bench.chaos_judge import Facts, judge
from tests.bench.chaos_people import People
from tests.bench.chaos_plan import Deed, DeedKind, deeds, people, writings
from tests.bench.chaos_processes import Kept
from tests.bench.chaos_report import keep, summary, table
from tests.bench.chaos_saboteur import Saboteur
from tests.bench.processes import bridge_settings, free_port

RUN_TIMEOUT_S = 45  # of silence; a restarted AgentOS may take half as long on a busy machine
LOST_RUN_TIMEOUT_S = 8  # a run whose AgentOS was killed never ends by itself
# A message the platform gives up is not the bridge's to answer: none is given up within the run.
ACK_S, REDELIVERY_S = 2.0, (1.0, 2.0, 3.0, *[5.0] * 60)
FULL_MESSAGES, MESSAGES_A_MINUTE = 2000, 400
QUIET_S = 2.0  # a second answer would come late


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What was asked for. `patience_s`: how long the end is waited for while nothing comes to its end."""

    seed: int
    minutes: float
    messages: int
    people: int
    patience_s: float
    durable_queue: bool
    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "state.sqlite3"

    @property
    def calls(self) -> Path:
        return self.folder / "calls.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Everything that takes part."""

    feishu: FeishuSandbox
    bridge: Kept
    agentos: Kept
    crowd: People
    saboteur: Saboteur


async def run(options: Options) -> dict[str, Any]:
    """The whole run; its report."""
    async with _scene(options) as scene:
        wrote_s = await _storm(scene, options)
        drained_s = await _drain(scene, options)
        await scene.bridge.stop()
        await scene.agentos.stop()
        facts = Facts(
            asked=scene.crowd.asked,
            seen=scene.crowd.seen(),
            turns=chaos_rows.turns(options.state),
            calls=read_calls(options.calls),
            jobs=chaos_rows.unfinished(options.state),
            downs=[*scene.bridge.downs, *scene.agentos.downs, *scene.saboteur.downs],
            crashes=[*scene.bridge.crashes, *scene.agentos.crashes],
        )
        report = {
            "seed": options.seed,
            "minutes": options.minutes,
            "people": options.people,
            "durable_queue": options.durable_queue,
            "messages_per_s": round(len(facts.asked) / wrote_s, 1),
            "drained_s": drained_s,
            "stops_pressed": scene.crowd.presses,
            **summary(
                facts,
                judge(facts),
                feishu=scene.feishu,
                bridge=scene.bridge,
                agentos=scene.agentos,
                saboteur=scene.saboteur,
            ),
        }
        keep(options.folder, report, scene.saboteur, facts)
    return report


@contextlib.asynccontextmanager
async def _scene(options: Options) -> AsyncIterator[Scene]:
    """Feishu here, AgentOS and bridge as processes, all ready; ended when the block ends."""
    client_config = ClientConfig(ping_interval_s=2, reconnect_interval_s=1)
    async with (
        FeishuSandbox(ack_s=ACK_S, redelivery_s=REDELIVERY_S, client_config=client_config) as feishu,
        contextlib.AsyncExitStack() as stack,
    ):
        agentos, url = _agentos(options)
        bridge = _bridge(feishu, options, agentos_url=url)
        crowd = People(feishu, people(options.people))
        for kept in (agentos, bridge):
            stack.push_async_callback(kept.stop)
            await kept.start()
        saboteur = Saboteur(feishu, bridge, agentos)
        yield Scene(feishu=feishu, bridge=bridge, agentos=agentos, crowd=crowd, saboteur=saboteur)


def _agentos(options: Options) -> tuple[Kept, str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    files = ["--db", str(options.folder / "sessions.sqlite3"), "--calls", str(options.calls)]
    files += ["--durable-queue"] * options.durable_queue
    command = ("-m", "agno_lark.sandbox.agentos", "--port", str(port), *files, "--exit-with-parent")
    log = options.folder / "agentos.log"
    return Kept("agentos", command, env={}, log=log, ready_url=f"{url}/demo/model-calls"), url


def _bridge(feishu: FeishuSandbox, options: Options, *, agentos_url: str) -> Kept:
    port = free_port()
    env = bridge_settings(feishu, agentos_url, options.folder, port) | {
        "BRIDGE_RUN_TIMEOUT": str(RUN_TIMEOUT_S),
        "BRIDGE_LOST_RUN_TIMEOUT": str(LOST_RUN_TIMEOUT_S),
        "LARK_API_TIMEOUT": "5",
        "LOG_FORMAT": "json",
    }
    command = ("-m", "agno_lark.cli", "--env-file", "")
    log = options.folder / "bridge.log"
    return Kept("bridge", command, env=env, log=log, ready_url=f"http://127.0.0.1:{port}/readyz")


async def _storm(scene: Scene, options: Options) -> float:
    """People write and the saboteur breaks things, both by the plan; then all is whole again. Seconds it took."""
    seconds = options.minutes * 60
    plan = writings(options.seed, seconds, options.messages, people(options.people))
    _say(f"seed {options.seed}: {len(plan)} messages in {seconds:g} s")
    started_s = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as parts:
        parts.create_task(scene.crowd.write(plan, started_s), name="people")
        parts.create_task(scene.saboteur.work(_deeds(options), started_s), name="saboteur")
    took_s = asyncio.get_running_loop().time() - started_s
    scene.saboteur.calm()
    _say(f"calm after {took_s:.0f} s: {len(scene.crowd.unanswered())} messages wait for their answer")
    return took_s


def _deeds(options: Options) -> list[Deed]:
    """All of the plan's; but a queue that is kept in memory is not durable where its process is killed."""
    spared = {DeedKind.AGENTOS_KILL} if options.durable_queue else set()
    return [deed for deed in deeds(options.seed, options.minutes * 60) if deed.kind not in spared]


async def _drain(scene: Scene, options: Options) -> float | None:
    """Wait until everything is over and no call has come for a while. Seconds it took; None where nothing went on any
    more, or calls came without an end."""
    loop = asyncio.get_running_loop()
    started_s = moved_s = quiet_since_s = loop.time()
    calls, waiting = -1, len(scene.crowd.asked)
    while loop.time() - moved_s < options.patience_s:
        now, left = sum(scene.feishu.world.counts.values()), len(scene.crowd.unanswered())
        if left < waiting:
            waiting, moved_s = left, loop.time()
        if now != calls or left or not await _is_over(scene, options):
            calls, quiet_since_s = now, loop.time()
        elif loop.time() - quiet_since_s >= QUIET_S:
            took_s = loop.time() - started_s
            _say(f"all over after {took_s:.0f} s more")
            return round(took_s, 1)
        await asyncio.sleep(0.5)
    _say(f"not over after {loop.time() - started_s:.0f} s more: {waiting} messages wait")
    return None


async def _is_over(scene: Scene, options: Options) -> bool:
    """Both processes are up, every event is taken, and no job is under way."""
    if not (scene.bridge.ready.is_set() and scene.agentos.ready.is_set()):
        return False
    parcels = [one for one in scene.feishu.deliveries.parcels.values() if one.message_id]
    taken = all(parcel.state is ParcelState.ACKED for parcel in parcels)
    return taken and await asyncio.to_thread(chaos_rows.is_idle, options.state)


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def _quiet() -> None:
    """uvicorn tells of every connection that we break."""
    log = logging.getLogger("uvicorn.error")
    log.propagate = False
    log.addHandler(logging.NullHandler())


def main(argv: Sequence[str] | None = None) -> int:
    """0 when the promise was kept."""
    parser = argparse.ArgumentParser(prog="chaos.py", description="Kill everything; is each message answered once?")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long people write (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the plan (%(default)s)")
    parser.add_argument("--messages", type=int, default=0, help="0: 400 a minute, 2,000 at most")
    parser.add_argument("--people", type=int, default=200, help="how many write (%(default)s)")
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds without an answer, at the end (%(default)s)"
    )
    parser.add_argument(
        "--durable-queue", action="store_true", help="an AgentOS with a queue, which is not killed then"
    )
    parser.add_argument("--keep", type=Path, help="a folder for logs, databases and the record of all that happened")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else")
    given = parser.parse_args(argv)
    _quiet()
    with tempfile.TemporaryDirectory(prefix="agno-lark-chaos-") as name:
        options = Options(
            seed=given.seed,
            minutes=given.minutes,
            messages=given.messages or min(FULL_MESSAGES, round(MESSAGES_A_MINUTE * given.minutes)),
            people=given.people,
            patience_s=given.patience,
            durable_queue=given.durable_queue,
            folder=Path(name),
        )
        try:
            report = asyncio.run(run(options))
        finally:
            if given.keep:
                shutil.copytree(options.folder, given.keep, dirs_exist_ok=True)
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n" if given.json else table(report))
    return int(bool(report["verdict"]["wrongs"]) or report["drained_s"] is None)


if __name__ == "__main__":
    sys.exit(main())
