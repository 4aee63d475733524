"""What the page asks of the world, read from JSON by hand so that every mistake is answered with a sentence."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from agno_lark.sandbox.world import NoAnswer, UnknownThing

__all__ = ["BadAsk", "SentenceRoute", "body_of", "flag", "maybe", "need"]

LONGEST_TEXT = 150 * 1024
"""Bytes of a text message (payloads/README.md, Sending)."""


class BadAsk(ValueError):
    """The page asked for something that makes no sense; the text says what is wrong. Answered with 400."""


class SentenceRoute(APIRoute):
    """A route whose failures are JSON with a sentence: `{"error": "..."}`; and that only our own page may call."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        inner = super().get_route_handler()

        async def answer(request: Request) -> Response:
            # A page elsewhere must not write here in the person's name: browsers tell where a request comes from.
            if request.method != "GET" and request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
                return JSONResponse({"error": "another site may not act here"}, status_code=403)
            try:
                return await inner(request)
            except UnknownThing as error:
                return JSONResponse({"error": str(error)}, status_code=404)
            except BadAsk as error:
                return JSONResponse({"error": str(error)}, status_code=400)
            except NoAnswer as error:
                return JSONResponse({"error": f"{error} ({error.code})"}, status_code=502)
            except RequestValidationError as error:
                places = ", ".join(".".join(str(part) for part in each["loc"][1:]) for each in error.errors())
                return JSONResponse({"error": f"missing or wrong: {places}"}, status_code=400)

        return answer


async def body_of(request: Request) -> Mapping[str, Any]:
    """The request's JSON object. Raises BadAsk."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise BadAsk("the request must be JSON")
    try:
        body = await request.json()
    except ValueError as error:
        raise BadAsk("the request is not valid JSON") from error
    if not isinstance(body, Mapping):
        raise BadAsk("the request must be a JSON object")
    return body


def need(body: Mapping[str, Any], name: str) -> str:
    """A text that must be there. Raises BadAsk."""
    value = body.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadAsk(f"{name} is missing")
    if len(value.encode()) > LONGEST_TEXT:
        raise BadAsk(f"{name} is longer than 150 KB")
    return value


def maybe(body: Mapping[str, Any], name: str) -> str | None:
    """A text that may be there. Raises BadAsk when it is something else."""
    value = body.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadAsk(f"{name} must be a text")
    return value


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A yes or no, no by default."""
    return body.get(name) is True
