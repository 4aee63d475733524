"""A worker process: `python -m tests.integration.zombie_worker FILE NAME GO`, with a lease of 0.6 s.

It prints what happens to the jobs it gets, and ends a job as soon as the file GO is there, with its own name.
"""

import asyncio
import logging
import sys
from pathlib import Path

from agno_lark.clock import RandomIds, SystemClock
from agno_lark.jobs import Job, JobKind, Lease, Outcome, Runner, runner
from agno_lark.store import Store

LEASE_MS = 600


class Told(logging.Handler):
    """Each log line's action, on standard output."""

    def emit(self, record: logging.LogRecord) -> None:
        if action := getattr(record, "action", ""):
            sys.stdout.write(f"{action}\n")
            sys.stdout.flush()


async def main(path: Path, name: str, go: Path) -> None:
    async def work(job: Job, lease: Lease) -> Outcome:
        if job.payload.get("effect"):
            await lease.begin_effect("effect", lambda tx: None)
        return await wait("handles")

    async def look(job: Job, lease: Lease) -> Outcome:
        return await wait("reconciles")

    async def wait(what: str) -> Outcome:
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()
        while not go.exists():
            await asyncio.sleep(0.01)
        return Outcome(error=f"by {name}")

    runner.RECOVER_S = runner.POLL_S = 0.1
    kind = JobKind(name="work", handle=work, reconcile=look)
    async with Store.open(path) as store:
        worker = Runner(
            store, {"work": kind}, clock=SystemClock(), ids=RandomIds(), instance_id=name, lease_ms=LEASE_MS
        )
        await worker.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, handlers=[Told()])
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
