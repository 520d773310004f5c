"""Requests made up from our own OpenAPI document, and what every answer is held against."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Collection
from typing import Any

import schemathesis
from schemathesis import checks

from omnigraph.server.openapi import build_openapi
from omnigraph.service.operations import OPERATIONS
from tests.support.serving import ALL_PEOPLE, INSERT

LONG = "EXAMPLES" in os.environ
"""Whether somebody asked for more than the usual few requests."""
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
LINES = '{"type":"Person","data":{"name":"Ada","age":36}}\n'
USUAL = {
    "query": ALL_PEOPLE,
    "query_source": ALL_PEOPLE,
    "data": LINES,
    "name": None,
    "query_name": None,
    "branch": None,
    "snapshot": None,
    "params": {"name": "Ada", "age": 1, "min": 2},
}
"""What makes a request one that does something, put in the place of what was made up."""


@schemathesis.serializer("application/x-ndjson")
def as_it_is(_: Any, value: Any) -> bytes:
    """Send lines as they are."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def described() -> Any:
    """Return the document as something requests can be made up from."""
    found = schemathesis.openapi.from_dict(
        json.loads(build_openapi(OPERATIONS, authenticated=False))
    )
    # Going through every limit of every member takes long, and is for those who asked for more.
    found.config.phases.coverage.enabled = LONG
    return found


def make_usual(case: Any, graph: str) -> None:
    """Send three in four requests to a graph there is, and make every other one meaningful."""
    size = len(repr(case.body))
    parameters = case.path_parameters or {}
    if size % 4 and "graph_id" in parameters:
        parameters["graph_id"] = graph
        if "name" in parameters:
            parameters["name"] = "add_person"
    if size % 2 and isinstance(case.body, dict):
        case.body.update(_usual(case, case.body))


def make_meaningful(case: Any, graph: str, linked: Collection[str]) -> None:
    """Send a request to a graph there is; what is not `linked` to an answer is made meaningful.

    No name is given twice and nothing is deleted but by the route for it, so that whoever follows
    what was made knows whether it must be there.
    """
    parameters = case.path_parameters or {}
    if "graph_id" in parameters:
        parameters["graph_id"] = graph
    if "/queries/{name}" in case.path:
        _make_stored(case, linked)
        return
    if case.path.endswith("/ndjson"):
        case.body = LINES
    if not isinstance(case.body, dict):
        return
    given = _usual(case, {*case.body, *_USUALLY_GIVEN} if "query" in case.body else case.body)
    if case.path.endswith(_NAMED):
        given["name"] = f"n{next(_NUMBERS)}"
    if "delete_branch" in case.body:
        given["delete_branch"] = False
    case.body.update({name: value for name, value in given.items() if name not in linked})


def _make_stored(case: Any, linked: Collection[str]) -> None:
    """Run a stored query there is: one that changes something, or any by turns."""
    if "name" not in linked:
        conditional = case.path.endswith("/if-graph-commit")
        case.path_parameters["name"] = "add_person" if conditional else next(_STORED)
    body = case.body if isinstance(case.body, dict) else {}
    case.body = {**body, "expect_mutation": None, **_usual(case, ("branch", "snapshot", "params"))}


_STORED = itertools.cycle(("add_person", "adults"))
_NAMED = ("/branches", "/tags")
_USUALLY_GIVEN = ("name", "params")
_NUMBERS = itertools.count()


def _usual(case: Any, names: Collection[str]) -> dict[str, Any]:
    usual = USUAL | ({"query": INSERT} if "mutate" in case.path else {})
    return {name: usual[name] for name in names if name in usual}
