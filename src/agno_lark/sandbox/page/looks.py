"""Feishu's words for colours, sizes and distances as CSS values (cards/README.md, "Limits" and "Clients, dark mode").

Every function takes anything and returns a checked CSS value or None, so no card can write its own CSS.
"""

import re
from collections.abc import Mapping

__all__ = ["HUES", "colour", "edges", "pixels", "spacing", "tag_hue", "text_size"]

HUES = frozenset(
    {
        "blue", "carmine", "green", "indigo", "lime", "grey", "orange", "purple", "red", "sunflower", "turquoise",
        "violet", "wathet", "yellow", "neutral",
    }
)  # fmt: skip
SIZES_PX = {
    "heading-0": 30,
    "heading-1": 24,
    "heading-2": 20,
    "heading-3": 18,
    "heading-4": 16,
    "heading": 16,
    "normal": 14,
    "notation": 12,
    "xxxx-large": 30,
    "xxx-large": 24,
    "xx-large": 20,
    "x-large": 18,
    "large": 16,
    "medium": 14,
    "small": 12,
    "x-small": 10,
}
SPACES_PX = {"small": 4, "medium": 8, "large": 12, "extra_large": 16}
RGBA = re.compile(r"rgba?\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*(,\s*[\d.]{1,6}\s*)?\)")
PX = re.compile(r"-?\d{1,4}px")
PERCENT = re.compile(r"\d{1,3}%")


def colour(word: object, own: Mapping[str, str] | None = None) -> str | None:
    """A colour word, a word with a level (`blue-300`), `rgba(...)` or a key of the card's own colours."""
    if not isinstance(word, str) or word in ("", "default"):
        return None
    if own and word in own:
        return own[word]
    if word in ("white", "bg-white"):
        return "var(--surface)"
    if word == "laser":
        return "var(--laser)"
    if RGBA.fullmatch(word):
        return word
    hue, _, level = word.partition("-")
    if hue not in HUES:
        return None
    if not level.isdigit():
        return f"var(--{hue})"
    return _level(hue, int(level))


def _level(hue: str, level: int) -> str:
    """Levels below 500 fade into the card, above it towards the text: so they hold in the dark too."""
    if level <= 500:
        # Feishu's pale greys are much paler than half of its middle grey.
        share = level / 500 if hue not in ("grey", "neutral") else (level / 500) ** 2
        return f"color-mix(in srgb, var(--{hue}) {max(6, round(share * 100))}%, var(--surface))"
    return f"color-mix(in srgb, var(--{hue}) {max(20, 100 - (level - 500) // 8)}%, var(--text))"


def own_colours(config: Mapping[str, object]) -> dict[str, str]:
    """`config.style.color`: name → a CSS colour for light and dark."""
    style = config.get("style")
    named = style.get("color") if isinstance(style, Mapping) else None
    found: dict[str, str] = {}
    for name, modes in (named or {}).items() if isinstance(named, Mapping) else ():
        light = modes.get("light_mode") if isinstance(modes, Mapping) else None
        dark = modes.get("dark_mode") if isinstance(modes, Mapping) else None
        if isinstance(light, str) and RGBA.fullmatch(light):
            dark = dark if isinstance(dark, str) and RGBA.fullmatch(dark) else light
            found[name] = f"light-dark({light}, {dark})"
    return found


def own_sizes(config: Mapping[str, object]) -> dict[str, str]:
    """`config.style.text_size`: name → one of Feishu's size words (the computer's where it differs)."""
    style = config.get("style")
    named = style.get("text_size") if isinstance(style, Mapping) else None
    found: dict[str, str] = {}
    for name, clients in (named or {}).items() if isinstance(named, Mapping) else ():
        word = (clients.get("pc") or clients.get("default")) if isinstance(clients, Mapping) else None
        if isinstance(word, str):
            found[name] = word
    return found


def text_size(word: object, own: Mapping[str, str] | None = None) -> str | None:
    """The font size of a size word, or of a key of the card's own sizes; None for the usual size or no size."""
    if not isinstance(word, str):
        return None
    size = SIZES_PX.get((own or {}).get(word, word))
    return f"{size}px" if size and size != 14 else None


def edges(value: object) -> str | None:
    """A margin or padding of one to four px values."""
    if not isinstance(value, str):
        return None
    parts = ["0px" if part == "0" else part for part in value.split()]
    return " ".join(parts) if 1 <= len(parts) <= 4 and all(PX.fullmatch(part) for part in parts) else None


def pixels(value: object) -> str | None:
    """One px value or a percentage."""
    return value if isinstance(value, str) and (PX.fullmatch(value) or PERCENT.fullmatch(value)) else None


def spacing(value: object) -> str | None:
    """A distance word or px value."""
    if isinstance(value, str) and value in SPACES_PX:
        return f"{SPACES_PX[value]}px"
    return pixels(value)


def tag_hue(word: object) -> str:
    """The hue of a text tag, a header or a badge; grey where it is not known."""
    hue = word.partition("-")[0] if isinstance(word, str) else ""
    return hue if hue in HUES else "neutral"
