"""The retention of a graph: declared, stored, invalid."""

from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.errors import FormatUnsupported, GraphCorrupt, InvalidInput
from omnigraph.maintain.retention import SETTINGS, Retention
from omnigraph.maintain.verify import IntegrityProblem


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "g", "node A { name: String @key }")


def test_retention_is_stored_with_the_graph_until_it_is_cleared(graph):
    assert graph.maintenance.retention() is None
    declared = graph.maintenance.set_retention(keep=1000, older_than=timedelta(days=30))
    assert declared == Retention(keep=1000, older_than=timedelta(days=30))
    assert declared.to_json() == {"keep": 1000, "older_than": "30d"}
    other = og.open(graph.uri, mode="ro")
    assert other.maintenance.retention() == declared
    assert graph.verify().ok
    graph.maintenance.set_retention(keep=5)
    assert other.maintenance.retention() == Retention(keep=5)
    graph.maintenance.clear_retention()
    assert other.maintenance.retention() is None


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"keep": -1},
        {"keep": True},
        {"keep": 1.5},
        {"keep": "10"},
        {"older_than": timedelta(seconds=-1)},
        {"older_than": "30d"},
    ],
)
def test_invalid_retention_is_refused_and_nothing_is_stored(graph, limits):
    with pytest.raises(InvalidInput) as refused:
        graph.maintenance.set_retention(**limits)
    assert refused.value.code == "retention_invalid"
    assert graph.maintenance.retention() is None


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"keep": -1}, {"older_than": "soon"}, {"keep": 1, "age": "1d"}]
)
def test_invalid_declaration_is_refused(value):
    with pytest.raises(InvalidInput) as refused:
        Retention.parse(value)
    assert refused.value.code == "retention_invalid"


def test_read_only_graph_refuses_a_retention(graph):
    with pytest.raises(InvalidInput, match="read-only"):
        og.open(graph.uri, mode="ro").maintenance.set_retention(keep=1)


def test_unreadable_settings_are_reported_and_can_be_set_again(graph):
    graph._manifest.objects.put(SETTINGS, b'{"version": 1, "retention": {"keep": "x"}}')
    with pytest.raises(GraphCorrupt, match="set the retention again"):
        graph.maintenance.retention()
    graph._manifest.objects.put(SETTINGS, b'{"version": 2, "retention": null}')
    with pytest.raises(FormatUnsupported, match="upgrade"):
        graph.maintenance.retention()
    graph.maintenance.set_retention(keep=3)
    assert graph.maintenance.retention() == Retention(keep=3)
    assert graph.verify().ok
    data = graph._manifest.objects.get(SETTINGS)
    graph._manifest.objects.put(SETTINGS, data.replace(b'"keep": 3', b'"keep": 2'))
    with pytest.raises(GraphCorrupt, match="set the retention again"):
        graph.maintenance.retention()
    message = f"{SETTINGS} cannot be read: set the retention again"
    assert graph.verify().problems == [IntegrityProblem(SETTINGS, message)]


def test_retention_without_a_checksum_is_read(graph):
    graph._manifest.objects.put(SETTINGS, b'{"version": 1, "retention": {"keep": 3}}')
    assert graph.maintenance.retention() == Retention(keep=3)
