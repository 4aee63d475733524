"""Log output of the daemon: one JSON object a line, or text on a terminal. Libraries never configure logging; this is
called by the command line only."""

import logging
import sys
from typing import TextIO

from agno_lark.settings import LogFormat

__all__ = ["configure_logs"]

# Chatty at info, and what they say there (addresses with tokens in the query, whole requests) does not belong in a log.
_QUIET = ("httpx", "httpcore", "websockets", "uvicorn", "Lark", "agno", "aiosqlite")


def configure_logs(level: str, log_format: LogFormat, stream: TextIO | None = None) -> None:
    """Send records of this process to `stream` (default: stderr) at `level` (debug, info, warning, error).

    Tracebacks come without the values of variables: those are people's words, and secrets.
    """
    import structlog
    from structlog.tracebacks import ExceptionDictTransformer

    stream = stream or sys.stderr
    as_json = log_format is LogFormat.JSON or (log_format is LogFormat.AUTO and not stream.isatty())
    renderer = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
    )
    processors: list[structlog.types.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        processors.append(structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)))
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=processors,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
