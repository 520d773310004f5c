"""Builds folders with a `cluster.yaml` and the files it names."""

from __future__ import annotations

from pathlib import Path

PEOPLE = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
PEOPLE_NEXT = PEOPLE.replace("age: I32?", "age: I32?  town: String?")
PORTS = "node Port { code: String @key }\n"
NAMES = "query names() { match { $p: Person } return { $p.name } }\n"
ADD = "query add($name: String) { insert Person { name: $name } }\n"
READERS = """version: 1
groups: { staff: [act-ada] }
rules:
  - id: staff-read
    allow: { actors: { group: staff }, actions: [read] }
"""
LISTERS = READERS.replace("[read]", "[graph_list]").replace("staff-read", "staff-list")

TWO_GRAPHS = """version: 1
metadata: { name: lab }
{storage}providers:
  embedding:
    fake: { kind: mock, model: m }
graphs:
  people:
    schema: people.pg
    queries: queries
    embedding_provider: fake
  ports:
    schema: ports.pg
policies:
  readers: { file: readers.yaml, applies_to: [people] }
  listers: { file: listers.yaml, applies_to: [cluster] }
"""


def write_cluster(folder: Path, storage: str | None = None) -> Path:
    """Write a configuration of two graphs with queries, policies and a provider."""
    (folder / "queries").mkdir(parents=True)
    where = "" if storage is None else f"storage: {storage}\n"
    files = {
        "cluster.yaml": TWO_GRAPHS.replace("{storage}", where),
        "people.pg": PEOPLE,
        "ports.pg": PORTS,
        "queries/names.gq": NAMES,
        "queries/add.gq": ADD,
        "readers.yaml": READERS,
        "listers.yaml": LISTERS,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def edit(folder: Path, old: str, new: str, file: str = "cluster.yaml") -> None:
    """Replace a text in a file of a cluster, where it has to be."""
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text, f"{file} has no {old!r}"
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")


def without_ports(folder: Path) -> None:
    """Take the graph `ports` out of the configuration."""
    edit(folder, "  ports:\n    schema: ports.pg\n", "")
