"""Reads HTML the way a strict reader would: which tags, which attributes, which words."""

import re
from html.parser import HTMLParser

__all__ = ["Reading", "read_html", "words_of"]

VOID = {"br", "hr", "img", "input"}
SPOKEN = ("aria-label", "placeholder", "value", "title", "alt", "data-confirm", "data-option", "data-hint")
TAG_LIKE = re.compile(r"<[^<>]*>|\(https?:[^)]*\)|\(img_[^)]*\)")


class Reading(HTMLParser):
    """`text`: what stands on the page; `spoken`: that and the attributes people read; `problems`: anything unsafe."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.spoken = ""
        self.problems: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        held = dict(attrs)
        if tag in ("script", "style", "iframe", "object", "embed", "link", "meta", "base", "template"):
            self.problems.append(f"<{tag}>")
        if len(held) != len(attrs):
            self.problems.append(f"an attribute twice on <{tag}>")
        for name, value in attrs:
            self._attribute(tag, name, value or "", held)

    def _attribute(self, tag: str, name: str, value: str, held: dict[str, str | None]) -> None:
        if name.startswith("on") or name in ("srcdoc", "formaction", "xlink:href"):
            self.problems.append(f"{name} on <{tag}>")
        if name == "style" and re.search(r"url\(|expression|@import|[{}<>]|javascript", value, re.I):
            self.problems.append(f"style {value!r}")
        if name in ("href", "src", "data-url", "data-zoom"):
            self.links.append(value)
            if not re.match(r"https?://|/sandbox/page/resources/", value):
                self.problems.append(f"{name} {value!r}")
        if tag == "a" and name == "href" and value.startswith("http") and "noopener" not in (held.get("rel") or ""):
            self.problems.append(f"no rel=noopener on {value!r}")
        if name in SPOKEN:
            self.spoken += f" {value} "

    def handle_data(self, data: str) -> None:
        self.text += data + " "
        self.spoken += data + " "


def read_html(html: str) -> Reading:
    """Parse a drawing."""
    reading = Reading()
    reading.feed(html)
    reading.close()
    return reading


def words_of(text: str) -> set[str]:
    """The words of a text of a card, without tags and addresses."""
    return set(re.findall(r"\w+", TAG_LIKE.sub(" ", text)))
