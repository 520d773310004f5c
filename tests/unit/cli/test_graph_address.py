"""Where a command finds its graph: the command line, then a profile, then what was set up."""

from pathlib import Path

import click
import pytest

from omnigraph.cli.graph_address import AddressOptions, GraphAddress, is_local, resolve_address
from omnigraph.service.user_config import ConfigDefaults, Profile, UserConfig

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
    return UserConfig(folder=Path("/nowhere"), defaults=ConfigDefaults(**defaults), **SET_UP)


@pytest.mark.parametrize(
    ("given", "verb", "defaults", "expected"),
    [
        ({"uri": "./g"}, "query", {}, GraphAddress("store", "./g")),
        ({"store": "s3://b/g"}, "query", {}, GraphAddress("store", "s3://b/g")),
        (
            {"server": "lab", "graph": "g"},
            "query",
            {},
            GraphAddress("server", "https://lab.example", "g"),
        ),
        ({"server": "http://x:1/"}, "query", {}, GraphAddress("server", "http://x:1")),
        ({"profile": "lab"}, "load", {}, GraphAddress("server", "https://lab.example", "notes")),
        (
            {"profile": "lab", "graph": "other"},
            "load",
            {},
            GraphAddress("server", "https://lab.example", "other"),
        ),
        ({"profile": "mine"}, "optimize", {}, GraphAddress("store", "./mine")),
        (
            {"profile": "ops", "graph": "g"},
            "cleanup",
            {},
            GraphAddress("cluster", "s3://bucket/lab", "g"),
        ),
        ({"cluster": "./dir"}, "optimize", {}, GraphAddress("cluster", "./dir")),
        (
            {"uri": "./g", "profile": "lab"},
            "query",
            {"server": "lab"},
            GraphAddress("store", "./g"),
        ),
        (
            {},
            "query",
            {"server": "lab", "default_graph": "d"},
            GraphAddress("server", "https://lab.example", "d"),
        ),
        ({}, "query", {"store": "./d"}, GraphAddress("store", "./d")),
    ],
)
def test_graph_is_found(given, verb, defaults, expected):
    assert resolve_address(AddressOptions(**given), verb, operator(**defaults)) == expected


@pytest.mark.parametrize(
    ("given", "verb", "message"),
    [
        ({}, "query", "no graph given"),
        ({"uri": "a", "store": "b"}, "query", "GRAPH and --store are mutually exclusive"),
        ({"server": "lab", "store": "b"}, "query", "--store and --server are mutually exclusive"),
        ({"uri": "./g", "graph": "g"}, "query", "--graph does not apply"),
        ({"profile": "mine", "graph": "g"}, "query", "--graph does not apply"),
        ({"server": "nope"}, "query", "unknown server 'nope'; configured servers: lab"),
        (
            {"profile": "nope"},
            "query",
            "unknown profile 'nope'; configured profiles: lab, mine, ops, torn",
        ),
        ({"profile": "torn"}, "query", "must have exactly one of server, cluster, store"),
        ({"server": "lab"}, "optimize", "`optimize` is a direct command"),
        ({"server": "lab"}, "index status", "`index status` is a direct command"),
        ({"cluster": "admin"}, "branch list", "--cluster does not apply"),
        ({"uri": "http://x/graphs/g"}, "query", "use `omnigraph --server http://x/graphs/g`"),
    ],
)
def test_unclear_address_is_refused(given, verb, message):
    with pytest.raises(click.UsageError) as caught:
        resolve_address(AddressOptions(**given), verb, operator())
    assert message in caught.value.message


def test_only_folders_are_local():
    addresses = ("./g", "/g", "file:///g", "s3://b/g", "http://x")
    assert [is_local(address) for address in addresses] == [True, True, True, False, False]
