"""A whole card: width, header, body, and whether it is still being written."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from agno_lark.sandbox.page import looks
from agno_lark.sandbox.page.cards import actions, fields, layout, media, table, texts
from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, items
from agno_lark.sandbox.page.cards.texts import draw_text, icon_of
from agno_lark.sandbox.page.html import el, safe_url, styles
from agno_lark.sandbox.page.looks import edges, own_colours, own_sizes, tag_hue
from agno_lark.sandbox.page.markdown import markdown
from agno_lark.sandbox.page.scene import Scene, text_of

__all__ = ["FAMILIES", "draw_card", "is_streaming", "summary_of"]

FAMILIES: dict[str, Draw] = {
    **texts.FAMILY,
    **layout.FAMILY,
    **actions.FAMILY,
    **fields.FAMILY,
    **media.FAMILY,
    **table.FAMILY,
}
TEMPLATES = looks.HUES - {"lime", "sunflower", "neutral"} | {"default"}
MOST_TAGS = 3
MOST_PLAIN_CHARS = 400
FIRST_TEXT_KEYS = ("header", "title", "body", "elements", "columns", "text", "content")


def _part(card: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = card.get(name)
    return part if isinstance(part, Mapping) else {}


def is_streaming(card: Mapping[str, Any]) -> bool:
    """Whether the card itself says that it is still being written."""
    return _part(card, "config").get("streaming_mode") is True


def draw_card(card: Mapping[str, Any], scene: Scene, *, streaming: bool | None = None) -> Markup:
    """The card as HTML. `streaming` overrides what its config says (Feishu closes the mode after ten minutes)."""
    config = _part(card, "config")
    scene = replace(scene, colours=own_colours(config), sizes=own_sizes(config))
    writing = is_streaming(card) if streaming is None else streaming
    body = _part(card, "body") or {"elements": card.get("elements")}
    pen = Pen(scene=scene, families=FAMILIES)
    width = config.get("width_mode") if config.get("width_mode") in ("compact", "fill") else "default"
    link = _part(card, "card_link")
    words = {"zh": "正在输入", "en": "Typing"}
    typing = el(
        "div",
        {"class": "typing", "data-key": "typing"},
        el("span", {"class": "unseen"}, words.get(scene.language, words["en"])),
        *(el("i", {"aria-hidden": "true"}) for _ in range(3)),
    )
    return el(
        "article",
        {
            "class": f"card width-{width}" + (" streaming" if writing else ""),
            "aria-busy": "true" if writing else "false",
            "data-url": safe_url(link.get("pc_url")) or safe_url(link.get("url")),
        },
        _header(_part(card, "header"), scene) if card.get("header") else None,
        _body(body, pen),
        typing if writing else None,
    )


def _body(body: Element, pen: Pen) -> Markup:
    inner = layout.stack({**body, "padding": None}, pen, css_class="stack card-stack")
    padding = edges(body.get("padding"))
    return el("div", {"class": "card-body", "style": styles(padding=padding)}, inner)


def _header(header: Element, scene: Scene) -> Markup:
    template = header.get("template") if header.get("template") in TEMPLATES else "default"
    named = header.get("i18n_text_tag_list")
    tags = items(named.get(scene.locale)) if isinstance(named, Mapping) else []
    tags = (tags or items(header.get("text_tag_list")))[:MOST_TAGS]
    drawn = [
        el("span", {"class": f"text-tag hue-{tag_hue(tag.get('color'))}"}, text_of(tag.get("text"), scene))
        for tag in tags
    ]
    subtitle = header.get("subtitle")
    return el(
        "header",
        {
            "class": f"card-head template-{template}",
            "style": styles(padding=edges(header.get("padding"))),
            "data-key": "head",
        },
        icon_of(header, scene),
        el(
            "div",
            {"class": "grow"},
            el(
                "div",
                {"class": "card-title-row"},
                el("h3", {"class": "card-title"}, draw_text(header.get("title"), scene)),
                el("span", {"class": "tags"}, *drawn) if drawn else None,
            ),
            el("p", {"class": "card-subtitle"}, draw_text(subtitle, scene)) if text_of(subtitle, scene) else None,
        ),
    )


def summary_of(card: Mapping[str, Any], scene: Scene) -> str:
    """The card in a line, as a chat list and a quote show it: its summary, else its title, else its first text."""
    summary = _part(card, "config").get("summary")
    if text_of(summary, scene):
        return text_of(summary, scene)
    return text_of(_part(card, "header").get("title"), scene) or _first_text(card, scene)


def _plain(node: Mapping[str, Any], scene: Scene) -> str:
    """The words of a text element, its marks left out."""
    text = text_of(node, scene)[:MOST_PLAIN_CHARS]
    return text if node.get("tag") == "plain_text" else str(markdown(text, scene).striptags())


def _first_text(node: object, scene: Scene) -> str:
    if isinstance(node, Mapping):
        if isinstance(node.get("content"), str) and node["content"].strip():
            return _plain(node, scene)
        parts: list[object] = [node.get(key) for key in FIRST_TEXT_KEYS]
        return next((text for part in parts if (text := _first_text(part, scene))), "")
    if isinstance(node, list):
        return next((text for part in node if (text := _first_text(part, scene))), "")
    return ""
