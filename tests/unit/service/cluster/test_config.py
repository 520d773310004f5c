"""`cluster.yaml`: every mistake is found at once, with its code, what it is about, and its line."""

import json

import pytest

from omnigraph.service.cluster import validate
from tests.support.clusters import edit, write_cluster


@pytest.fixture
def folder(tmp_path):
    return write_cluster(tmp_path / "cluster")


def errors(folder):
    found = [f for f in validate(folder).findings if f.severity == "error"]
    return [(f.code, f.path, f.file, f.line) for f in found]


def test_whole_configuration_is_valid(folder):
    done = validate(folder)
    assert done.ok
    assert [resource["address"] for resource in done.facts["resources"]] == [
        "graph.people",
        "graph.ports",
        "policy.listers",
        "policy.readers",
        "provider.embedding.fake",
        "query.people.add",
        "query.people.names",
        "schema.people",
        "schema.ports",
    ]
    assert done.facts["dependencies"] == [
        {"from": "graph.people", "to": "provider.embedding.fake"},
        {"from": "policy.readers", "to": "graph.people"},
        {"from": "query.people.add", "to": "graph.people"},
        {"from": "query.people.add", "to": "schema.people"},
        {"from": "query.people.names", "to": "graph.people"},
        {"from": "query.people.names", "to": "schema.people"},
        {"from": "schema.people", "to": "graph.people"},
        {"from": "schema.ports", "to": "graph.ports"},
    ]
    assert [(f.code, f.path) for f in done.findings] == [
        ("external_blob_ingress_default_deny", "graphs.people"),
        ("external_blob_ingress_default_deny", "graphs.ports"),
    ]
    assert json.dumps(done.to_json())


TOP = [
    ("version: 1", "version: 2", "unsupported_cluster_config_version", "version", 1),
    ("version: 1", "version: 1\nui: {}", "future_phase_field", "ui", 2),
    ("version: 1", "version: 1\nversion: 1", "duplicate_yaml_key", "version", 2),
    ("version: 1", "version: 1\ngraphz: {}", "invalid_cluster_yaml", "graphz", 2),
    ("name: lab", "name: ' '", "empty_metadata_name", "metadata.name", 2),
    ("name: lab", "nom: lab", "invalid_cluster_yaml", "metadata.nom", 2),
    ("version: 1", "version: 1\nstorage: ftp://x", "invalid_storage_root", "storage", 2),
    (
        "version: 1",
        "version: 1\nstate: { backend: consul }",
        "unsupported_state_backend",
        "state.backend",
        2,
    ),
    ("version: 1", "version: 1\nstate: { lock: often }", "invalid_cluster_yaml", "state.lock", 2),
    ("  people:\n", "  1people:\n", "invalid_resource_id", "graphs.1people", 7),
    (
        "kind: mock, model: m",
        "kind: oracle",
        "invalid_embedding_provider",
        "providers.embedding.fake.kind",
        5,
    ),
    (
        "kind: mock, model: m",
        "kind: openai",
        "embedding_api_key_required",
        "providers.embedding.fake",
        5,
    ),
    (
        "kind: mock, model: m",
        "kind: openai, api_key: sk-1",
        "embedding_api_key_inline",
        "providers.embedding.fake.api_key",
        5,
    ),
    (
        "embedding_provider: fake",
        "embedding_provider: other",
        "dangling_embedding_provider_reference",
        "graphs.people.embedding_provider",
        10,
    ),
    (
        "embedding_provider: fake",
        "embedding_provider: graph.ports",
        "wrong_kind_reference",
        "graphs.people.embedding_provider",
        10,
    ),
    (
        "embedding_provider: fake",
        "streaming: true",
        "removed_streaming_declaration",
        "graphs.people.streaming",
        10,
    ),
    (
        "embedding_provider: fake",
        "external_blobs: { allow: [{ base: 'not a uri', scope: server_safe }] }",
        "invalid_external_blob_base",
        "graphs.people.external_blobs.allow.0.base",
        10,
    ),
    (
        "embedding_provider: fake",
        "external_blobs: { allow: [{ base: 's3://b/x', scope: everybody }] }",
        "invalid_external_blob_policy",
        "graphs.people.external_blobs.allow.0.scope",
        10,
    ),
    ("queries: queries", "queries: 7", "invalid_cluster_yaml", "graphs.people.queries", 9),
    ("queries: queries", "queries: nowhere", "query_file_missing", "graphs.people.queries", 9),
    (
        "queries: queries",
        "queries: { other: { file: queries/names.gq } }",
        "query_key_mismatch",
        "query.people.other",
        9,
    ),
    ("schema: ports.pg", "schema: other.pg", "schema_file_missing", "schema.ports", 12),
    ("[people]", "[]", "policy_missing_applies_to", "policies.readers.applies_to", 14),
    ("[people]", "[nobody]", "dangling_graph_reference", "policies.readers.applies_to.0", 14),
    ("[people]", "[schema.people]", "wrong_kind_reference", "policies.readers.applies_to.0", 14),
    (
        "file: readers.yaml",
        "file: none.yaml",
        "policy_file_missing",
        "policy.readers",
        14,
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "code", "path", "line"), TOP, ids=[f"{row[2]}-{row[3]}" for row in TOP]
)
def test_mistake_is_reported_with_its_line(folder, old, new, code, path, line):
    edit(folder, old, new)
    assert (code, path, "cluster.yaml", line) in errors(folder)


def test_policy_cannot_decide_about_a_graph_and_the_cluster(folder):
    edit(folder, "[people]", "[people, cluster]")
    assert {code for code, *_ in errors(folder)} == {
        "policy_mixed_binding_kinds",
        "duplicate_policy_binding",
        "policy_invalid",
    }


def test_scope_has_one_policy(folder):
    edit(folder, "[cluster]", "[graph.people]")
    assert ("duplicate_policy_binding", "policies.listers.applies_to", "cluster.yaml", 15) in (
        errors(folder)
    )


def test_every_mistake_is_reported_at_once(folder):
    edit(folder, "version: 1", "version: 3\nsorage: x")
    edit(folder, "embedding_provider: fake", "embedding_provider: nobody")
    edit(folder, "node Port", "nod Port", file="ports.pg")
    edit(folder, "$p.name", "$p.nme", file="queries/names.gq")
    edit(folder, "[read]", "[reed]", file="readers.yaml")
    assert [(code, file, line) for code, _, file, line in errors(folder)] == [
        ("invalid_cluster_yaml", "cluster.yaml", 2),
        ("unsupported_cluster_config_version", "cluster.yaml", 1),
        ("dangling_embedding_provider_reference", "cluster.yaml", 11),
        ("query_typecheck_error", "queries/names.gq", 1),
        ("schema_parse_error", "ports.pg", 1),
        ("policy_invalid", "readers.yaml", 5),
    ]


def test_schema_that_parses_but_means_nothing_is_a_catalog_error(folder):
    (folder / "ports.pg").write_text("edge Leads: Port -> Port\n")
    assert errors(folder)[0][:2] == ("schema_catalog_error", "schema.ports")


def test_query_of_a_broken_schema_is_not_checked(folder):
    (folder / "people.pg").write_text("nod Person {}\n")
    found = [(f.code, f.path) for f in validate(folder).findings if f.severity == "warning"]
    assert found == [
        ("query_typecheck_skipped", "query.people.add"),
        ("query_typecheck_skipped", "query.people.names"),
    ]


def test_query_declared_twice_is_refused(folder):
    (folder / "queries" / "more.gq").write_text((folder / "queries" / "names.gq").read_text())
    assert errors(folder) == [
        ("duplicate_query_name", "query.people.names", "queries/names.gq", None)
    ]


def test_empty_folder_of_queries_is_reported(folder):
    (folder / "none").mkdir()
    edit(folder, "queries: queries", "queries: none")
    assert ("query_dir_empty", "graphs.people.queries") in [
        (f.code, f.path) for f in validate(folder).findings
    ]


def test_queries_are_a_file_a_list_or_names(folder):
    wanted = validate(folder).facts["resource_digests"]
    for text in (
        "[queries/names.gq, queries/add.gq]",
        "{ names: { file: queries/names.gq }, add: { file: queries/add.gq } }",
    ):
        edit(folder, "queries: queries", f"queries: {text}")
        assert validate(folder).facts["resource_digests"] == wanted
        edit(folder, f"queries: {text}", "queries: queries")


def test_graph_a_server_would_refuse_is_reported(folder):
    edit(folder, "  ports:", "  my_ports:")
    assert ("graph_id_not_servable", "graphs.my_ports") in [
        (f.code, f.path) for f in validate(folder).findings
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [", 1), ("", 1), ("- 1\n", 1), ("version: 1\ngraphs: &g {}\npolicies: *g\n", 2)],
    ids=["no-yaml", "empty", "list", "alias"],
)
def test_text_that_is_no_configuration_is_refused(folder, text, line):
    (folder / "cluster.yaml").write_text(text)
    [first, *_] = errors(folder)
    assert (first[0], first[3]) == ("invalid_cluster_yaml", line)


def test_deep_or_huge_text_is_refused(folder):
    for text in ("[" * 100_000, "a" * 2_000_000):
        (folder / "cluster.yaml").write_text(text)
        assert [code for code, *_ in errors(folder)] == ["invalid_cluster_yaml"]


def test_missing_folder_and_file_are_reported(tmp_path):
    assert [f.code for f in validate(tmp_path / "none").findings] == ["config_dir_not_found"]
    assert [f.code for f in validate(tmp_path).findings] == ["cluster_config_read_error"]


def test_comments_and_layout_do_not_change_the_digest(folder):
    before = validate(folder).facts["resource_digests"]
    edit(folder, "version: 1", "# a comment\nversion:    1")
    assert validate(folder).facts["resource_digests"] == before
