"""The rules of card entities: who may change one, in which order, how often, and what streaming mode allows.

Source: cards/README.md, CardKit and Codes. Where it does not say so, a refused call takes no sequence number.
"""

from typing import Any

from agno_lark.sandbox.cards import Finding, element_of, refusal, text_refusal
from agno_lark.sandbox.elements import set_text
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Card, CardEdit, Json
from agno_lark.sandbox.refusals import Refused
from agno_lark.sandbox.sendable import CARD_LIFE_MS, wrapped

__all__ = ["Change", "begin", "checked", "commit", "create", "stream_text"]

MAX_SEQUENCE = 2**31 - 1
MAX_CONTENT = 100_000
_OWN_CODES = frozenset([200860, 300220, 300301, 300302, 300303, 300305])


class Change:
    """One call on a card that passed the entry checks, until `commit`."""

    def __init__(self, card: Card, kind: str, sequence: int, uuid: str) -> None:
        self.card = card
        self.kind = kind
        self.sequence = sequence
        self.uuid = uuid


def begin(feishu: LocalFeishu, card_id: str, kind: str, body: Json) -> Change:
    """Raises Refused: 200740, 200750, 99991400, 200810, 10002, 200770, 300317, in this order."""
    card = feishu.world.cards.get(card_id)
    if card is None:
        raise Refused(200740, "The card entity does not exist")
    if feishu.world.clock.now_ms() - card.created_ms > CARD_LIFE_MS:
        raise Refused(200750, "The card entity has expired (14 days)")
    card.counts["calls"] += 1
    feishu.within_rate(
        "card",
        card_id,
        feishu.limits.operations_per_card_per_s,
        code=99991400,
        message="request trigger frequency limit",
    )
    if feishu.world.clicks.is_open(card.message_id):
        raise Refused(200810, "card is in an ongoing interaction")
    uuid = body.get("uuid", "")
    if not isinstance(uuid, str) or len(uuid) > 64:
        raise Refused(10002, "invalid request parameter: uuid has 1 to 64 characters")
    if uuid and uuid in card.uuids:
        raise Refused(200770, "UUID conflict")
    sequence = body.get("sequence")
    if not isinstance(sequence, int) or isinstance(sequence, bool) or not 0 <= sequence <= MAX_SEQUENCE:
        raise Refused(10002, "invalid request parameter: sequence is an int32 above 0")
    if sequence <= card.sequence:
        raise Refused(300317, "sequence did not increment")
    return Change(card, kind, sequence, uuid)


def commit(
    feishu: LocalFeishu, change: Change, *, json: Json | None = None, element_id: str = "", text: str = ""
) -> None:
    """The change is made: its sequence and uuid are used, people see it."""
    card = change.card
    if json is not None:
        card.json = json
    card.sequence = change.sequence
    if change.uuid:
        card.uuids.add(change.uuid)
    card.counts[change.kind] += 1
    if feishu.world.keep_history:
        edit = CardEdit(
            at_ms=feishu.world.clock.now_ms(),
            kind=change.kind,
            sequence=change.sequence,
            element_id=element_id,
            text=text,
        )
        card.history.append(edit)
    feishu.world.card_changed(card)


def checked(feishu: LocalFeishu, json: Any, code: int) -> Json:
    """A whole card that passes. Raises Refused with CardKit's own code, or `code` around another."""
    if not json:
        raise Refused(300307, "The card DSL is empty")
    found = refusal(json, strict=feishu.strict_cards, cardkit=True)
    if found is not None:
        raise _refused(found, code)
    result: Json = json
    return result


def _refused(found: Finding, code: int) -> Refused:
    if found.code in _OWN_CODES:
        return Refused(found.code, f"{found.message}, path: {found.path}")
    return Refused(code, f"Failed to generate card content, ext={wrapped(found)}")


def set_streaming(feishu: LocalFeishu, card: Card) -> None:
    """Streaming mode as the card's config says now; opening starts its ten minutes anew."""
    config = card.json.get("config") or {}
    card.streaming = config.get("streaming_mode") is True
    card.streaming_timed_out = False
    if card.streaming:
        card.streaming_since_ms = feishu.world.clock.now_ms()


def create(feishu: LocalFeishu, json: Json) -> Card:
    """A new entity, not yet sent."""
    number = int.from_bytes(feishu.world.new_id("").encode()[-8:], "big") % 10**15
    card = Card(card_id=str(7_580_000_000_000_000_000 + number), json=json, created_ms=feishu.world.clock.now_ms())
    set_streaming(feishu, card)
    feishu.world.cards[card.card_id] = card
    return card


def stream_text(feishu: LocalFeishu, change: Change, element_id: str, content: Any) -> None:
    """The typewriter call. Raises Refused: 10002, 200850 (timed out), 300309 (closed), 300313, 300310, 200860, ..."""
    if not isinstance(content, str) or not content or len(content) > MAX_CONTENT:
        raise Refused(10002, "invalid request parameter: content has 1 to 100000 characters")
    card = change.card
    if not feishu.world.is_streaming(card):
        if card.streaming_timed_out:
            raise Refused(200850, "Card streaming timeout")
        raise Refused(300309, "Card streaming closed")
    element = element_of(card.json, element_id)
    if element is None:
        raise Refused(300313, f"Failed to update element properties: not find elementID {element_id}")
    before = element.get("content", "")
    set_text(element, content)
    found = text_refusal(card.json)
    if found is not None:
        element["content"] = before
        raise _refused(found, 200220)
    commit(feishu, change, element_id=element_id, text=content)
