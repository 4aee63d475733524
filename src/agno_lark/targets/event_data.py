"""Reading fields of events nobody vouches for: every function here takes anything and raises nothing."""

import json
from collections.abc import Mapping
from typing import Any

from agno_lark.targets.protocol import RunState

__all__ = ["answer_text", "args_summary", "mapping", "mappings", "run_kind", "state_of", "text_of", "time_ms", "whole"]

_SECRET_WORDS = ("token", "secret", "password", "passwd", "api_key", "apikey", "authorization", "credential")
_SUMMARY_CHARS = 200

_KINDS = frozenset(
    {
        "RunStarted",
        "RunContent",
        "RunCompleted",
        "RunError",
        "RunCancelled",
        "RunPaused",
        "RunContinued",
        "ToolCallStarted",
        "ToolCallCompleted",
        "ToolCallError",
        "ReasoningStep",
        "ReasoningContentDelta",
        "WorkflowStarted",
        "WorkflowCompleted",
        "WorkflowError",
        "WorkflowCancelled",
        "WorkflowPaused",
        "StepStarted",
        "StepCompleted",
        "StepError",
        "StepContinued",
        "StepExecutorContinued",
    }
)

_STATES = {
    "PENDING": RunState.RUNNING,
    "RUNNING": RunState.RUNNING,
    "PAUSED": RunState.PAUSED,
    "COMPLETED": RunState.COMPLETED,
    "REGENERATED": RunState.COMPLETED,
    "ERROR": RunState.FAILED,
    "CANCELLED": RunState.CANCELLED,
}


def run_kind(name: object) -> str | None:
    """The event's name without a team's prefix, or None for one we have no use for."""
    if not isinstance(name, str):
        return None
    kind = name.removeprefix("Team")
    return kind if kind in _KINDS else None


def state_of(status: object) -> RunState | None:
    """Our word for agno's RunStatus (in any case of letters), or None."""
    return _STATES.get(status.upper()) if isinstance(status, str) else None


def text_of(value: object) -> str:
    """The value when it is a string, else ""."""
    return value if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    """The value when it is a whole number (and no bool), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(value: object) -> Mapping[str, Any]:
    """The value when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> tuple[Mapping[str, Any], ...]:
    """The mappings in a list, in order; () for anything that is no list."""
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list | tuple) else ()


def time_ms(data: Mapping[str, Any]) -> int | None:
    """`created_at` (UTC epoch seconds) in milliseconds."""
    seconds = data.get("created_at")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e11:
        return None
    return int(seconds * 1000)


def answer_text(content: object) -> str:
    """Content as a person reads it: strings as they are, structured output as JSON, nothing as ""."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    try:
        return json.dumps(content, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""


def args_summary(args: object) -> str:
    """A tool's arguments in one line of at most 200 characters; values under secret-looking names are masked."""
    pairs = (f"{name}={_brief(str(name), value)}" for name, value in mapping(args).items())
    line = ", ".join(pairs)
    return line if len(line) <= _SUMMARY_CHARS else line[: _SUMMARY_CHARS - 1] + "…"


def _brief(name: str, value: object) -> str:
    if any(word in name.lower() for word in _SECRET_WORDS):
        return "•••"
    return " ".join(answer_text(value).split())
