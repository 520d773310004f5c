"""One open server and one with tokens and policies, for all tests; each file has its own graph."""

import json

import pytest

from tests.support.serving import TOKENS, make_graph, serving, stored_folder

GRAPHS = (
    "routes",
    "decoding",
    "blobs",
    "changes",
    "conditions",
    "stored",
    "hostile",
    "rows",
    "any",
    "stories",
    "operating",
    "awaited",
)


@pytest.fixture(scope="session")
def outside(tmp_path_factory):
    """Return a file that blobs may refer to."""
    file = tmp_path_factory.mktemp("outside") / "picture.png"
    file.write_bytes(b"far away")
    return file


@pytest.fixture(scope="session")
def open_server(tmp_path_factory, outside):
    folder = tmp_path_factory.mktemp("open")
    graphs = [f"--graph={name}={make_graph(folder / name)}" for name in GRAPHS]
    queries = stored_folder(folder / "queries")
    limits = ["--body-timeout=2", "--idle-timeout=2", "--query-timeout=20"]
    with serving(
        *graphs,
        f"--queries={queries}",
        f"--external-blobs={outside.parent.as_uri()}",
        "--unauthenticated",
        *limits,
        environment={"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "64"},
    ) as server:
        yield server


@pytest.fixture
def client(open_server):
    with open_server.client() as found:
        yield found


POLICY = """
version: 1
groups:
  writers: [act-ada]
  readers: [act-ada, act-bob]
protected_branches: [main]
rules:
  - id: readers-read
    allow: {actors: {group: readers}, actions: [read], branch_scope: any}
  - id: readers-look
    allow: {actors: {group: readers}, actions: [read]}
  - id: writers-write
    allow: {actors: {group: writers}, actions: [change, export], branch_scope: any}
  - id: writers-branch
    allow:
      actors: {group: writers}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
      target_branch_scope: any
  - id: writers-invoke
    allow: {actors: {group: writers}, actions: [invoke_query]}
"""
SERVER_POLICY = """
version: 1
groups: {ops: [act-bob]}
rules:
  - id: ops-list
    allow: {actors: {group: ops}, actions: [graph_list]}
"""


@pytest.fixture(scope="session")
def guarded_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "server.yaml").write_text(SERVER_POLICY)
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    with serving(
        f"--graph=guarded={make_graph(folder / 'guarded')}",
        f"--graph=plain={make_graph(folder / 'plain')}",
        f"--graph=contract={make_graph(folder / 'contract')}",
        f"--policy=guarded={folder / 'policy.yaml'}",
        f"--policy=contract={folder / 'policy.yaml'}",
        f"--server-policy={folder / 'server.yaml'}",
        f"--queries={stored_folder(folder / 'queries')}",
        environment={"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)},
    ) as server:
        yield server
