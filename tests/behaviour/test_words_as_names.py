"""Types and properties may be called like words that mean something beside them."""

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput
from omnigraph.service.client.uploads import to_upload
from omnigraph.write.violations import ValidationFailed

SCHEMA = """
node Person { name: String @key  from: String?  src: String?  type: enum(node, edge)? }
node Firm { name: String @key }
edge WorksAt: Person -> Firm { from: Date?  to: Date?  type: String?  @unique(src, dst, from) }
edge Person: Person -> Person { to: String? }
"""
ENTITIES = [
    '{"edge":"Person","from":"ann","to":"ann","data":{"id":"p1","to":"bo"}}',
    '{"edge":"WorksAt","from":"ann","to":"acme",'
    '"data":{"id":"w1","from":"2020-01-31","to":null,"type":"full"}}',
    '{"edge":"WorksAt","from":"ann","to":"acme",'
    '"data":{"id":"w2","from":null,"to":"2021-02-28","type":null}}',
    '{"type":"Firm","data":{"id":"acme","name":"acme"}}',
    '{"type":"Person","data":{"id":"ann","from":"here","name":"ann","src":"s","type":"edge"}}',
]
QUERY = """
query q() {
  match { $p: Person  $p $w:worksAt $f  $w.type = "full" }
  return { $p.from as home, $w.from as since, $w.to as until, $f.name as firm }
}
"""
ENDS = {"src": ["ann", "ann"], "dst": ["acme", "acme"]}
DAYS = {"from": ["2020-01-31", None], "to": [None, "2021-02-28"]}


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load("\n".join(ENTITIES).encode())
    return graph


@pytest.fixture
def without_jobs(tmp_path):
    graph = og.init(tmp_path / "other", SCHEMA)
    graph.load("\n".join(ENTITIES[3:]).encode())
    return graph


def test_lines_keep_ends_and_properties_of_one_name_apart(graph, tmp_path):
    assert list(graph.export()) == ENTITIES
    again = og.init(tmp_path / "again", SCHEMA)
    again.load("\n".join(graph.export()).encode())
    assert list(again.export()) == ENTITIES


def test_an_archive_and_a_baseline_keep_them_apart(graph, tmp_path):
    graph.export_archive(tmp_path / "graph.tar")
    og.import_archive(tmp_path / "graph.tar", tmp_path / "back")
    assert list(og.open(tmp_path / "back").export()) == ENTITIES
    assert list(graph.changes.baseline().lines) == ENTITIES


def test_parquet_names_such_ends_src_and_dst(graph, without_jobs, tmp_path):
    graph.export_parquet(tmp_path / "files", types=["WorksAt"])
    without_jobs.load({"WorksAt": tmp_path / "files" / "edge-WorksAt.parquet"})
    assert list(without_jobs.export(types=["WorksAt"])) == ENTITIES[1:3]


@pytest.mark.parametrize("format_", ["csv", "ndjson", "parquet"])
def test_parts_keep_them_apart(graph, without_jobs, tmp_path, format_):
    graph.export_parts(tmp_path / "parts", types=["WorksAt"], format=format_)
    [file] = (tmp_path / "parts").rglob(f"*.{format_}")
    without_jobs.load(file if format_ == "ndjson" else {"WorksAt": file})
    assert list(without_jobs.export(types=["WorksAt"])) == ENTITIES[1:3]


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"id": ["w1", "w2"], **ENDS, **DAYS, "type": ["full", None]}),
        [
            {"id": "w1", "src": "ann", "dst": "acme", "from": "2020-01-31", "type": "full"},
            {"id": "w2", "src": "ann", "dst": "acme", "to": "2021-02-28", "from": None},
        ],
    ],
    ids=["columns", "records"],
)
def test_from_is_a_property_where_src_is_given(without_jobs, given):
    without_jobs.load({"WorksAt": given})
    assert list(without_jobs.export(types=["WorksAt"])) == ENTITIES[1:3]


def test_an_upload_understands_tables_the_same_way(without_jobs):
    given = pa.table({"id": ["w1", "w2"], **ENDS, **DAYS, "type": ["full", None]})
    upload = to_upload({"WorksAt": given}, without_jobs.schema.catalog)
    without_jobs.load(b"".join(piece.content for piece in upload.pieces))
    assert list(without_jobs.export(types=["WorksAt"])) == ENTITIES[1:3]


@pytest.mark.parametrize(
    "given", [pa.table({"from": ["ann"], "to": ["acme"]}), [{"from": "ann", "to": "acme"}]]
)
def test_from_is_the_end_where_no_src_is_given(without_jobs, given):
    without_jobs.load({"WorksAt": given})
    assert without_jobs.query(
        "query q() { match { $p $w:worksAt $f } return { $p, $f, $w.from, $w.to } }"
    ).rows == [{"p": "ann", "f": "acme", "w.from": None, "w.to": None}]


def test_one_end_given_twice_is_refused_where_no_property_is_called_so(graph):
    given = pa.table({"from": ["ann"], "src": ["ann"], "dst": ["ann"]})
    with pytest.raises(ValidationFailed, match="given more than once"):
        graph.load({"edge:Person": given})


def test_queries_and_mutations_tell_them_apart(graph):
    assert graph.query(QUERY).rows == [
        {"home": "here", "since": "2020-01-31", "until": None, "firm": "acme"}
    ]
    done = graph.mutate('query m() { update WorksAt set { type: "none" } where from = "ann" }')
    assert done.affected_edges == 2


def test_a_name_of_two_types_exports_both(graph):
    assert list(graph.export(types=["Person"])) == [ENTITIES[0], ENTITIES[4]]
    assert list(graph.export(types=["edge:Person"])) == ENTITIES[:1]
    with pytest.raises(InvalidInput, match="is a node and an edge type"):
        graph.entity_at("Person", "ann")
