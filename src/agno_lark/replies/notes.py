"""Small cards that are no answer of an agent: help, status, a hint."""

import re
from html import unescape

from agno_lark.replies.elements import Card, card, markdown

__all__ = ["card_text", "note_card"]

_MARKS = re.compile(r"</?\w[^<>]*>|[*`]")  # of our own: whatever others wrote is escaped in these cards


def note_card(body: str, *, title: str = "", summary: str = "") -> Card:
    """A card with one Markdown text, ours."""
    return card([markdown(body, "body")], summary=summary or title or body[:60], title=title)


def card_text(note: Card) -> str:
    """The words of such a card, for where no card is taken."""
    title = note.get("header", {}).get("title", {}).get("content", "")
    bodies = [str(element.get("content", "")) for element in note["body"]["elements"]]
    return "\n\n".join(filter(None, (title, *(unescape(_MARKS.sub("", body)) for body in bodies))))
