"""Damage to the events of proposals is reported where it is, and closes nothing else."""

from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.errors import GraphCorrupt, OmniError
from omnigraph.storage.checksums import clear_checked_files


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", "node Port { code: String @key }")
    graph.branches.create("side")
    graph.insert("Port", [{"code": "BGO"}], branch="side")
    proposal = graph.proposals.create("side", into="main", title="Bergen")
    proposal.comment("one")
    proposal.comment("two")
    return graph


def files(graph, folder):
    """Return the files of the lineage of proposals, the oldest first."""
    return sorted(
        (Path(graph.uri) / "__proposals" / folder).iterdir(), key=lambda f: f.stat().st_mtime_ns
    )


def version(graph):
    """Return the newest version file."""
    return [file for file in files(graph, "_versions") if file.suffix == ".manifest"][-1]


def flip(file, at):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(bytes(data))
    clear_checked_files()


def problems(graph, **options):
    report = og.open(graph.uri, mode="ro").verify(**options)
    return [(problem.where, problem.message) for problem in report.problems if not problem.harmless]


def comments(graph):
    return [comment.body for comment in graph.proposals.get(1).comments]


@pytest.mark.parametrize("deep", [False, True])
def test_whole_proposals_have_no_problems(graph, deep):
    assert problems(graph, deep=deep) == []


@pytest.mark.parametrize("deep", [False, True])
def test_lost_newest_version_is_found(graph, deep):
    version(graph).unlink()
    message = "manifest version 4 is missing: an older state is used"
    assert problems(graph, deep=deep) == [("proposals", message)]


@pytest.mark.parametrize("deep", [False, True])
def test_incomplete_newest_version_is_found_and_set_aside_by_a_writer(graph, deep):
    version(graph).write_bytes(b"")
    message = (
        "manifest version 4 is incomplete: an older state is used; open the graph for writing to "
        "set it aside"
    )
    assert problems(graph, deep=deep) == [("proposals", message)]
    writer = og.open(graph.uri)
    assert comments(writer) == ["one"]
    assert problems(graph, deep=deep) == []
    writer.proposals.get(1).comment("again")
    assert comments(og.open(graph.uri)) == ["one", "again"]


@pytest.mark.parametrize("deep", [False, True])
def test_damaged_event_is_one_problem_and_everything_else_is_checked(graph, deep):
    graph.insert("Port", [{"code": "OSL"}])
    other = next(Path(graph.uri).glob("nodes/*/data/*.lance"))
    other.unlink()
    damaged = files(graph, "data")[-1]
    flip(damaged, damaged.stat().st_size // 2)
    name = f"__proposals/data/{damaged.name}"
    (first, message), *rest = sorted(problems(graph, deep=deep), reverse=True)
    assert first == "proposals"
    assert message.startswith(f"{name} is damaged: it does not match its checksum")
    assert rest
    assert all(other.name in message and name not in message for _, message in rest)


def test_damaged_event_closes_only_proposals(graph):
    damaged = files(graph, "data")[-1]
    flip(damaged, damaged.stat().st_size // 2)
    graph = og.open(graph.uri)
    with pytest.raises(GraphCorrupt):
        graph.proposals.get(1)
    graph.insert("Port", [{"code": "OSL"}])
    graph.merge("side")
    graph.branches.create("other")
    graph.branches.delete("other")
    codes = graph.query("query q() { match { $p: Port } return { $p.code as c } order { c } }")
    assert [row["c"] for row in codes.rows] == ["BGO", "OSL"]
    assert og.repair_to_last_good(graph.uri, confirm=True).confirmed
    assert comments(og.open(graph.uri)) == ["one"]
    assert problems(graph) == []


def test_no_flipped_bit_of_a_version_file_is_a_traceback(graph):
    file = version(graph)
    whole = file.read_bytes()
    expected = comments(graph)
    for at in range(0, len(whole), 41):
        flip(file, at)
        with suppress(OmniError):
            assert comments(og.open(graph.uri, mode="ro")) in (expected, expected[:1]), at
        file.write_bytes(whole)
