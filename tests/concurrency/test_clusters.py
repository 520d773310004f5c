"""Several processes apply one configuration at the same moment."""

import pytest

from omnigraph.service import cluster
from tests.support.clusters import edit, write_cluster


def apply_together(racer, folder, options):
    """Apply with the others; return how it ended, and what was said."""
    racer.together()
    done = cluster.apply(folder, actor=f"act-{racer.number}", options=options)
    return done.ok, done.facts["state_written"], [finding.code for finding in done.findings]


@pytest.mark.parametrize("locked", [True, False], ids=["lock", "no-lock"])
def test_of_concurrent_applies_one_writes_and_the_others_fail(tmp_path, graph_root, racers, locked):
    folder = write_cluster(tmp_path / "config", graph_root.uri)
    if not locked:
        edit(folder, "version: 1", "version: 1\nstate: { lock: false }")
    assert cluster.import_state(folder, graph_root.options).ok
    ends = racers.run(apply_together, folder, graph_root.options)
    assert sum(written for _, written, _ in ends) >= 1
    reported = {
        "state_lock_held",
        "state_cas_mismatch",
        "graph_create_failed",
    }
    for ok, written, codes in ends:
        # A process that did not report a conflict has written, or had nothing to do.
        assert ok or reported & set(codes), codes
        assert ok or not written or "graph_create_failed" in codes, codes
    # Without a lock one may have made a graph that another did not find in the ledger.
    assert locked or cluster.refresh(folder, graph_root.options).ok
    done = cluster.apply(folder, options=graph_root.options)
    assert (done.ok, done.facts["converged"]) == (True, True), done.findings
    served = cluster.read_applied_revision(folder, graph_root.options)
    assert [(graph.id, sorted(graph.queries)) for graph in served.healthy] == [
        ("people", ["add", "names"]),
        ("ports", []),
    ]
