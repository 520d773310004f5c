"""What a shell completes: names of the graph, of query files, of a server and the configuration."""

import os

import pytest

import omnigraph as og
from tests.support.program import omnigraph_with
from tests.support.serving import SCHEMA, serving, stored_folder

CONFIG = """\
servers: {{ lab: {{ url: '{url}' }} }}
clusters: {{ harbour: {{ root: ./cluster }} }}
profiles:
  mine: {{ store: ./g }}
  theirs: {{ server: lab, default_graph: notes }}
aliases:
  people-of: {{ server: lab, graph: notes, query: adults }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("complete")
    graph = og.init(folder / "g", SCHEMA)
    graph.branches.create("review/ships")
    graph.branches.create("draft")
    graph.tags.create("v1")
    (folder / "some.gq").write_text(
        "query first() { match { $p: Person } return { $p.name } }\n"
        "query second() { match { $p: Person } return { $p.name } }\n"
    )
    queries = stored_folder(folder / "stored")
    served = og.init(folder / "served", SCHEMA)
    started = ("--graph", f"notes={served.uri}", "--queries", queries, "--unauthenticated")
    with serving(*started) as server:
        (folder / "config.yaml").write_text(CONFIG.format(url=server.url))
        yield folder


def complete(folder, line, **variables):
    """Return what a shell would offer for the last word of a line."""
    words = line.split(" ")
    env = {
        **{name: text for name, text in os.environ.items() if not name.startswith("OMNIGRAPH_")},
        "OMNIGRAPH_HOME": str(folder),
        "_OMNIGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": f"omnigraph {line}",
        "COMP_CWORD": str(len(words)),
        **variables,
    }
    ran = omnigraph_with([], env, folder)
    assert ran.err == ""
    return [one.removeprefix("plain,") for one in ran.out.splitlines() if one]


REFS = ["draft", "main", "review/ships", "v1"]
TYPES = ["Doc", "Knows", "Person"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("snapshot ./g --branch ", REFS),
        ("snapshot --store ./g --branch re", ["review/ships"]),
        ("query --profile mine --snapshot v", ["v1"]),
        ("branch delete ./g ", REFS),
        ("branch delete --store ./g d", ["draft"]),
        ("branch delete --profile mine d", ["draft"]),
        ("merge ./g draft --into m", ["main"]),
        ("diff ./g ", REFS),
        ("diff ./g main rev", ["review/ships"]),
        ("tag delete ./g ", ["v1"]),
        ("export ./g --type ", TYPES),
        ("history ./g ", TYPES),
        ("history ./g Per", ["Person"]),
        ("analyze degrees ./g --edges K", ["Knows"]),
        ("query ./g --query some.gq ", ["first", "second"]),
        ("query --query some.gq sec", ["second"]),
        ("query --server lab --graph notes ", ["add_person", "adults"]),
        ("mutate --profile theirs add", ["add_person"]),
        ("snapshot --profile ", ["mine", "theirs"]),
        ("snapshot --server ", ["lab"]),
        ("optimize --cluster ", ["harbour"]),
        ("alias ", ["people-of"]),
        ("logout l", ["lab"]),
        ("branch delete ", ["dir,"]),
        ("snapshot ./absent --branch ", []),
        ("export ./g --branch main --format p", ["parquet"]),
    ],
)
def test_names_are_completed(folder, line, offered):
    assert complete(folder, line) == offered


def test_a_graph_of_the_environment_is_completed(folder):
    assert complete(folder, "branch delete dr", OMNIGRAPH_STORE="./g") == ["draft"]
    assert complete(folder, "branch delete dr", OMNIGRAPH_PROFILE="mine") == ["draft"]
