"""How the sandbox says no: to a call (Refused), to a click (NoAnswer), to a test or the page (UnknownThing)."""

from collections.abc import Mapping

__all__ = ["NoAnswer", "Refused", "UnknownThing"]


class UnknownThing(LookupError):
    """A person, chat or message that does not exist here, or may not be used so; the text says which."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NoAnswer(Exception):
    """The bot gave no usable answer to a click; `code` is what the client would show (cards/README.md, Codes)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Refused(Exception):
    """An OpenAPI call is refused with Feishu's own code."""

    def __init__(self, code: int, message: str, *, http: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.http = http
        self.headers = dict(headers or {})
