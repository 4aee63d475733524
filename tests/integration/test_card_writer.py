"""The streaming writer on the sandbox: what Feishu refuses, cuts or forgets, and what the person sees all the same."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from agno_lark.feishu.api import OpenApi
from agno_lark.feishu.codes import CallRefused
from agno_lark.feishu.retries import RetryRules
from agno_lark.replies import CardMemory, CardWriter, Ending, Place, Poster, Progress, Resolution
from agno_lark.sandbox.records import Message, Shown
from agno_lark.targets import RunState, RunView
from agno_lark.testing import FeishuSandbox

MARTA = "Marta Weiss"
CONTENT = "/open-apis/cardkit/v1/cards/*/elements/*/content"
CARD = "/open-apis/cardkit/v1/cards/*"
CREATE = "/open-apis/cardkit/v1/cards"
FILES = "/open-apis/im/v1/files"
REPLY = "/open-apis/im/v1/messages/*/reply"


@dataclass
class Desk:
    """A writer's surroundings: the sandbox, the API, the message that is answered, what was remembered."""

    feishu: FeishuSandbox
    api: OpenApi
    asked: Message
    kept: list[tuple[str, object]] = field(default_factory=list)
    card_id: str | None = None
    message_id: str | None = None
    sequence: int = 0

    def writer(self) -> CardWriter:
        """A writer as a process makes it when it starts (again) on this turn."""

        async def keep_card(card_id: str, sequence: int) -> None:
            self.card_id, self.sequence = card_id, sequence

        async def keep_message(message_id: str) -> None:
            self.message_id = message_id

        async def keep_sequence(up_to: int) -> None:
            self.sequence = up_to

        memory = CardMemory(
            card_id=self.card_id,
            message_id=self.message_id,
            sequence=self.sequence,
            keep_card=keep_card,
            keep_message=keep_message,
            keep_sequence=keep_sequence,
        )
        place = Place(chat_id=self.asked.chat_id, message_id=self.asked.message_id)
        return CardWriter(self.api, Poster(self.api), place, memory, turn_id="turn-1", lang="en")

    def seen(self) -> list[Shown]:
        return self.feishu.from_bot(self.asked.chat_id)

    async def shows(self, text: str) -> None:
        await self.feishu.until(lambda _: any(text in shown.text for shown in self.seen()))

    def operations(self) -> list[str]:
        card = self.feishu.world.cards[self.card_id or ""]
        return [str(change.kind) for change in card.history]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    rules = RetryRules(max_rate_retries=2, max_transient_retries=1, first_wait_s=0.02, max_wait_s=2)
    async with FeishuSandbox(strict_cards=True) as feishu:
        asked = await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        async with OpenApi(feishu.app_id, feishu.app_secret, feishu.url, timeout_s=3, retries=rules) as api:
            yield Desk(feishu, api, asked)


def view(text: str, **more: object) -> RunView:
    return replace(RunView(run_id="1a2b3c4d", state=RunState.RUNNING, text=text), **more)  # type: ignore[arg-type]


def done(text: str) -> Ending:
    return Ending(view=view(text, state=RunState.COMPLETED), elapsed_ms=1200)


def progress(done: int = 0, round: int = 0) -> Progress:  # noqa: A002 - the field's name
    async def keep(number: int) -> None:
        return None

    return Progress(done=done, round=round, keep=keep)


async def finish(writer: CardWriter, ending: Ending) -> None:
    """Deliver, and again where Feishu only stumbled, as the outbox does."""
    so_far = progress()
    for _ in range(6):
        try:
            await writer.deliver(ending, so_far)
            return
        except CallRefused as error:
            if not error.retryable:
                raise
        await asyncio.sleep(0.05)
    raise AssertionError("it was never taken")


async def stream(desk: Desk, writer: CardWriter, *texts: str) -> None:
    """Show each text and wait until it is seen."""
    for text in texts:
        writer.show(view(text))
        await desk.shows(text)


async def test_the_card_grows_and_is_replaced_by_the_whole_answer(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one", "one two")
    await finish(writer, done("one two three"))
    (shown,) = desk.seen()
    assert "one two three" in shown.text
    assert "Done · 1.2 s" in shown.text
    assert not shown.streaming
    assert desk.feishu.world.message(shown.message_id).parent_id == desk.asked.message_id


async def test_an_answer_that_is_there_before_the_card_is_shown_once(desk: Desk) -> None:
    desk.feishu.faults.latency(CREATE, 0.2)
    writer = desk.writer()
    writer.start()
    await finish(writer, done("quick"))
    (shown,) = desk.seen()
    assert "quick" in shown.text


async def test_updates_are_coalesced_and_stay_under_the_cards_limit(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    for number in range(400):
        writer.show(view("word " * number))
        await asyncio.sleep(0.004)
    await finish(writer, done("word " * 400))
    card = desk.feishu.world.cards[desk.card_id or ""]
    times = [change.at_ms for change in card.history]
    assert len(times) < 25
    assert max(sum(1 for other in times if 0 <= other - time < 1000) for time in times) <= 10
    assert not [name for name in desk.feishu.world.counts if "99991400" in name or "230020" in name]


async def test_a_stream_that_closes_ends_streaming_once_and_the_answer_is_whole(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    rule = desk.feishu.faults.fail(CONTENT, times=100, status=400, code=300309)
    await stream(desk, writer, "one two")
    await stream(desk, writer, "one two three")
    assert rule.left == 99, "one failure, and streaming stops"
    await finish(writer, done("one two three four"))
    (shown,) = desk.seen()
    assert "one two three four" in shown.text
    assert not shown.streaming


async def test_after_ten_minutes_the_card_goes_on(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.advance(601)
    await stream(desk, writer, "one two")
    await finish(writer, done("one two three"))
    assert "one two three" in desk.seen()[0].text


async def test_a_sequence_that_was_used_is_jumped_over(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.faults.fail(CARD, times=1, status=400, code=300317)
    await finish(writer, done("one two"))
    assert "one two" in desk.seen()[0].text
    assert desk.sequence >= 10_000


async def test_a_restart_goes_on_with_the_same_card(desk: Desk) -> None:
    first = desk.writer()
    first.start()
    await stream(desk, first, "one")
    await first.abandon()
    second = desk.writer()
    second.start()
    await stream(desk, second, "one two")
    await finish(second, done("one two three"))
    (shown,) = desk.seen()
    assert "one two three" in shown.text


async def test_a_restart_between_card_and_message_shows_one_card(desk: Desk) -> None:
    first = desk.writer()
    first.start()
    await stream(desk, first, "one")
    await first.abandon()
    desk.message_id = None
    second = desk.writer()
    second.start()
    await finish(second, done("one two"))
    (shown,) = desk.seen()
    assert "one two" in shown.text


async def test_a_refused_final_card_is_followed_by_a_plainer_one_in_its_place(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.faults.fail(CARD, times=1, status=400, code=200621)
    await finish(writer, done("one **two**"))
    (shown,) = desk.seen()
    assert "one **two**" in shown.text


async def test_where_every_card_is_refused_the_words_come_as_text(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.faults.fail(CARD, times=2, status=400, code=230028)
    await finish(writer, done("one two"))
    card, text = desk.seen()
    assert text.kind == "text"
    assert "one two" in text.text
    assert "Done" in card.text
    assert "Stop" not in card.text.split()


async def test_a_card_that_cannot_be_made_at_all_leaves_a_text(desk: Desk) -> None:
    desk.feishu.faults.fail(CREATE, times=9, status=400, code=200220)
    desk.feishu.faults.fail(REPLY, times=2, status=400, code=230099)
    writer = desk.writer()
    writer.start()
    await finish(writer, done("one two"))
    (shown,) = desk.seen()
    assert shown.kind == "text"
    assert "one two" in shown.text


async def test_a_card_that_is_gone_is_replaced_by_a_new_one(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.faults.fail(CARD, times=9, status=400, code=200740)
    await finish(writer, done("one two"))
    assert "one two" in desk.seen()[-1].text


@pytest.mark.parametrize("after_effect", [False, True])
async def test_a_connection_cut_in_the_final_write_is_tried_again_and_shown_once(
    desk: Desk, after_effect: bool
) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.faults.reset(CARD, after_effect=after_effect, times=3)
    await finish(writer, done("one two"))
    (shown,) = desk.seen()
    assert "one two" in shown.text


async def test_a_cut_after_the_send_shows_one_message(desk: Desk) -> None:
    desk.feishu.faults.reset(REPLY, after_effect=True, times=1)
    writer = desk.writer()
    writer.start()
    await finish(writer, done("one two"))
    (shown,) = desk.seen()
    assert "one two" in shown.text


async def test_an_answer_to_a_withdrawn_message_goes_to_the_chat(desk: Desk) -> None:
    await desk.feishu.recall(MARTA, desk.asked.message_id)
    writer = desk.writer()
    writer.start()
    await finish(writer, done("one two"))
    (shown,) = desk.seen()
    assert "one two" in shown.text
    assert desk.feishu.world.message(shown.message_id).parent_id is None


async def test_rate_limits_in_the_middle_and_at_the_end_delay_and_lose_nothing(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.faults.fail(CONTENT, times=2, status=429, code=99991400, headers={"x-ogw-ratelimit-reset": "1"})
    await stream(desk, writer, "one two")
    desk.feishu.faults.fail(CARD, times=2, status=429, code=99991400)
    await finish(writer, done("one two three"))
    assert "one two three" in desk.seen()[0].text


async def test_a_stale_token_costs_one_refresh(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    desk.feishu.expire_tokens()
    await finish(writer, done("one two"))
    assert "one two" in desk.seen()[0].text


async def test_a_long_answer_comes_in_several_cards_in_order(desk: Desk) -> None:
    text = "\n\n".join(f"## {number}\n\n{'字' * 700}" for number in range(30))
    writer = desk.writer()
    writer.start()
    writer.show(view(text[:9000]))
    await finish(writer, done(text))
    cards = desk.seen()
    assert len(cards) >= 3
    joined = "".join(card.text for card in cards)
    assert joined.count("字") == 700 * 30
    assert [joined.index(f"## {number}\n") for number in range(30)] == sorted(
        joined.index(f"## {number}\n") for number in range(30)
    )
    assert "Part 1 of" in cards[0].text
    assert "Done" in cards[-1].text


async def test_a_refusal_for_good_is_raised(desk: Desk) -> None:
    desk.feishu.faults.fail(REPLY, times=99, status=400, code=230002)
    writer = desk.writer()
    writer.start()
    with pytest.raises(CallRefused):
        await finish(writer, done("one"))
    assert not desk.seen()


async def test_pressing_stop_shows_at_once_that_it_was_heard(desk: Desk) -> None:
    writer = desk.writer()
    writer.start()
    await stream(desk, writer, "one")
    writer.stopping()
    await desk.shows("Stopping…")
    await writer.abandon()


async def test_where_the_text_is_refused_too_the_words_come_as_a_file(desk: Desk) -> None:
    desk.feishu.faults.fail(CREATE, times=9, status=400, code=200220)
    desk.feishu.faults.fail(REPLY, times=3, status=400, code=230028)
    await finish(desk.writer(), done("call 13800138000"))
    (shown,) = desk.seen()
    assert shown.kind == "file"
    (resource,) = desk.feishu.world.message(shown.message_id).resources.values()
    assert resource.name == "answer.md"
    assert "call 13800138000" in resource.data.decode()


async def test_where_nothing_at_all_is_taken_the_person_is_told_that_there_is_an_answer(desk: Desk) -> None:
    desk.feishu.faults.fail(REPLY, times=3, status=400, code=230028)
    desk.feishu.faults.fail(FILES, times=9, status=400, code=99991672)
    ending = done("call 13800138000")
    await finish(desk.writer(), replace(ending, view=replace(ending.view, run_id="run-7")))
    (shown,) = desk.seen()
    assert "refused to show it" in shown.text
    assert "run-7" in shown.text


async def test_parts_that_are_shown_already_are_not_sent_again_an_hour_later(desk: Desk) -> None:
    text = "\n\n".join(f"## {number}\n\n{'字' * 700}" for number in range(30))
    kept: list[int] = []

    async def keep(number: int) -> None:
        kept.append(number)
        desk.feishu.faults.fail(REPLY, times=2, status=500, code=2200)

    with pytest.raises(CallRefused):
        await desk.writer().deliver(done(text), Progress(keep=keep))
    desk.feishu.faults.clear()
    assert kept == [1]
    desk.feishu.advance(3700)
    await desk.writer().deliver(done(text), progress(done=1, round=1))
    joined = "".join(card.text for card in desk.seen())
    assert joined.count("字") == 700 * 30
    assert "Part 1 of" in desk.seen()[0].text
    assert "you may have seen it already" in desk.seen()[-1].text


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_decision_is_shown_on_the_card_that_asked_for_it(desk: Desk, streamed: bool) -> None:
    writer = desk.writer()
    if streamed:
        writer.start()
        await stream(desk, writer, "one")
    asking = Ending(view=view("", state=RunState.SUBMITTED), elapsed_ms=900, unknown=True, turn_id="turn-1")
    await finish(writer, asking)
    (shown,) = desk.seen()
    assert "Ask again" in shown.text
    assert "Dismiss" in shown.text
    desk.message_id = shown.message_id
    await finish(desk.writer(), replace(asking, resolved=Resolution.DISMISSED))
    (shown,) = desk.seen()
    assert "Ask again" not in shown.text
    assert "Dismiss" not in shown.text
    assert "Left as it is." in shown.text
