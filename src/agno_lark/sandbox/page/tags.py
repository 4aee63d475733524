"""Feishu's own tags inside markdown (`<font>`, `<at>`, `<text_tag>` ...): read here, drawn here.

cards/README.md, "Markdown component". A tag nobody knows vanishes, as it does in Feishu; its text stays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from agno_lark.sandbox.page.html import el, safe_url, styles
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.looks import colour, tag_hue
from agno_lark.sandbox.page.scene import Scene

__all__ = ["Tag", "closing", "mention", "opening", "read_tag"]

TAG = re.compile(r"<(/?)([a-zA-Z_][\w-]*)((?:\s+[\w:-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?)*)\s*(/?)>")
ATTRIBUTE = re.compile(r"([\w:-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tag:
    """One tag as written. `ends` for `</x>`, `whole` for `<x/>`; names are in small letters."""

    name: str
    ends: bool
    whole: bool
    attributes: Mapping[str, str]


def read_tag(text: str) -> Tag | None:
    """The tag that `text` is, or None when it is none."""
    found = TAG.fullmatch(text.strip())
    if found is None:
        return None
    attributes = {
        name.lower(): quoted or single or bare for name, quoted, single, bare in ATTRIBUTE.findall(found.group(3))
    }
    return Tag(
        name=found.group(2).lower(), ends=bool(found.group(1)), whole=bool(found.group(4)), attributes=attributes
    )


def mention(open_id: str, scene: Scene) -> Markup:
    """A person, or everybody, addressed by name."""
    everybody = {"zh": "所有人", "en": "everyone"}[scene.language if scene.language == "zh" else "en"]
    name = everybody if open_id in ("all", "@_all") else scene.name_of(open_id)
    return el("span", {"class": "mention"}, f"@{name}")


def opening(tag: Tag, scene: Scene) -> tuple[Markup, str | None]:
    """What a tag opens: HTML to write now, and the HTML end tag to remember (None: nothing stays open)."""
    own = tag.attributes
    if tag.name in ("b", "strong", "i", "em", "s", "del", "u"):
        return Markup(f"<{tag.name}>"), tag.name
    if tag.name == "br":
        return Markup("<br>"), None
    if tag.name == "hr":
        return Markup('<span class="md-rule"></span>'), None
    if tag.name == "font":
        return _open_span("font", styles(color=colour(own.get("color"), scene.colours))), "span"
    if tag.name == "text_tag":
        return _open_span(f"text-tag hue-{tag_hue(own.get('color'))}", None), "span"
    if tag.name == "number_tag":
        style = styles(
            background=colour(own.get("background_color"), scene.colours),
            color=colour(own.get("font_color"), scene.colours),
        )
        return _open_span("number-tag", style), "span"
    if tag.name in ("a", "link"):
        return _open_link(own)
    if tag.name == "at":
        ids = [
            name for name in (own.get("ids") or own.get("id") or own.get("user_id") or "").split(",") if name.strip()
        ]
        names = [mention(name.strip(), scene) for name in ids] or [
            el("span", {"class": "mention"}, f"@{own.get('email', '?')}")
        ]
        return Markup(" ").join(names), "" if not tag.whole else None
    if tag.name == "person":
        return _person(own, scene), "" if not tag.whole else None
    if tag.name == "local_datetime":
        return _moment(own), "" if not tag.whole else None
    if tag.name == "audio":
        return el("span", {"class": "chip"}, draw_icon("voice"), own.get("fallback_text") or "audio"), (
            "" if not tag.whole else None
        )
    return Markup(""), None


def closing(end: str) -> Markup:
    """The end tag remembered by `opening`; "" closes a tag whose inside is not shown."""
    return Markup(f"</{end}>") if end else Markup("")


def _open_span(css_class: str, style: str | None) -> Markup:
    return Markup(str(el("span", {"class": css_class, "style": style})).removesuffix("</span>"))


def _open_link(own: Mapping[str, str]) -> tuple[Markup, str]:
    address = safe_url(own.get("pc_url")) or safe_url(own.get("href")) or safe_url(own.get("url"))
    if address is None:
        return _open_span("dead-link", None), "span"
    whole = el("a", {"href": address, "target": "_blank", "rel": "noopener noreferrer"})
    return Markup(str(whole).removesuffix("</a>")), "a"


def _person(own: Mapping[str, str], scene: Scene) -> Markup:
    return el("span", {"class": "person-chip"}, draw_icon("member"), scene.name_of(own.get("id", "")))


def _moment(own: Mapping[str, str]) -> Markup:
    """The page writes the time in the looker's zone (page.js); without it UTC stands there."""
    digits = own.get("millisecond", "")
    if not digits.isdigit() or len(digits) > 14:
        return el("span", {"class": "moment"}, digits)
    at = datetime.fromtimestamp(int(digits) / 1000, UTC)
    return el(
        "time",
        {"class": "moment", "datetime": at.isoformat(), "data-format": own.get("format_type", "date")},
        f"{at:%Y-%m-%d %H:%M} UTC",
    )
