"""The sandbox's web chat: what a person would see in Feishu, and what they could do there.

In: the world's messages and cards, and a person's typing and clicks. Out: HTML, live updates, what people do in the
world. Nothing survives here: the page is drawn from the world, again and again.
"""

from agno_lark.sandbox.page.routes import page_router

__all__ = ["page_router"]
