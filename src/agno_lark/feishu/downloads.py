"""Downloads: streamed, bounded, and refused in the same words as other calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from agno_lark.errors import FeishuError
from agno_lark.feishu.answers import Resource
from agno_lark.feishu.caller import Call, Caller, path
from agno_lark.feishu.codes import CallRefused, ErrorKind

__all__ = ["ResourceTooLarge", "open_resource"]

_API = "/open-apis/im/v1/messages/{}/resources/{}"


class ResourceTooLarge(FeishuError):
    """The resource holds more bytes than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the file is larger than {max_bytes} bytes")
        self.max_bytes = max_bytes


@asynccontextmanager
async def open_resource(
    caller: Caller, message_id: str, key: str, kind: str, *, max_bytes: int
) -> AsyncIterator[Resource]:
    """Open one download. Raises `CallRefused`, `ResourceTooLarge`."""
    call = Call(method="GET", api=_API, path=path(_API, message_id, key), params={"type": kind})
    response = await caller.open(call, _is_resource)
    try:
        size = response.headers.get("content-length", "")
        size_bytes = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else None
        if size_bytes is not None and size_bytes > max_bytes:
            raise ResourceTooLarge(max_bytes)
        yield Resource(
            content_type=response.headers.get("content-type", ""),
            # A compressed answer's length says nothing about what comes out of it.
            size_bytes=None if "content-encoding" in response.headers else size_bytes,
            chunks=_bounded(response, max_bytes),
        )
    finally:
        await response.aclose()


def _is_resource(response: httpx.Response) -> bool:
    """Whether the body is the file. A person's file may be JSON too, but then it comes with a file name."""
    if response.status_code >= 400:
        return False
    is_json = response.headers.get("content-type", "").startswith("application/json")
    return not is_json or "content-disposition" in response.headers


async def _bounded(response: httpx.Response, max_bytes: int) -> AsyncIterator[bytes]:
    taken = 0
    try:
        async for chunk in response.aiter_bytes():
            taken += len(chunk)
            if taken > max_bytes:
                raise ResourceTooLarge(max_bytes)
            yield chunk
    except httpx.HTTPError as error:
        raise CallRefused(
            f"GET {_API}: the download broke off ({type(error).__name__})", kind=ErrorKind.TRANSIENT, code=-1
        ) from error
