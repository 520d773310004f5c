"""The log: one JSON object a line, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from omnigraph.service.session import current_request

_LOG_FIELDS = (
    "request_id",
    "method",
    "route",
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
