"""Log lines: what is in them, and what is not."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from agno_lark.observe import configure_logs
from agno_lark.settings import LogFormat

WORDS = ("no", "body")  # in no line of this file as one: a traceback quotes those


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """As it was, afterwards."""
    root = logging.getLogger()
    kept = root.handlers[:], root.level
    yield
    root.handlers, root.level = kept


def logged(log_format: LogFormat) -> str:
    """What is logged where handling somebody's words goes wrong."""
    stream = io.StringIO()
    configure_logs("info", log_format, stream)

    def handle(words: str) -> None:
        raise ValueError("a bug")

    try:
        handle("".join(WORDS))
    except ValueError:
        logging.getLogger("agno_lark.test").exception("a job failed", extra={"action": "job_failed"})
    return stream.getvalue()


@pytest.mark.parametrize("log_format", [LogFormat.JSON, LogFormat.TEXT])
def test_a_traceback_tells_where_it_went_wrong_and_not_with_whose_words(log_format: LogFormat) -> None:
    text = logged(log_format)
    assert "ValueError" in text
    assert "a bug" in text
    assert "handle" in text
    assert "".join(WORDS) not in text


def test_a_json_line_is_one_object_with_its_action() -> None:
    line = json.loads(logged(LogFormat.JSON))
    assert (line["action"], line["level"], line["event"]) == ("job_failed", "error", "a job failed")
    assert line["exception"][0]["frames"][-1]["name"] == "handle"
