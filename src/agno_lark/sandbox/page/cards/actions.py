"""Elements that act when pressed: button, overflow; and what pressing means (`press`)."""

from collections.abc import Mapping

from markupsafe import Markup

from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, action_of, calls_back, items
from agno_lark.sandbox.page.cards.texts import draw_text, icon_of
from agno_lark.sandbox.page.html import Attrs, el, safe_url, to_json
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.looks import pixels
from agno_lark.sandbox.page.scene import text_of

__all__ = ["FAMILY", "confirmation", "press"]

TYPES = (
    "default",
    "primary",
    "danger",
    "text",
    "primary_text",
    "danger_text",
    "primary_filled",
    "danger_filled",
    "laser",
)
SIZES = ("tiny", "small", "medium", "large")


def press(element: Element, pen: Pen, tag: str) -> dict[str, str | bool | None]:
    """The attributes by which page.js knows what a press does: the action for the bot, an address, a question first."""
    found: dict[str, str | bool | None] = {}
    if calls_back(element):
        found["data-action"] = action_of(element, tag)
    address = _address(element)
    if address:
        found["data-url"] = address
    question = confirmation(element, pen)
    if question:
        found["data-confirm"] = question
    if element.get("disabled") is True:
        found["data-disabled"] = text_of(element.get("disabled_tips"), pen.scene) or ""
    return found


def confirmation(element: Element, pen: Pen) -> str | None:
    """`confirm` as JSON for the page: title and text in the looker's language."""
    confirm = element.get("confirm")
    if not isinstance(confirm, Mapping):
        return None
    return to_json({"title": text_of(confirm.get("title"), pen.scene), "text": text_of(confirm.get("text"), pen.scene)})


def _address(element: Element) -> str | None:
    for behaviour in items(element.get("behaviors")):
        if behaviour.get("type") == "open_url":
            return safe_url(behaviour.get("pc_url")) or safe_url(behaviour.get("default_url"))
    several = element.get("multi_url")
    if isinstance(several, Mapping):
        return safe_url(several.get("pc_url")) or safe_url(several.get("url"))
    return safe_url(element.get("url"))


def _button(element: Element, pen: Pen) -> Markup:
    kind = element.get("type") if element.get("type") in TYPES else "default"
    size = element.get("size") if element.get("size") in SIZES else "medium"
    width = element.get("width")
    attributes = press(element, pen, "button")
    form_type = element.get("form_action_type") or {"form_submit": "submit", "form_reset": "reset"}.get(
        str(element.get("action_type"))
    )
    if pen.in_form and form_type in ("submit", "reset"):
        attributes["data-form-action"] = str(form_type)
        attributes.setdefault("data-action", action_of(element, "button"))
    disabled = element.get("disabled") is True
    hint = text_of(element.get("disabled_tips") if disabled else element.get("hover_tips"), pen.scene)
    text = element.get("text")
    label = text_of(text, pen.scene)
    return el(
        "button",
        {
            **attributes,
            "type": "button",
            "class": f"btn {kind} {size}" + (" fill" if width == "fill" else ""),
            "style": f"width:{pixels(width)}" if pixels(width) else None,
            "aria-disabled": "true" if disabled else None,
            "aria-label": None if label else str(element.get("name") or hint or "button"),
            "title": hint or None,
        },
        icon_of(element, pen.scene),
        draw_text(text, pen.scene, css_class="label") if label else None,
    )


def _overflow(element: Element, pen: Pen) -> Markup:
    more = {"zh": "更多", "en": "More"}.get(pen.scene.language, "More")
    entries: list[Markup] = []
    for option in items(element.get("options")):
        several = option.get("multi_url")
        address = None
        if isinstance(several, Mapping):
            address = safe_url(several.get("pc_url")) or safe_url(several.get("url"))
        value = option.get("value")
        attributes: Attrs = {
            "type": "button",
            "role": "menuitem",
            "data-action": action_of(element, "overflow") if isinstance(value, str) else None,
            "data-option": value if isinstance(value, str) else None,
            "data-url": address,
            "data-confirm": confirmation(element, pen),
        }
        entries.append(el("button", attributes, draw_text(option.get("text"), pen.scene)))
    return el(
        "details",
        {"class": "menu"},
        el("summary", {"class": "btn default medium", "aria-label": more, "title": more}, draw_icon("more")),
        el("div", {"class": "menu-list", "role": "menu"}, *entries),
    )


FAMILY: dict[str, Draw] = {"button": _button, "overflow": _overflow}
