"""Turns that end quicker than their answers can be shown: no more are begun than answers go out."""

import asyncio
from pathlib import Path

from agno_lark.clock import RandomIds, SystemClock
from agno_lark.jobs import Job, JobKind, Lease, NewJob, Outcome, Queue, Runner, enqueue
from agno_lark.store import Store, Tx

TURNS, PLACES = 60, 4


async def test_no_turn_is_begun_while_as_many_answers_wait_as_are_being_sent(tmp_path: Path) -> None:
    unsent: set[str] = set()
    most_unsent = 0
    one_more = asyncio.Semaphore(0)

    async def turn(job: Job, lease: Lease) -> Outcome:
        nonlocal most_unsent
        unsent.add(job.id)
        most_unsent = max(most_unsent, len(unsent))
        reply = NewJob(id=f"reply-{job.id}", kind="reply", queue=Queue.REPLIES, lane=f"reply:{job.lane}")

        def also(tx: Tx) -> None:
            enqueue(tx, reply)

        return Outcome(also=also)

    async def reply(job: Job, lease: Lease) -> Outcome:
        await one_more.acquire()
        unsent.discard(job.id.removeprefix("reply-"))
        return Outcome()

    async with Store.open(tmp_path / "s") as store:
        for number in range(TURNS):
            await store.transact(enqueue, NewJob(id=f"{number}", kind="turn", queue=Queue.TURNS, lane=f"{number}"))
        kinds = {"turn": JobKind(name="turn", handle=turn), "reply": JobKind(name="reply", handle=reply)}
        runner = Runner(
            store,
            kinds,
            clock=SystemClock(),
            ids=RandomIds(),
            instance_id="me",
            turns_at_once=4,
            replies_at_once=PLACES,
        )
        running = asyncio.create_task(runner.run())
        try:
            async with asyncio.timeout(30):
                while runner.finished.get("reply.done", 0) < TURNS:
                    one_more.release()
                    await asyncio.sleep(0.005)
        finally:
            running.cancel()
            await asyncio.wait({running})
    # Sent now, waiting, and those of a claim that was made just before as many waited.
    assert most_unsent <= PLACES + PLACES + 4
    assert runner.finished == {"turn.done": TURNS, "reply.done": TURNS}
