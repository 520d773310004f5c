"""A corpus of nasty CSV and JSON files gives equal entities and equal verdicts on both loaders."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.pipeline.config.spec import PipelineError
from omnigraph.pipeline.sources import text_files
from omnigraph.write.violations import ValidationFailed
from tests.support.changes import read_state

SCHEMA = """
node Person { name: String @key  note: String?  age: I32? }
node Item { code: String @key  n: I64?  x: F64?  tags: [String]? }
node Town { name: String @key }
"""
GOOD_CSV = {
    "quotes.csv": b'name,note,age\na1,"say ""hi""",1\na2,"two\nlines, ""and"" more",2\n',
    "slashes.csv": b'name,note,age\nb1,c:\\temp\\,1\nb2,"x\\",2\nb3,\\,\nb4,"\\""",\n',
    "ends.csv": b'\xef\xbb\xbfname,note,age\r\nc1,"a\r\nb",3\r\n\r\nc2,"",\r\nc3,,4',
    "spaces.csv": 'name,note,age\n" d1 ", x ,7\nd2,z"q",\nd3,𝄞 é\u2028\t,8\n'.encode(),
}
GOOD_JSON = r"""{"code": "j1", "n": 9223372036854775807, "x": 1, "tags": ["a", "\ud834\udd1e"]}
{"code": "j2", "n": null, "x": 1.5e300}

{"code": "j\"3\\", "x": -0.1, "tags": []}
{"n": -9007199254740993, "code": "\u0000"}
"""
BAD_CSV = {
    "cells.csv": b'name,note,age\ne1,"ok",1\ne2,short\ne3,a,b,c\ne4,"x\ny",4\n',
    "bytes.csv": b"name,note,age\nf1,x12\xe9,1\nf\xe9,x,2\nf3,ok,3\nf4,ok,x\n",
}
BAD_JSON = r"""{"code": "k1", "n": 1}
{"code": "\ud800", "n": 2}
{"code": "k2", "n": 1, "n": 2}
{"code": "k3", "x": NaN}
{"code": "k4", "x": Infinity}
{"code": 5}
{"code": "k6", "n": 36893488147419103232}
{"code": "k7", "n": "8"}
{"code": "k8"
[1]
{"code": "k9", "n": 9, "tags": "a"}
{"code": "k10", "n": 10, "tags": ["x"]}
"""
PIPELINE = """version: 1
sources:
  people: {{csv: [{files}]}}
  items: {{json: items.jsonl}}
nodes:
  Person: {{source: people}}
  Item: {{source: items}}
"""


def write(tmp_path, files, lines, more=""):
    """Write a corpus for both loaders; return what `load` takes, and the pipeline file."""
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "items.jsonl").write_text(lines, encoding="utf-8")
    wrapped = [f'{{"type": "Item", "data": {line}}}' if line else "" for line in lines.split("\n")]
    (tmp_path / "items.ndjson").write_text("\n".join(wrapped), encoding="utf-8")
    text = PIPELINE.format(files=", ".join(files)) + more
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    return {"Person": [tmp_path / name for name in files]}, tmp_path / "p.yaml"


@pytest.mark.parametrize("small", [text_files.SMALL_BYTES, 0])
def test_nasty_files_give_equal_entities(spark, tmp_path, monkeypatch, small):
    monkeypatch.setattr(text_files, "SMALL_BYTES", small)
    data, pipeline = write(tmp_path, GOOD_CSV, GOOD_JSON)
    text = pipeline.read_text() + "  Town: {source: towns}\n"
    towns = "  towns: {csv: towns.csv, encoding: latin-1, options: {delimiter: ;}}\nnodes:"
    pipeline.write_text(text.replace("nodes:", towns))
    (tmp_path / "towns.csv").write_bytes("name\nÅrhus\n".encode("latin-1"))
    local, distributed = (og.init(tmp_path / name, SCHEMA) for name in ("local", "spark"))
    local.load(data)
    local.load(tmp_path / "items.ndjson")
    local.load({"Town": tmp_path / "towns.csv"}, encoding="latin-1")
    distributed.pipeline.plan(pipeline, count=True)
    distributed.pipeline.run(pipeline)
    assert read_state(distributed) == read_state(local)
    assert local.entity_at("Person", "a2")["note"] == 'two\nlines, "and" more'
    assert local.entity_at("Person", "c2")["note"] == ""
    assert local.entity_at("Town", "Århus") is not None


def places(violations):
    return sorted((place["file"].rpartition("/")[2], number(place)) for place in violations)


def number(place):
    return place.get("row", place.get("line"))


def test_nasty_files_give_equal_verdicts_and_rejects_that_can_be_loaded_again(spark, tmp_path):
    more = "on_violation: reject\nrejects: ./aside\n"
    data, pipeline = write(tmp_path, BAD_CSV, BAD_JSON, more)
    local, distributed = (og.init(tmp_path / name, SCHEMA) for name in ("local", "spark"))
    found = []
    for given in (data, tmp_path / "items.ndjson"):
        with pytest.raises(ValidationFailed) as refused:
            local.load(given)
        found += [violation.to_json()["source"] for violation in refused.value.violations]
    wanted = places(found)

    report = distributed.pipeline.run(pipeline)
    lines = [
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        for path in sorted((tmp_path / "aside").rglob("*.ndjson"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    rejected = [{**line["source"]} for line in lines]
    assert [(f.replace(".jsonl", ".ndjson"), n) for f, n in places(rejected)] == wanted
    assert report.rejected == len({*wanted})
    state = read_state(distributed)
    assert sorted(state["Person"]) == ["e1", "e4", "f3"]
    assert sorted(state["Item"]) == ["k1", "k10"]
    assert all("row" in line for line in lines)
    by_place = {
        (line["source"]["file"].rpartition("/")[2], number(line["source"])): line for line in lines
    }
    assert by_place["cells.csv", 3]["row"] == "e3,a,b,c"
    assert by_place["bytes.csv", 1]["message"] == (
        "column `note`: text is not UTF-8: unexpected end of data at byte 3"
    )
    assert by_place["items.jsonl", 6]["row"] == {"type": "Item", "data": {"code": "5"}}
    wrong = by_place["bytes.csv", 4]["row"]
    assert wrong == {"type": "Person", "data": {"name": "f4", "note": "ok", "age": "x"}}

    wrong["data"]["age"] = 4
    distributed.load(json.dumps(wrong).encode())
    assert distributed.entity_at("Person", "f4")["age"] == 4


CASTS = """version: 1
sources: {s: {csv: s.csv}}
nodes:
  Item:
    source: s
    properties: {code: upper(code), n: cast(n as bigint), x: cast(n as bigint) / d}
    where: cast(w as int) > 0
    dedupe: {keep: max(cast(v as int))}
on_violation: reject
rejects: ./aside
"""


def test_expressions_that_fail_reject_their_row(spark, tmp_path):
    rows = ["code,n,d,w,v", "a,1,2,1,1", "b,x,2,1,1", "c,1,0,1,1", "d,1,1,no,1", "e,1,1,0,1"]
    rows += ["a,2,2,1,?", "a,3,2,1,2"]
    (tmp_path / "s.csv").write_text("\n".join(rows))
    (tmp_path / "p.yaml").write_text(CASTS)
    graph = og.init(tmp_path / "graph", SCHEMA)
    report = graph.pipeline.run(tmp_path / "p.yaml")
    assert {key: row["n"] for key, row in read_state(graph)["Item"].items()} == {"A": 3}
    lines = [
        json.loads(line)
        for path in (tmp_path / "aside").rglob("*.ndjson")
        for line in path.read_text().splitlines()
    ]
    rejects = [(x["source"]["row"], x.get("property"), x["rule"], x["value"]) for x in lines]
    assert sorted(rejects) == [
        (2, "n", "value", "x"),
        (3, "x", "value", "1, 0"),
        (4, None, "value", "no"),
        (6, None, "value", "?"),
    ]
    assert all(line["source"]["file"] == str(tmp_path / "s.csv") for line in lines)
    assert (report.types["node:Item"]["rejected"], report.accepted) == ({"value": 4}, 1)
    (tmp_path / "p.yaml").write_text(CASTS.partition("on_violation")[0])
    with pytest.raises(ValidationFailed) as refused:
        graph.pipeline.run(tmp_path / "p.yaml")
    assert [v.source.number for v in refused.value.violations] == [2, 3, 4, 6]


def test_sources_without_one_good_row_are_reported_in_full(spark, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad.jsonl").write_text("{\n[1]\n")
    text = "version: 1\nsources: {{s: {{json: {}}}}}\nnodes: {{Item: {{source: s}}}}\n"
    graph = og.init(tmp_path / "graph", SCHEMA)
    (tmp_path / "p.yaml").write_text(text.format("empty.jsonl"))
    assert graph.pipeline.plan(tmp_path / "p.yaml", count=True).types["node:Item"]["rows"] == 0
    assert graph.pipeline.run(tmp_path / "p.yaml").accepted == 0
    (tmp_path / "p.yaml").write_text(text.format("bad.jsonl"))
    with pytest.raises(ValidationFailed) as refused:
        graph.pipeline.run(tmp_path / "p.yaml")
    assert [(v.source.number, v.message) for v in refused.value.violations] == [
        (1, "invalid JSON: Expecting property name enclosed in double quotes at column 2"),
        (2, "expected an object, got array"),
    ]


MOUNTED = """version: 1
sources:
  people: {csv: "viewfs://lake/in/*.csv"}
  items: {json: viewfs://lake/in/items.jsonl}
  towns: {ndjson: "viewfs://lake/in/batch*"}
  more: {parquet: viewfs://lake/in/more}
nodes:
  Person: {source: people}
  Item: {source: items}
edges: {Knows: {source: more}}
on_violation: reject
"""


def test_files_of_every_kind_are_read_through_an_address(spark, tmp_path):
    spark.conf.set("fs.viewfs.mounttable.lake.link./in", (tmp_path / "in").as_uri())
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", {"people.csv": b"name,age\nada,1\nbo,x\n"}, '{"code": "i1"}\n[]\n')
    towns = [json.dumps({"type": "Town", "data": {"name": name}}) for name in ("Ely", "Ayr")]
    (tmp_path / "in" / "batch1.ndjson").write_text(towns[0] + "\n")
    (tmp_path / "in" / "batch2.ndjson.gz").write_bytes(
        gzip.compress(f'{{"type": "Town", "data": {{}}}}\n{towns[1]}\n'.encode())
    )
    pq.write_table(pa.table({"from": ["ada"], "to": ["ada"]}), tmp_path / "in" / "more")
    (tmp_path / "p.yaml").write_text(MOUNTED)
    graph = og.init(tmp_path / "g", f"{SCHEMA}\nedge Knows: Person -> Person")
    report = graph.pipeline.run(tmp_path / "p.yaml")
    state = read_state(graph)
    found = {key: sorted(state[key]) for key in ("Person", "Item", "Town")}
    assert found == {"Person": ["ada"], "Item": ["i1"], "Town": ["Ayr", "Ely"]}
    assert [(e["src"], e["dst"]) for e in state["Knows"].values()] == [("ada", "ada")]
    places = {
        (e["rule"], source["file"], source.get("row", source.get("line")))
        for e in report.examples
        for source in [e["source"]]
    }
    assert places == {
        ("value", "viewfs://lake/in/people.csv", 2),
        ("syntax", "viewfs://lake/in/items.jsonl", 2),
        ("required", "viewfs://lake/in/batch2.ndjson.gz", 1),
    }

    (tmp_path / "p.yaml").write_text(MOUNTED.replace("batch*", "none*"))
    with pytest.raises(PipelineError, match="none"):
        graph.pipeline.plan(tmp_path / "p.yaml")
