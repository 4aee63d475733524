"""Conversations: which scope a message belongs to, and which generation of it is the current one.

Enters: where a message was written, and by whom. Leaves: a `Scope`, and its session id `scope:v{generation}`, which is
AgentOS's session and our lane. Survives a crash: the generation (table session_scopes).
"""

from agno_lark.sessions.generations import current_generation, raise_generation
from agno_lark.sessions.scope import Scope, session_id

__all__ = ["Scope", "current_generation", "raise_generation", "session_id"]
