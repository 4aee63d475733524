"""The people of a chaos run: they write what the plan says, and some press Stop."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence

from agno_lark.sandbox.records import Message
from agno_lark.sandbox.refusals import NoAnswer
from agno_lark.testing import FeishuSandbox
from tests.bench.chaos_judge import Asked, Seen
from tests.bench.chaos_plan import GROUPS, TOPICS, Kind, Writing
from tests.bench.chaos_processes import now_ms

__all__ = ["People"]

STOP_LABELS = ("Stop", "停止")
PRESS_TRIES, PRESS_EVERY_S = 40, 0.25


class People:
    """Everybody who writes. `asked`: what has been written so far."""

    def __init__(self, feishu: FeishuSandbox, who: Sequence[tuple[str, str]]) -> None:
        self._feishu = feishu
        self.asked: list[Asked] = []
        self.presses = 0
        self._open: list[Asked] = []
        self._replies: dict[str, list[Message]] = defaultdict(list)
        self._looked_at = 0
        for name, language in who:
            feishu.world.add_person(name, language="zh" if language == "zh" else "en")
        for group in GROUPS:
            feishu.world.add_group(group)
        feishu.world.add_group(TOPICS, topics=True)

    async def write(self, writings: Sequence[Writing], started_s: float) -> None:
        """Each message at its time after `started_s` (the loop's clock)."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as pressing:
            for one in writings:
                await asyncio.sleep(max(0.0, started_s + one.at_s - loop.time()))
                chat_id = self._feishu.world.chat(one.place or one.person).chat_id
                message = await self._feishu.write(one.person, chat_id, one.text, mention_bot=bool(one.place))
                asked = Asked(
                    message_id=message.message_id,
                    person=one.person,
                    text=one.text,
                    kind=one.kind,
                    needles=one.needles,
                    model_calls=one.model_calls,
                    written_ms=now_ms(),
                )
                self.asked.append(asked)
                self._open.append(asked)
                if one.kind is Kind.STOP:
                    pressing.create_task(self._press_stop(asked, chat_id), name=f"press-{asked.message_id}")

    async def _press_stop(self, asked: Asked, chat_id: str) -> None:
        """Press Stop on the message's card as soon as it is there and says something; give up after ten seconds."""
        for _ in range(PRESS_TRIES):
            await asyncio.sleep(PRESS_EVERY_S)
            cards = [seen for seen in self._feishu.from_bot(chat_id) if seen.parent_id == asked.message_id]
            for card in cards:
                for label in STOP_LABELS:
                    try:
                        await self._feishu.press(asked.person, card.message_id, label)
                    except (LookupError, NoAnswer):
                        continue
                    self.presses += 1
                    return

    def seen(self) -> list[Seen]:
        """What the bot has said, as people see it now."""
        world = self._feishu.world
        found: list[Seen] = []
        for position, message_id in enumerate(world.timeline):
            message = world.messages[message_id]
            if message.sender_is_bot and not message.recalled:
                found.append(
                    Seen(
                        message_id=message_id,
                        to=message.parent_id or "",
                        place=message.chat_id,
                        position=position,
                        text=world.show(message).text,
                        grows=self._grows(message),
                    )
                )
        return found

    def unanswered(self) -> list[Asked]:
        """Messages that no message of the bot's answers, or only ones that still grow. Quick, it is asked often; the
        judge looks closer."""
        world = self._feishu.world
        for message_id in world.timeline[self._looked_at :]:
            message = world.messages[message_id]
            if message.sender_is_bot and message.parent_id:
                self._replies[message.parent_id].append(message)
        self._looked_at = len(world.timeline)
        self._open = [
            asked for asked in self._open if all(self._grows(reply) for reply in self._replies[asked.message_id])
        ]
        return self._open

    def _grows(self, message: Message) -> bool:
        world = self._feishu.world
        card = world.cards.get(message.card_id or "")
        streams = card is not None and world.is_streaming(card)
        return streams or '"turn.stop"' in json.dumps(world.card_json(message))
