"""No operation runs without the actions it declares, nor does the graph below it."""

from collections.abc import Iterator
from functools import partial
from typing import get_type_hints

import msgspec
import pytest

import omnigraph as og
from omnigraph.errors import Category, OmniError
from omnigraph.policy import Policy
from omnigraph.service.auth import AuthMode
from omnigraph.service.graph_registry import GraphSource, open_registry
from omnigraph.service.operations import OPERATIONS, review
from omnigraph.service.session import GraphService, GraphSession

SCHEMA = "node Person {\n  name: String @key  photo: Blob?\n}\n"
LINE = '{"type":"Person","data":{"name":"ada","photo":"base64:aGk="}}\n'
READ = "query people() { match { $p: Person } return { $p.name } }"
WRITE = 'query add() { insert Person { name: "bo" } }'
ACTIONS = [
    *("read", "export", "change", "schema_apply", "branch_create", "branch_delete"),
    *("branch_merge", "admin", "invoke_query"),
]
ON_GRAPHS = [
    declared
    for declared in OPERATIONS
    if declared.access.actions and (declared.path is None or "{graph_id}" in declared.path)
]
HIDES = {"cluster_list_queries", "listProposals", "listProposalEvents"}
"""Below their check, these leave out what the caller may not see, one by one."""
MUTATIONS = {"ChangeRequest", "ProposalRequest"}
NAMES = {"StoredQueryQuery": "people", "ConditionalStoredQueryQuery": "people"}
VALUES = {
    "query_source": READ,
    "schema_source": SCHEMA.replace("photo", "rank: I64?  photo"),
    "branch": "draft",
    "source": "draft",
    "target": "main",
    "from_": "main",
    "to": "draft",
    "one": "main",
    "other": "draft",
    "tag": "v1",
    "type": "Person",
    "id": "ada",
    "property": "photo",
    "entity": "node",
    "query_id": "none",
    "run_id": "none",
    "number": "1",
    "comment_id": "2",
    "title": "Add Cy",
    "body": "Fine.",
    "verdict": "approve",
    "rules": [],
    "position": 0,
}


@pytest.fixture
def uri(tmp_path):
    """A graph with a branch that is ahead of main, and a tag."""
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load(LINE.encode())
    graph.branches.create("draft")
    graph.mutate('query add() { insert Person { name: "cy" } }', branch="draft")
    graph.tags.create("v1")
    graph.proposals.create("draft", title="Add Cy").comment("Why?")
    return str(tmp_path / "g")


def session(uri, actions):
    rules = ", ".join(
        f"{{ id: {a}, allow: {{ actors: {{ group: team }}, actions: [{a}] }} }}" for a in actions
    )
    text = f"version: 1\ngroups: {{ team: [act-ada] }}\nrules: [{rules}]\n"
    registry = open_registry([GraphSource(id="g", uri=uri, policy=lambda: Policy.parse(text))])
    service = GraphService(registry=registry, state=AuthMode.POLICY_ENABLED)
    return GraphSession(service, registry.get("g"), "act-ada")


def request_of(struct, head):
    """Return a request with all members that name what to read or change."""
    values = {**VALUES, "commit_id": head, "if_commit": head}
    values["query"] = WRITE if struct.__name__ in MUTATIONS else READ
    values["name"] = NAMES.get(struct.__name__, "new")
    members = {}
    for field in msgspec.structs.fields(struct):
        body = get_type_hints(struct)["body"] if field.name == "body" else None
        if isinstance(body, type) and issubclass(body, msgspec.Struct):
            members["body"] = request_of(body, head)
        elif field.name == "data":
            members["data"] = LINE.encode() if struct.__name__ == "LoadLinesQuery" else LINE
        elif field.required or field.name == "branch":
            members[field.name] = values[field.name]
    return struct(**members)


def refused(call):
    with pytest.raises(OmniError) as caught:
        consumed(call())
    return caught.value.category in (Category.DENIED, Category.NOT_FOUND)


def consumed(answer):
    return list(answer) if isinstance(answer, Iterator) else answer


def state(uri):
    graph = og.open(uri, mode="ro")
    heads = {name: graph.snapshot(name).commit_id for name in graph.branches.list()}
    tags = [tag.name for tag in graph.tags.list()]
    return heads, tags, [event.to_json() for event in graph.proposals.events().events]


@pytest.mark.parametrize("declared", ON_GRAPHS, ids=lambda declared: declared.name)
def test_every_declared_action_is_needed_and_checked_twice(uri, declared):
    before = state(uri)
    request = request_of(declared.request, before[0]["draft"])
    for action in declared.access.actions:
        allowed = [name for name in ACTIONS if name != action]
        assert refused(lambda: declared(session(uri, allowed), request)), action  # noqa: B023
    if declared.name not in HIDES:
        assert refused(lambda: declared.function(session(uri, []), request)), "by the graph"
    assert state(uri) == before


@pytest.mark.parametrize("declared", ["edit_proposal", "close_proposal", "reopen_proposal"])
def test_without_a_policy_proposals_are_managed_by_their_authors(uri, declared):
    author = og.open(uri).as_actor("act-bo")
    author.branches.create("other", from_="draft")
    number = str(author.proposals.create("other", title="Of Bo").number)
    if declared == "reopen_proposal":
        author.proposals.get(int(number)).close()
    manage, before = getattr(review, declared), state(uri)
    title = {"title": "Taken over"} if declared == "edit_proposal" else {}
    request = msgspec.convert({"number": number, "body": title}, manage.request)
    registry = open_registry([GraphSource(id="g", uri=uri)])

    def call(mode, actor):
        service = GraphService(registry=registry, state=mode)
        return manage(GraphSession(service, registry.get("g"), actor), request)

    for actor in ("act-ada", None):
        assert refused(partial(call, AuthMode.DEFAULT_DENY, actor))
        assert state(uri) == before
    assert call(AuthMode.DEFAULT_DENY, "act-bo").author_id == "act-bo"
    assert state(uri) != before
