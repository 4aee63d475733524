"""A click on a card: the callback, its answer, and what the answer does to the card.

Rules (cards/README.md, Callback): 3 s to answer, never redelivered; until then CardKit refuses with 200810 and what a
delayed update changed is undone; a streaming card takes no card from the answer; the token lives 30 min, two uses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agno_lark.sandbox import events
from agno_lark.sandbox.cards import refusal
from agno_lark.sandbox.records import CardEdit, Json, Message, Person
from agno_lark.sandbox.refusals import NoAnswer, UnknownThing

if TYPE_CHECKING:
    from agno_lark.sandbox.world import World

__all__ = ["CallbackToken", "Clicks"]

TOKEN_LIFE_MS = 30 * 60 * 1000
TOKEN_USES = 2


@dataclass(kw_only=True, slots=True)
class CallbackToken:
    """What a click's token may still do."""

    message_id: str
    expires_ms: int
    uses_left: int
    answered: bool = False


class Clicks:
    """Clicks under way and the tokens they left."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._open: dict[str, int] = {}
        self.tokens: dict[str, CallbackToken] = {}

    def is_open(self, message_id: str | None) -> bool:
        """Whether somebody's click on this message waits for its answer."""
        return message_id is not None and message_id in self._open

    async def click(self, person: Person, message: Message, action: Json) -> Json:
        """Tell the bot and return its answer; an error toast with `code` where there is none.

        Raises UnknownThing where there is nothing to click: no card, recalled, or not in a chat of this person's.
        """
        world = self._world
        if message.recalled or world.card_json(message) is None:
            raise UnknownThing(f"the message {message.message_id} shows no card to click")
        if person.open_id not in world.chats[message.chat_id].members:
            raise UnknownThing(f"{person.name} is not in the chat of {message.message_id}")
        token = world.new_id("c-")
        self.tokens[token] = CallbackToken(
            message_id=message.message_id, expires_ms=world.clock.now_ms() + TOKEN_LIFE_MS, uses_left=TOKEN_USES
        )
        before = world.card_json(message)
        self._open[message.message_id] = self._open.get(message.message_id, 0) + 1
        try:
            event = events.card_action(world.app, person, message, action, token=token)
            answer = await world.bot.ask("card.action.trigger", event)
            self._apply(message, answer, before)
        except NoAnswer as error:
            answer = {"toast": {"type": "error", "content": f"{error} ({error.code})"}, "code": error.code}
        finally:
            self._open[message.message_id] -= 1
            if not self._open[message.message_id]:
                del self._open[message.message_id]
            self.tokens[token].answered = True
        toast = answer.get("toast")
        if isinstance(toast, dict):
            world.tell("toast", message, toast=toast, person=person.open_id)
        return answer

    async def press(self, person: Person, message: Message, label: str, *, form_value: Json | None = None) -> Json:
        """Click the button that reads `label`. Raises UnknownThing where the card shows no such button to press."""
        card = self._world.card_json(message) or {}
        for button in _buttons(card):
            if (button.get("text") or {}).get("content") == label:
                if button.get("disabled"):
                    raise UnknownThing(f"the button {label!r} is disabled")
                return await self.click(person, message, _button_action(button, form_value))
        labels = ", ".join(repr((b.get("text") or {}).get("content")) for b in _buttons(card)) or "none"
        raise UnknownThing(f"the card has no button {label!r}; it has {labels}")

    def _apply(self, message: Message, answer: Json, before: Json | None) -> None:
        world = self._world
        card = answer.get("card")
        if not isinstance(card, dict):
            if before is not None and world.card_json(message) is not before:
                self._put(message, before, kind="undone")
            return
        new = card.get("data")
        if card.get("type") != "raw" or not isinstance(new, dict):
            raise NoAnswer(200672, "the answer's card has no known form")
        self.replace(message, new, kind="callback")

    def replace(self, message: Message, new: Json, *, kind: str) -> None:
        """Put another card in the message's place, by answer or by token. Raises NoAnswer where it may not be."""
        world = self._world
        if message.recalled:
            return
        refused = refusal(new, cardkit=message.card_id is not None)
        if refused is not None:
            raise NoAnswer(200673, f"the answered card is refused: {refused.code} {refused.path} {refused.message}")
        if message.card_id is None or not world.is_streaming(world.cards[message.card_id]):
            self._put(message, new, kind=kind)

    def _put(self, message: Message, card: Json, *, kind: str) -> None:
        world = self._world
        if message.card_id is None:
            world.bot_edit(message, card)
            return
        entity = world.cards[message.card_id]
        entity.json = card
        if world.keep_history:
            now_ms = world.clock.now_ms()
            entity.history.append(CardEdit(at_ms=now_ms, kind=kind, sequence=entity.sequence, element_id="", text=""))
        world.card_changed(entity)


def _buttons(node: Any) -> Iterator[Json]:
    if isinstance(node, dict):
        if node.get("tag") == "button":
            yield node
        for name in ("body", "elements", "columns", "actions"):
            yield from _buttons(node.get(name))
    elif isinstance(node, list):
        for item in node:
            yield from _buttons(item)


def _button_action(button: Json, form_value: Json | None) -> Json:
    """What a client sends for a button: the value of its callback, its name, and a form's values on submit."""
    action: Json = {"tag": "button", "timezone": "Asia/Shanghai"}
    for behavior in button.get("behaviors") or []:
        if behavior.get("type") == "callback":
            action["value"] = behavior.get("value")
    if "value" not in action and "value" in button:
        action["value"] = button["value"]
    if button.get("name"):
        action["name"] = button["name"]
    if form_value is not None:
        action["form_value"] = form_value
    return action
