"""The format page suffices: a reader written from it alone shows what export shows."""

import base64
import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.support import independent_reader
from tests.support.damage import SCHEMA, make_graph
from tests.support.independent_reader import Reader

NEWER = SCHEMA.replace("bio: String?", 'about: String? @rename_from("bio")').replace(
    "age: I32?", "age: I64?"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("format") / "graph"
    make_graph(folder)
    g = og.open(folder)
    lines = NEWER.splitlines()
    g.schema.apply("\n".join(line for line in lines if not line.startswith("edge LivesIn")))
    g.mutate('query m() { insert Person { name: "new", about: "later", age: 5 } }')
    g.branches.create("work/late")
    g.mutate('query m() { delete Person where name = "p3" }', branch="work/late")
    g.merge("work/late")
    g.branches.delete("work/late")
    return folder


def exported(graph, at):
    found = {}
    for line in map(json.loads, graph.export(at)):
        data = line["data"]
        if "type" in line:
            found.setdefault(f"node:{line['type']}", {})[data["id"]] = data
        else:
            ends = {"src": line["from"], "dst": line["to"]}
            found.setdefault(f"edge:{line['edge']}", {})[data["id"]] = {**data, **ends}
    return found


def plain(entities):
    """Leave out nulls and types without entities; write blobs as export does."""
    texts = {bytes: lambda value: "base64:" + base64.b64encode(value).decode()}
    return {
        key: {
            id_: {
                n: texts.get(type(v), lambda same: same)(v) for n, v in row.items() if v is not None
            }
            for id_, row in rows.items()
        }
        for key, rows in entities.items()
        if rows
    }


def test_reader_of_the_format_page_shows_what_export_shows(folder):
    graph = og.open(folder, mode="ro")
    older = [commit.id for commit in graph.commits.list()][1::3]
    reader = Reader(folder)
    for at in ("main", "side", "first", "last", *older):
        expected = plain(exported(graph, at))
        assert plain(reader.entities(at)) == expected, at
    blobs = [
        row["photo"]
        for row in plain(reader.entities("last"))["node:Person"].values()
        if "photo" in row
    ]
    assert sorted(map(len, blobs)) == [407, 93_343, 120_007]


def test_reader_is_independent_and_short():
    text = Path(independent_reader.__file__).read_text()
    assert "import omnigraph" not in text
    assert "from omnigraph" not in text
    assert len([line for line in text.splitlines() if line.strip()]) <= 90
