"""An OpenAPI call as its handler sees it, what it may answer, and the table of handlers."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Json
from agno_lark.sandbox.refusals import Refused

__all__ = ["Answer", "Call", "Handler", "Route", "Routes", "Upload", "invalid_field"]


def invalid_field(field_name: str, why: str) -> Refused:
    """The generic refusal of a field (payloads/responses/_generic_errors.json)."""
    return Refused(99992402, f"field validation failed: {field_name}: {why}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A file of a multipart form."""

    name: str
    content_type: str
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request: path parameters, query, and the body read as JSON or as a form."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, list[str]] = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    form: Mapping[str, str | Upload] = field(default_factory=dict)
    base_url: str = ""

    def ask(self, name: str, default: str = "") -> str:
        """A query value."""
        values = self.query.get(name)
        return values[0] if values else default

    def text(self, name: str, *, required: bool = True) -> str:
        """A string of the body. Raises Refused 99992402 if missing (and required) or of another type."""
        value = self.body.get(name)
        if value is None or (value == "" and required):
            if required:
                raise invalid_field(name, "is required")
            return ""
        if not isinstance(value, str):
            raise invalid_field(name, "must be a string")
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What goes back: a JSON body as it is, or raw bytes with their headers."""

    body: Json | None = None
    raw: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    @classmethod
    def data(cls, data: Json) -> "Answer":
        """The usual success."""
        return cls(body={"code": 0, "msg": "success", "data": data})


type Handler = Callable[[LocalFeishu, Call], Answer]


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """A handler under `METHOD /path/:name`; `api` names it in counts and rates; `public` needs no token."""

    method: str
    pattern: re.Pattern[str]
    api: str
    handler: Handler
    public: bool


class Routes:
    """All handlers."""

    def __init__(self) -> None:
        self._by_shape: dict[tuple[str, int], list[Route]] = {}

    def add(self, method: str, path: str, api: str, *, public: bool = False) -> Callable[[Handler], Handler]:
        """Register a handler (a decorator)."""
        pattern = re.compile("^" + re.sub(r":([a-z_]+)", r"(?P<\1>[^/]+)", path) + "$")

        def register(handler: Handler) -> Handler:
            route = Route(method=method, pattern=pattern, api=api, handler=handler, public=public)
            self._by_shape.setdefault((method, path.count("/")), []).append(route)
            return handler

        return register

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route of a request and its path parameters."""
        for route in self._by_shape.get((method, path.count("/")), ()):
            match = route.pattern.match(path)
            if match is not None:
                return route, match.groupdict()
        return None


def read_json(raw: bytes) -> Json:
    """A request's JSON object, whatever its Content-Type (the SDK's token call sends none). Raises Refused."""
    if not raw:
        return {}
    try:
        body: Any = json.loads(raw)
    except ValueError:
        raise Refused(99992402, "field validation failed: the body is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(99992402, "field validation failed: the body is no JSON object")
    return body
