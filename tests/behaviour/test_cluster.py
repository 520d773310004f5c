"""A cluster from its first ledger to the deletion of a graph, in a folder and in a bucket."""

import json

import pytest

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.service import cluster
from omnigraph.service.cluster.diagnostics import ClusterOperationRefused
from omnigraph.service.cluster.store import ClusterStore
from omnigraph.service.stored_queries import StoredQueryFile, compile_stored_queries
from omnigraph.storage import locate
from tests.support.clusters import (
    NAMES,
    PEOPLE_NEXT,
    READERS,
    edit,
    without_ports,
    write_cluster,
)
from tests.support.graph_locations import Root


class Made:
    """A cluster under test."""

    def __init__(self, folder, root):
        self.folder = write_cluster(folder, root.uri)
        self.root = root
        self.store = ClusterStore(locate(root.uri, root.options))

    def __getattr__(self, name):
        command = getattr(cluster, name)
        return lambda *arguments, **options: command(
            self.folder, *arguments, options=self.root.options, **options
        )

    def graph(self, id_):
        return og.open(self.store.graph_uri(id_), storage_options=self.root.options)

    def serving(self):
        return cluster.read_applied_revision(self.folder, self.root.options)


@pytest.fixture
def made(tmp_path, graph_root):
    return Made(tmp_path / "config", graph_root)


@pytest.fixture
def local(tmp_path):
    found = Made(tmp_path / "config", Root(str(tmp_path / "root"), {}))
    assert found.import_state().ok
    assert found.apply().ok
    return found


def changes(done):
    return [
        (c["operation"], c["resource"], c.get("disposition"), c.get("reason"))
        for c in done.facts["changes"]
    ]


def codes(done):
    return [finding.code for finding in done.findings]


def test_life_of_a_cluster(made):
    # First there is a plan and no ledger.
    planned = made.plan()
    assert codes(planned) == ["state_missing"]
    assert [change[:2] for change in changes(planned)] == [
        ("create", "graph.people"),
        ("create", "graph.ports"),
        ("create", "policy.listers"),
        ("create", "policy.readers"),
        ("create", "provider.embedding.fake"),
        ("create", "query.people.add"),
        ("create", "query.people.names"),
        ("create", "schema.people"),
        ("create", "schema.ports"),
    ]
    assert codes(made.apply()) == ["state_missing"]
    imported = made.import_state().facts
    assert imported["state_observations"]["state_revision"] == 1
    missing = {"status": "drifted", "conditions": ["graph_missing"]}
    assert set(map(str, imported["resource_statuses"].values())) == {str(missing)}
    assert codes(made.import_state()) == ["state_already_exists"]

    # Applied once everything is there; applied twice nothing is written.
    done = made.apply(actor="act-ada")
    assert (done.ok, done.facts["converged"], done.facts["applied_count"]) == (True, True, 9)
    assert done.facts["state_observations"]["state_revision"] == 2
    again = made.apply()
    assert (again.facts["changes"], again.facts["state_written"]) == ([], False)
    assert made.graph("people").query(NAMES).rows == []
    assert made.status().facts["resource_digests"] == planned.facts["resource_digests"]

    # What a server serves is what was applied.
    served = made.serving()
    assert [(graph.id, sorted(graph.queries)) for graph in served.healthy] == [
        ("people", ["add", "names"]),
        ("ports", []),
    ]
    assert served.graphs[0].queries["names"] == NAMES
    assert served.graphs[0].embedding == {"kind": "mock", "model": "m"}
    assert (served.policy_of("people").text, served.policy_of("ports")) == (READERS, None)
    assert served.policy_of(None).name == "listers"

    # A new schema and a query that needs it come together.
    (made.folder / "people.pg").write_text(PEOPLE_NEXT)
    edit(made.folder, "$p.name", "$p.name, $p.town", file="queries/names.gq")
    planned = made.plan()
    [migration] = [c["migration"] for c in planned.facts["changes"] if "migration" in c]
    assert [(s["kind"], s["property_name"]) for s in migration["steps"]] == [
        ("add_property", "town")
    ]
    done = made.apply(actor="act-ada")
    assert changes(done) == [
        ("update", "graph.people", "derived", None),
        ("update", "query.people.names", "applied", None),
        ("update", "schema.people", "applied", None),
    ]
    assert made.graph("people").schema.source == PEOPLE_NEXT
    assert made.graph("people").commits.list()[0].actor == "act-ada"

    # A graph goes when somebody said so, for exactly this configuration.
    without_ports(made.folder)
    blocked = made.apply()
    assert changes(blocked) == [
        ("delete", "graph.ports", "blocked", "approval_required"),
        ("delete", "schema.ports", "blocked", "approval_required"),
    ]
    assert (blocked.ok, blocked.facts["converged"]) == (True, False)
    assert made.graph("ports").schema.source
    assert codes(made.approve("graph.people", "act-eve")) == ["approval_not_required"]
    assert made.approve("graph.ports", "act-eve").facts["approved_by"] == "act-eve"
    edit(made.folder, "name: lab", "name: lab2")
    assert "approval_stale" in codes(made.plan())
    edit(made.folder, "name: lab2", "name: lab")
    assert made.plan().facts["approvals_required"] == [
        {
            "resource": "graph.ports",
            "reason": "deletes the graph and all of its data",
            "satisfied": True,
        }
    ]
    done = made.apply(actor="act-bob")
    assert (done.ok, done.facts["converged"]) == (True, True)
    assert not made.store.has_graph_files("ports")
    state = made.store.read().state
    assert state.observations["graph.ports"]["kind"] == "tombstone"
    [(approval, record)] = state.approvals.items()
    assert state.observations["graph.ports"]["approval_id"] == approval
    assert set(record) == {"consumed_at", "consumed_by_operation"}
    assert [graph.id for graph in made.serving().graphs] == ["people"]
    assert made.store.records("__cluster/recoveries") == {}


def test_of_two_writers_of_one_ledger_the_second_is_reported(made):
    made.import_state()
    one, two = made.store.read(), made.store.read()
    made.store.write(one, one.state.__class__(config_digest="x"))
    with pytest.raises(ClusterOperationRefused) as caught:
        made.store.write(two, two.state.__class__(config_digest="y"))
    assert caught.value.code == "state_cas_mismatch"
    assert made.store.read().state.config_digest == "x"


def test_lock_keeps_others_out_until_it_is_removed_by_its_id(made):
    made.import_state()
    held = made.store.take_lock("apply")
    for done in (made.plan(), made.apply(), made.refresh(), made.approve("graph.x", "act-ada")):
        assert codes(done) == ["state_lock_held"]
    seen = made.status().facts["state_observations"]
    assert (seen["locked"], seen["lock_id"], seen["lock_operation"]) == (
        True,
        held.lock_id,
        "apply",
    )
    assert codes(made.force_unlock("other")) == ["state_lock_id_mismatch"]
    assert made.force_unlock(held.lock_id).facts["lock_removed"] is True
    assert codes(made.force_unlock(held.lock_id)) == ["state_lock_missing"]
    assert made.apply().facts["converged"] is True


def test_lock_can_be_switched_off_with_a_warning(local):
    edit(local.folder, "version: 1", "version: 1\nstate: { lock: false }")
    local.store.take_lock("apply")
    done = local.apply()
    assert (done.ok, codes(done)) == (True, ["state_lock_disabled"])


def test_refresh_tells_what_is_not_as_it_was_applied(local):
    local.store.remove_graph("ports")
    local.graph("people").schema.apply(PEOPLE_NEXT)
    names = local.store.read().state.resources["query.people.names"].digest
    local.store.objects.delete([local.store.payload_path("query.people.names", names)])
    assert codes(local.status()) == ["catalog_payload_missing"]
    with pytest.raises(cluster.ServingRefused) as caught:
        local.serving()
    assert caught.value.message.startswith("[catalog_payload_missing] query.people.names: ")
    done = local.refresh()
    assert {
        a: s["conditions"] for a, s in done.facts["resource_statuses"].items() if "conditions" in s
    } == {
        "graph.people": ["schema_mismatch"],
        "graph.ports": ["graph_missing"],
        "query.people.names": ["payload_missing"],
        "schema.people": ["schema_mismatch"],
        "schema.ports": ["graph_missing"],
    }
    assert done.facts["resource_statuses"]["graph.ports"]["status"] == "drifted"
    assert done.facts["observations"]["graph.people"]["schema_matches_desired"] is False
    # Apply makes it whole again; what the wider schema added is dropped softly.
    assert local.apply().facts["converged"] is True
    assert local.graph("people").schema.source == (local.folder / "people.pg").read_text()
    assert [graph.id for graph in local.serving().healthy] == ["people", "ports"]


def test_import_takes_graphs_that_exist(tmp_path):
    folder = write_cluster(tmp_path / "config")
    made = og.init(folder / "graphs" / "people.omni", folder / "people.pg")
    made.mutate('query q() { insert Person { name: "Ada" } }')
    assert cluster.import_state(folder).ok
    done = cluster.apply(folder)
    assert ("create", "graph.people") not in [change[:2] for change in changes(done)]
    assert (done.ok, done.facts["converged"]) == (True, True)
    assert og.open(made.uri).query(NAMES).rows == [{"p.name": "Ada"}]


def test_comment_in_a_schema_changes_its_digest_and_no_graph(local):
    edit(local.folder, "node Port", "// where ships call\nnode Port", file="ports.pg")
    before = local.graph("ports").snapshot().manifest_version
    assert local.apply().facts["converged"] is True
    assert local.graph("ports").snapshot().manifest_version == before
    assert local.refresh().facts["resource_statuses"]["schema.ports"] == {"status": "applied"}
    assert local.apply().facts["changes"] == []


def test_migration_that_is_refused_leaves_everything_that_needs_it(local):
    (local.folder / "people.pg").write_text(PEOPLE_NEXT.replace("age: I32?", "age: String?"))
    edit(local.folder, "$p.name", "$p.name, $p.town", file="queries/names.gq")
    done = local.apply()
    assert (done.ok, done.facts["converged"]) == (False, False)
    assert changes(done) == [
        ("update", "graph.people", "derived", None),
        ("update", "query.people.names", "blocked", "dependency_not_applied"),
        ("update", "schema.people", "blocked", "schema_apply_failed"),
    ]
    assert codes(done)[0] == "schema_apply_failed"
    assert local.serving().graphs[0].queries["names"] == NAMES
    assert local.store.records("__cluster/recoveries") == {}


def test_policy_moves_to_another_graph_without_a_new_file(local):
    edit(local.folder, "[people]", "[people, ports]")
    [change] = local.plan().facts["changes"]
    assert (change["binding_change"], change["metadata_change"]) == (True, "policy_bindings")
    assert local.apply().ok
    assert local.serving().policy_of("ports").name == "readers"


def test_provider_that_a_waiting_graph_uses_stays(local):
    text = (local.folder / "cluster.yaml").read_text()
    start, end = text.index("  people:"), text.index("  ports:")
    policies = text.index("policies:")
    rest = (
        text[end:policies] + "policies:\n  listers: { file: listers.yaml, applies_to: [cluster] }\n"
    )
    head = text[: text.index("providers:")]
    (local.folder / "cluster.yaml").write_text(f"{head}graphs:\n{rest}")
    assert start < end
    found = {resource: reason for _, resource, _, reason in changes(local.apply())}
    assert found == {
        "graph.people": "approval_required",
        "policy.readers": None,
        "provider.embedding.fake": "dependency_not_applied",
        "query.people.add": "dependency_not_applied",
        "query.people.names": "dependency_not_applied",
        "schema.people": "approval_required",
    }
    assert [graph.id for graph in local.serving().healthy] == ["people", "ports"]


# --- interrupted ---------------------------------------------------------------------------------


class Stopped(BaseException):
    """The end of a process, at a step."""


def run_to(step, made, **options):
    """Apply until a step comes, which then is the last; return the steps seen."""
    seen = []

    def observe(name):
        if len(seen) == step:
            raise Stopped(name)
        seen.append(name)

    try:
        done = made.apply(observer=observe, **options)
    except Stopped:
        return seen, None
    return seen, done


def test_apply_killed_at_any_step_is_finished_by_the_next(tmp_path):
    """Every step of a first apply, of a migration and of a deletion."""
    step, finished, reported = 0, None, set()
    while finished is None:
        made = Made(tmp_path / f"config{step}", Root(str(tmp_path / f"root{step}"), {}))
        made.import_state()
        seen, finished = run_to(step, made)
        done = made.apply()
        assert (done.ok, done.facts["converged"]) == (True, True), (seen, codes(done))
        reported |= set(codes(done))
        assert made.store.records("__cluster/recoveries") == {}
        assert [graph.id for graph in made.serving().healthy] == ["people", "ports"]
        step += 1
    assert step > 8
    assert "cluster_recovery_rolled_forward" in reported


def test_migration_and_deletion_killed_at_any_step_are_finished_by_the_next(tmp_path):
    step, finished, reported = 0, None, set()
    while finished is None:
        made = Made(tmp_path / f"config{step}", Root(str(tmp_path / f"root{step}"), {}))
        made.import_state()
        made.apply()
        (made.folder / "people.pg").write_text(PEOPLE_NEXT)
        without_ports(made.folder)
        made.approve("graph.ports", "act-eve")
        seen, finished = run_to(step, made)
        unfinished = {r["graph_id"] for r in made.store.records("__cluster/recoveries").values()}
        applied = set(made.store.read().state.graph_ids)
        if applied <= unfinished:
            with pytest.raises(cluster.ServingRefused, match="cluster_no_healthy_graphs"):
                made.serving()
        else:
            aside = {graph.id for graph in made.serving().graphs if graph.quarantine}
            assert aside == unfinished & applied
        done = made.apply()
        assert (done.ok, done.facts["converged"]) == (True, True), (seen, codes(done))
        reported |= set(codes(done))
        assert made.graph("people").schema.source == PEOPLE_NEXT
        assert not made.store.has_graph_files("ports")
        assert made.store.records("__cluster/recoveries") == {}
        [approval] = made.store.records("__cluster/approvals").values()
        assert approval["consumed_at"] is not None
        step += 1
    assert step > 6
    assert "cluster_recovery_rolled_forward" in reported


def test_record_that_cannot_be_read_stops_everything(local):
    local.store.objects.put("__cluster/recoveries/x.json", b"{}")
    assert codes(local.apply()) == ["recovery_sidecar_read_error"]
    with pytest.raises(cluster.ServingRefused, match="recovery_sidecar_read_error"):
        local.serving()


# --- serving -------------------------------------------------------------------------------------


def test_cluster_without_a_ledger_is_not_served(made):
    with pytest.raises(cluster.ServingRefused, match=r"\[cluster_state_missing\]"):
        made.serving()


def test_storage_address_is_served_without_a_configuration(made):
    made.import_state()
    made.apply()
    address = made.root.uri if "://" in made.root.uri else f"file://{made.root.uri}"
    served = cluster.read_applied_revision(address, made.root.options)
    assert [graph.id for graph in served.healthy] == ["people", "ports"]


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        (("version",), 9, "unsupported_state_version"),
        (("extra",), 1, "invalid_state_json"),
        (("applied_revision", "resources"), {}, "cluster_empty"),
        (
            ("applied_revision", "resources", "policy.readers", "applies_to"),
            None,
            "policy_bindings_missing",
        ),
        (
            ("applied_revision", "resources", "provider.embedding.fake", "embedding_profile"),
            {"kind": "openai"},
            "embedding_provider_digest_mismatch",
        ),
        (
            ("applied_revision", "resources", "provider.embedding.fake", "embedding_profile"),
            None,
            "embedding_provider_profile_missing",
        ),
        (
            ("applied_revision", "resources", "graph.ports", "external_blob_policy"),
            {"mode": "allow", "bases": [{"uri": "s3://x", "scope": "server_safe"}]},
            "external_blob_policy_digest_mismatch",
        ),
    ],
)
def test_tampered_ledger_is_not_served(local, member, value, code):
    facts = json.loads(local.store.objects.get("__cluster/state.json"))
    place = facts
    for name in member[:-1]:
        place = place[name]
    place[member[-1]] = value
    local.store.objects.put("__cluster/state.json", json.dumps(facts).encode())
    with pytest.raises(cluster.ServingRefused) as caught:
        local.serving()
    assert [finding.code for finding in caught.value.findings] == [code]


def test_tampered_content_is_not_served(local):
    digest = local.store.read().state.resources["policy.readers"].digest
    local.store.objects.put(local.store.payload_path("policy.readers", digest), b"version: 1\n")
    with pytest.raises(cluster.ServingRefused, match="catalog_payload_digest_mismatch"):
        local.serving()
    assert codes(local.status()) == ["catalog_payload_mismatch"]


DEEP = "query deep() { match { $p: Person  $p.age > 100 } return { $p } }\n"


def test_checks_of_the_file_run_before_a_proposal_is_merged(local):
    (local.folder / "queries" / "deep.gq").write_text(DEEP)
    edit(
        local.folder,
        "    queries: queries\n",
        "    queries: queries\n    checks: { deep: { message: too old, severity: warn } }\n",
    )
    done = local.apply()
    assert (done.ok, done.facts["converged"]) == (True, True)
    [served] = [graph for graph in local.serving().graphs if graph.id == "people"]
    assert served.checks == {"deep": {"severity": "warn", "message": "too old"}}
    assert local.apply().facts["changes"] == []
    edit(local.folder, "{ deep: { message: too old, severity: warn } }", "[deep]")
    [changed] = local.plan().facts["changes"]
    assert (changed["operation"], changed["resource"]) == ("update", "graph.people")
    assert local.apply().facts["converged"]
    [served] = [graph for graph in local.serving().graphs if graph.id == "people"]
    assert served.checks == {"deep": {"severity": "fail"}}
    graph = local.graph("people")
    stored = compile_stored_queries(
        [StoredQueryFile("deep.gq", DEEP)], graph.schema.catalog, served.checks
    )
    graph.branches.create("side")
    graph.load({"Person": [{"name": "old", "age": 120}]}, branch="side")
    made = graph.with_checks(stored.checks).proposals.create("side", into="main", title="One")
    with pytest.raises(OmniError) as failed:
        made.merge()
    assert failed.value.code == "checks_failed"
    assert graph.query(NAMES).rows == []


@pytest.mark.parametrize(
    ("checks", "code", "fragment"),
    [
        ("[depe]", "dangling_check_reference", "there is no stored query 'depe'"),
        ("[add]", "check_invalid", "`add` cannot be a check: it changes data"),
        ("{names: {severity: loud}}", "invalid_cluster_yaml", "`severity` must be warn or fail"),
        ("{names: {message: 7}}", "invalid_cluster_yaml", "`message` must be text"),
        ("{names: {text: x}}", "invalid_cluster_yaml", "unknown key `text`"),
        ("names", "invalid_cluster_yaml", "expected a mapping"),
    ],
)
def test_mistakes_in_checks_are_found(local, checks, code, fragment):
    edit(local.folder, "    queries: queries\n", f"    queries: queries\n    checks: {checks}\n")
    [found] = [finding for finding in local.plan().findings if finding.severity == "error"]
    assert found.code == code
    assert fragment in found.message
    assert found.line is not None
