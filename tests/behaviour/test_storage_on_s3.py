"""How a graph in a bucket is reached, and what happens when it is not: typed, soon, harmless."""

import os
import socket
import time

import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput, NotFound, OmniError, OutcomeUnknown, StorageUnavailable
from omnigraph.storage import ObjectStore, locate
from tests.support.graphs import PORT, SHIP, dump, insert
from tests.support.s3 import s3_server
from tests.support.s3_faults import Fault, misbehaving

IMPATIENT = {
    "connect_timeout": "1s",
    "read_timeout": "1s",
    "client_max_retries": "1",
    "client_retry_timeout": "1",
}
PATIENCE = 30
"""Seconds. Left to itself Lance repeats for minutes what cannot succeed."""
MANIFEST_FILE = "__manifest/_versions/1"
SCHEMA = "node Ship { name: String } node Port { city: String }"


@pytest.fixture(autouse=True)
def _no_aws_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def proxy(s3):
    with misbehaving(s3) as found:
        yield found


def make_graph(uri, options=None):
    return og.init(uri, SCHEMA, storage_options=options)


def refusal(action, *arguments, **options):
    """Return the error an action raises within a short time."""
    start = time.monotonic()
    with pytest.raises(OmniError) as caught:
        action(*arguments, **options)
    assert time.monotonic() - start < PATIENCE
    return caught.value


def attempts(uri, options):
    """Both ways to come to a graph."""
    return [
        lambda: og.open(uri, storage_options=options),
        lambda: og.open(uri, "ro", storage_options=options),
        lambda: make_graph(uri, options),
    ]


# ------------------------------------------------------------------ options and environment


def test_graph_is_reached_by_explicit_options(s3):
    graph = make_graph(s3.fresh(), s3.options)
    insert(graph, SHIP, {"a": {"name": "Ada"}})
    assert list(dump(og.open(graph.uri, storage_options=s3.options))[SHIP]) == ["a"]


def test_graph_is_reached_by_the_environment_alone(s3, monkeypatch):
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    graph = make_graph(s3.fresh())
    graph.branches.create("side")
    insert(graph, SHIP, {"a": {"name": "Ada"}}, branch="side")
    assert list(dump(og.open(graph.uri), "side")[SHIP]) == ["a"]
    assert og.open(graph.uri).verify().problems == []


def test_explicit_options_win_over_a_wrong_environment(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_REGION", "nowhere")
    assert make_graph(s3.fresh(), s3.options).verify().problems == []


@pytest.mark.parametrize(
    "name", ["endpoint", "endpoint_url", "aws_endpoint_url", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
)
def test_options_have_one_meaning_however_they_are_spelled(s3, name):
    options = dict(s3.options)
    options[name] = options.pop("aws_endpoint")
    assert locate("s3://bucket/x", options) == locate("s3://bucket/x", s3.options)


@pytest.mark.parametrize(
    ("general", "special", "option"),
    [
        ("AWS_DEFAULT_REGION", "AWS_REGION", "aws_region"),
        ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "aws_endpoint"),
    ],
)
def test_special_variable_wins_over_the_general_one(monkeypatch, general, special, option):
    monkeypatch.setenv(special, "https://special")
    monkeypatch.setenv(general, "https://general")
    assert locate("s3://bucket/x").options == {option: "https://special"}


def test_graph_lives_at_the_root_of_a_bucket_too():
    with s3_server() as server:
        graph = make_graph("s3://graphs", server.options)
        insert(graph, SHIP, {"a": {"name": "Ada"}})
        again = og.open("s3://graphs/", storage_options=server.options)
        assert list(dump(again)[SHIP]) == ["a"]
        assert again.verify().problems == []


def test_graphs_with_names_of_a_common_beginning_do_not_see_each_other(s3):
    root = s3.fresh()
    one, other = make_graph(f"{root}/a", s3.options), make_graph(f"{root}/ab", s3.options)
    insert(one, SHIP, {"x": {"name": "X"}})
    assert dump(other)[SHIP] == {}
    assert one.verify().problems == other.verify().problems == []


def test_unknown_option_is_named(s3):
    error = refusal(og.open, s3.fresh(), storage_options={**s3.options, "colour": "blue"})
    assert isinstance(error, InvalidInput)
    assert error.code == "storage_option_invalid"
    assert "colour" in error.message


# ------------------------------------------------------------------ what cannot be reached


def test_bucket_that_does_not_exist_is_reported_at_once(s3):
    for attempt in attempts("s3://no-such-bucket/graph", s3.options):
        error = refusal(attempt)
        assert isinstance(error, StorageUnavailable)
        assert error.code == "storage_no_bucket"
        assert error.message == "reaching s3://no-such-bucket/graph: the bucket does not exist"


def test_wrong_credentials_are_reported_at_once():
    with s3_server({"INITIAL_NO_AUTH_ACTION_COUNT": "0"}) as server:
        for attempt in attempts("s3://graphs/graph", server.options):
            error = refusal(attempt)
            assert isinstance(error, StorageUnavailable)
            assert error.code == "storage_denied"
            assert error.message == "reaching s3://graphs/graph: permission denied"
            assert "InvalidAccessKeyId" in error.details["cause"]


def test_missing_credentials_are_reported_soon(s3):
    options = {"aws_endpoint": s3.endpoint, "aws_metadata_endpoint": "http://127.0.0.1:1"}
    error = refusal(og.open, s3.fresh(), storage_options={**options, **IMPATIENT})
    assert error.code == "storage_denied"
    assert error.message.endswith(": no credentials")


def test_endpoint_that_is_not_there_is_reported_soon_without_any_option(s3):
    endpoint = "http://127.0.0.1:1"
    for attempt in attempts("s3://graphs/graph", {**s3.options, "aws_endpoint": endpoint}):
        error = refusal(attempt)
        assert isinstance(error, StorageUnavailable)
        assert error.code == "storage_unavailable"
        assert error.message == "reaching s3://graphs/graph: storage does not respond"
        assert endpoint in error.details["cause"]


def test_endpoint_that_takes_calls_and_never_answers_is_given_up(s3):
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = {**s3.options, "aws_endpoint": endpoint, **IMPATIENT}
        error = refusal(og.open, "s3://graphs/graph", storage_options=options)
        assert error.message == "reaching s3://graphs/graph: storage does not respond"


def test_address_without_a_graph_is_not_mistaken_for_a_missing_bucket(s3):
    uri = s3.fresh()
    error = refusal(og.open, uri, storage_options=s3.options)
    assert isinstance(error, NotFound)
    assert (error.code, error.message) == ("graph_not_found", f"no graph at {uri}")


# ------------------------------------------------------------------ a store that cannot be trusted


def test_store_that_ignores_create_if_absent_is_refused_and_left_empty(s3, proxy):
    uri = s3.fresh()
    proxy.always(Fault.IGNORES_CONDITIONS)
    error = refusal(make_graph, uri, proxy.server.options)
    assert isinstance(error, StorageUnavailable)
    assert error.code == "storage_unsafe"
    assert list(ObjectStore(locate(uri, s3.options)).list("")) == []


@pytest.mark.parametrize("fault", [Fault.ANSWERED_WITH_ERROR, Fault.REFUSED])
def test_store_that_stumbles_once_while_it_is_probed_is_no_liar(s3, proxy, fault):
    proxy.next_put("__probe", fault)
    assert make_graph(s3.fresh(), proxy.server.options).verify().problems == []
    assert proxy.hits == 1


# ------------------------------------------------------------------ a bad way to a good store


@pytest.mark.parametrize("fault", [Fault.ANSWERED_WITH_ERROR, Fault.ANSWER_LOST, Fault.REFUSED])
def test_creator_that_loses_an_answer_knows_its_graph(s3, proxy, fault):
    uri = s3.fresh()
    proxy.next_put(MANIFEST_FILE, fault)
    graph = make_graph(uri, proxy.server.options)
    assert proxy.hits == 1
    fresh = og.open(uri, storage_options=s3.options)
    assert fresh.snapshot().commit_id == graph.snapshot().commit_id
    assert fresh.verify().problems == []


@pytest.mark.parametrize("fault", [Fault.ANSWERED_WITH_ERROR, Fault.ANSWER_LOST, Fault.REFUSED])
def test_commit_whose_answers_are_lost_is_made_exactly_once(s3, proxy, fault):
    graph = make_graph(s3.fresh(), proxy.server.options)
    first = insert(graph, SHIP, {"a": {"name": "Ada"}})
    proxy.next_put(MANIFEST_FILE, fault, fault, fault)
    second = insert(graph, SHIP, {"b": {"name": "Bea"}})
    third = insert(graph, PORT, {"p": {"city": "Oslo"}})
    assert proxy.hits == 3
    fresh = og.open(graph.uri, storage_options=s3.options)
    assert [made.id for made in fresh.commits.list(limit=3)] == [third.id, second.id, first.id]
    assert list(dump(fresh)[SHIP]) == ["a", "b"]
    assert fresh.verify().problems == []


@pytest.mark.parametrize("fault", [Fault.ANSWERED_WITH_ERROR, Fault.ANSWER_LOST])
def test_branch_and_tag_whose_answers_are_lost_are_made_exactly_once(s3, proxy, fault):
    graph = make_graph(s3.fresh(), proxy.server.options)
    proxy.next_put(MANIFEST_FILE, fault)
    graph.tags.create("t")
    proxy.next_put(MANIFEST_FILE, fault)
    graph.branches.create("side")
    fresh = og.open(graph.uri, storage_options=s3.options)
    assert ([tag.name for tag in fresh.tags.list()], fresh.branches.list()) == (
        ["t"],
        ["main", "side"],
    )
    assert fresh.verify().ok


def test_store_that_stalls_under_a_writer_is_given_up_and_nothing_changes(s3, proxy):
    graph = make_graph(s3.fresh(), {**proxy.server.options, **IMPATIENT})
    before = insert(graph, SHIP, {"a": {"name": "Ada"}})
    proxy.fault = lambda method, path: Fault.STALLED if method == "PUT" else Fault.NONE
    error = refusal(insert, graph, SHIP, {"b": {"name": "Bea"}})
    assert isinstance(error, StorageUnavailable)
    assert error.message.endswith(": storage does not respond")
    proxy.always(Fault.NONE)
    assert graph.snapshot().commit_id == before.id
    after = insert(graph, SHIP, {"b": {"name": "Bea"}})
    assert after.parents == (before.id,)
    assert graph.verify().problems == []


def test_commit_has_an_unknown_outcome_when_its_answer_is_lost_and_storage_stays_away(s3, proxy):
    graph = make_graph(s3.fresh(), {**proxy.server.options, "client_max_retries": "0"})

    def die(method, path):
        if method != "PUT" or MANIFEST_FILE not in path:
            return Fault.NONE
        proxy.always(Fault.REFUSED)
        return Fault.ANSWER_LOST

    proxy.fault = die
    error = refusal(insert, graph, SHIP, {"b": {"name": "Bea"}})
    assert isinstance(error, OutcomeUnknown)
    proxy.always(Fault.NONE)
    assert graph.commits.get(error.commit_id).id == graph.snapshot().commit_id
    assert (list(dump(graph)[SHIP]), graph.verify().problems) == (["b"], [])
