"""Feishu's error codes: what each means for us, and what the operator should do about it.

Sources: feishu.md section 5, payloads/README.md "Errors", cards/README.md "Codes". `judge` is pure; the client calls it
for every answer. HTTP status and code both count: a status of 400 or more is a failure whatever the JSON says, and a
code other than 0 is one whatever the status says.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from agno_lark.errors import FeishuApiError
from agno_lark.feishu.jsontext import whole_text

__all__ = ["CallRefused", "ErrorKind", "judge", "kind_of"]


class ErrorKind(StrEnum):
    """What a refused call means. `sentence` says what to do about it."""

    RATE_LIMITED = "rate_limited"  # too fast: wait, then the same call again
    TOKEN_INVALID = "token_invalid"  # noqa: S105 - a kind of error; drop the token, fetch, once more
    SCOPE_MISSING = "scope_missing"  # a permission must be added and the version published
    TARGET_GONE = "target_gone"  # the message (or what it replies to) was withdrawn or deleted, or takes no replies
    TARGET_UNREACHABLE = "target_unreachable"  # the bot may not, or cannot, write there
    CARD_REFUSED = "card_refused"  # this card's content will never pass
    CARD_GONE = "card_gone"  # the card entity expired or never was: send a new card
    STREAMING_CLOSED = "streaming_closed"  # streaming mode has ended: whole-card updates still work
    SEQUENCE = "sequence"  # the card has seen this or a higher sequence
    UUID_USED = "uuid_used"  # a call with this uuid has been carried out already
    TOO_LONG = "too_long"  # split it
    AUDIT = "audit"  # content rules of the tenant refused it
    TRANSIENT = "transient"  # Feishu or the network stumbled: later
    PERMISSION = "permission"  # the app, its secret or its rights are wrong
    OTHER = "other"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def retryable(self) -> bool:
        """Whether the same call can succeed later without anybody changing anything."""
        return self in {ErrorKind.RATE_LIMITED, ErrorKind.TOKEN_INVALID, ErrorKind.TRANSIENT}


_SENTENCES = {
    ErrorKind.RATE_LIMITED: "Feishu limits the rate of calls; it will be tried again after a pause",
    ErrorKind.TOKEN_INVALID: (
        "Feishu does not accept the app's access token; if this stays, check FEISHU_APP_ID and FEISHU_APP_SECRET"
    ),
    ErrorKind.SCOPE_MISSING: (
        "the app lacks a permission: add it in the developer console, then create and publish a version"
    ),
    ErrorKind.TARGET_GONE: "the message was withdrawn or deleted, or cannot be replied to",
    ErrorKind.TARGET_UNREACHABLE: (
        "the bot cannot write there: it must be in the chat, and the person must be in the app's availability range"
    ),
    ErrorKind.CARD_REFUSED: "Feishu refused the card's content",
    ErrorKind.CARD_GONE: "the card no longer exists (cards live 14 days); a new one has to be sent",
    ErrorKind.STREAMING_CLOSED: "the card's streaming mode has ended; only whole-card updates work now",
    ErrorKind.SEQUENCE: "the card has already had this or a later update",
    ErrorKind.UUID_USED: "the same call was carried out before",
    ErrorKind.TOO_LONG: "the content is too long for one message or card",
    ErrorKind.AUDIT: "the tenant's content rules refused the text (plain phone numbers and e-mail addresses often do)",
    ErrorKind.TRANSIENT: "Feishu or the network failed for a moment",
    ErrorKind.PERMISSION: (
        "the app may not do this: check that it is enabled, published, allowed from this address and has the bot "
        "ability, and that FEISHU_APP_ID and FEISHU_APP_SECRET are right"
    ),
    ErrorKind.OTHER: "Feishu refused the call",
}


def _table() -> dict[int, ErrorKind]:
    kinds = {
        ErrorKind.RATE_LIMITED: (99991400, 230020, 1254290, 90217),
        ErrorKind.TOKEN_INVALID: (99991661, 99991663, 99991664, 99991665, 99991668, 99991671, 99991677, 234002),
        ErrorKind.SCOPE_MISSING: (99991672, 99991679),
        ErrorKind.TARGET_GONE: (
            *(230011, 230110, 230111, 231003, 99992354, 230050, 231018),
            *(230019, 230071, 230072),  # the topic is not there, or takes no replies: the chat may
        ),
        ErrorKind.TARGET_UNREACHABLE: (
            *(230002, 230013, 230018, 230029, 230034, 230035, 230038, 230053, 230054, 230075),
            *(231004, 231008, 231022, 232006, 232009, 232010, 232011, 234004, 234009, 234040, 99992351, 99992361),
        ),
        ErrorKind.CARD_REFUSED: (
            *(230099, 200220, 200550, 200570, 200621, 200830, 200861, 200914, 200915, 300121, 300122, 300220, 300230),
            *(300240, 300301, 300302, 300303, 300305, 300307, 300310, 300312, 300313, 300314, 300315, 100290, 11310),
        ),
        ErrorKind.CARD_GONE: (200740, 200750, 230031, 300311),
        ErrorKind.STREAMING_CLOSED: (200510, 200850, 300309),
        ErrorKind.SEQUENCE: (300317,),
        ErrorKind.UUID_USED: (200770,),
        ErrorKind.TOO_LONG: (230025, 200860, 234006, 234037),
        ErrorKind.AUDIT: (230022, 230028),
        ErrorKind.TRANSIENT: (
            *(1, 2200, 230049, 231015, 234019, 300120, 1254607, 1254291, 1255040, 131001, 1061045, 1000040343),
            200810,  # a person is clicking this very card
        ),
        ErrorKind.PERMISSION: (
            *(10003, 10014, 10015, 514, 99991401, 99991403, 99991662, 230006, 230017, 230026, 230027, 231002, 231007),
            *(234007, 234038, 1000040351),
        ),
    }
    return {code: kind for kind, codes in kinds.items() for code in codes}


_KIND_BY_CODE = _table()
_INNER_CODE = re.compile(r"ErrCode:\s{0,4}(\d{1,10})")
_ERROR_VALUE = re.compile(r"ErrorValue:[^;]{0,10000};?")


class CallRefused(FeishuApiError):
    """A call that failed, with its `kind`.

    `inner_code`: the card error inside a 230099, else 0. `uncertain`: the request left us and no answer came, so its
    effect may have happened; repeat it only with the same uuid. `halts_app`: this limit is the app's, not one chat's.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        code: int,
        http_status: int = 0,
        retry_after_s: float | None = None,
        log_id: str = "",
        inner_code: int = 0,
        uncertain: bool = False,
        scopes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(
            message,
            code=code,
            http_status=http_status,
            retryable=kind.retryable,
            retry_after_s=retry_after_s,
            log_id=log_id,
        )
        self.kind = kind
        self.inner_code = inner_code
        self.uncertain = uncertain
        self.scopes = scopes

    def doubted(self) -> "CallRefused":
        """The same error, of a call whose effect may have happened at an earlier try."""
        return CallRefused(
            str(self),
            kind=self.kind,
            code=self.code,
            http_status=self.http_status,
            retry_after_s=self.retry_after_s,
            log_id=self.log_id,
            inner_code=self.inner_code,
            uncertain=True,
            scopes=self.scopes,
        )

    @property
    def halts_app(self) -> bool:
        # 230020 and 90217 belong to one chat, message or sheet (payloads/README.md); the gateway's limit to the app.
        return self.kind is ErrorKind.RATE_LIMITED and self.code not in {230020, 90217}


def kind_of(error: FeishuApiError) -> ErrorKind:
    """The kind of any OpenAPI error."""
    return error.kind if isinstance(error, CallRefused) else ErrorKind.OTHER


def judge(
    http_status: int, answer: Mapping[str, Any] | None, *, call: str, retry_after_s: float | None = None
) -> CallRefused | None:
    """`None` where the call succeeded, else the error to raise.

    `answer` is the decoded JSON object, or `None` where there was none; `call` names the call in the message.
    """
    code = answer.get("code") if answer is not None else None
    if not isinstance(code, int) or isinstance(code, bool):
        code = -1
    if http_status < 400 and code == 0:
        return None
    body: Mapping[str, Any] = answer or {}
    said = _text(body.get("msg"))
    found = body.get("error")
    details: Mapping[str, Any] = found if isinstance(found, dict) else {}
    kind = _kind(http_status, code, said)
    inner = _INNER_CODE.search(said)
    scopes = _scopes(details)
    parts = [f"{call}: {kind.sentence}"]
    if scopes:
        parts.append(f"missing: {', '.join(scopes)}")
    told = _clean(said)
    parts.append(
        f"Feishu says {told!r}, code {code}, HTTP {http_status}" if told else f"code {code}, HTTP {http_status}"
    )
    return CallRefused(
        " · ".join(parts),
        kind=kind,
        code=code,
        http_status=http_status,
        retry_after_s=retry_after_s,
        log_id=_text(details.get("log_id")) or _text(body.get("log_id")),
        inner_code=int(inner.group(1)) if inner else 0,
        # A gateway that gave up waiting, or an answer we cannot read, says nothing about what happened behind it.
        uncertain=kind is ErrorKind.TRANSIENT and (http_status >= 500 or code == -1),
        scopes=scopes,
    )


def _kind(http_status: int, code: int, said: str) -> ErrorKind:
    known = _KIND_BY_CODE.get(code)
    if known is not None:
        return known
    if "withdrawn" in said.lower():
        return ErrorKind.TARGET_GONE
    if http_status == 429:
        return ErrorKind.RATE_LIMITED
    if http_status >= 500:
        return ErrorKind.TRANSIENT
    if code > 0:
        return ErrorKind.OTHER
    if http_status == 401:
        return ErrorKind.TOKEN_INVALID
    if http_status == 403:
        return ErrorKind.PERMISSION
    # A page of somebody's proxy, or an answer cut short: not Feishu's last word.
    return ErrorKind.TRANSIENT if http_status < 400 else ErrorKind.OTHER


def _scopes(details: Mapping[str, Any]) -> tuple[str, ...]:
    violations = details.get("permission_violations")
    found = (
        [item.get("subject") for item in violations if isinstance(item, dict)] if isinstance(violations, list) else []
    )
    return tuple(_clean(item) for item in found if isinstance(item, str))[:10]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _clean(said: str) -> str:
    """Feishu's words, short, on one line, without the piece of our own content that card errors quote."""
    return " ".join(whole_text(_ERROR_VALUE.sub("", said)).split())[:300]
