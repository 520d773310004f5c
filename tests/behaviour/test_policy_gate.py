"""The gate: which action every public method of a graph needs, on which branches."""

import inspect
import logging
import threading
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

import omnigraph as og
import omnigraph.pipeline as spark
from omnigraph.errors import Category, OmniError
from omnigraph.graph import Branches, Changes, Commits, Graph, Indexes, Maintenance, Schema, Tags
from omnigraph.pipeline.api import Pipelines
from omnigraph.pipeline.connector.change_stream import ChangeFeedOptions
from omnigraph.pipeline.connector.data_source import (
    OmniGraphSource,
    manifest_by_options,
    pin_by_options,
)
from omnigraph.pipeline.runs.run import RunStore

SCHEMA = """
node Person {
  name: String @key  rank: I64?  bio: String?  vec: Vector(2)? @embed(bio)  photo: Blob?
}
edge Knows: Person -> Person
"""
LINES = b'{"type":"Person","data":{"name":"ada","photo":"base64:aGk="}}\n'
READ = "query q() { match { $p: Person } return { $p.name } }"
NODES = "query q() { match { $p: Person } return { $p } }"
WRITE = 'query m() { insert Person { name: "bo" } }'
MOCK = {"kind": "mock"}
STOPPED = threading.Event()
STOPPED.set()

POLICY = """
version: 1
groups: {{ team: [act-ada], rest: [act-bo] }}
protected_branches: [main]
rules: [{rules}]
"""
RULE = "{{ id: {0}, allow: {{ actors: {{ group: team }}, actions: [{0}] }} }}"
ACTIONS = [
    *("read", "export", "change", "schema_apply", "branch_create", "branch_delete"),
    *("branch_merge", "admin"),
]


def policy(*actions):
    return og.Policy.parse(POLICY.format(rules=", ".join(map(RULE.format, actions))))


@pytest.fixture
def place(tmp_path):
    """A graph with two branches, a tag and some commits; no policy is asked to make it."""
    graph = og.init(tmp_path / "g", SCHEMA, embedding=MOCK)
    graph.load(LINES)
    graph.branches.create("draft")
    graph.mutate(WRITE, branch="draft")
    graph.tags.create("v1")
    return tmp_path / "g"


def opened(place, *actions, actor="act-ada"):
    return og.open(place, policy=policy(*actions), actor=actor, embedding=MOCK)


def last(graph, branch):
    return og.open(graph.uri).commits.list(branch)[0].id


CALLS = {
    "Graph.snapshot": (lambda g: g.snapshot(), [("read", "main", None)]),
    "Graph.query": (lambda g: g.query(READ), [("read", "main", None)]),
    "Graph.stream": (lambda g: g.stream(READ, at="draft"), [("read", "draft", None)]),
    "Graph.explain": (lambda g: g.explain(READ, at="v1"), [("read", "main", None)]),
    "Graph.entity_at": (lambda g: g.entity_at("Person", "ada"), [("read", "main", None)]),
    "Graph.history": (lambda g: g.history("Person", "ada"), [("read", "main", None)]),
    "Graph.blame": (lambda g: g.blame("Person", "ada", "draft"), [("read", "draft", None)]),
    "Graph.neighbours": (lambda g: g.neighbours("Person", "ada"), [("read", "main", None)]),
    "Graph.subgraph": (lambda g: g.subgraph(NODES), [("read", "main", None)]),
    "Graph.run_checks": (lambda g: g.run_checks(at="draft"), [("read", "draft", None)]),
    "Graph.blob": (lambda g: g.blob("Person", "ada", "photo"), [("read", "main", None)]),
    "Graph.diff": (
        lambda g: list(g.diff("main", "draft")),
        [("read", "main", None), ("read", "draft", None)],
    ),
    "Graph.types": (lambda g: g.types, [("read", "main", None)]),
    "Graph.analyze": (lambda g: g.analyze("kcore", ["Knows"]), [("read", "main", None)]),
    "Graph.mutate": (lambda g: g.mutate(WRITE, branch=" main "), [("change", "main", None)]),
    "Graph.put_blob": (
        lambda g: g.put_blob("Person", "ada", "photo", b"x", branch="draft"),
        [("change", "draft", None)],
    ),
    "Graph.clear_blob": (
        lambda g: g.clear_blob("Person", "ada", "photo", branch="draft"),
        [("change", "draft", None)],
    ),
    "Graph.load": (
        lambda g: g.load(LINES, branch="new", from_="draft"),
        [("branch_create", "draft", "new"), ("change", "new", None)],
    ),
    "Graph.insert": (
        lambda g: g.insert("Person", [{"name": "cy"}]),
        [("change", "main", None)],
    ),
    "Graph.embed": (lambda g: g.embed("Person"), [("change", "main", None)]),
    "Graph.export": (lambda g: list(g.export()), [("export", "main", None)]),
    "Graph.export_parquet": (
        lambda g: g.export_parquet(Path(g.uri).parent / "out"),
        [("export", "main", None)],
    ),
    "Graph.export_parts": (
        lambda g: g.export_parts(Path(g.uri).parent / "parts"),
        [("export", "main", None)],
    ),
    "Graph.export_archive": (
        lambda g: g.export_archive(Path(g.uri).parent / "a", history=True),
        [("admin", None, None), ("export", "main", None)],
    ),
    "Graph.merge, tried": (
        lambda g: g.merge("draft", dry_run=True, delete_branch=True),
        [("read", "draft", None), ("read", "main", None)],
    ),
    "Graph.merge": (
        lambda g: g.merge("draft", delete_branch=True),
        [
            ("branch_merge", "draft", "main"),
            ("branch_delete", None, "draft"),
        ],
    ),
    "Graph.revert": (
        lambda g: g.revert(last(g, "draft"), branch="draft"),
        [("change", "draft", None)],
    ),
    "Graph.cherry_pick": (
        lambda g: g.cherry_pick(last(g, "draft")),
        [("change", "main", None), ("read", "draft", None)],
    ),
    "Graph.optimize": (lambda g: g.optimize(), [("admin", None, None)]),
    "Graph.verify": (lambda g: g.verify(), [("admin", None, None)]),
    "Graph.repair": (lambda g: g.repair(), [("admin", None, None)]),
    "Graph.recover": (lambda g: g.recover(), [("admin", None, None)]),
    "Graph.recoveries": (lambda g: g.recoveries(), [("admin", None, None)]),
    "Graph.cleanup": (lambda g: g.cleanup(keep=1), [("admin", None, None)]),
    "Graph.pipeline": (lambda g: g.pipeline.status(), [("read", None, None)]),
    "Graph.branch": (
        lambda g: g.branch("new", from_="draft"),
        [("branch_create", "draft", "new")],
    ),
    "Schema.source": (lambda g: g.schema.source, [("read", "main", None)]),
    "Schema.catalog": (lambda g: g.schema.catalog, [("read", "main", None)]),
    "Schema.plan": (lambda g: g.schema.plan(SCHEMA), [("read", "main", None)]),
    "Schema.apply": (
        lambda g: g.schema.apply(SCHEMA, branch="draft"),
        [("schema_apply", None, "draft")],
    ),
    "Schema.diff": (
        lambda g: g.schema.diff("draft", "main"),
        [("read", "draft", None), ("read", "main", None)],
    ),
    "Indexes.status": (lambda g: g.indexes.status(), [("read", "main", None)]),
    "Indexes.ensure": (lambda g: g.indexes.ensure(), [("admin", None, None)]),
    "Maintenance.run": (lambda g: g.maintenance.run(), [("admin", None, None)]),
    "Maintenance.watch": (lambda g: g.maintenance.watch(STOPPED), [("admin", None, None)]),
    "Maintenance.retention": (lambda g: g.maintenance.retention(), [("admin", None, None)]),
    "Maintenance.set_retention": (
        lambda g: g.maintenance.set_retention(keep=9),
        [("admin", None, None)],
    ),
    "Maintenance.clear_retention": (
        lambda g: g.maintenance.clear_retention(),
        [("admin", None, None)],
    ),
    "Maintenance.status": (lambda g: g.maintenance.status(), [("admin", None, None)]),
    "Branches.create": (
        lambda g: g.branches.create(" new "),
        [("branch_create", "main", "new")],
    ),
    "Branches.list": (lambda g: g.branches.list(), [("read", None, None)]),
    "Branches.get": (lambda g: g.branches.get("draft"), [("read", None, None)]),
    "Branches.delete": (
        lambda g: g.branches.delete("draft"),
        [("branch_delete", None, "draft")],
    ),
    "Tags.create": (
        lambda g: g.tags.create("v2", at="draft"),
        [("branch_create", "draft", "v2")],
    ),
    "Tags.list": (lambda g: g.tags.list(), [("read", None, None)]),
    "Tags.delete": (lambda g: g.tags.delete("v1"), [("branch_delete", None, "v1")]),
    "Commits.list": (lambda g: g.commits.list("draft"), [("read", "draft", None)]),
    "Commits.get": (lambda g: g.commits.get(last(g, "draft")), [("read", None, None)]),
    "Commits.changes": (
        lambda g: g.commits.changes(last(g, "draft")),
        [("read", "draft", None)],
    ),
    "Commits.merge_base": (
        lambda g: g.commits.merge_base("main", "draft"),
        [("read", "main", None), ("read", "draft", None)],
    ),
    "Commits.divergence": (
        lambda g: g.commits.divergence("main", "draft"),
        [("read", "main", None), ("read", "draft", None)],
    ),
    "Changes.poll": (
        lambda g: g.changes.poll(branch="draft", start="beginning"),
        [("read", "draft", None)],
    ),
    "Changes.baseline": (
        lambda g: list(g.changes.baseline().lines),
        [("export", "main", None)],
    ),
}
FREE = {
    *("Graph.as_actor", "Graph.under", "Graph.with_policy", "Graph.uri"),
    *("Graph.mode", "Graph.actor", "Graph.on", "Graph.branch_name"),
    "Graph.can_name",
    *("Graph.as_verified_actor", "Graph.with_checks", "Graph.checks"),
    *("Graph.cancel_query", "Graph.running_queries"),  # see test_running_queries.py
    "Branches.exists",
}
"""What tells and does nothing to the graph."""


def test_every_public_method_is_in_the_table():
    faces = (Graph, Branches, Changes, Commits, Indexes, Maintenance, Schema, Tags)
    names = {
        f"{face.__name__}.{name}"
        for face in faces
        for name, _ in inspect.getmembers(face)
        if not name.startswith("_")
    }
    assert names == {name.partition(",")[0] for name in CALLS} | FREE


@pytest.mark.parametrize(
    ("operation", "branch", "needed"),
    [
        ("pipeline", "main", ["change"]),
        ("pipeline", "new", ["branch_create", "change"]),
        ("merge", "main", ["branch_merge"]),
    ],
)
def test_a_job_on_spark_asks_before_it_writes(place, operation, branch, needed):
    opened(place, *needed)._request(operation, branch, None)
    for missing in needed:
        graph = opened(place, *(action for action in ACTIONS if action != missing))
        with pytest.raises(og.PolicyDenied) as caught:
            graph._request(operation, branch, None)
        assert caught.value.details["action"] == missing


@pytest.mark.parametrize("name", CALLS)
def test_method_asks_for_its_actions_and_each_of_them_is_needed(place, caplog, name):
    call, expected = CALLS[name]
    needed = list(dict.fromkeys(action for action, _, _ in expected))
    before = og.open(place).commits.list("draft") + og.open(place).commits.list()
    for missing in needed:
        graph = opened(place, *(action for action in ACTIONS if action != missing))
        with pytest.raises(og.PolicyDenied) as caught:
            call(graph)
        assert caught.value.details["action"] == missing
        assert (caught.value.category, caught.value.code) == (Category.DENIED, "forbidden")
    assert og.open(place).commits.list("draft") + og.open(place).commits.list() == before
    with caplog.at_level(logging.INFO, logger="omnigraph.policy"):
        call(opened(place, *needed))
    asked = [
        (record.action, record.branch, record.target_branch)
        for record in caplog.records
        if record.name == "omnigraph.policy"
    ]
    assert asked == expected


@pytest.mark.parametrize("actor", [None, "", " ", "act-bo", "act-stranger"])
def test_nobody_without_a_rule_gets_anything_from_any_method(place, actor):
    graph = opened(place, *ACTIONS, actor=actor)
    for name, (call, _) in CALLS.items():
        with pytest.raises(og.PolicyDenied) as caught:
            call(graph)
        assert caught.value.details["actor"] == actor, name


def test_graph_without_a_policy_asks_nobody(place, caplog):
    with caplog.at_level(logging.INFO, logger="omnigraph.policy"):
        graph = og.open(place, actor="act-stranger", embedding=MOCK)
        assert graph.query(READ).rows == [{"p.name": "ada"}]
        assert graph.mutate(WRITE).commit.actor == "act-stranger"
    assert not caplog.records


def test_actor_of_a_write_is_the_one_the_policy_knows(place):
    graph = opened(place, "change", actor=None)
    with pytest.raises(og.PolicyDenied, match="no actor is given; bind the graph to an actor"):
        graph.mutate(WRITE)
    assert graph.as_actor("act-ada").mutate(WRITE).commit.actor == "act-ada"


def test_policy_goes_with_a_graph_that_is_bound_to_a_branch(place):
    bound = opened(place, "read", actor="act-ada").branch("draft")
    assert bound.query(READ).rows == [{"p.name": "ada"}, {"p.name": "bo"}]
    with pytest.raises(og.PolicyDenied, match="denied action 'change' on branch 'draft'"):
        bound.mutate(WRITE)


def test_creating_a_graph_needs_the_right_to_give_it_a_schema(tmp_path):
    with pytest.raises(og.PolicyDenied, match="'schema_apply' targeting branch 'main'"):
        og.init(tmp_path / "g", SCHEMA, policy=policy("read"), actor="act-ada")
    assert not (tmp_path / "g").exists()
    graph = og.init(tmp_path / "g", SCHEMA, policy=policy("schema_apply"), actor="act-ada")
    with pytest.raises(og.PolicyDenied):
        graph.query(READ)


def test_importing_an_archive_is_for_admins(place, tmp_path):
    og.open(place).export_archive(tmp_path / "a")
    with pytest.raises(og.PolicyDenied, match="'admin'"):
        og.import_archive(tmp_path / "a", tmp_path / "h", policy=policy("read"), actor="act-ada")
    og.import_archive(tmp_path / "a", tmp_path / "h", policy=policy("admin"), actor="act-ada")
    assert og.open(tmp_path / "h").query(READ).rows == [{"p.name": "ada"}]


def test_returning_to_the_last_good_version_is_for_admins(place):
    with pytest.raises(og.PolicyDenied, match="'admin'"):
        og.repair_to_last_good(place, policy=policy("read"), actor="act-ada")
    report = og.repair_to_last_good(place, policy=policy("admin"), actor="act-ada")
    assert report.damaged == ()


def test_bad_policy_opens_nothing(place, tmp_path):
    with pytest.raises(og.PolicyInvalid):
        og.open(place, policy="version: 2\ngroups: {}")
    with pytest.raises(OmniError, match="cannot read the policy file"):
        og.open(place, policy=tmp_path / "none.yaml")


def test_preview_of_a_merge_shows_no_more_than_both_branches_show(place):
    policy = """
version: 1
groups: { seers: [act-ada] }
protected_branches: [main]
rules:
  - id: main
    allow: { actors: { group: seers }, actions: [read], branch_scope: protected }
  - id: others
    allow: { actors: { group: seers }, actions: [read], branch_scope: unprotected, types: [Person] }
"""
    graph = og.open(place, policy=policy, actor="act-ada", embedding=MOCK)
    with pytest.raises(og.PolicyDenied, match="a preview of a merge"):
        graph.merge("draft", dry_run=True)


def test_revert_does_not_bring_back_what_only_a_hidden_branch_had(place):
    policy = """
version: 1
groups: { team: [act-ada] }
protected_branches: [main]
rules:
  - id: others
    allow: { actors: { group: team }, actions: [read, change], branch_scope: unprotected }
"""
    whole = og.open(place)
    whole.insert("Person", [{"name": "hidden"}])
    hidden = whole.mutate('query m() { delete Person where name = "hidden" }').commit.id
    inherited = whole.commits.list("draft")[1].id
    graph = og.open(place, policy=policy, actor="act-ada", embedding=MOCK)
    for dry_run in (True, False):
        with pytest.raises(og.PolicyDenied, match="denied action 'read' on branch 'main'"):
            graph.revert(hidden, branch="draft", dry_run=dry_run)
    assert graph.entity_at("Person", "hidden", "draft") is None
    assert graph.revert(last(graph, "draft"), branch="draft").commit is not None
    assert graph.revert(inherited, branch="draft").commit is not None
    assert whole.revert(hidden, branch="draft").commit is not None


def test_cherry_pick_brings_no_types_that_its_branch_hides(place):
    policy = """
version: 1
groups: { team: [act-ada] }
protected_branches: [main]
rules:
  - id: main
    allow: { actors: { group: team }, actions: [read], branch_scope: protected, types: [Knows] }
  - id: others
    allow: { actors: { group: team }, actions: [read, change], branch_scope: unprotected }
"""
    whole = og.open(place)
    hidden = whole.insert("Person", [{"name": "hidden"}]).commit.id
    graph = og.open(place, policy=policy, actor="act-ada", embedding=MOCK)
    for apply in (graph.cherry_pick, graph.revert):
        for dry_run in (True, False):
            with pytest.raises(og.PolicyDenied, match="denied changes of another branch"):
                apply(hidden, branch="draft", dry_run=dry_run)
    assert graph.entity_at("Person", "hidden", "draft") is None
    assert whole.cherry_pick(hidden, branch="draft").commit is not None
    assert graph.cherry_pick(last(graph, "draft"), branch="draft").commit is None


def test_conflicts_are_shown_to_actors_that_may_read_both_sides_only(place):
    def change(rank, branch):
        text = f'query m() {{ update Person set {{ rank: {rank} }} where name = "ada" }}'
        return og.open(place).mutate(text, branch=branch).commit.id

    change(7, "draft")
    undone = change(8, "main")
    change(9, "main")

    def conflicts(*actions, dry_run=False):
        graph = opened(place, *actions)
        try:
            if "branch_merge" in actions:
                graph.merge("draft")
            return graph.revert(undone, dry_run=dry_run).conflicts
        except og.MergeConflicts as error:
            texts.append((error.message, error.details))
            return error.conflicts

    texts = []
    for options in ({}, {"dry_run": True}):
        [conflict] = conflicts("change", "read", **options)
        assert conflict.target.properties["rank"] == 9
        assert conflicts("change", **options) == ()
    [conflict] = conflicts("branch_merge", "read")
    assert conflict.source.properties["rank"] == 7
    assert conflicts("branch_merge") == ()
    assert "'ada'" in repr(texts[0])
    assert "'ada'" not in repr(texts[-1])


# --- what enters beside the methods of a graph -------------------------------------------------

PIPELINE = """version: 1
branch: {name: week, from: main}
sources: {people: {csv: people.csv}}
nodes: {Person: {source: people}}
publish: {merge_into: main, delete_branch: true}
"""
ONLY_OTHERS = """
version: 1
groups: { team: [act-ada] }
protected_branches: [main]
rules:
  - id: not-main
    allow: { actors: { group: team }, actions: [read, change], branch_scope: unprotected }
"""


SPARK_CALLS = {
    "pipeline.read": (lambda g, _: spark.read(None, g, "Person"), ["read"]),
    "pipeline.read_changes": (lambda g, _: spark.read_changes(None, g, branch="draft"), ["read"]),
    "pipeline.write": (lambda g, _: spark.write(None, g, "Person"), ["change"]),
    "pipeline.write, to a new branch": (
        lambda g, _: spark.write(None, g, "Person", branch="new", from_="main"),
        ["branch_create", "change"],
    ),
    "pipeline.stream_into": (
        lambda g, _: spark.stream_into(None, g, spark.StreamOptions(checkpoint="c")),
        ["change"],
    ),
    "pipeline.analyze": (
        lambda g, _: g.pipeline.analyze("degrees", ["Knows"], "Person.rank", branch="main"),
        ["read", "change"],
    ),
    "Pipelines.run": (
        lambda g, folder: g.pipeline.run(folder / "p.yaml"),
        ["read", "branch_create", "change", "branch_merge", "branch_delete"],
    ),
    "Pipelines.resume": (
        lambda g, folder: g.pipeline.resume(newest(folder), folder / "p.yaml"),
        ["read", "branch_create", "change", "branch_merge", "branch_delete"],
    ),
    "Pipelines.abort": (lambda g, f: g.pipeline.abort(newest(f)), ["read", "change"]),
    "Pipelines.validate": (lambda g, folder: g.pipeline.validate(folder / "p.yaml"), ["read"]),
    "Pipelines.plan": (lambda g, folder: g.pipeline.plan(folder / "p.yaml"), ["read"]),
    "Pipelines.lineage": (lambda g, folder: g.pipeline.lineage(folder / "p.yaml"), ["read"]),
    "Pipelines.report": (lambda g, _: g.pipeline.report(), ["read"]),
    "Pipelines.rejects": (lambda g, _: list(g.pipeline.rejects()), ["read"]),
    "Pipelines.page": (lambda g, _: g.pipeline.page(), ["read"]),
}


def newest(folder):
    return og.open(folder / "g", mode="ro").pipeline.status()[0].id


def stored(place):
    return {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", SPARK_CALLS)
def test_job_on_spark_needs_its_actions_before_it_starts(place, name):
    call, needed = SPARK_CALLS[name]
    (place.parent / "p.yaml").write_text(PIPELINE)
    (place.parent / "people.csv").write_text("name\nada\n")
    runs = RunStore(og.open(place)._manifest.objects)
    runs.release(runs.begin("draft"))
    before = stored(place)
    for missing in needed:
        graph = opened(place, *(action for action in ACTIONS if action != missing))
        with pytest.raises(og.PolicyDenied) as caught:
            call(graph, place.parent)
        assert caught.value.details["action"] == missing
    for actor in (None, " ", "act-stranger"):
        with pytest.raises(og.PolicyDenied):
            call(opened(place, *ACTIONS, actor=actor), place.parent)
    assert stored(place) == before


def test_every_public_entry_on_spark_is_in_the_table():
    names = {f"Pipelines.{name}" for name in vars(Pipelines) if not name.startswith("_")}
    takes_a_graph = {"read", "read_changes", "write", "stream_into", "analyze"}
    others = {
        *("abort_run", "load_frames", "load_sources", "optimize_on_spark", "plan_pipeline"),
        *("query_frame", "query_stream", "resume_pipeline", "run_pipeline", "verify_on_spark"),
        *("on_spark", "PipelineExecution", "check_engine", "store_values", "value_frame"),
    }
    """What methods of a graph call once the gate has let them through."""
    no_graph = {
        *("Analysis", "AnalysisResult", "StreamOptions", "SparkUnavailable"),
        *("close", "register", "running_tasks", "session", "spark_ui"),
        *("warm_up", "warm_up_in_background"),
    }
    assert set(spark.__all__) == takes_a_graph | others | no_graph
    listed = {name.partition(",")[0] for name in SPARK_CALLS}
    assert listed == {f"pipeline.{name}" for name in takes_a_graph} | (
        names - {"Pipelines.analyze", "Pipelines.status"}
    )


@pytest.mark.parametrize("branch", ["main", " main ", "main\n"])
def test_data_source_knows_a_protected_branch_however_it_is_spelled(place, branch):
    options = {"path": str(place), "policy": ONLY_OTHERS, "actor": "act-ada", "type": "Person"}
    location = manifest_by_options(options).location
    with pytest.raises(og.PolicyDenied, match="'change' on branch 'main'"):
        OmniGraphSource({**options, "branch": branch}).writer(StructType(), overwrite=False)
    with pytest.raises(og.PolicyDenied, match="'read' on branch 'main'"):
        pin_by_options({**options, "branch": branch})
    with pytest.raises(og.PolicyDenied, match="'read' on branch 'main'"):
        ChangeFeedOptions.by_options(location, {**options, "changes": branch})
    OmniGraphSource({**options, "branch": " draft "}).writer(StructType(), overwrite=False)
    assert (
        ChangeFeedOptions.by_options(location, {**options, "changes": " draft "}).branch == "draft"
    )
