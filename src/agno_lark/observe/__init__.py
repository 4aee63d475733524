"""Logs: stdlib records with a constant text and a listed `action`, rendered by structlog in the daemon alone.

Enters: settings. Leaves: lines on stderr, never a message's words, never a secret. Nothing is stored.
"""

from agno_lark.observe.logs import configure_logs

__all__ = ["configure_logs"]
