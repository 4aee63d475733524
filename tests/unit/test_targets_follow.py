"""Staying with a run, against a source that follows a script."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agno_lark.clock import SystemClock
from agno_lark.errors import TargetError
from agno_lark.targets import (
    SNAPSHOT_EVENT,
    Continuation,
    FaultReason,
    FollowLimits,
    FollowStart,
    RunEvent,
    RunRef,
    RunRequest,
    RunState,
)
from agno_lark.targets.follow import follow
from tests.targets_fixtures import event, folded

QUICK = FollowLimits(silence_s=1, run_timeout_s=0.6, backoff_first_s=0.005, backoff_max_s=0.02, missing_grace_s=0.1)
REQUEST = RunRequest(message="hi", session_id="s", user_id="u", run_id="r", turn_id="t")
CUT = TargetError("cut", reason=FaultReason.INTERRUPTED, retryable=True)
GONE = TargetError("gone", reason=FaultReason.NOT_FOUND)
DOWN = TargetError("down", reason=FaultReason.UNREACHABLE, retryable=True)
STUCK = [event("replay"), event(SNAPSHOT_EVENT, status="RUNNING")]
PAUSED = [event("replay"), event(SNAPSHOT_EVENT, status="PAUSED")]

PATIENT = replace(QUICK, run_timeout_s=1000.0, lost_s=10.0, backoff_first_s=0.0)


@dataclass(frozen=True, slots=True)
class Passed:
    """So much time has passed, by the follower's clock alone."""

    seconds: float


Act = Sequence[RunEvent | TargetError | float | Passed]


class Scripted(SystemClock):
    """Each connection plays the next act: events, an error, a silence in seconds, or time that passes at once. The last
    act is repeated. It is the follower's clock, too."""

    def __init__(self, *acts: Act, resumable: bool | None = True, durable_queue: bool = False) -> None:
        self.acts = list(acts)
        self.resumable = resumable
        self.durable_queue = durable_queue
        self.calls: list[tuple[str, str, int]] = []
        self.closed = 0
        self.passed_s = 0.0
        super().__init__()

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.passed_s

    async def _play(self) -> AsyncGenerator[RunEvent]:
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        try:
            for one in act:
                if isinstance(one, RunEvent):
                    yield one
                elif isinstance(one, TargetError):
                    raise one
                elif isinstance(one, Passed):
                    self.passed_s += one.seconds
                else:
                    await asyncio.sleep(one)
        finally:
            self.closed += 1

    def submit(self, request: RunRequest) -> AsyncGenerator[RunEvent]:
        self.calls.append(("submit", request.run_id, -1))
        return self._play()

    def resume(self, run_id: str, session_id: str, after_index: int = -1) -> AsyncGenerator[RunEvent]:
        self.calls.append(("resume", run_id, after_index))
        return self._play()

    def continue_run(
        self, run_id: str, session_id: str, user_id: str, payload: Mapping[str, Any]
    ) -> AsyncGenerator[RunEvent]:
        self.calls.append(("continue", run_id, -1))
        return self._play()

    async def attaches(self) -> bool:
        return self.durable_queue


async def all_of(source: Scripted, start: FollowStart = REQUEST, limits: FollowLimits = QUICK) -> list[RunEvent]:
    return [one async for one in follow(source, start, limits=limits, clock=source)]


def text(index: int, content: str, **data: object) -> RunEvent:
    return event("RunContent", index, content=content, **data)


async def test_a_cut_is_healed_from_the_last_index_and_nothing_comes_twice() -> None:
    source = Scripted(
        [text(0, "a"), text(1, "b"), CUT],
        [event("catch_up"), text(1, "b"), text(2, "c"), event("RunCompleted", 3)],
    )
    events = await all_of(source)
    assert folded(events).text == "abc"
    assert [one.index for one in events if one.index is not None] == [0, 1, 2, 3]
    assert source.calls == [("submit", "r", -1), ("resume", "r", 1)]


async def test_an_end_without_a_terminal_event_is_no_end() -> None:
    source = Scripted([text(0, "a")], [], [text(1, "b"), event("RunCompleted", 2)])
    assert folded(await all_of(source)).state is RunState.COMPLETED
    assert [name for name, _, _ in source.calls] == ["submit", "resume", "resume"]


async def test_a_pause_ends_the_following() -> None:
    source = Scripted([text(0, "a"), event("RunPaused", 1, requirements=[{"id": "q"}]), text(2, "never")])
    assert [one.name for one in await all_of(source)] == ["RunContent", "RunPaused"]
    assert source.closed == 1


async def test_a_member_s_end_is_not_the_run_s() -> None:
    source = Scripted([event("RunCompleted", 0, run_id="m", parent_run_id="r"), event("TeamRunCompleted", 1)])
    assert len(await all_of(source)) == 2


async def test_a_run_id_minted_by_the_queue_is_resumed_under_that_id() -> None:
    source = Scripted([text(0, "a", run_id="theirs"), CUT], [event("RunCompleted", 1, run_id="theirs")])
    await all_of(source)
    assert source.calls == [("submit", "r", -1), ("resume", "theirs", 0)]


async def test_a_lost_answer_is_asked_for_again_where_that_attaches() -> None:
    over = event("RunCompleted", 0, run_id="theirs")
    source = Scripted([CUT], [CUT], [event("replay", run_id="theirs"), CUT], [over], durable_queue=True)
    assert (await all_of(source))[-1] is over
    assert source.calls == [("submit", "r", -1)] * 3 + [("resume", "theirs", -1)]


async def test_a_lost_answer_is_never_asked_for_by_submitting_where_that_runs_twice() -> None:
    source = Scripted([CUT], [CUT], [event("RunCompleted", 0)])
    await all_of(source)
    assert [name for name, _, _ in source.calls] == ["submit", "resume", "resume"]


async def test_a_run_that_arrives_late_is_waited_for() -> None:
    source = Scripted([CUT], [GONE], [GONE], [event("RunCompleted", 0)])
    assert folded(await all_of(source)).state is RunState.COMPLETED


async def test_a_run_that_is_gone_is_given_up_after_a_grace() -> None:
    source = Scripted([text(0, "a"), CUT], [GONE])
    with pytest.raises(TargetError) as caught:
        await all_of(source)
    assert caught.value.reason == FaultReason.NOT_FOUND
    assert len(source.calls) > 2


@pytest.mark.parametrize("reason", [FaultReason.UNREACHABLE, FaultReason.UNAUTHORIZED, FaultReason.BUSY])
async def test_a_refused_submission_is_told_at_once(reason: FaultReason) -> None:
    source = Scripted([TargetError("no", reason=reason, retryable=True)])
    with pytest.raises(TargetError) as caught:
        await all_of(source)
    assert (caught.value.reason, len(source.calls)) == (reason, 1)


async def test_a_restart_of_agentos_is_waited_out() -> None:
    busy = TargetError("busy", reason=FaultReason.SERVER_ERROR, retryable=True)
    source = Scripted([text(0, "a"), CUT], [DOWN], [busy], [DOWN], [event("RunCompleted", 1)])
    assert folded(await all_of(source)).state is RunState.COMPLETED


async def test_a_token_that_is_taken_away_meanwhile_ends_the_following() -> None:
    source = Scripted([text(0, "a"), CUT], [TargetError("no", reason=FaultReason.UNAUTHORIZED)])
    with pytest.raises(TargetError) as caught:
        await all_of(source)
    assert caught.value.reason == FaultReason.UNAUTHORIZED


@pytest.mark.parametrize("status", ["RUNNING", "PENDING"])
async def test_a_run_whose_agentos_was_restarted_counts_as_lost(status: str) -> None:
    """Its row says so for ever."""
    stuck: Act = [Passed(1.0), event("replay"), event(SNAPSHOT_EVENT, status=status)]
    source = Scripted([text(0, "a"), CUT], [DOWN], stuck)
    with pytest.raises(TargetError) as caught:
        await all_of(source, limits=PATIENT)
    assert caught.value.reason == FaultReason.LOST
    assert len(source.calls) == 2 + 11, "the first such answer, and ten seconds of them"


async def test_what_was_counted_of_a_lost_run_begins_anew_with_every_sign_of_life() -> None:
    """Another replica has the run live, and now and then is the one that is asked."""
    doubtful: list[Act] = [[Passed(3.0), *STUCK]] * 4
    signs: list[Act] = [
        [event("subscribed"), CUT],
        [text(1, "b")],
        [event("replay"), event(SNAPSHOT_EVENT, status="RUNNING", content="so far")],
        [event("replay"), event(SNAPSHOT_EVENT, status="RUNNING", queue_ticket="queued")],
    ]
    acts = [act for sign in signs for act in (*doubtful, sign)]
    source = Scripted([text(0, "a"), CUT], *acts, *doubtful, [event("RunCompleted", 2)])
    assert folded(await all_of(source, limits=PATIENT)).state is RunState.COMPLETED


async def test_a_run_that_waits_in_a_durable_queue_is_not_lost() -> None:
    waits: Act = [Passed(3.0), event("replay"), event(SNAPSHOT_EVENT, status="PENDING", queue_ticket="queued")]
    source = Scripted([text(0, "a"), CUT], *[waits] * 15, [event("RunCompleted", 1)])
    assert folded(await all_of(source, limits=PATIENT)).state is RunState.COMPLETED


async def test_time_in_which_agentos_does_not_answer_does_not_count_for_a_lost_run() -> None:
    stuck: Act = [Passed(3.0), *STUCK]
    outage: list[Act] = [[Passed(30.0), DOWN]] * 3
    acts = [*outage, stuck, *outage, stuck, stuck, stuck, *outage, stuck]
    source = Scripted([text(0, "a"), CUT], *acts, [event("RunCompleted", 1)])
    assert folded(await all_of(source, limits=PATIENT)).state is RunState.COMPLETED
    counted = Scripted([text(0, "a"), CUT], *acts, stuck, stuck)
    with pytest.raises(TargetError) as caught:
        await all_of(counted, limits=PATIENT)
    assert caught.value.reason == FaultReason.LOST, "what was counted before an outage still counts after it"


async def test_a_run_that_may_be_lost_is_asked_for_often() -> None:
    """So that a replica which has it live is met in time."""
    limits = replace(PATIENT, backoff_first_s=1000.0, backoff_max_s=1000.0, lost_s=0.2, run_timeout_s=60.0)
    source = Scripted(STUCK)
    with pytest.raises(TargetError) as caught:
        await all_of(source, RunRef(run_id="r", session_id="s"), limits=limits)
    assert caught.value.reason == FaultReason.LOST


async def test_an_agentos_that_does_not_come_back_is_waited_for_as_long_as_a_run_may_be_silent() -> None:
    source = Scripted([text(0, "a"), CUT], [DOWN])
    with pytest.raises(TargetError) as caught:
        await all_of(source)
    assert caught.value.reason == FaultReason.TIMEOUT


async def test_a_live_stream_that_is_merely_silent_is_not_lost() -> None:
    source = Scripted([text(0, "a"), CUT], [event("subscribed"), 0.4, event("RunCompleted", 1)])
    assert folded(await all_of(source)).state is RunState.COMPLETED


async def test_less_text_in_the_database_takes_nothing_from_what_was_seen() -> None:
    ended = event(SNAPSHOT_EVENT, status="ERROR", content="died")
    source = Scripted([text(0, "a long "), text(1, "answer"), CUT], [event("replay"), ended])
    view = folded(await all_of(source))
    assert (view.text, view.state) == ("a long answer", RunState.FAILED)


async def test_a_silent_stream_ends_after_the_timeout() -> None:
    source = Scripted([text(0, "a"), 30.0])
    with pytest.raises(TargetError) as caught:
        await all_of(source)
    assert (caught.value.reason, source.closed) == (FaultReason.TIMEOUT, 1)


async def test_events_keep_a_long_run_alive_beyond_the_timeout() -> None:
    slowly: list[RunEvent | TargetError | float] = []
    for n in range(10):
        slowly += [text(n, "x"), 0.1]
    source = Scripted([*slowly, event("RunCompleted", 99)])
    assert folded(await all_of(source)).text == "x" * 10


async def test_what_cannot_be_resumed_is_told_as_interrupted() -> None:
    acts: list[Act] = [[event("RunContent", content="a"), CUT], [event("RunContent", content="a")]]
    for act in acts:
        source = Scripted(act, resumable=False)
        with pytest.raises(TargetError) as caught:
            await all_of(source)
        assert (caught.value.reason, len(source.calls)) == (FaultReason.INTERRUPTED, 1)


async def test_a_known_run_is_only_resumed() -> None:
    source = Scripted([event("RunCompleted", 5)])
    await all_of(source, RunRef(run_id="r", session_id="s", after_index=4))
    assert source.calls == [("resume", "r", 4)]


async def test_a_continuation_goes_out_once() -> None:
    source = Scripted([event("RunContinued", 5), CUT], [event("RunCompleted", 6)])
    await all_of(source, CONTINUATION)
    assert source.calls == [("continue", "r", -1), ("resume", "r", 5)]


CONTINUATION = Continuation(ref=RunRef(run_id="r", session_id="s", after_index=4), payload={"tools": []})


@pytest.mark.parametrize("cut", [[CUT], [event("subscribed"), CUT], []], ids=["no answer", "headers", "empty answer"])
@pytest.mark.parametrize("durable_queue", [False, True])
async def test_a_continuation_whose_answer_was_lost_is_only_looked_for(cut: Act, durable_queue: bool) -> None:
    source = Scripted(
        cut, PAUSED, [text(5, "a"), CUT], PAUSED[:1], [event("RunCompleted", 6)], durable_queue=durable_queue
    )
    events = await all_of(source, CONTINUATION)
    assert (folded(events).text, folded(events).state) == ("a", RunState.COMPLETED)
    assert [name for name, _, _ in source.calls] == ["continue"] + ["resume"] * 4


async def test_a_run_still_paused_after_its_continuation_was_lost_is_told_as_interrupted() -> None:
    """It may have arrived, or arrive yet: nobody can say, and it never goes out again."""
    source = Scripted([CUT], PAUSED)
    with pytest.raises(TargetError) as caught:
        await all_of(source, CONTINUATION)
    assert caught.value.reason == FaultReason.INTERRUPTED
    assert {name for name, _, _ in source.calls[1:]} == {"resume"}
    assert len(source.calls) > 2


async def test_a_second_pause_ends_the_following_of_a_continuation() -> None:
    source = Scripted([event("RunContinued", 5), CUT], PAUSED)
    assert folded(await all_of(source, CONTINUATION)).state is RunState.PAUSED


async def test_a_follower_that_leaves_closes_its_stream() -> None:
    source = Scripted([text(0, "a"), 30.0])
    following = follow(source, REQUEST, limits=QUICK, clock=SystemClock())
    await anext(following)
    await following.aclose()
    assert source.closed == 1
