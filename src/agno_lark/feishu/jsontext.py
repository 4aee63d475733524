"""Reading JSON that strangers wrote: any input gives a value or a `ValueError`, and every string can be encoded."""

import json
from typing import Any

__all__ = ["read_json", "read_object", "whole_text"]


def whole_text(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD.

    JSON allows an escaped half of a pair; neither SQLite nor UTF-8 does, so it would fail long after the message was
    accepted.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def read_json(raw: str | bytes) -> Any:
    """The decoded value. Raises `ValueError` for what is not JSON (bad UTF-8, too deep, over-long numbers too)."""
    try:
        value = json.loads(raw)
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error
    has_escaped_surrogate = b"\\ud" in raw.lower() if isinstance(raw, bytes) else "\\ud" in raw.lower()
    return _whole(value) if has_escaped_surrogate else value


def read_object(raw: str | bytes) -> dict[str, Any]:
    """The decoded JSON object. Raises `ValueError` for anything else."""
    value = read_json(raw)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, not {type(value).__name__}")
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {whole_text(key): _whole(item) for key, item in value.items()}
    return value
