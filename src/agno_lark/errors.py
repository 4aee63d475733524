"""Every error the bridge raises on purpose, in one tree.

    AgnoLarkError
    ├── SettingsError            wrong or missing settings, all of them at once     exit 2
    ├── AlreadyRunningError      another daemon holds this state file               exit 3
    ├── StoreError               the state database cannot be used                  exit 4
    │   └── NewerSchemaError     it was written by a newer agno-lark
    ├── FeishuError              Feishu answered, or failed to, in a way that ends something
    │   ├── FeishuApiError       an OpenAPI call was refused (code, status, what to do)
    │   └── ConnectionRefused    the long connection was refused for good           exit 5
    └── TargetError              AgentOS could not take, or finish, a run

Each class says whether trying again can help (`retryable`) and with which code the command line ends (`exit_code`).
`str(error)` is what the operator reads; it never holds a secret or a message's text. What the person reads is chosen
where it is shown (`fault.…` of `agno_lark.locale`).
"""

from typing import ClassVar

__all__ = [
    "AgnoLarkError",
    "AlreadyRunningError",
    "ConnectionRefused",
    "FeishuApiError",
    "FeishuError",
    "NewerSchemaError",
    "SettingsError",
    "StoreError",
    "TargetError",
]


class AgnoLarkError(Exception):
    """Root of the tree: `except AgnoLarkError` catches what the bridge raises on purpose, and no bug."""

    exit_code: ClassVar[int] = 1
    retryable: bool = False


class SettingsError(AgnoLarkError):
    """One or more settings are wrong. `problems` holds one line a setting: name, what is expected, how to mend it;
    `hint`, where there is one, is about all of them."""

    exit_code = 2

    def __init__(self, problems: list[str], hint: str = "") -> None:
        self.problems = problems
        count = "1 setting is" if len(problems) == 1 else f"{len(problems)} settings are"
        super().__init__(
            "\n".join([f"{count} wrong:", *(f"  - {problem}" for problem in problems), *([hint] if hint else [])])
        )


class AlreadyRunningError(AgnoLarkError):
    """A daemon that is alive holds the state file; the message names its process, host and address."""

    exit_code = 3


class StoreError(AgnoLarkError):
    """The state database cannot be opened, read or written."""

    exit_code = 4
    retryable = True


class NewerSchemaError(StoreError):
    """The database was written by a newer version; it has not been touched."""

    retryable = False


class FeishuError(AgnoLarkError):
    """Root of what the Feishu side can raise."""


class FeishuApiError(FeishuError):
    """An OpenAPI call was refused.

    Attributes: `code` (Feishu's own code, or -1 where there was no JSON answer), `http_status` (0 where there was no
    answer at all), `retry_after_s` (seconds Feishu asked us to wait, or None), `log_id` (for Feishu's support).
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        http_status: int = 0,
        retryable: bool = False,
        retry_after_s: float | None = None,
        log_id: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.http_status = http_status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.log_id = log_id


class ConnectionRefused(FeishuError):
    """Feishu refused the long connection with a final code; `code` is Feishu's, the message names the setting."""

    exit_code = 5

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


class TargetError(AgnoLarkError):
    """AgentOS could not take or finish a run. `reason` is one word of `agno_lark.targets.FaultReason`."""

    def __init__(self, message: str, *, reason: str, retryable: bool = False, http_status: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.retryable = retryable
        self.http_status = http_status
