"""Changes to a card's tree by element_id, as CardKit's element calls make them. Pure: each returns a new card."""

import copy
import re
from collections.abc import Iterator
from typing import Any

from agno_lark.sandbox.records import Json
from agno_lark.sandbox.refusals import Refused

__all__ = ["add", "delete", "element_list", "merge_settings", "patch", "replace", "set_text"]

_ID = re.compile(r"^[A-Za-z][A-Za-z0-9_]{0,19}$")


def _lists(node: Any) -> Iterator[list[Any]]:
    """Every list of elements or columns below a node."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("elements", "columns") and isinstance(value, list):
                yield value
            if name not in ("value", "rows", "chart_spec"):
                yield from _lists(value)
    elif isinstance(node, list):
        for item in node:
            yield from _lists(item)


def _place(card: Json, element_id: str) -> tuple[list[Any], int] | None:
    """The list an element sits in, and where."""
    for siblings in _lists(card):
        for at, node in enumerate(siblings):
            if isinstance(node, dict) and node.get("element_id") == element_id:
                return siblings, at
    return None


def _found(card: Json, element_id: str, code: int) -> tuple[list[Any], int]:
    place = _place(card, element_id)
    if place is None:
        raise Refused(code, f"not find elementID {element_id}")
    return place


def element_list(value: Any) -> list[Json]:
    """Elements to add. Raises Refused 10002 unless a list of objects with tags."""
    if not isinstance(value, list) or not value:
        raise Refused(10002, "invalid request parameter: elements must be a list")
    if not all(isinstance(node, dict) and isinstance(node.get("tag"), str) for node in value):
        raise Refused(10002, "invalid request parameter: every element needs a tag")
    return value


def add(card: Json, where: str, target_id: str, elements: list[Json]) -> Json:
    """Insert before or after a target, or append to it (to the body without one). Raises Refused 10002, 300315."""
    new = copy.deepcopy(card)
    if where == "append":
        if target_id:
            siblings, at = _found(new, target_id, 300315)
            inner = siblings[at].setdefault("columns" if siblings[at].get("tag") == "column_set" else "elements", [])
        else:
            inner = new.setdefault("body", {}).setdefault("elements", [])
        inner.extend(copy.deepcopy(elements))
    elif where in ("insert_before", "insert_after"):
        siblings, at = _found(new, target_id, 300315)
        at += where == "insert_after"
        siblings[at:at] = copy.deepcopy(elements)
    else:
        raise Refused(10002, "invalid request parameter: type must be insert_before, insert_after or append")
    return new


def delete(card: Json, element_ids: list[str]) -> Json:
    """Take elements away with all they hold. Raises Refused 300314."""
    new = copy.deepcopy(card)
    for element_id in element_ids:
        siblings, at = _found(new, element_id, 300314)
        del siblings[at]
    return new


def replace(card: Json, element_id: str, element: Any) -> Json:
    """Another element in the same place. Raises Refused 10002, 300313."""
    if not isinstance(element, dict) or not isinstance(element.get("tag"), str):
        raise Refused(10002, "invalid request parameter: element needs a tag")
    new = copy.deepcopy(card)
    siblings, at = _found(new, element_id, 300313)
    siblings[at] = copy.deepcopy(element)
    return new


def patch(card: Json, element_id: str, partial: Any) -> Json:
    """Some properties anew; the tag stays, the id may change. Raises Refused 10002, 300312, 300313."""
    if not isinstance(partial, dict) or not partial:
        raise Refused(10002, "invalid request parameter: partial_element must be an object")
    if "tag" in partial:
        raise Refused(300312, "the tag of an element cannot be changed")
    renamed = partial.get("element_id", "x")
    if not isinstance(renamed, str) or not _ID.match(renamed):
        raise Refused(10002, "invalid request parameter: element_id")
    new = copy.deepcopy(card)
    siblings, at = _found(new, element_id, 300313)
    siblings[at] |= copy.deepcopy(partial)
    return new


def set_text(element: Json, content: str) -> None:
    """A streaming text's whole new content, in place. Raises Refused 300310 for elements that are no text."""
    if element.get("tag") not in ("markdown", "plain_text"):
        raise Refused(300310, "Only update text")
    element["content"] = content


def merge_settings(card: Json, settings: Any) -> Json:
    """Properties of config and card_link anew, the others stay. Raises Refused 10002."""
    if not isinstance(settings, dict) or not settings.keys() <= {"config", "card_link"}:
        raise Refused(10002, "invalid request parameter: settings may hold config and card_link")
    if not all(isinstance(value, dict) for value in settings.values()):
        raise Refused(10002, "invalid request parameter: config and card_link are objects")
    new = copy.deepcopy(card)
    for name, value in settings.items():
        new[name] = {**(new.get(name) or {}), **copy.deepcopy(value)}
    return new
