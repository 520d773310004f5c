"""Compare responses of a server with the wire contract."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

PLACE = Path(__file__).parents[1] / "server" / "contract" / "openapi-shape.json"
BODILESS = (302, 304)


@cache
def contract() -> dict[str, Any]:
    """Return the contract: an OpenAPI document of shapes alone."""
    found: dict[str, Any] = json.loads(PLACE.read_text())
    return found


@cache
def validator(name: str) -> Draft202012Validator:
    """Return what checks a body against a shape of the contract."""
    schema = {
        "$ref": f"#/components/schemas/{name}",
        "components": contract()["components"],
    }
    return Draft202012Validator(schema)


def hold(response: httpx.Response) -> None:
    """Assert that an answer is one the contract has; called for every answer of `Held`."""
    operation = _operation(response.request)
    assert "x-request-id" in response.headers, "every answer has the id of its request"
    if operation is None or response.request.method == "HEAD" or response.status_code in BODILESS:
        return
    response.read()
    reported = operation["responses"].get(str(response.status_code), {})
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/json"
        is_change = "changes" in operation["tags"]
        validator("ChangeErrorOutput" if is_change else "ErrorOutput").validate(response.json())
        return
    for media, content in reported.get("content", {}).items():
        assert response.headers["content-type"].partition(";")[0] == media
        if media == "application/json":
            validator(content["schema"]["$ref"].rpartition("/")[2]).validate(response.json())


class Held(httpx.Client):
    """A client that holds every answer against the contract."""

    def __init__(self, **options: Any) -> None:
        super().__init__(event_hooks={"response": [_held]}, **options)


def _held(response: httpx.Response) -> None:
    accept = response.request.headers.get("accept", "*/*")
    if accept == "*/*":
        hold(response)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every path, method and operation of the contract."""
    for path, methods in contract()["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


@cache
def _patterns() -> list[tuple[re.Pattern[str], str, dict[str, Any]]]:
    # Paths with the fewest names in them go first: `/branches/merge` is no branch.
    found = sorted(operations(), key=lambda one: one[0].count("{"))
    return [
        (re.compile(re.sub(r"{\w+}", "[^/]+", path)), method, operation)
        for path, method, operation in found
    ]


def _operation(request: httpx.Request) -> dict[str, Any] | None:
    path = request.url.raw_path.decode().partition("?")[0]
    found = (
        operation
        for pattern, method, operation in _patterns()
        if method == request.method and pattern.fullmatch(path)
    )
    return next(found, None)
