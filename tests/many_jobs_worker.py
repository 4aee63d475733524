"""A process that works through the turns of a state file, for tests that kill it.

    python tests/many_jobs_worker.py STATE ANSWERS

An answer is a line with the turn's id in ANSWERS, written at once: what a person sees. Prints `ready` once it claims,
`first` when the first turn is answered, `done` when nothing is left; ends with standard input.
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agno_lark.clock import RandomIds, SystemClock
from agno_lark.jobs import Job, JobKind, Lease, Outcome, Runner, counts
from agno_lark.store import InstanceLock, Store
from agno_lark.turns import TURN
from tests.bench.jobs_work import complete, prepare


async def main(state: Path, answers: Path) -> None:
    answered = set(answers.read_text().split()) if answers.exists() else set()
    paper = os.open(answers, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    told: list[str] = []

    async def handle(job: Job, lease: Lease) -> Outcome:
        os.write(paper, f"{job.id}\n".encode())
        if not told:
            told.append(job.id)
            tell("first")
        return await complete(job, lease)

    async def reconcile(job: Job, lease: Lease) -> Outcome:
        return await (complete if job.id in answered else handle)(job, lease)

    kinds = {TURN: JobKind(name=TURN, prepare=prepare, handle=handle, reconcile=reconcile)}
    with InstanceLock.hold(state, "a test") as instance_id:
        async with Store.open(state) as store:
            runner = Runner(store, kinds, clock=SystemClock(), ids=RandomIds(), instance_id=instance_id)
            running = asyncio.create_task(runner.run(), name="runner")
            tell("ready")
            while await counts(store):
                await asyncio.sleep(0.05)
            tell("done")
            await asyncio.to_thread(sys.stdin.read)
            await runner.drain(1)
            running.cancel()
            await asyncio.wait({running})


def tell(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
