"""Small cards that are no answer of an agent: help, status, a hint."""

from agno_lark.replies.elements import Card, card, markdown

__all__ = ["note_card"]


def note_card(body: str, *, title: str = "", summary: str = "") -> Card:
    """A card with one Markdown text, ours."""
    return card([markdown(body, "body")], summary=summary or title or body[:60], title=title)
