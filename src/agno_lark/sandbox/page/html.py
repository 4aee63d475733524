"""Builds HTML in which nothing unescaped can slip: every text and every attribute value passes through `el`.

Tag and attribute names come from our own code only; values may come from anybody.
"""

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from markupsafe import Markup, escape

__all__ = ["Attrs", "Piece", "clip", "el", "join", "lines", "safe_url", "styles", "to_json"]

Piece = Markup | str | None
Attrs = Mapping[str, str | int | float | bool | None]

VOID = frozenset({"br", "hr", "img", "input"})
URL_IN_TEXT = re.compile(r"https?://[^\s<>\"'，。；、！？（）【】《》]+")


def el(tag: str, attrs: Attrs | None = None, *children: Piece) -> Markup:
    """One element. An attribute that is None or False is left out, True stands bare, `str` children are escaped."""
    parts = [f"<{tag}"]
    for name, value in (attrs or {}).items():
        if value is None or value is False:
            continue
        parts.append(f" {name}" if value is True else f' {name}="{escape(str(value))}"')
    parts.append(">")
    if tag not in VOID:
        parts.extend(child if type(child) is Markup else escape(child) for child in children if child is not None)
        parts.append(f"</{tag}>")
    return Markup("".join(parts))


def join(pieces: Iterable[Piece], between: str = "") -> Markup:
    """The pieces one after the other; plain strings are escaped."""
    # Straight to str.join: Markup's own would escape what is escaped again, and a long card has 10,000 pieces.
    parts = [piece if type(piece) is Markup else escape(piece) for piece in pieces if piece is not None]
    return Markup(str(escape(between)).join(parts))


def lines(text: str, *, link: bool = True) -> Markup:
    """Plain text as HTML: escaped, line ends as <br>, web addresses as links."""
    if "\n" not in text and ("http" not in text or not link):
        return escape(text)
    drawn = [_linked(line) if link else escape(line) for line in text.split("\n")]
    return Markup("<br>".join(drawn))


def _linked(text: str) -> Markup:
    pieces: list[Piece] = []
    start = 0
    for found in URL_IN_TEXT.finditer(text):
        address = found.group().rstrip(".,;:!?)")
        if safe_url(address) is None:
            continue
        pieces.append(text[start : found.start()])
        pieces.append(el("a", {"href": address, "target": "_blank", "rel": "noopener noreferrer"}, address))
        start = found.start() + len(address)
    pieces.append(text[start:])
    return join(pieces)


def safe_url(address: object) -> str | None:
    """The address if a person may follow it (http or https with a host), else None."""
    if not isinstance(address, str) or any(ord(char) <= 32 for char in address.strip()):
        return None
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return None
    return address.strip() if parts.scheme.lower() in ("http", "https") and parts.netloc else None


def styles(**rules: str | None) -> str | None:
    """A style attribute from checked values (see looks.py); names have _ for -. None when nothing is set."""
    kept = [f"{name.replace('_', '-')}:{value}" for name, value in rules.items() if value]
    return ";".join(kept) or None


def to_json(value: object) -> str:
    """JSON for a data attribute."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def clip(text: str, length: int) -> str:
    """At most `length` characters of the text on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
