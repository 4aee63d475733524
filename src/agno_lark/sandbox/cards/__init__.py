"""Judges cards as the platform would.

In: a card's JSON. Out: findings, each with the platform's code and ErrPath; `refusal` gives the first that refuses.
Held to ../shared/cards (its schema is data of this package, its checker's verdicts are tests). Keeps no state.
"""

from agno_lark.sandbox.cards.check import Finding, check, element_of, md_tables, refusal, text_refusal

__all__ = ["Finding", "check", "element_of", "md_tables", "refusal", "text_refusal"]
