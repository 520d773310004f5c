"""A process is killed while eight of its writers wait for each other, at any step of a commit."""

import signal

import pytest

import omnigraph.graph as og
from tests.commit.conftest import SOAK_SECONDS
from tests.support.children import drain, finish, start
from tests.support.group_writers import CHANGES, SCHEMA, WRITERS, change, write_and_die

MOST_STEPS = 400
STRIDE = {"local": 1, "s3": 1} if SOAK_SECONDS else {"local": 5, "s3": 17}


@pytest.mark.parametrize("fresh_place", ["local", "s3"], indirect=True)
def test_acknowledged_commits_survive_and_no_other_is_half_there(fresh_place, request):
    stride = STRIDE[request.node.callspec.params["fresh_place"]]
    seen = set()
    for step in range(0, MOST_STEPS, stride):
        place = fresh_place()
        og.init(place.uri, SCHEMA, storage_options=place.options)
        process, connection = start(write_and_die, place, step)
        code = finish(process)
        reports = drain(connection)
        connection.close()
        assert code in (0, -signal.SIGKILL), reports
        graph = place.open()
        seen |= check(graph, [report[1:] for report in reports if report[0] == "done"])
        assert change(graph, "later", 0) == graph.snapshot().commit_id
        if code == 0:
            break
    assert code == 0, "the last process was not killed, so there are no more steps"
    assert seen >= {"acknowledged", "absent"}


def check(graph, acknowledged):
    """Compare the graph with what the writers received; return which outcomes there were."""
    report = graph.verify()
    assert report.ok, report.problems
    commits = {commit.id: commit for commit in graph.commits.list()}
    parts = {
        row["p.slug"]: row["p.version"] for row in rows(graph, "$p: Part", "$p.slug, $p.version")
    }
    labels = {row["l.slug"] for row in rows(graph, "$l: Label", "$l.slug")}
    edges = {
        (row["p.slug"], row["l.slug"])
        for row in rows(graph, "$p: Part  $p labelled $l", "$p.slug, $l.slug")
    }
    assert set(parts) == labels, "a commit adds both or neither"
    assert edges == {(slug, slug) for slug in parts}
    outcomes = set()
    for number in range(WRITERS):
        done = {version: commit for writer, version, commit in acknowledged if writer == number}
        assert set(done.values()) <= commits.keys()
        last = max(done, default=-1)
        version = parts.get(f"w{number}", -1)
        # The change that was under way when the process died may have been published.
        assert last <= version <= min(last + 1, CHANGES - 1), (number, done, version)
        outcomes.add("acknowledged" if done else "absent" if version < 0 else "unknown")
    assert len(commits) == 1 + sum(version + 1 for version in parts.values())
    return outcomes


def rows(graph, pattern, columns):
    return list(graph.query(f"query q() {{ match {{ {pattern} }} return {{ {columns} }} }}"))
