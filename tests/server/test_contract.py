"""Our own OpenAPI document says at least what the contract says, in the same words."""

import json

import pytest

from omnigraph.server.openapi import build_openapi
from omnigraph.service.operations import OPERATIONS as TABLE
from tests.support.shapes import contract, operations

OURS = json.loads(build_openapi(TABLE, authenticated=True))
OPERATIONS = list(operations())
EXTRA_REQUIRED = {"SnapshotOutput": {"graph_commit_id"}}
"""Members of ours that the contract does not know, and that are always there."""


def plain(schema):
    """Write a schema in one way: whatever may be null, references, formats, bounds."""
    if not schema:
        return "anything"
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "oneOf" in schema or "anyOf" in schema:
        return frozenset(plain(option) for option in schema.get("oneOf", schema.get("anyOf")))
    if isinstance(schema.get("type"), list):
        return frozenset(plain({**schema, "type": one}) for one in schema["type"])
    if schema.get("type") == "null":
        return "null"
    if schema.get("type") == "array":
        return ("array", plain(schema.get("items")))
    if "enum" in schema:
        return ("enum", frozenset(schema["enum"]))
    return (schema.get("type"), schema.get("format"), schema.get("minimum"))


@pytest.mark.parametrize("name", sorted(contract()["components"]["schemas"]))
def test_every_shape_has_the_same_members(name):
    theirs, ours = (document["components"]["schemas"][name] for document in (contract(), OURS))
    if "properties" not in theirs:
        assert plain(ours) == plain(theirs)
        return
    for member, schema in theirs["properties"].items():
        assert plain(ours["properties"][member]) == plain(schema), member
    extra = EXTRA_REQUIRED.get(name, set())
    assert set(ours.get("required", ())) - extra == set(theirs.get("required", ()))
    if "additionalProperties" in theirs:
        assert ours["additionalProperties"] == theirs["additionalProperties"]


@pytest.mark.parametrize(
    ("path", "method", "theirs"), OPERATIONS, ids=[one[2]["operationId"] for one in OPERATIONS]
)
def test_every_operation_takes_and_answers_the_same(path, method, theirs):
    ours = OURS["paths"][path][method.lower()]
    for fact in ("operationId", "tags"):
        assert ours[fact] == theirs[fact]
    assert ours.get("deprecated", False) is theirs.get("deprecated", False)
    taken, given = (
        {(p["in"], p["name"]): (p.get("required", False), plain(p["schema"])) for p in parameters}
        for parameters in (ours["parameters"], theirs.get("parameters", []))
    )
    assert {name: taken.get(name) for name in given} == given
    assert not any(required for name, (required, _) in taken.items() if name not in given)
    assert _content(ours.get("requestBody")) == _content(theirs.get("requestBody"))
    for status, answer in theirs["responses"].items():
        content = _content(ours["responses"][status])
        for media, schema in _content(answer).items():
            assert content[media] == schema
        if status == "200":
            assert set(answer.get("headers", ())) <= set(
                ours["responses"][status].get("headers", ())
            )


def test_there_are_no_operations_but_those_of_the_contract_and_our_own():
    found = {(path, method.upper()) for path, ways in OURS["paths"].items() for method in ways}
    own = {(operation.path, operation.method) for operation in TABLE if operation.extension}
    assert found - own == {(path, method) for path, method, _ in OPERATIONS}


def test_security_is_spoken_of_where_there_is_any():
    assert OURS["components"]["securitySchemes"] == contract()["components"]["securitySchemes"]
    assert OURS["paths"]["/graphs"]["get"]["security"] == [{"bearer_token": []}]
    assert "security" not in OURS["paths"]["/healthz"]["get"]
    open_ = json.loads(build_openapi(TABLE, authenticated=False))
    assert "securitySchemes" not in open_["components"]
    assert "security" not in open_["paths"]["/graphs"]["get"]


def test_a_running_server_shows_the_document_to_everybody(guarded_server):
    with guarded_server.client() as client:
        assert client.get("/openapi.json").json() == OURS


def _content(part):
    if part is None:
        return {}
    return {media: plain(c.get("schema")) for media, c in part.get("content", {}).items()}
