"""A served graph takes the rows and parameters that an embedded one takes, and means the same."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import omnigraph as og
from tests.support.serving import serving

SCHEMA = """
node N {
  name: String @key  i: I64?  f: F64?  at: DateTime?  day: Date?  all: [DateTime]?  s: String?
  l: [I64]?  v: Vector(2)?  b: Blob?
}
node Note { text: String? }
edge To: N -> N
"""
INSTANT = datetime(2024, 5, 1, 10, 30, tzinfo=UTC)
MIDNIGHT = datetime(2024, 5, 1)
NO_ENTITY = 'match { $n: N { name: "-" } } return { $n.i }'


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return an embedded graph and another behind a server."""
    folder = tmp_path_factory.mktemp("inputs")
    embedded = og.init(folder / "embedded", SCHEMA)
    og.init(folder / "served", SCHEMA)
    with serving(f"--graph=g={folder / 'served'}", "--unauthenticated") as server:
        yield embedded, og.connect(server.url)


def outcome(call, graph):
    """Return what a call gives, or what is wrong with it."""
    try:
        return call(graph)
    except og.ValidationFailed as error:
        return [
            (v.rule, v.type, v.property, v.source and v.source.number) for v in error.violations
        ]
    except og.OmniError as error:
        return type(error).__name__, error.code


def same(graphs, call):
    """Return the outcome of a call, which is the same for both graphs."""
    embedded, remote = (outcome(call, graph) for graph in graphs)
    assert remote == embedded
    return embedded


def stored(graph, name, property_):
    pattern = "match { $n: N { name: $name } }"
    text = f"query q($name: String) {{ {pattern} return {{ $n.{property_} }} }}"
    return graph.query(text, {"name": name}).rows


VALUES = {
    "day of a data frame": ("day", MIDNIGHT),
    "day of pandas": ("day", pd.Timestamp(MIDNIGHT)),
    "time of day is no day": ("day", INSTANT),
    "day of numpy": ("day", np.datetime64("2024-05-01")),
    "nanoseconds": ("at", np.datetime64("1970-01-02T03:04:05", "ns")),
    "microseconds": ("at", np.datetime64("2024-05-01T10:30", "us")),
    "not a time": ("at", pd.NaT),
    "day as an instant": ("at", date(2024, 5, 1)),
    "last instant in another zone": ("at", pd.Timestamp("2024-05-01T23:00", tz="Asia/Tokyo")),
    "instants": ("all", [INSTANT, pd.Timestamp(INSTANT)]),
    "decimal": ("f", Decimal("1.5")),
    "whole decimal": ("i", Decimal("2")),
    "not a number": ("f", float("nan")),
    "infinite": ("f", float("-inf")),
    "not a text": ("s", float("nan")),
    "bytes as text": ("s", b"x"),
    "object": ("s", object()),
    "time": ("s", time(1, 2)),
    "set": ("l", {1}),
    "dictionary": ("s", {("a",): {1}}),
    "numpy numbers": ("l", [np.int64(3)]),
    "numpy vector": ("v", np.array([1, 0.5], np.float32)),
    "vector that is not finite": ("v", np.array([1, np.nan])),
    "no id": ("id", None),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_rows_mean_the_same(graphs, name):
    property_, value = VALUES[name]

    def insert(graph):
        graph.insert("N", [{"name": name}, {"name": f"{name} 2", property_: value}], mode="merge")
        return stored(graph, f"{name} 2", property_)

    same(graphs, insert)


TABLES = {
    "days": {"day": pa.array([MIDNIGHT], pa.timestamp("ns"))},
    "instants": {"at": pa.array([INSTANT], pa.timestamp("us", "UTC"))},
    "nanoseconds": {"at": pa.array([1_714_557_600_123_456_789], pa.timestamp("ns"))},
    "far instants": {"at": pa.array([2**60], pa.timestamp("ms"))},
    "list of far instants": {"all": pa.array([[2**60]], pa.list_(pa.timestamp("ms")))},
    "decimals": {"f": pa.array([Decimal("1.5")])},
    "ids that are missing": {"id": pa.array([None], pa.string())},
    "words": {"s": pa.array(["x"]).dictionary_encode()},
    "bytes of a blob": {"b": pa.array([b"xyz"], pa.large_binary())},
}


@pytest.mark.parametrize("name", TABLES)
def test_cells_of_tables_mean_the_same(graphs, name):
    [(property_, cells)] = TABLES[name].items()

    def load(graph):
        graph.load({"N": pa.table({"name": [f"table {name}"], property_: cells})})
        if property_ == "b":
            return graph.blob("N", f"table {name}", "b").read()
        return stored(graph, f"table {name}", property_)

    same(graphs, load)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("I64", np.int64(3)),
        ("Vector(2)", np.array([0.5, 1])),
        ("F64", Decimal("1.5")),
        ("I64", Decimal("2")),
        ("F64", float("nan")),
        ("String", float("inf")),
        ("DateTime", np.datetime64("2024-05-01", "ns")),
        ("F64", object()),
    ],
)
def test_parameters_mean_the_same(graphs, type_, value):
    text = f"query q($p: {type_}) {{ {NO_ENTITY} }}"
    is_valid = not isinstance(value, float) and type(value) is not object
    found = same(graphs, lambda graph: graph.query(text, {"p": value}).rows)
    assert found == ([] if is_valid else ("QueryError", "P002"))


def test_every_source_may_begin_with_a_byte_order_mark(graphs):
    lines = [b'\xef\xbb\xbf{"type": "Note", "data": {"text": "%d"}}\n' % n for n in range(2)]
    assert same(graphs, lambda graph: graph.load(lines).total) == 2


def test_older_lines_that_are_not_unicode_are_refused(graphs):
    _, remote = graphs
    with pytest.raises(og.InvalidInput) as caught:
        remote.load(b'{"type": "Note", "data": {"text": "\xff"}}\n', strict=False)
    assert caught.value.code == "body_malformed"


def test_a_type_is_not_overwritten_without_rows_in_silence(graphs):
    embedded, remote = graphs
    for graph in graphs:
        graph.insert("Note", [{"text": "a"}])
    embedded.load({"Note": []}, mode="overwrite")
    assert embedded.query("match { $n: Note } return { $n.text }").rows == []
    with pytest.raises(og.InvalidInput, match="cannot overwrite Note without any row") as caught:
        remote.load({"Note": [], "N": [{"name": "a"}]}, mode="overwrite")
    assert caught.value.code == "remote_unsupported"
    assert remote.load({"Note": []}).total == 0


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        (("N", "blobs", "s"), "not_a_blob"),
        (("node:N", "blobs", "s"), "not_a_blob"),
        (("N", "blobs", "nothing"), "not_a_blob"),
        (("N", "absent", "b"), "entity_not_found"),
        (("N", "absent", "s"), "not_a_blob"),
        (("To", "absent", "b"), "not_a_blob"),
        (("Nothing", "blobs", "b"), "unknown_type"),
    ],
)
def test_bytes_are_put_into_blobs_only(graphs, selector, code):
    for graph in graphs:
        graph.insert("N", [{"name": "blobs", "s": "as it was"}], mode="merge")
    assert same(graphs, lambda graph: graph.put_blob(*selector, b"x"))[1] == code
    assert same(graphs, lambda graph: stored(graph, "blobs", "s")) == [{"n.s": "as it was"}]


def test_blobs_are_put_and_cleared_alike(graphs):
    def story(graph):
        graph.insert("N", [{"name": "blob"}], mode="merge")
        put = [graph.put_blob("N", "blob", "b", data) is None for data in (b"x", b"x", b"")]
        empty = graph.blob("N", "blob", "b").read()
        clear = [graph.clear_blob("N", "blob", "b") is None for _ in range(2)]
        return put, empty, clear

    assert same(graphs, story) == ([False, True, False], b"", [False, True])


def test_an_end_that_is_given_twice_is_refused(graphs):
    for graph in graphs:
        graph.insert("N", [{"name": "one"}, {"name": "two"}], mode="merge")
        with pytest.raises(og.ValidationFailed) as caught:
            graph.insert("To", [{"src": "one", "from": "two", "to": "two"}])
        assert [violation.source.number for violation in caught.value.violations] == [1]
