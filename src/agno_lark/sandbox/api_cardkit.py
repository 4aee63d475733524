"""cardkit/v1 (placeholder until the rules are in)."""

from agno_lark.sandbox.calls import Routes

__all__ = ["register"]


def register(routes: Routes) -> None:
    """None yet."""
