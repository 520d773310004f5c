"""What a graph asks of an object store does not grow with its history.

Requests are counted by an S3 server. The numbers stand in docs/costs.md, which is held to them.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS
from tests.support.counting_s3 import counting_server
from tests.support.graphs import NOTE, make_graph, upsert
from tests.support.history import grow

SIZES = (10, 1_000, 10_000)
TOLERANCE = 2
COLD_OPEN = 7
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
OPERATIONS = (
    "cold open and first snapshot",
    "warm snapshot",
    "snapshot after a foreign commit",
    "first entity",
    "warm entity",
    "commit of one row",
    "commit, average with maintenance",
    "branch create",
)


@dataclass
class Costs:
    """What was counted at one size of history."""

    numbers: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    read: int = 0
    """Number of bytes that a warm snapshot reads."""


def write(graph, number=0):
    upsert(graph, NOTE, {"n": {"text": str(number)}})


def tail(graph):
    """Return the number of manifest fragments as the writer knows it, asking nobody."""
    return len(graph._manifest.main._state.handle.get_fragments())


def settle(graph):
    """Write until maintenance has just merged fragments; return how many commits that took."""
    for number in range(1, 4 * MAX_TAIL_FRAGMENTS):
        before = tail(graph)
        write(graph, number)
        if tail(graph) < before:
            return number
    raise AssertionError("maintenance did nothing")


def measure(server, uri):
    """Count every operation on the graph at an address."""
    costs = Costs()

    def count(name, work):
        with server.counted() as requests:
            made = work()
        costs.numbers[name] = requests.total
        if name == "warm snapshot":
            costs.read = requests.bytes.total()
        costs.kinds[name] = ", ".join(f"{n} {kind}" for kind, n in sorted(requests.kinds.items()))
        return made

    def cold():
        graph = og.open(uri, "ro", storage_options=server.options)
        graph.snapshot()
        return graph

    reader = count("cold open and first snapshot", cold)
    count("warm snapshot", reader.snapshot)
    count("first entity", lambda: reader.entity_at("Note", "n"))
    count("warm entity", lambda: reader.entity_at("Note", "n"))
    writer = og.open(uri, storage_options=server.options)
    writer.snapshot()
    count("first commit of one row", lambda: write(writer))
    count("snapshot after a foreign commit", reader.snapshot)
    count("commit of one row", lambda: write(writer))
    with server.counted() as requests:
        period = 2 + settle(writer)
    before = costs.numbers["first commit of one row"] + costs.numbers["commit of one row"]
    costs.numbers["commit, average with maintenance"] = round((before + requests.total) / period, 1)
    costs.numbers["period"] = period
    count("branch create", lambda: writer.branches.create("side"))
    return costs


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


@pytest.fixture(scope="module")
def costs(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost") / "graph"
    make_graph(str(folder))
    found = {}
    for size in SIZES:
        graph = og.open(folder)
        grow(graph, NOTE, size)
        for number in range(2 * MAX_TAIL_FRAGMENTS):
            write(graph, number)
        settle(graph)
        found[size] = measure(server, server.load(folder, f"graph-{size}"))
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_asks_as_much_of_storage_at_any_length_of_history(costs, operation):
    numbers = {size: costs[size].numbers[operation] for size in SIZES}
    assert max(numbers.values()) - min(numbers.values()) <= TOLERANCE, numbers


def test_warm_snapshot_is_one_request(costs):
    assert {costs[size].numbers["warm snapshot"] for size in SIZES} == {1}


def test_maintenance_runs_equally_often(costs):
    periods = {costs[size].numbers["period"] for size in SIZES}
    assert max(periods) - min(periods) <= 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_documented_numbers_are_those_counted(costs, operation):
    row = re.search(rf"^\| {operation} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{operation}`"
    documented = [float(cell) for cell in row[1].split("|")[: len(SIZES)]]
    counted = [costs[size].numbers[operation] for size in SIZES]
    assert documented == pytest.approx(counted, abs=1), costs[SIZES[0]].kinds.get(operation)


@pytest.mark.parametrize("commits", [0, 1, MAX_TAIL_FRAGMENTS - 4])
def test_cold_open_costs_the_same_between_two_rounds_of_maintenance(server, tmp_path, commits):
    graph = make_graph(str(tmp_path / "graph"))
    for number in range(2 * MAX_TAIL_FRAGMENTS):
        write(graph, number)
    settle(graph)
    for number in range(commits):
        write(graph, number)
    uri = server.load(tmp_path / "graph", f"phase-{commits}")
    with server.counted() as requests:
        og.open(uri, "ro", storage_options=server.options).snapshot()
    assert requests.total == COLD_OPEN, requests.kinds


def test_history_made_at_once_costs_what_real_commits_cost(server, tmp_path):
    real, made = (make_graph(str(tmp_path / name)) for name in ("real", "made"))
    for number in range(120):
        write(real, number)
    grow(made, NOTE, 80)
    for number in range(40):
        write(made, number)
    numbers = []
    for graph in (real, made):
        settle(graph)
        numbers.append(measure(server, server.load(Path(graph.uri), Path(graph.uri).name)).numbers)
    assert numbers[0] == pytest.approx(numbers[1], abs=TOLERANCE)


def test_insert_of_one_row_is_eight_requests(server, tmp_path):
    og.init(tmp_path / "graph", "node Note { slug: String @key }\n")
    graph = og.open(server.load(tmp_path / "graph", "inserts"), storage_options=server.options)
    graph.insert("Note", [{"slug": "first"}])
    with server.counted() as loaded:
        graph.insert("Note", [{"slug": "second"}])
    with server.counted() as mutated:
        graph.mutate('query add() { insert Note { slug: "third" } }')
    assert (loaded.total, mutated.total) == (8, 8), (loaded.kinds, mutated.kinds)


def test_probe_reads_nothing_at_any_length_of_history(costs):
    assert {costs[size].read for size in SIZES} == {0}
