"""Where a command finds its graph: the command line, then a profile, then what was set up."""

from pathlib import Path

import click
import pytest

from omnigraph.cli.scope import Given, Scope, is_local, resolve
from omnigraph.service.config import Defaults, Operator, Profile

SET_UP = {
    "servers": {"lab": "https://lab.example"},
    "clusters": {"admin": "s3://bucket/lab"},
    "profiles": {
        "lab": Profile("lab", server="lab", default_graph="notes"),
        "ops": Profile("ops", cluster="admin"),
        "mine": Profile("mine", store="./mine"),
        "torn": Profile("torn", server="lab", store="./mine"),
    },
}


def operator(**defaults):
    return Operator(folder=Path("/nowhere"), defaults=Defaults(**defaults), **SET_UP)


@pytest.mark.parametrize(
    ("given", "verb", "defaults", "expected"),
    [
        ({"uri": "./g"}, "query", {}, Scope("store", "./g")),
        ({"store": "s3://b/g"}, "query", {}, Scope("store", "s3://b/g")),
        (
            {"server": "lab", "graph": "g"},
            "query",
            {},
            Scope("server", "https://lab.example", "g"),
        ),
        ({"server": "http://x:1/"}, "query", {}, Scope("server", "http://x:1")),
        ({"profile": "lab"}, "load", {}, Scope("server", "https://lab.example", "notes")),
        (
            {"profile": "lab", "graph": "other"},
            "load",
            {},
            Scope("server", "https://lab.example", "other"),
        ),
        ({"profile": "mine"}, "optimize", {}, Scope("store", "./mine")),
        ({"profile": "ops", "graph": "g"}, "cleanup", {}, Scope("cluster", "s3://bucket/lab", "g")),
        ({"cluster": "./dir"}, "optimize", {}, Scope("cluster", "./dir")),
        ({"uri": "./g", "profile": "lab"}, "query", {"server": "lab"}, Scope("store", "./g")),
        (
            {},
            "query",
            {"server": "lab", "default_graph": "d"},
            Scope("server", "https://lab.example", "d"),
        ),
        ({}, "query", {"store": "./d"}, Scope("store", "./d")),
    ],
)
def test_graph_is_found(given, verb, defaults, expected):
    assert resolve(Given(**given), verb, operator(**defaults)) == expected


@pytest.mark.parametrize(
    ("given", "verb", "message"),
    [
        ({}, "query", "no graph addressed"),
        ({"uri": "a", "store": "b"}, "query", "a graph address and --store are mutually exclusive"),
        ({"server": "lab", "store": "b"}, "query", "--store and --server are mutually exclusive"),
        ({"uri": "./g", "graph": "g"}, "query", "--graph does not apply"),
        ({"profile": "mine", "graph": "g"}, "query", "--graph does not apply"),
        ({"server": "nope"}, "query", "unknown server 'nope'; set up are: lab"),
        ({"profile": "nope"}, "query", "unknown profile 'nope'; set up are: lab, mine, ops, torn"),
        ({"profile": "torn"}, "query", "must have exactly one of server, cluster, store"),
        ({"server": "lab"}, "optimize", "`optimize` is a direct command"),
        ({"server": "lab"}, "index status", "`index status` is a direct command"),
        ({"cluster": "admin"}, "branch list", "--cluster does not apply"),
        ({"uri": "http://x/graphs/g"}, "query", "say --server http://x/graphs/g"),
    ],
)
def test_unclear_address_is_refused(given, verb, message):
    with pytest.raises(click.UsageError) as caught:
        resolve(Given(**given), verb, operator())
    assert message in caught.value.message


def test_only_folders_are_local():
    addresses = ("./g", "/g", "file:///g", "s3://b/g", "http://x")
    assert [is_local(address) for address in addresses] == [True, True, True, False, False]
