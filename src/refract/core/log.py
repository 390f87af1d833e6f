"""Structured logs: one event a line, with the request's id, and without secrets."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Protocol

import structlog

_SECRET_NAMES = re.compile(
    r"(authorization|cookie|token|secret|password|api_?key|csrf|(^|_)key$)", re.IGNORECASE
)
_SECRET_VALUES = re.compile(
    r"refract_[0-9A-Za-z]{16,}"  # API keys
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"  # credentials in a URL
    r"|(?<=/auth/sign-in/)[\w-]{20,}"  # one-time sign-in links
)
_HIDDEN = "[hidden]"


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide values by their name, and secrets by their shape wherever they occur."""
    for name, value in event.items():
        event[name] = (
            _HIDDEN if _SECRET_NAMES.search(name) and name != "event" else _redact_value(value)
        )
    return event


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return _SECRET_VALUES.sub(_HIDDEN, value)
    if isinstance(value, dict):
        return {
            name: _HIDDEN if _SECRET_NAMES.search(str(name)) else _redact_value(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact_value(inner) for inner in value]
    return value


def _shorten_lost_connections(record: logging.LogRecord) -> bool:
    """Log a broken pooled connection as one warning, without SQLAlchemy's useless traceback."""
    if (
        record.exc_info
        and record.name.endswith("Pool")
        and isinstance(record.exc_info[1], Exception)
    ):
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg = f"connection_lost: {record.exc_info[1]}"[:300]
        record.args, record.exc_info = (), None
    return True


class LogSettings(Protocol):
    """The settings of logs."""

    @property
    def log_format(self) -> str: ...

    @property
    def log_level(self) -> str: ...


def configure_logging(settings: LogSettings) -> None:
    """Send our events and those of libraries through one renderer to standard error."""
    text = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer: Any = structlog.dev.ConsoleRenderer() if text else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    handler.addFilter(_shorten_lost_connections)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for noisy in (
        "asyncio",
        "alembic",
        "httpx",
        "httpcore",
        "aiosqlite",
        "uvicorn.access",
        "uvicorn.error",
    ):
        logging.getLogger(noisy).setLevel(logging.WARNING)
