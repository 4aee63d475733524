"""The scope of a conversation: a value, spelled in one way only."""

from dataclasses import dataclass

from agno_lark.settings import GroupSessionMode, TargetKind

__all__ = ["Scope", "session_id"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """`feishu:{type}:{id}:chat_{oc}[:thread_{omt}][:user:{ou}]` (design.md, Words).

    A direct chat is its own conversation. In a group each member has one of their own (mode user), or all share one
    (mode shared); a topic of a group always has its own.
    """

    target_type: str
    target_id: str
    chat_id: str
    thread_id: str | None = None
    user_id: str | None = None

    @classmethod
    def of(
        cls,
        *,
        target_type: TargetKind | str,
        target_id: str,
        chat_id: str,
        is_group: bool,
        thread_id: str | None,
        user_id: str,
        mode: GroupSessionMode,
    ) -> "Scope":
        """The scope in which `user_id` (an open id) writes there."""
        per_user = is_group and mode is GroupSessionMode.USER
        return cls(
            target_type=str(target_type),
            target_id=target_id,
            chat_id=chat_id,
            thread_id=thread_id if is_group else None,
            user_id=user_id if per_user else None,
        )

    def __str__(self) -> str:
        thread = f":thread_{self.thread_id}" if self.thread_id else ""
        user = f":user:{self.user_id}" if self.user_id else ""
        return f"feishu:{self.target_type}:{self.target_id}:chat_{self.chat_id}{thread}{user}"


def session_id(scope: Scope | str, generation: int) -> str:
    """AgentOS's session id for one generation of a scope."""
    return f"{scope}:v{generation}"
