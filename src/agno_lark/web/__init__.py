"""The routes of a bridge: status and health. Enters: requests. Leaves: JSON without secrets. Nothing is stored."""

from agno_lark.web.routes import bridge_router

__all__ = ["bridge_router"]
