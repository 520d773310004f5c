"""The log: one JSON object a line, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.service.session import current_request

_LOG_FIELDS = (
    "request_id",
    "method",
    "route",
    "operation",
    "status",
    "milliseconds",
    "actor",
    "action",
    "branch",
    "target_branch",
    "allowed",
    "matched_rule",
    "code",
    "pid",
    "exit_code",
    "query",
    "digest",
    "read_commit",
    "plan",
)
LOG_LEVEL_VARIABLE = "OMNIGRAPH_LOG"
AUDIT_LOG_VARIABLE = "OMNIGRAPH_AUDIT_LOG"
"""Names the file of the audit log; `-` is standard output."""
AUDIT_LOGGER = "omnigraph.audit"
_AUDITED = (AUDIT_LOGGER, "omnigraph.policy")
"""Loggers whose lines go to the audit log: requests that change something, policy decisions."""


class JsonLogFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC)
        facts: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_request_fields(),
            "process": record.process,
        }
        facts |= {name: getattr(record, name) for name in _LOG_FIELDS if hasattr(record, name)}
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return json.dumps(facts, ensure_ascii=False, default=str)


def _request_fields() -> dict[str, Any]:
    """Return what every line of a request carries."""
    request = current_request.get()
    return {"request_id": None} if request is None else asdict(request)


def configure_logging(environment: Mapping[str, str]) -> None:
    """Send all logs to standard error; `OMNIGRAPH_LOG` says from which level on."""
    wanted = environment.get(LOG_LEVEL_VARIABLE, "").strip().upper() or "INFO"
    level = logging.getLevelNamesMapping().get(wanted, logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Each request has one line already.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    _configure_audit_log(environment.get(AUDIT_LOG_VARIABLE, "").strip())


def _configure_audit_log(target: str) -> None:
    """Send the audit log to a file, or to standard output; without a target there is none."""
    if not target:
        return
    # A file that was moved away is opened again, as log rotation needs it.
    handler = logging.StreamHandler(sys.stdout) if target == "-" else _open_audit_log(Path(target))
    handler.setFormatter(JsonLogFormatter())
    for name in _AUDITED:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers, logger.propagate = [handler], False


def _open_audit_log(path: Path) -> logging.Handler:
    try:
        return WatchedFileHandler(path, encoding="utf-8")
    except OSError as error:
        message = f"cannot write the audit log {path}: {error.strerror}"
        raise InvalidInput(message, code="file_unreadable") from error


def has_audit_log() -> bool:
    """Return whether there is an audit log."""
    return bool(logging.getLogger(AUDIT_LOGGER).handlers)
