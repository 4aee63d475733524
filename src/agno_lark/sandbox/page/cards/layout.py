"""Elements that hold elements: column_set, column, collapsible_panel, interactive_container, form."""

from collections.abc import Mapping

from markupsafe import Markup

from agno_lark.sandbox.page.cards.actions import press
from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, items, key_of
from agno_lark.sandbox.page.cards.texts import draw_text
from agno_lark.sandbox.page.html import el, styles
from agno_lark.sandbox.page.icons import draw_icon, icon
from agno_lark.sandbox.page.looks import colour, edges, pixels, spacing
from agno_lark.sandbox.page.scene import text_of

__all__ = ["FAMILY", "stack"]

ALONG = {"left": "flex-start", "center": "center", "right": "flex-end", "top": "flex-start", "bottom": "flex-end"}
FLEX_MODES = ("none", "stretch", "flow", "bisect", "trisect")


def stack(element: Element, pen: Pen, *, css_class: str = "stack", gap: str = "8px") -> Markup:
    """The children of a container, below each other unless `direction` says beside."""
    beside = element.get("direction") == "horizontal"
    gap_word = element.get("horizontal_spacing" if beside else "vertical_spacing")
    along, across = element.get("horizontal_align"), element.get("vertical_align")
    style = styles(
        gap=spacing(gap_word) or gap,
        padding=edges(element.get("padding")),
        background=colour(element.get("background_style"), pen.scene.colours),
        justify_content=ALONG.get(str(along)) if beside else ALONG.get(str(across)),
        align_items=ALONG.get(str(across)) if beside else None,
        text_align=str(along) if along in ("center", "right") else None,
    )
    words = f"{css_class} beside" if beside else css_class
    if not beside and along in ("center", "right"):
        words += f" lean-{along}"
    return el("div", {"class": words, "style": style}, pen.draw_all(element.get("elements")))


def _column_set(element: Element, pen: Pen) -> Markup:
    mode = element.get("flex_mode") if element.get("flex_mode") in FLEX_MODES else "none"
    style = styles(
        gap=spacing(element.get("horizontal_spacing")) or "8px",
        background=colour(element.get("background_style"), pen.scene.colours),
        justify_content=ALONG.get(str(element.get("horizontal_align"))),
    )
    columns = (
        _column(column, pen.inside(f"c{index}"), index) for index, column in enumerate(items(element.get("columns")))
    )
    return el("div", {"class": f"columns flex-{mode}", "style": style}, *columns)


def _column(element: Element, pen: Pen, nth: int = 0) -> Markup:
    if element.get("tag", "column") != "column":
        return pen.draw(element, nth=nth)
    width = element.get("width", "auto")
    weight = element.get("weight")
    grow = str(weight) if isinstance(weight, int) and 1 <= weight <= 5 else "1"
    style = styles(
        flex=f"{grow} 1 0" if width == "weighted" else None,
        width=pixels(width),
        margin=edges(element.get("margin")),
    )
    framed = " filled" if colour(element.get("background_style"), pen.scene.colours) else ""
    inner = stack(element, pen, css_class="stack column-in" + framed)
    css_class = f"column {'weighted' if width == 'weighted' else 'own-width'}"
    return el("div", {"class": css_class, "style": style, "data-key": key_of(element, nth)}, inner)


def _panel(element: Element, pen: Pen) -> Markup:
    scene = pen.scene
    header = element.get("header")
    header = header if isinstance(header, Mapping) else {}
    border = element.get("border")
    border = border if isinstance(border, Mapping) else {}
    line = colour(border.get("color"), scene.colours)
    style = styles(
        background=colour(element.get("background_color"), scene.colours),
        border=f"1px solid {line or 'var(--line)'}" if border else None,
        border_radius=pixels(border.get("corner_radius")),
    )
    where = header.get("icon_position") if header.get("icon_position") in ("left", "right", "follow_text") else "right"
    arrow = icon(header.get("icon"), scene.colours) or draw_icon("down")
    angle = header.get("icon_expanded_angle")
    turn = f"turn-{angle}" if angle in (-180, -90, 90, 180) else "turn-180"
    summary = el(
        "summary",
        {
            "class": f"panel-head icon-{where}",
            "style": styles(
                background=colour(header.get("background_color"), scene.colours), padding=edges(header.get("padding"))
            ),
        },
        el("span", {"class": "panel-title"}, draw_text(header.get("title"), scene)),
        el("span", {"class": f"arrow {turn}"}, arrow),
    )
    opened = element.get("expanded") is True
    body = stack(element, pen, css_class="stack panel-body")
    return el(
        "details",
        {"class": "panel framed" if border else "panel", "style": style, "open": opened, "data-expanded": str(opened)},
        summary,
        body,
    )


def _container(element: Element, pen: Pen) -> Markup:
    scene = pen.scene
    line = colour(element.get("border_color"), scene.colours) or "var(--line)"
    style = styles(
        width=pixels(element.get("width")),
        min_height=pixels(element.get("height")),
        border=f"1px solid {line}" if element.get("has_border") is True else None,
        border_radius=pixels(element.get("corner_radius")) or "0px",
        background=colour(element.get("background_style"), scene.colours),
    )
    inner = stack({**element, "background_style": None}, pen)
    attributes = press(element, pen, "interactive_container")
    role = "link" if "data-url" in attributes and "data-action" not in attributes else "button"
    return el(
        "div",
        {
            **attributes,
            "class": "container" + (" auto" if element.get("width") == "auto" else ""),
            "style": style,
            "role": role,
            "tabindex": None if element.get("disabled") is True else "0",
            "aria-disabled": "true" if element.get("disabled") is True else None,
            "title": text_of(element.get("hover_tips"), scene) or None,
        },
        inner,
    )


def _form(element: Element, pen: Pen) -> Markup:
    return el(
        "form",
        {"class": "card-form", "data-form": str(element.get("name", "")), "novalidate": True, "autocomplete": "off"},
        stack(element, pen.inside("f", form=True), gap="12px"),
    )


FAMILY: dict[str, Draw] = {
    "column_set": _column_set,
    "column": _column,
    "collapsible_panel": _panel,
    "interactive_container": _container,
    "form": _form,
}
