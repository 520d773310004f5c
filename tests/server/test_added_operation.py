"""An operation needs one declaration and one function, and then exists in every interface."""

import json

import pytest
from msgspec import Struct
from starlette.testclient import TestClient

from omnigraph.mcp.tool_catalog import McpCaller, tools_for_caller
from omnigraph.policy import Policy, PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.server.app import create_app
from omnigraph.server.openapi import build_openapi
from omnigraph.service.auth import AuthMode
from omnigraph.service.client.resources import RemoteAddress
from omnigraph.service.client.transport import Transport
from omnigraph.service.graph_registry import GraphSource, open_registry
from omnigraph.service.operations import OPERATIONS, Tool, operation
from omnigraph.service.operations.access import branch_name, on_branch
from omnigraph.service.session import GraphService, GraphSession
from omnigraph.service.wire.parameters import FromPath, FromQuery
from scripts import docs_gen
from tests.support.serving import make_graph


class CountRequest(Struct, kw_only=True):
    """A type of a branch."""

    type: FromPath[str]
    branch: FromQuery[str | None] = None


class CountOutput(Struct, kw_only=True):
    """The number of entities of a type."""

    branch: str
    counts: list[int]


@operation(
    name="countEntities",
    route="GET /count/{type}",
    summary="Count the entities of a type",
    access=on_branch(PolicyAction.READ),
    example={"branch": "main"},
    tools=(Tool(name="count", description="Count the entities of a type.", pages="counts"),),
)
def count_entities(session: GraphSession, request: CountRequest) -> CountOutput:
    """Return how many entities of a type a branch has."""
    branch = branch_name(request.branch)
    entry = session.graph.snapshot(branch).entry(f"node:{request.type}")
    return CountOutput(branch=branch, counts=[entry.rows])


TABLE = (*OPERATIONS, count_entities)
ANSWER = {"branch": "main", "counts": [2]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    uri = make_graph(tmp_path_factory.mktemp("graphs") / "g")
    registry = open_registry([GraphSource(id="g", uri=uri)])
    registry.graphs["g"].graph.load(
        b'{"type":"Person","data":{"name":"x1"}}\n{"type":"Person","data":{"name":"x2"}}\n',
        mode="overwrite",
    )
    return GraphService(registry=registry, state=AuthMode.OPEN)


@pytest.fixture
def client(service):
    with TestClient(create_app(service, operations=TABLE)) as client:
        yield client


def test_it_has_a_route(client):
    assert client.get("/graphs/g/count/Person?branch=main").json() == ANSWER
    assert client.get("/graphs/g/count/Person?branch=a&branch=b").status_code == 400
    assert client.get("/graphs/none/count/Person").status_code == 404


def test_it_is_in_the_openapi_document(client):
    document = client.get("/openapi.json").json()
    described = document["paths"]["/graphs/{graph_id}/count/{type}"]["get"]
    assert described["operationId"] == "countEntities"
    assert described["description"] == "Return how many entities of a type a branch has."
    assert [(p["name"], p["in"], p.get("example")) for p in described["parameters"]] == [
        ("graph_id", "path", None),
        ("type", "path", None),
        ("branch", "query", "main"),
    ]
    assert document["components"]["schemas"]["CountOutput"]["required"] == ["branch", "counts"]
    assert "countEntities" not in json.loads(build_openapi(OPERATIONS, authenticated=False))


def test_it_is_a_tool_of_agents(service, client):
    offers = tools_for_caller(McpCaller(service, None, ("g",), TABLE))
    assert list(offers["count"].schema["properties"]) == ["skip", "limit", "type", "branch"]
    assert offers["count"].call({"type": "Person"}) == ANSWER
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "count", "arguments": {"type": "Person"}},
    }
    headers = {"Accept": "application/json, text/event-stream"}
    answer = client.post("/graphs/g/mcp", json=request, headers=headers).json()
    assert json.loads(answer["result"]["content"][0]["text"]) == ANSWER


def test_the_remote_client_calls_it(client):
    transport = Transport("http://testserver", None)
    transport.close()
    transport._client = client
    address = RemoteAddress(transport, "g")
    assert address.call(count_entities, CountRequest(type="Person")) == CountOutput(**ANSWER)


def test_it_is_on_the_reference_page():
    page = docs_gen.operations(TABLE)
    assert "## countEntities" in page
    assert "`GET /graphs/{graph_id}/count/{type}`" in page


def test_it_is_not_run_without_its_permission(service):
    policy = Policy.parse(
        "version: 1\ngroups: { team: [act-ada], rest: [act-bo] }\nrules:\n"
        "  - { id: r, allow: { actors: { group: team }, actions: [read] } }\n"
    )
    registered = service.registry.graphs["g"]
    guarded = type(registered)(
        id="g",
        graph=registered.unrestricted.with_policy(policy),
        unrestricted=registered.unrestricted,
        source=registered.source,
        policy=policy,
    )
    closed = GraphService(registry=service.registry, state=AuthMode.POLICY_ENABLED)
    request = CountRequest(type="Person")
    assert count_entities(GraphSession(closed, guarded, "act-ada"), request).counts == [2]
    with pytest.raises(PolicyDenied):
        count_entities(GraphSession(closed, guarded, "act-bo"), request)


def test_every_operation_has_a_description_and_a_unique_name():
    names = [declared.name for declared in OPERATIONS]
    assert len(set(names)) == len(names)
    assert [one.name for one in OPERATIONS if not one.description or not one.summary] == []


def test_every_operation_that_reaches_a_graph_declares_a_permission():
    sessions = {"signIn", "getSession", "listSessionGraphs", "signOut"}
    free = {"health", "graphHealth", "ready", "graphReady"} | sessions
    assert {one.name for one in OPERATIONS if not one.access.actions} == free
