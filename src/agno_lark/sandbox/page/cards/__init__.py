"""Draws cards (JSON 2.0) as Feishu draws them, one module a family of elements.

In: a card's JSON, from anybody, and a Scene. Out: HTML without any markup of the card's own. Nothing is kept.
"""

from agno_lark.sandbox.page.cards.card import FAMILIES, draw_card, is_streaming, summary_of

__all__ = ["FAMILIES", "draw_card", "is_streaming", "summary_of"]
