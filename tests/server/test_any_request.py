"""Whatever our OpenAPI document allows is asked: nothing breaks, every answer is as described.

`EXAMPLES=500` asks more of each route.
"""

import json
import os

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

from omnigraph.server.openapi import document
from omnigraph.server.routes import ENDPOINTS
from tests.support.serving import ALL_PEOPLE, INSERT

GRAPH = "any"
EXAMPLES = int(os.environ.get("EXAMPLES", "4"))
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
def as_it_is(_, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


schema = schemathesis.openapi.from_dict(json.loads(document(ENDPOINTS, authenticated=False)))

# Going through every limit of every member takes long, and is for those who asked for more.
schema.config.phases.coverage.enabled = "EXAMPLES" in os.environ


@pytest.fixture(scope="module")
def session():
    with requests.Session() as found:
        yield found


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize="EXAMPLES" not in os.environ,
)
def test_any_request_is_answered_as_described(case, open_server, session):
    parameters = case.path_parameters or {}
    if len(repr(case.body)) % 4 and "graph_id" in parameters:
        case.path_parameters["graph_id"] = GRAPH
        if "name" in parameters:
            case.path_parameters["name"] = "add_person"
    if len(repr(case.body)) % 2 and isinstance(case.body, dict):
        usual = USUAL | ({"query": INSERT} if "mutate" in case.path else {})
        case.body.update({name: usual[name] for name in case.body if name in usual})
    case.call_and_validate(base_url=open_server.url, session=session, checks=CHECKS)
