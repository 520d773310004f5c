"""What writes, merges, exports or maintains is called behind the gate, or listed here with why."""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "omnigraph"
OPERATIONS = {
    "omnigraph.commit.branches": {"create_branch", "create_tag", "delete_branch", "delete_tag"},
    "omnigraph.commit.graph_creation": {"create_graph"},
    "omnigraph.commit.publish": {"publish"},
    "omnigraph.commit.recovery": {"recover", "read_audit"},
    "omnigraph.maintain.archive": {"read_archive", "write_archive"},
    "omnigraph.maintain.cleanup": {"cleanup"},
    "omnigraph.maintain.export": {"export_lines", "export_parquet"},
    "omnigraph.maintain.optimize": {"optimize"},
    "omnigraph.maintain.partitioned_export": {"export_parts"},
    "omnigraph.maintain.purge": {"purge"},
    "omnigraph.maintain.repair": {"repair"},
    "omnigraph.maintain.verify": {"verify"},
    "omnigraph.merge.merge": {"cherry_pick", "merge", "revert"},
    "omnigraph.write.group_commit": {"apply_changes"},
    "omnigraph.write.transaction": {"apply_alone", "publish_with_retry"},
    "omnigraph.write.embedding_backfill": {"embed_type"},
    "omnigraph.write.load": {"load", "replay_changes"},
    "omnigraph.write.schema_migration": {"apply_schema"},
    "omnigraph.write.mutation": {"run_mutation", "write_blob"},
}
GATED = ("commit", "graph", "maintain", "merge", "write")
"""The methods of a graph, each of which asks the gate first, and the layers below them."""
CHECKED = {
    ("pipeline/analytics/analysis.py", "load"): "the request of analyze checked change",
    ("pipeline/connector/stream_writer.py", "load"): "stream_into made its request",
    ("pipeline/connector/stream_writer.py", "replay_changes"): "stream_into made its request",
    (
        "pipeline/runs/recovery.py",
        "delete_branch",
    ): "removes the branch of an aborted run",
    (
        "pipeline/load/spark_load.py",
        "create_branch",
    ): "the request checked branch_create",
    (
        "pipeline/load/spark_load.py",
        "publish_with_retry",
    ): "the request checked change",
    ("pipeline/runs/runner.py", "delete_branch"): "_authorize and the deletion check branch_delete",
    ("pipeline/runs/runner.py", "merge"): "_authorize and _merge check branch_merge",
    ("review/merging.py", "merge"): "Proposals.merge and its dry run checked branch_merge",
    ("pipeline/maintenance/optimize.py", "optimize"): "Graph.optimize checked admin",
    ("pipeline/maintenance/verify.py", "verify"): "Graph.verify checked admin",
}
"""Callers outside these layers; tests/behaviour/test_policy_gate.py proves each of them."""


def test_operations_are_called_behind_the_gate():
    found = set()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(tuple(f"{layer}/" for layer in GATED)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in OPERATIONS:
                wanted = OPERATIONS[node.module]
                found |= {(name, alias.name) for alias in node.names if alias.name in wanted}
    assert found == set(CHECKED)


def test_listed_operations_exist():
    for module, names in OPERATIONS.items():
        path = SOURCE.parent / f"{module.replace('.', '/')}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert names <= {getattr(node, "name", "") for node in tree.body}, module
