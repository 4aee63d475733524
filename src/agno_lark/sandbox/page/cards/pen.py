"""The pen that draws a card's elements: it knows the looker's scene and hands each element to its family."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from agno_lark.sandbox.page.html import el, join, to_json
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.looks import edges
from agno_lark.sandbox.page.scene import Scene

__all__ = ["Draw", "Element", "Pen", "action_of", "calls_back", "items", "key_of"]

type Element = Mapping[str, Any]
type Draw = Callable[[Element, "Pen"], Markup]

DEEPEST = 12
"""Levels drawn. Feishu takes five; the rest is only so that no card can exhaust us."""


def items(value: object) -> list[Element]:
    """The objects of a list; whatever else is in it, or instead of it, is left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, Sequence) else []


@dataclass(frozen=True, kw_only=True, slots=True)
class Pen:
    """`path` is where in the card we are: it makes keys that stay the same from one drawing to the next."""

    scene: Scene
    families: Mapping[str, Draw]
    path: str = "b"
    in_form: bool = False

    def inside(self, step: str | int, *, form: bool = False) -> "Pen":
        """The pen for an element's child."""
        return Pen(scene=self.scene, families=self.families, path=f"{self.path}.{step}", in_form=self.in_form or form)

    def draw_all(self, elements: object) -> Markup:
        """Every element of a list, in order."""
        met: Counter[str] = Counter()
        drawn = []
        for index, element in enumerate(items(elements)):
            tag = str(element.get("tag", "?"))
            drawn.append(self.inside(index).draw(element, nth=met[tag]))
            met[tag] += 1
        return join(drawn)

    def draw(self, element: Element, *, nth: int = 0) -> Markup:
        """One element in its frame; an element nobody knows is named in a visible placeholder."""
        tag = str(element.get("tag", "?"))
        family = self.families.get(tag)
        too_deep = self.path.count(".") > DEEPEST * 2
        drawn = self.placeholder(tag) if family is None or too_deep else family(element, self)
        frame = {
            "class": f"el el-{tag if family else 'unknown'}",
            "data-key": key_of(element, nth),
            "data-element": str(element.get("element_id") or "") or None,
            "style": f"margin:{margin}" if (margin := edges(element.get("margin"))) else None,
        }
        return el("div", frame, drawn)

    def dom_id(self, part: str) -> str:
        """An id for labels, unique on the page."""
        return f"{self.scene.card_id}-{self.path}-{part}".replace(".", "-")

    def placeholder(self, tag: str) -> Markup:
        """What stands for an element that can't be drawn."""
        words = {"zh": "此处的组件无法显示", "en": "This part can't be shown"}
        text = words.get(self.scene.language, words["en"])
        return el(
            "div", {"class": "unknown", "role": "note"}, draw_icon("maybe"), f"{text}: ", el("code", None, tag[:40])
        )


def key_of(element: Element, nth: int) -> str:
    """What tells an element from its neighbours when the card is drawn again, though others come and go before it.

    Its element_id, else its name, else that it is the `nth` of its kind among its neighbours.
    """
    given = element.get("element_id") or element.get("name")
    return f"{element.get('tag', '?')}:{given if isinstance(given, str) and given else nth}"


def action_of(element: Element, tag: str) -> str:
    """The fixed part of `card.action.trigger`'s action: tag, name and the value its callback carries."""
    action: dict[str, Any] = {"tag": tag}
    if isinstance(element.get("name"), str) and element["name"]:
        action["name"] = element["name"]
    for behaviour in items(element.get("behaviors")):
        if behaviour.get("type") == "callback" and "value" in behaviour:
            action["value"] = behaviour["value"]
    if "value" not in action and isinstance(element.get("value"), Mapping | str):
        action["value"] = element["value"]
    return to_json(action)


def calls_back(element: Element) -> bool:
    """Whether using the element tells the bot."""
    return any(item.get("type") == "callback" for item in items(element.get("behaviors"))) or isinstance(
        element.get("value"), Mapping
    )
