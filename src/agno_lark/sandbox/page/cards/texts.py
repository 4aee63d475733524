"""Elements that are text: div, markdown, hr, and the text objects other elements hold."""

from collections.abc import Mapping

from markupsafe import Markup

from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, items
from agno_lark.sandbox.page.emoji import with_emoji
from agno_lark.sandbox.page.html import el, lines, styles
from agno_lark.sandbox.page.icons import icon
from agno_lark.sandbox.page.looks import colour, pixels, text_size
from agno_lark.sandbox.page.markdown import lark_md, markdown
from agno_lark.sandbox.page.scene import Scene, localised

__all__ = ["FAMILY", "draw_text", "icon_of"]

ALIGN = ("left", "center", "right")


def draw_text(holder: object, scene: Scene, *, css_class: str = "t") -> Markup:
    """A text object (plain_text, lark_md, markdown) or a bare string."""
    if not isinstance(holder, Mapping):
        return el("span", {"class": css_class}, lines(holder if isinstance(holder, str) else ""))
    content = localised(holder, scene)
    tag = holder.get("tag")
    if tag == "markdown":
        inner = markdown(content, scene)
    elif tag == "lark_md":
        inner = lark_md(content, scene)
    else:
        inner = lines(with_emoji(content))
    rows = holder.get("lines")
    style = styles(
        font_size=text_size(holder.get("text_size"), scene.sizes),
        color=colour(holder.get("text_color"), scene.colours),
        text_align=_align(holder.get("text_align")),
        _webkit_line_clamp=str(rows) if isinstance(rows, int) and 0 < rows < 100 else None,
    )
    clamp = " clamp" if isinstance(rows, int) and 0 < rows < 100 else ""
    return el("div" if tag in ("markdown", "lark_md") else "span", {"class": css_class + clamp, "style": style}, inner)


def icon_of(element: Element, scene: Scene) -> Markup | None:
    """The element's icon: a standard one, or a small picture."""
    spec = element.get("icon")
    if isinstance(spec, Mapping) and spec.get("tag") == "custom_icon":
        address = scene.picture(str(spec.get("img_key", "")))
        return el("img", {"class": "icon", "src": address, "alt": ""}) if address else icon({"token": "image"})
    return icon(spec, scene.colours)


def _align(word: object) -> str | None:
    return word if isinstance(word, str) and word in ALIGN else None


def _div(element: Element, pen: Pen) -> Markup:
    text = element.get("text")
    fields = [
        el("div", {"class": "field short" if item.get("is_short") else "field"}, draw_text(item.get("text"), pen.scene))
        for item in items(element.get("fields"))
    ]
    return el(
        "div",
        {"class": "with-icon", "style": styles(max_width=pixels(element.get("width")))},
        icon_of(element, pen.scene),
        el(
            "div",
            {"class": "grow"},
            draw_text(text, pen.scene) if text is not None else None,
            el("div", {"class": "fields"}, *fields) if fields else None,
        ),
    )


def _markdown(element: Element, pen: Pen) -> Markup:
    scene = pen.scene
    style = styles(
        font_size=text_size(element.get("text_size"), scene.sizes), text_align=_align(element.get("text_align"))
    )
    body = el("div", {"class": "md grow", "style": style}, markdown(localised(element, scene), scene))
    mark = icon_of(element, scene)
    return el("div", {"class": "with-icon"}, mark, body) if mark else body


def _hr(_element: Element, _pen: Pen) -> Markup:
    return Markup("<hr>")


FAMILY: dict[str, Draw] = {
    "div": _div,
    "markdown": _markdown,
    "lark_md": _markdown,
    "hr": _hr,
    "plain_text": lambda element, pen: draw_text(element, pen.scene),
}
