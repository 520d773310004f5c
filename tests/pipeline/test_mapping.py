"""Sources become frames with positions, and frames rows of types, on a real Spark."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import omnigraph.graph as og
from omnigraph.pipeline.config.resolve import check_types
from omnigraph.pipeline.config.spec import PipelineError, read_pipeline
from omnigraph.pipeline.load.model import FILE, ROW
from omnigraph.pipeline.runs.planning import plan_pipeline
from omnigraph.pipeline.sources import analysis, extract
from omnigraph.pipeline.sources.guards import FAULT_COLUMN
from omnigraph.pipeline.sources.prepare import prepare_pipeline, run_key, split_signature

SCHEMA = """
node Ship { imo: I64 @key  name: String  built: Date?  seen: DateTime?  flags: [String]? }
node Berth { port: String  number: I32  @key(port, number) }
node Note { text: String }
edge LiesAt: Ship -> Berth { since: Date? }
edge On: Note -> Ship
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return og.init(tmp_path_factory.mktemp("graph"), SCHEMA)


@pytest.fixture
def ready(spark, graph, tmp_path):
    opened = []

    def ready(text):
        path = tmp_path / "pipeline.yaml"
        path.write_text("version: 1\n" + text, encoding="utf-8")
        pipeline = read_pipeline(path)
        check_types(pipeline, graph.schema.catalog)
        opened.append(prepare_pipeline(graph._manifest, pipeline))
        return opened[-1]

    yield ready
    for found in opened:
        found.sources.close()


def rows(ready, place=0, *names):
    found = [row.asDict() for row in ready.mapped[place].input.frame.collect()]
    return sorted((tuple(row[name] for name in names) for row in found), key=repr)


def problems(refused):
    return [
        (str(d.code), d.location.rpartition("/")[2], d.message) for d in refused.value.diagnostics
    ]


def test_cells_of_csv_are_text_with_their_place(ready, tmp_path):
    (tmp_path / "a b.csv").write_text('imo,name,built\n7,"",2020-01-01\nx,"a\tb",\n')
    (tmp_path / "c.csv").write_text("imo,name,built\n8,Ada,\n")
    found = ready("sources: {s: {csv: ['a b.csv', c.csv]}}\nnodes: {Ship: {source: s}}\n")
    assert found.mapped[0].input.text
    names = [name.rpartition("/")[2] for name, _ in found.sources.files]
    assert [
        (imo, name, built, names[file], at)
        for imo, name, built, file, at in rows(found, 0, "imo", "name", "built", FILE, ROW)
    ] == [
        ("7", "", "2020-01-01", "a b.csv", 1),
        ("8", "Ada", None, "c.csv", 1),
        ("x", "a\tb", None, "a b.csv", 2),
    ]


def test_rows_of_text_are_numbered_across_pieces_that_are_read_apart(ready, tmp_path, spark):
    lines = [f'{{"imo": {number}, "name": "{"n" * 50}"}}' for number in range(1, 2001)]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        found = ready("sources: {s: {json: s.jsonl}}\nnodes: {Ship: {source: s}}\n")
        frame = found.mapped[0].input.frame
        assert frame.rdd.getNumPartitions() > 3
        assert {row["imo"]: row[ROW] for row in frame.collect()} == {n: n for n in range(1, 2001)}
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_rows_of_parquet_keep_types_and_places(ready, tmp_path):
    seen = datetime(2024, 5, 1, 12, tzinfo=UTC)
    table = pa.table(
        {
            "imo": pa.array([1, 2], pa.int64()),
            "name": ["a", "b"],
            "seen": pa.array([seen, None], pa.timestamp("us", "UTC")),
            "flags": [["x"], None],
            "other": [1.5, 2.5],
        }
    )
    pq.write_table(table, tmp_path / "s.parquet")
    found = ready("sources: {s: {parquet: s.parquet}}\nnodes: {Ship: {source: s}}\n")
    assert not found.mapped[0].input.text
    columns = {"imo", "name", "seen", "flags", FILE, ROW, FAULT_COLUMN}
    assert set(found.mapped[0].input.frame.columns) == columns
    assert rows(found, 0, "imo", "flags", ROW) == [(1, ["x"], 1), (2, None, 2)]


def test_expressions_over_text_become_text_that_means_the_same(ready, tmp_path):
    (tmp_path / "s.csv").write_text("imo,day\n7,2020-02-03\n")
    found = ready("""
sources: {s: {csv: s.csv}}
nodes:
  Ship:
    source: s
    properties:
      imo: imo
      name: upper('ada')
      built: to_date(day)
      seen: to_timestamp(day) + interval 90 minutes
      flags: array(day, 'x')
""")
    assert rows(found, 0, "imo", "name", "built", "seen", "flags") == [
        ("7", "ADA", "2020-02-03", "2020-02-03T01:30:00.000000Z", '["2020-02-03","x"]')
    ]


def test_where_and_dedupe_choose_rows(ready, tmp_path):
    (tmp_path / "s.csv").write_text("imo,name,v\n1,a,1\n1,b,3\n1,c,2\n2,d,9\n2,e,\n3,no,1\n")
    text = """
sources: {{s: {{csv: s.csv}}}}
nodes: {{Ship: {{source: s, where: name <> 'no', dedupe: {{{}}}}}}}
"""
    for rule, kept in (
        ("keep: first", {"a", "d"}),
        ("keep: last", {"c", "e"}),
        ("keep: max(cast(v as int))", {"b", "d"}),
        ("keep: min(cast(v as int))", {"a", "d"}),
        ("by: [imo, v], keep: last", {"a", "b", "c", "d", "e"}),
        ("by: 1, keep: last", {"e"}),
    ):
        found = ready(text.format(rule))
        assert {name for (name,) in rows(found, 0, "name")} == kept, rule


def test_members_that_are_not_of_their_declared_type_make_a_row_unreadable(ready, tmp_path):
    lines = {
        1: '"pos": {"x": 1, "y": "a"}, "m": {"k": 1}, "l": [1, null]',
        2: '"pos": {"x": "abc", "y": "b"}',
        3: '"pos": {"x": 99999999999}',
        4: '"pos": {"z": 1}, "l": []',
        5: '"m": {"k": "v"}',
        6: '"l": [1, "v"]',
        7: '"pos": "text"',
        8: '"pos": null',
    }
    text = "".join(f'{{"imo": {imo}, {rest}}}\n' for imo, rest in lines.items())
    (tmp_path / "s.jsonl").write_text(text)
    columns = "imo bigint, pos struct<x:int,y:string>, m map<string,int>, l array<int>"
    found = ready(f"""
sources: {{s: {{json: s.jsonl, columns: "{columns}"}}}}
nodes: {{Ship: {{source: s, properties: {{imo: imo, name: "coalesce(pos.y, 'none')"}}}}}}
""")
    assert found.broken == 5
    assert rows(found, 0, "imo", "name") == [(1, "a"), (4, "none"), (8, "none")]


def test_times_become_text_of_the_same_moment_in_any_zone_of_the_session(ready, tmp_path, spark):
    # In New York, there is no 02:30 on the first day, and 01:30 occurs twice on the last.
    moments = ["2026-03-08T02:30:00Z", "2026-11-01T05:30:00.123456Z", "2026-11-01T06:30:00Z"]
    lines = [f"{number},a,{moment}" for number, moment in enumerate(moments)]
    (tmp_path / "s.csv").write_text("\n".join(["imo,name,seen", *lines, "9,a,"]) + "\n")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for expression in ("cast(seen as timestamp)", "cast(substr(seen, 1, 26) as timestamp_ntz)"):
            found = ready(f"""
sources: {{s: {{csv: s.csv}}}}
nodes: {{Ship: {{source: s, properties: {{imo: imo, name: name, seen: "{expression}"}}}}}}
""")
            texts = [seen for _, seen in rows(found, 0, "imo", "seen")]
            assert texts == [
                "2026-03-08T02:30:00.000000Z",
                "2026-11-01T05:30:00.123456Z",
                "2026-11-01T06:30:00.000000Z",
                None,
            ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_files_have_the_order_of_their_paths_and_names(ready, tmp_path, kind):
    names = [f"parts/{n}/p {m}.x" for n in ("a", "a-b", "b") for m in range(3)]
    for number, name in enumerate(["z.x", *names, "b.x", "a.x"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "csv":
            path.write_text(f"imo,name\n1,{number}\n")
        elif kind == "json":
            path.write_text(f'{{"imo": 1, "name": "{number}"}}\n')
        else:
            pq.write_table(pa.table({"imo": [1], "name": [str(number)]}), path)
    found = ready(f"""
sources: {{s: {{{kind}: [z.x, './parts/*', b.x, a.x]}}}}
nodes: {{Ship: {{source: s, dedupe: {{keep: last}}}}}}
""")
    files = [name.removeprefix(f"{tmp_path}/") for name, _ in found.sources.files]
    assert files == ["z.x", *names, "b.x", "a.x"]
    assert rows(found, 0, "name") == [("11",)]


def test_queries_read_other_sources_and_leave_no_views(ready, tmp_path, spark):
    (tmp_path / "a.csv").write_text("imo,name\n1,a\n2,b\nbroken\n")
    (tmp_path / "b.jsonl").write_text('{"imo": 2, "built": "2020-01-01"}\n')
    found = ready("""
sources:
  a: {csv: a.csv}
  b: {json: b.jsonl}
  both:
    sql: |
      with known as (select * from b)
      select a.imo, a.name, to_date(known.built) as built
      from a left join known on known.imo = a.imo -- and no more
nodes: {Ship: {source: both}}
""")
    assert rows(found, 0, "imo", "name", "built") == [("1", "a", None), ("2", "b", "2020-01-01")]
    assert FILE not in found.mapped[0].input.frame.columns
    found.sources.close()
    assert [t.name for t in spark.catalog.listTables() if t.name.startswith("omnigraph")] == []


def test_databases_and_other_formats_are_read_by_spark(ready, tmp_path, spark):
    address = f"jdbc:derby:{tmp_path}/crm;create=true"
    ships = spark.createDataFrame([(1, "a"), (2, "b")], "imo long, name string")
    ships.write.jdbc(address, "ships")
    ships.withColumnRenamed("name", "text").write.orc(str(tmp_path / "notes"))
    found = ready(f"""
sources:
  whole: {{jdbc: "{address}", table: ships}}
  part: {{jdbc: "{address}", query: "select * from ships where \\"imo\\" > 1"}}
  notes: {{format: orc, path: notes}}
  all: {{sql: "select * from whole union all select imo + 10 as imo, name from part"}}
nodes:
  Ship: {{source: all}}
  Note: {{source: notes, id: "concat('n', imo)"}}
""")
    assert rows(found, 0, "imo", "name") == [(1, "a"), (12, "b"), (2, "b")]
    assert rows(found, 1, "id", "text") == [("n1", "a"), ("n2", "b")]
    assert run_key(found) is None


def test_tables_of_a_catalog_are_read_by_their_names(ready, tmp_path, spark):
    address = f"jdbc:derby:{tmp_path}/lake;create=true"
    spark.createDataFrame([(1, "a"), (2, "b")], "imo long, name string").write.jdbc(
        address, "ships"
    )
    catalog = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    driver = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    for name, value in (("", catalog), (".url", address), (".driver", driver)):
        spark.conf.set(f"spark.sql.catalog.lake{name}", value)
    found = ready("""
sources:
  ships: {table: lake.APP.SHIPS}
  notes: {sql: "select cast(imo as string) as text, concat('n', imo) as id from ships"}
nodes:
  Ship: {source: ships, where: imo > 1}
  Note: {source: notes}
""")
    assert rows(found, 0, "imo", "name") == [(2, "b")]
    assert rows(found, 1, "id", "text") == [("n1", "1"), ("n2", "2")]
    assert run_key(found) is None
    with pytest.raises(PipelineError) as refused:
        ready("sources: {s: {table: lake.APP.boats}}\nnodes: {Ship: {source: s}}\n")
    [(code, location, message)] = problems(refused)
    assert (code, location) == ("Y401", "pipeline.yaml:2:22")
    assert "boats" in message


def test_rows_that_where_excludes_are_not_rejected(ready, tmp_path, spark):
    (tmp_path / "s.csv").write_text("imo,name,n\n1,a,7\nx,b,\n3,c,-\n4,d,z\n")
    text = """
sources: {s: {csv: s.csv}}
nodes:
  Ship:
    source: s
    where: cast(n as int) > 0 or n is null
    properties: {imo: cast(imo as int), name: name}
"""
    found = ready(text)
    assert rows(found, 0, "imo", "name") == [(1, "a"), (None, "b"), (None, "c"), (None, "d")]
    kept = [row["name"] for row in found.mapped[0].input.frame.collect() if row[FAULT_COLUMN]]
    assert kept == ["b", "c", "d"]  # of these, `where` fails for two
    found = ready(text.replace("cast(n as int) > 0 or n is null", "n = '7'"))
    assert rows(found, 0, "imo", FAULT_COLUMN) == [(1, None)]


def test_where_prunes_partitions_and_row_groups(ready, tmp_path, spark, capsys):
    frame = spark.sql("select id as imo, concat('s', id) as name, id % 3 as day from range(9)")
    frame.write.partitionBy("day").parquet(str(tmp_path / "ships"))
    found = ready("""
sources: {s: {parquet: ships}}
nodes: {Ship: {source: s, where: day = 2 and imo > 3, properties: {imo: imo, name: upper(name)}}}
""")
    assert rows(found, 0, "imo", "name") == [(5, "S5"), (8, "S8")]
    capsys.readouterr()
    found.mapped[0].input.frame.explain()
    plan = capsys.readouterr().out
    assert "(day#" in plan.partition("PartitionFilters: [")[2].partition("]")[0]
    assert "GreaterThan(imo,3)" in plan.partition("PushedFilters: [")[2].partition("]")[0]


def test_endpoints_are_ids_or_made_from_keys(ready, tmp_path, graph):
    graph.insert("Berth", [{"port": "AAR", "number": 3}])
    [berth] = [json.loads(line)["data"] for line in graph.export(types=["Berth"])]
    (tmp_path / "s.csv").write_text("ship,port,number,day\n007,AAR,3,1\nx,BGO,,2\n")
    found = ready("""
sources: {s: {csv: s.csv}}
edges:
  LiesAt: {source: s, from: {imo: ship}, to: {port: port, number: number}}
  On: {source: s, from: day, to: cast(day as int) + 1}
""")
    assert rows(found, 0, "from", "to", ROW) == [("7", berth["id"], 1), ("x", None, 2)]
    assert rows(found, 1, "from", "to") == [("1", "2"), ("2", "3")]


def test_invalid_expression_is_reported_with_its_line(ready, tmp_path):
    (tmp_path / "s.csv").write_text("imo,name,when\n1,a,b\n")
    with pytest.raises(PipelineError) as refused:
        ready("""sources:
  s: {csv: s.csv}
  gone: {parquet: gone}
  bad: {sql: select slug from s}
nodes:
  Ship:
    source: s
    properties: {imo: imoo, name: upper(name, built: "array(1)"}
    where: nme = 1
    dedupe: {by: name +, keep: max(none)}
  Note: {source: s}
  Berth: {source: gone}
edges:
  On: {source: bad}
""")
    found = {(code, place): message for code, place, message in problems(refused)}
    unparsed = found.pop(("Y402", "pipeline.yaml:9:35"))
    assert unparsed.startswith("Spark rejected `upper(name`: Syntax error")
    unfinished = found.pop(("Y402", "pipeline.yaml:11:18"))
    assert unfinished.startswith("Spark rejected `name +`: Syntax error")
    query = found.pop(("Y401", "pipeline.yaml:5:14"))
    assert query.startswith("source `bad`: A column, variable, or function parameter")
    assert found == {
        ("Y401", "pipeline.yaml:4:19"): f"source `gone`: Path does not exist: file:{tmp_path}/gone",
        ("Y402", "pipeline.yaml:9:23"): "source `s` has no column `imoo`",
        ("Y402", "pipeline.yaml:9:54"): "`array(1)` has type array<int>, but Ship.built is Date?",
        ("Y402", "pipeline.yaml:10:12"): "source `s` has no column `nme`",
        ("Y402", "pipeline.yaml:11:32"): "source `s` has no column `none`",
        ("Y303", "pipeline.yaml:12:18"): "node `Note`: source `s` has no column `text`",
    }
    hints = {d.location.rpartition(":")[0][-2:]: d.hint for d in refused.value.diagnostics}
    assert hints["10"] == "did you mean `name`?"


def test_hundreds_of_expressions_are_analysed_together(ready, tmp_path, monkeypatch, spark):
    analysed, analyse = [], analysis._analyse

    def spy(frame, texts):
        analysed.append(len(texts))
        return analyse(frame, texts)

    monkeypatch.setattr(analysis, "_analyse", spy)
    (tmp_path / "s.csv").write_text("a\n7\n")
    names = [f"p{number}" for number in range(500)]
    wide = og.init(tmp_path / "wide", "node W { " + " ".join(f"{n}: I64?" for n in names) + " }")
    lines = "".join(f"      {name}: cast(a as int) + {n}\n" for n, name in enumerate(names))
    text = "version: 1\nsources: {s: {csv: s.csv}}\nnodes:\n  W:\n    source: s\n"
    path = tmp_path / "wide.yaml"
    path.write_text(f"{text}    properties:\n{lines}")
    found = prepare_pipeline(wide._manifest, read_pipeline(path))
    [row] = found.mapped[0].input.frame.collect()
    found.sources.close()
    assert [row[name] for name in names] == [7 + number for number in range(500)]
    assert analysed == [500, 500]  # the expressions, and whether each fails for a row

    analysed.clear()
    mistakes = lines.replace("cast(a as int) + 77\n", "b\n").replace("+ 400\n", "+ 'x' 1\n")
    path.write_text(f"{text}    properties:\n{mistakes}")
    with pytest.raises(PipelineError) as refused:
        prepare_pipeline(wide._manifest, read_pipeline(path))
    assert [location for _, location, _ in problems(refused)] == [
        "wide.yaml:84:12",
        "wide.yaml:407:13",
    ]
    assert len(analysed) < 50  # some halves, not each expression


def test_rows_that_are_no_rows_are_counted_and_refused(ready, tmp_path, graph):
    (tmp_path / "s.csv").write_text("imo,name\n1,a\n2\n3,c,d\n")
    (tmp_path / "t.jsonl").write_text('{"text": "a"}\n{"text": \n')
    found = ready("""
sources: {s: {csv: s.csv}, t: {json: t.jsonl}}
nodes: {Ship: {source: s}, Note: {source: t}}
""")
    assert found.broken == 3
    assert rows(found, 0, "imo", "name") == [("1", "a")]
    assert rows(found, 1, "text") == [("a",)]


def test_files_whose_columns_differ_are_refused(ready, tmp_path):
    (tmp_path / "a.csv").write_text("imo,name\n1,a\n")
    (tmp_path / "b.csv").write_text("name,imo\nb,2\n")
    with pytest.raises(PipelineError) as refused:
        ready("sources: {s: {csv: [a.csv, b.csv]}}\nnodes: {Ship: {source: s}}\n")
    [(code, place, message)] = problems(refused)
    assert (code, place) == ("Y401", "pipeline.yaml:2:21")
    assert "header" in message


def test_plan_shows_the_run_without_running_it(ready, tmp_path, graph):
    (tmp_path / "s.csv").write_text("imo,name\n1,a\n1,b\n2\n")
    (tmp_path / "pipeline.yaml").write_text("""version: 1
sources: {s: {csv: s.csv}}
nodes: {Ship: {source: s, dedupe: {keep: last}}}
branch: {name: today}
publish: {merge_into: main}
""")
    pipeline = read_pipeline(tmp_path / "pipeline.yaml")
    plan = plan_pipeline(graph._manifest, pipeline)
    assert plan.to_json() | {"graph": ""} == {
        "pipeline": "pipeline",
        "graph": "",
        "branch": "today",
        "base": "main",
        "branch_exists": False,
        "mode": "merge",
        "on_violation": "fail",
        "merge_into": "main",
        "is_counted": False,
        "sources": [{"name": "s", "kind": "csv", "files": 1, "rows": 3, "broken": 1}],
        "types": {
            "node:Ship": {
                "source": "s",
                "rows": 2,
                "committed": 0,
                "columns": {
                    "imo": {"expression": "`imo`", "type": "string"},
                    "name": {"expression": "`name`", "type": "string"},
                },
            }
        },
        "warnings": [],
    }
    counted = plan_pipeline(graph._manifest, read_pipeline(tmp_path / "pipeline.yaml"), count=True)
    assert counted.types["node:Ship"]["rows"] == 1
    assert graph.branches.list() == ["main"]


def test_the_key_of_a_run_follows_its_files(ready, tmp_path):
    text = "sources: {s: {csv: s.csv}}\nnodes: {Ship: {source: s}}\n"
    (tmp_path / "s.csv").write_text("imo,name\n1,a\n")
    first, second = run_key(ready(text)), run_key(ready(text))
    assert first is not None
    assert first == second
    (tmp_path / "s.csv").write_text("imo,name\n1,abc\n")
    assert run_key(ready(text)) != first


def test_the_key_of_a_run_is_that_of_files_before_they_are_read(ready, tmp_path, monkeypatch):
    survey = extract.survey_files

    def growing(*given):
        found = survey(*given)
        with (tmp_path / "s.jsonl").open("a") as file:
            file.write('{"imo": 2, "name": "b"}\n')
        return found

    text = "sources: {s: {json: s.jsonl}}\nnodes: {Ship: {source: s}}\n"
    (tmp_path / "s.jsonl").write_text('{"imo": 1, "name": "a"}\n')
    before = run_key(ready(text))
    with monkeypatch.context() as patched:
        patched.setattr(extract, "survey_files", growing)
        during = run_key(ready(text))
    assert during == before != run_key(ready(text))


def test_a_header_that_changes_meanwhile_fails_the_run(ready, tmp_path, monkeypatch):
    survey = extract.survey_files

    def replaced(*given):
        found = survey(*given)
        (tmp_path / "s.csv").write_text("name,imo,built\na,1,2020-01-01\n")
        return found

    (tmp_path / "s.csv").write_text("imo,name\n1,a\n")
    monkeypatch.setattr(extract, "survey_files", replaced)
    found = ready("sources: {s: {csv: s.csv}}\nnodes: {Ship: {source: s}}\n")
    with pytest.raises(PySparkException, match="header changed from `imo, name` to `name, imo, b"):
        found.mapped[0].input.frame.collect()


def test_a_split_setting_that_is_set_to_its_default_splits_alike(ready, tmp_path, spark):
    (tmp_path / "s.csv").write_text("imo,name\n1,a\n")
    found = ready("sources: {s: {csv: s.csv}}\nnodes: {Ship: {source: s}}\n")
    name = "spark.sql.files.maxPartitionBytes"
    spark.conf.unset(name)
    unset = split_signature(found)
    try:
        spark.conf.set(name, spark.conf.get(name))
        assert unset == split_signature(found) is not None
        spark.conf.set(name, "20000")
        assert split_signature(found) != unset
    finally:
        spark.conf.unset(name)
