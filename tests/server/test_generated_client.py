"""A client that a generator made of the contract goes through a whole scenario with our server."""

import contextlib
import subprocess
import sys
from importlib import import_module

import pytest

from tests.support.serving import ALL_PEOPLE, INSERT, TOKENS, UPDATE
from tests.support.wire_contract import PLACE

GRAPH = "guarded"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Generate the client, and return what imports a module of it."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "config.yaml").write_text("post_hooks: []\n")
    made = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", str(PLACE), "--output-path", str(folder / "generated_omnigraph")),
            *("--config", str(folder / "config.yaml")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    yield lambda name: import_module(f"generated_omnigraph.{name}")
    sys.path.remove(str(folder))


class Caller:
    """Calls operations of the generated client as one actor."""

    def __init__(self, generated, url, actor):
        self._generated = generated
        self.models = generated("models")
        client = generated("client")
        self._client = client.AuthenticatedClient(base_url=url, token=TOKENS[actor], timeout=120)

    def full(self, operation, *path, **given):
        """Return the whole answer to an operation, named `tag.operation`."""
        module = self._generated(f"api.{operation}")
        return module.sync_detailed(*path, client=self._client, **given)

    def close(self):
        """Let go of connections."""
        self._client.get_httpx_client().close()

    def __call__(self, operation, *path, **given):
        answer = self.full(operation, *path, **given)
        assert answer.status_code == 200, answer
        return answer.parsed


@pytest.fixture
def ada(generated, guarded_server):
    with contextlib.closing(Caller(generated, guarded_server.url, "act-ada")) as caller:
        yield caller


@pytest.fixture
def bob(generated, guarded_server):
    with contextlib.closing(Caller(generated, guarded_server.url, "act-bob")) as caller:
        yield caller


def rows(caller, **target):
    request = caller.models.QueryRequest(query=ALL_PEOPLE, **target)
    found = caller("queries.cluster_query", GRAPH, body=request)
    return {row["name"]: row["age"] for row in found.rows}


def test_a_generated_client_does_everything(ada, bob):
    models = ada.models
    assert ada("health.health").status == "ok"
    listed = bob("management.list_graphs").graphs
    assert [graph.graph_id for graph in listed] == ["contract", "guarded", "plain"]
    assert "node Person" in ada("schema.cluster_get_schema", GRAPH).schema_source

    made = ada(
        "branches.cluster_create_branch", GRAPH, body=models.BranchCreateRequest(name="gen/a")
    )
    assert (made.name, made.from_, made.actor_id) == ("gen/a", "main", "act-ada")
    change = models.ChangeRequest(query=INSERT, branch="gen/a", params={"name": "Gen", "age": 1})
    done = ada("mutations.cluster_mutate", GRAPH, body=change)
    assert (done.affected_nodes, done.commit.graph_branch) == (1, "gen/a")
    older = models.ChangeRequest(query=UPDATE, branch="gen/a", params={"name": "Gen", "age": 2})
    done = ada("mutations.cluster_change", GRAPH, body=older)
    assert rows(ada, branch="gen/a")["Gen"] == 2
    conditional = models.ChangeRequest(
        query=UPDATE, branch="gen/a", params={"name": "Gen", "age": 3}
    )
    head = done.commit.graph_commit_id
    done = ada(
        "mutations.cluster_mutate_if_graph_commit",
        GRAPH,
        body=conditional,
        omnigraph_if_graph_commit=head,
    )
    lost = ada.full(
        "mutations.cluster_mutate_if_graph_commit",
        GRAPH,
        body=conditional,
        omnigraph_if_graph_commit=head,
    )
    assert (lost.status_code, lost.parsed.precondition_failure.expected) == (412, head)
    assert lost.parsed.precondition_failure.actual == done.commit.graph_commit_id

    lines = '{"type":"Person","data":{"name":"Lou"}}\n'
    for operation in ("mutations.cluster_load", "mutations.cluster_ingest"):
        request = models.IngestRequest(data=lines, branch="gen/a", mode=models.LoadMode.MERGE)
        loaded = ada(operation, GRAPH, body=request)
        assert [(node.name, node.entities_loaded) for node in loaded.nodes] == [("Person", 1)]
    blob = '{"type":"Doc","data":{"slug":"d","body":"base64:aGVsbG8="}}\n'
    ada("mutations.cluster_load", GRAPH, body=models.IngestRequest(data=blob, branch="gen/a"))
    where = {"entity": models.BlobEntityKind.NODE, "type_": "Doc", "id": "d", "property_": "body"}
    whole = ada.full("blobs.cluster_get_blob", GRAPH, branch="gen/a", **where)
    assert whole.content == b"hello"
    part = ada.full("blobs.cluster_get_blob", GRAPH, branch="gen/a", range_="bytes=1-2", **where)
    assert (part.status_code, part.content) == (206, b"el")
    reported = ada.full("blobs.cluster_head_blob", GRAPH, branch="gen/a", **where)
    assert reported.headers["etag"] == whole.headers["etag"]

    shown = ada("snapshots.cluster_get_snapshot", GRAPH, branch="gen/a")
    counts = {dataset.type_name: dataset.entity_count for dataset in shown.datasets}
    assert (shown.graph_branch, counts["Doc"]) == ("gen/a", 1)
    commits = ada("commits.cluster_list_commits", GRAPH, branch="gen/a").commits
    newest = commits[0].graph_commit_id
    assert ada("commits.cluster_get_commit", GRAPH, newest).actor_id == "act-ada"
    changed = ada("changes.cluster_get_commit_changes", GRAPH, newest)
    assert [(change.op, change.id) for change in changed.changes] == [("insert", "d")]
    page = ada("changes.cluster_poll_changes", GRAPH, branch="gen/a", start=f"after:{newest}")
    assert (page.blocks, page.caught_up) == ([], True)
    baseline = ada.full(
        "changes.cluster_capture_change_baseline", GRAPH, body=models.ChangeBaselineRequest()
    )
    assert b'{"baseline":{' in baseline.content.splitlines()[-1]
    exported = ada.full("queries.cluster_export", GRAPH, body=models.ExportRequest(branch="gen/a"))
    assert b'"Lou"' in exported.content

    stored = ada("queries.cluster_list_queries", GRAPH).queries
    assert [query.name for query in stored] == ["add_person", "adults"]
    asked = models.InvokeStoredQueryRequest(params={"name": "Sto"}, branch="gen/a")
    run = ada("queries.cluster_invoke_query", GRAPH, "add_person", body=asked)
    assert run.affected_nodes == 1
    ada(
        "queries.cluster_invoke_query_if_graph_commit",
        GRAPH,
        "add_person",
        body=asked,
        omnigraph_if_graph_commit=run.commit.graph_commit_id,
    )
    read = models.ReadRequest(query_source=ALL_PEOPLE, branch="gen/a")
    assert ada("queries.cluster_read", GRAPH, body=read).row_count == len(rows(ada, branch="gen/a"))

    merge = models.BranchMergeRequest(source="gen/a", target="main", delete_branch=True)
    merged = ada("branches.cluster_merge_branches", GRAPH, body=merge)
    assert merged.branch_deleted is True
    assert rows(ada)["Gen"] == 3
    ada("branches.cluster_create_branch", GRAPH, body=models.BranchCreateRequest(name="gen/b"))
    assert "gen/b" in ada("branches.cluster_list_branches", GRAPH).branches
    assert ada("branches.cluster_delete_branch", GRAPH, "gen/b").name == "gen/b"

    denied = bob.full("mutations.cluster_mutate", GRAPH, body=change)
    assert (denied.status_code, denied.parsed.code) == (403, "forbidden")
    schema = models.SchemaApplyRequest(schema_source="node {")
    refused = ada.full("mutations.cluster_apply_schema", GRAPH, body=schema)
    assert (refused.status_code, refused.parsed.code) == (400, "bad_request")
