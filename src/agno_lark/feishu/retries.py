"""Whether, and when, a refused call is sent again. Pure."""

from dataclasses import dataclass

from agno_lark.feishu.codes import CallRefused, ErrorKind

__all__ = ["RetryRules", "after_refusal"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRules:
    """How patient one call is. A longer wait than `max_wait_s` is not waited for: the error is raised instead."""

    max_rate_retries: int = 4
    max_transient_retries: int = 2
    first_wait_s: float = 0.5
    max_wait_s: float = 30.0


def after_refusal(
    error: CallRefused, *, repeatable: bool, tries: tuple[int, int, int], rules: RetryRules
) -> float | None:
    """Seconds to wait before the same call is sent again, or `None` to give up.

    `tries`: token, rate and transient retries so far. Pure.
    """
    tokens, rate, transient = tries
    if error.kind is ErrorKind.TOKEN_INVALID:
        return 0.0 if tokens == 0 else None
    if error.kind is ErrorKind.RATE_LIMITED:
        if rate >= rules.max_rate_retries:
            return None
        wait_s = error.retry_after_s if error.retry_after_s is not None else rules.first_wait_s * 2**rate
        return wait_s if wait_s <= rules.max_wait_s else None
    if error.kind is ErrorKind.TRANSIENT:
        if transient >= rules.max_transient_retries or (error.uncertain and not repeatable):
            return None
        wait_s = error.retry_after_s if error.retry_after_s is not None else rules.first_wait_s * 2**transient
        return wait_s if wait_s <= rules.max_wait_s else None
    return None
