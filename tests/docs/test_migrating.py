"""The tables of docs/migrating.md, executed in order in one folder with a server beside it."""

import os
import re
import shlex

import pytest

import omnigraph as og
from tests.support.docs import ROOT
from tests.support.program import omnigraph_with
from tests.support.serving import serving

PAGE = ROOT / "docs" / "migrating.md"
_ROW = re.compile(
    r"\| `(?P<line>(?:omnigraph|printf)[^`]*)` \| (?P<outcome>works, warns|works|answered)"
    r"(?:: `(?P<text>[^`]+)`)? \|"
)
ROWS = [match.groupdict() for match in map(_ROW.fullmatch, PAGE.read_text().splitlines()) if match]
SCHEMA = """
node Person { name: String @key  age: I32? }
node Document { slug: String @key  body: Blob? }
edge Knows: Person -> Person
"""
DATA = """\
{"type":"Person","data":{"name":"Ada","age":36}}
{"type":"Document","data":{"slug":"doc-42","body":"base64:aGVsbG8="}}
"""
QUERIES = """
query get_person($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }
"""
MUTATIONS = (
    "query insert_person($name: String, $age: I32) { insert Person { name: $name, age: $age } }"
)
POLICY = """\
version: 1
groups: { team: [act-alice] }
rules:
  - id: team-may-read
    allow: { actors: { group: team }, actions: [read] }
"""


def test_every_line_of_the_tables_is_read():
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| `(omni|printf)", line)]
    assert len(ROWS) == len(lines) > 90


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with the files of the lines, and the variables of a server beside it."""
    folder = tmp_path_factory.mktemp("migrating")
    files = {
        "schema.pg": SCHEMA,
        "next.pg": SCHEMA.replace("age: I32?", "age: I32?  email: String?"),
        "data.jsonl": DATA,
        "batch.jsonl": '{"type":"Person","data":{"name":"Eve"}}\n',
        "delta.jsonl": '{"type":"Person","data":{"name":"Fay"}}\n',
        "queries.gq": QUERIES,
        "mutations.gq": MUTATIONS,
        "stored/people.gq": QUERIES,
        "params.json": '{"name": "Ada"}',
        "company-brain/policy.tests.yaml": "version: 1\ncases:\n"
        "  - { id: reads, actor: act-alice, action: read, branch: main, expect: allow }\n",
        "seed.jsonl": '{"type":"Person","data":{"name":"Ada"}}\n',
        "embed-config.yaml": "sources: { raw_seed: seed.jsonl }\n"
        "embeddings: { dimension: 4, types: { Person: { target: v, fields: [name] } } }\n",
        "company-brain/cluster.yaml": "version: 1\n"
        "graphs: { knowledge: { schema: ../schema.pg, queries: ../queries.gq } }\n"
        "policies: { team: { file: policy.yaml, applies_to: [knowledge] } }\n",
        "company-brain/policy.yaml": POLICY,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    served = og.init(folder / "served", SCHEMA)
    served.insert("Person", [{"name": "Ada", "age": 36}])
    stored = ("--queries", folder / "stored", "--unauthenticated")
    with serving("--graph", f"knowledge={served.uri}", *stored) as server:
        home = folder / "home"
        home.mkdir()
        (home / "config.yaml").write_text(
            f"servers: {{ prod: {{ url: '{server.url}' }} }}\n"
            "profiles:\n"
            "  prod-knowledge: { server: prod, default_graph: knowledge }\n"
            "  local: { store: ./graph.omni }\n"
            "aliases:\n"
            "  person: { server: prod, graph: knowledge, query: get_person, args: [name] }\n"
        )
        variables = {"OMNIGRAPH_HOME": str(home), "OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
        yield folder, {**os.environ, **variables}, server.url


@pytest.mark.parametrize("row", ROWS, ids=[row["line"] for row in ROWS])
def test_line(row, place):
    folder, environment, url = place
    given = None
    line = row["line"].replace("URL", url).partition(" > ")[0]
    if "\\|" in line:
        given, line = "secret", line.partition("\\| ")[2]
    if "COMMIT" in line:
        line = line.replace("COMMIT", og.open(folder / "graph.omni").snapshot().commit_id)
    program, *words = shlex.split(line)
    words = ["serve", *words] if program == "omnigraph-server" else words
    ran = omnigraph_with(words, environment, folder, given)
    warned = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    text = (row["text"] or "").replace("URL", url)
    if row["outcome"] == "answered":
        assert ran.code in (1, 2), ran
        assert text in " ".join(ran.err.split())
    else:
        assert ran.code == 0, ran
        assert bool(warned) == (row["outcome"] == "works, warns")
        assert any(f"use `{text}`" in line for line in warned) == (text != "")
