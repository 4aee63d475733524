"""The one place every OpenAPI call goes through: token, rate, retries, and the judgement of the answer."""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from agno_lark.clock import Clock
from agno_lark.feishu.codes import CallRefused, ErrorKind, judge
from agno_lark.feishu.jsontext import read_object
from agno_lark.feishu.limits import Limits
from agno_lark.feishu.retries import RetryRules, after_refusal
from agno_lark.feishu.tokens import IssuedToken, TenantTokens

__all__ = ["Call", "Caller", "path"]

log = logging.getLogger(__name__)

_TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"  # noqa: S105 - a path

# Nothing of these reached Feishu, so any call may be sent again.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request. `api` names it for rates and messages (the path with its ids left out); `repeatable`: sending it
    twice does what sending it once does (it reads, or carries a uuid)."""

    method: str
    api: str
    path: str
    params: Mapping[str, str] | None = None
    json: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    files: Mapping[str, tuple[str, bytes]] | None = None
    repeatable: bool = True
    with_token: bool = True

    @property
    def name(self) -> str:
        return f"{self.method} {self.api}"


@dataclass(kw_only=True, slots=True)
class _Tries:
    """What has already been tried for one call."""

    tokens: int = 0
    rate: int = 0
    transient: int = 0
    in_doubt: bool = False


def path(template: str, *ids: str) -> str:
    """`template` with each `{}` filled by an id made safe for a path."""
    return template.format(*(quote(item, safe="") for item in ids))


class Caller:
    """Sends calls for one app. Not started until used; `close()` it in the end."""

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        app_id: str,
        app_secret: str,
        clock: Clock,
        limits: Limits,
        rules: RetryRules,
    ) -> None:
        self.client = client
        self.limits = limits
        self._app_id = app_id
        self._app_secret = app_secret
        self._rules = rules
        self.tokens = TenantTokens(self._fetch_token, clock)

    async def close(self) -> None:
        await self.tokens.close()
        await self.client.aclose()

    async def send(self, call: Call) -> Mapping[str, Any]:
        """The whole answer of a call that succeeded. Raises `CallRefused`.

        After a try whose effect is in doubt, "this uuid was used" and "this sequence is known" mean that it arrived;
        "this uuid was used" means so at any time (cards/README.md: a uuid stands for one call).
        """
        tries = _Tries()
        try:
            return await self._repeat(call, self._once, tries)
        except CallRefused as error:
            if error.kind is ErrorKind.UUID_USED or (error.kind is ErrorKind.SEQUENCE and tries.in_doubt):
                return {"code": 0, "data": {}}
            raise

    async def open(
        self, call: Call, is_wanted: Callable[[httpx.Response], bool], *, max_error_bytes: int = 64 * 1024
    ) -> httpx.Response:
        """The response of a call whose body `is_wanted` as it arrives; the caller closes it. Raises `CallRefused`."""

        async def once(call: Call, token: str) -> httpx.Response:
            response = await send_request(self.client, self._request(call, token), call=call.name, stream=True)
            if is_wanted(response):
                return response
            content = await _read_start(response, max_error_bytes)
            accepted(response.status_code, response.headers, content, call=call.name)
            raise CallRefused(
                f"{call.name}: an answer without a file", kind=ErrorKind.OTHER, code=0, http_status=response.status_code
            )

        return await self._repeat(call, once, _Tries())

    async def _repeat[T](self, call: Call, once: Callable[[Call, str], Awaitable[T]], tries: _Tries) -> T:
        """`once(call, token)` as often as the rules allow."""
        while True:
            token = ""
            try:
                await self.limits.halted()
                async with self.limits.api(call.name):
                    token = await self.tokens.get() if call.with_token else ""
                    return await once(call, token)
            except CallRefused as error:
                # Without a token it was the token's fetch that failed, after retries of its own: this call never left.
                left = bool(token) or not call.with_token
                if left and error.uncertain:
                    tries.in_doubt = True
                if left and await self._may_repeat(call, error, tries, token):
                    continue
                raise (error.doubted() if tries.in_doubt else error) from error.__cause__

    async def _may_repeat(self, call: Call, error: CallRefused, tries: _Tries, token: str) -> bool:
        """Wait as the error asks, and count the try; `False` where the call should end with the error."""
        wait_s = after_refusal(
            error,
            repeatable=call.repeatable,
            tries=(tries.tokens, tries.rate, tries.transient),
            rules=self._rules,
        )
        if error.kind is ErrorKind.RATE_LIMITED and error.halts_app:
            # The others stop as well, even if this call gives up: each further call would prolong the limit.
            self.limits.halt(min(error.retry_after_s or self._rules.first_wait_s, self._rules.max_wait_s))
        if wait_s is None:
            return False
        log.info(
            "A call to Feishu is repeated",
            extra={"action": "api_retry", "api": call.api, "kind": error.kind.value, "code": error.code},
        )
        if error.kind is ErrorKind.TOKEN_INVALID:
            self.tokens.drop(token)
            tries.tokens += 1
            return True
        if error.kind is ErrorKind.RATE_LIMITED:
            tries.rate += 1
        else:
            tries.transient += 1
        # A little apart from whoever else waits for the same moment.
        await asyncio.sleep(wait_s * random.uniform(1.0, 1.25))
        return True

    async def _once(self, call: Call, token: str) -> Mapping[str, Any]:
        response = await send_request(self.client, self._request(call, token), call=call.name)
        return accepted(response.status_code, response.headers, response.content, call=call.name)

    def _request(self, call: Call, token: str) -> httpx.Request:
        return self.client.build_request(
            call.method,
            call.path,
            params=call.params,
            json=call.json,
            data=call.form,
            files=call.files,
            headers={"Authorization": f"Bearer {token}"} if token else None,
        )

    async def _fetch_token(self) -> IssuedToken:
        call = Call(
            method="POST",
            api=_TOKEN,
            path=_TOKEN,
            json={"app_id": self._app_id, "app_secret": self._app_secret},
            with_token=False,
        )
        try:
            answer = await self.send(call)
        except CallRefused as error:
            # A token that was issued and lost on the way has no effect anybody could doubt.
            error.uncertain = False
            raise
        token, expires_in_s = answer.get("tenant_access_token"), answer.get("expire")
        if not isinstance(token, str) or not token:
            # An empty token would make later calls fail with words that blame something else.
            raise CallRefused(
                "Feishu's answer holds no tenant access token", kind=ErrorKind.TRANSIENT, code=-1, http_status=200
            )
        seconds = float(expires_in_s) if isinstance(expires_in_s, int | float) and expires_in_s > 0 else 60.0
        return IssuedToken(value=token, expires_in_s=seconds)


async def send_request(
    client: httpx.AsyncClient, request: httpx.Request, *, call: str, stream: bool = False
) -> httpx.Response:
    """`client.send` with network failures as `CallRefused` of kind transient, `uncertain` once the request had left."""
    try:
        return await client.send(request, stream=stream)
    except httpx.HTTPError as error:
        raise CallRefused(
            f"{call}: {ErrorKind.TRANSIENT.sentence} ({type(error).__name__})",
            kind=ErrorKind.TRANSIENT,
            code=-1,
            uncertain=not isinstance(error, _NEVER_SENT),
        ) from error


async def _read_start(response: httpx.Response, max_bytes: int) -> bytes:
    """The first bytes of an error's body, as far as they come."""
    content = b""
    try:
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > max_bytes:
                break
    except httpx.HTTPError:
        return content
    finally:
        await response.aclose()
    return content


def accepted(http_status: int, headers: Mapping[str, str], content: bytes, *, call: str) -> Mapping[str, Any]:
    """The answer's JSON object, or the `CallRefused` it stands for. Pure."""
    try:
        answer: Mapping[str, Any] | None = read_object(content)
    except ValueError:
        answer = None
    refusal = judge(http_status, answer, call=call, retry_after_s=_retry_after_s(headers))
    if refusal is not None or answer is None:
        raise refusal or CallRefused(f"{call}: no JSON", kind=ErrorKind.TRANSIENT, code=-1, http_status=http_status)
    return answer


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    for name in ("x-ogw-ratelimit-reset", "retry-after"):
        try:
            seconds = float(headers.get(name, ""))
        except ValueError:
            continue
        # An hour and more is another clock's reading, not a pause.
        if math.isfinite(seconds) and 0 <= seconds < 3600:
            return max(seconds, 0.05)
    return None
