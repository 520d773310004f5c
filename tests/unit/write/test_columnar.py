from datetime import date, datetime

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.write import ValidationFailed
from tests.support.load_fixtures import SCHEMA, all_rows

TABLE = pa.table(
    {
        "slug": ["a", "b"],
        "small": pa.array([1, None], pa.int64()),
        "moment": pa.array([datetime(2020, 1, 1), None], pa.timestamp("ns")),
        "tags": [["x"], None],
        "spot": pa.array([[1, 2], None], pa.list_(pa.float64())),
    }
)
EXPECTED = [
    {"slug": "a", "small": 1, "moment": "2020-01-01T00:00:00.000Z", "tags": ["x"], "spot": [1, 2]},
    {"slug": "b", "small": None, "moment": None, "tags": None, "spot": None},
]


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


def things(graph):
    """Return what the table above says, as it is stored."""
    return [
        {name: row[name] for name in TABLE.column_names} for row in all_rows(graph, "node:Thing")
    ]


def problems(graph, data, **options):
    """Return what is wrong with data; nothing of it is stored."""
    before = graph.snapshot().commit_id
    with pytest.raises(ValidationFailed) as caught:
        graph.load(data, **options)
    assert graph.snapshot().commit_id == before
    return [str(violation) for violation in caught.value.violations]


class Stream:
    """What polars, duckdb and others give: a stream of Arrow batches."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.to_reader(max_chunksize=1).__arrow_c_stream__(requested_schema)


class Batch:
    """What others give: one Arrow array."""

    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        lambda: TABLE.to_reader(),
        Stream(),
        Batch(),
        TABLE.to_pylist(),
        lambda: iter(TABLE.to_pylist()),
    ],
    ids=["table", "batch", "reader", "stream", "array", "dictionaries", "iterator"],
)
def test_tables_in_memory_are_loaded_whatever_they_are(graph, data):
    done = graph.load({"Thing": data() if callable(data) else data})
    assert done.nodes == {"Thing": 2}
    assert things(graph) == EXPECTED


def write_parquet(path):
    pq.write_table(TABLE, path, row_group_size=1)


def write_stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as stream:
        stream.write_table(TABLE)


def write_file(path):
    feather.write_feather(TABLE, path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("things.parquet", write_parquet),
        ("things.arrow", write_stream),
        ("things.feather", write_file),
    ],
)
def test_files_are_loaded_by_their_names(graph, tmp_path, name, write):
    write(str(tmp_path / name))
    graph.load({"Thing": tmp_path / name})
    assert things(graph) == EXPECTED


def test_folder_of_parquet_files_is_one_table(graph, tmp_path):
    folder = tmp_path / "things"
    for number, name in enumerate(("b=1/x.parquet", "a.parquet")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(TABLE.slice(number, 1), folder / name)
    graph.load({"Thing": folder})
    assert things(graph) == EXPECTED


def test_several_files_of_one_type_are_loaded_together(graph, tmp_path):
    for number in range(2):
        pq.write_table(TABLE.slice(number, 1), tmp_path / f"{number}.parquet")
    done = graph.load({"Thing": [tmp_path / "0.parquet", tmp_path / "1.parquet"]})
    assert done.nodes == {"Thing": 2}
    assert things(graph) == EXPECTED


CSV = b"""slug,small,moment,tags,spot,title
a,1,2020-01-01T00:00:00Z,"[""x""]","[1,2]","two
lines"
b,,,,,""
"""


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "T.CSV"])
def test_text_files_are_read_by_the_types_of_properties(graph, tmp_path, name):
    path = tmp_path / name
    text = CSV.replace(b"1,2]", b"1;2]") if "tsv" in name else CSV
    text = text.replace(b",", b"\t").replace(b"1;2]", b"1,2]") if "tsv" in name else text
    if name.endswith("gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as stream:
            stream.write(text)
    else:
        path.write_bytes(text)
    graph.load({"Thing": path})
    assert things(graph) == EXPECTED
    assert [row["title"] for row in all_rows(graph, "node:Thing")] == ["two\nlines", ""]


def test_bad_cells_of_text_files_are_reported_with_their_rows(graph, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"slug,small,day\na,x,\nb\nc,1,2020-99-01\nd,1,,,\n\xff,1,\n,2,\n")
    assert problems(graph, {"Thing": path}) == [
        f"{path}, row 1: Thing.small: expected integer number, got 'x'",
        f"{path}, row 2: expected 3 cells, got 1",
        f"{path}, row 3: Thing.day: invalid Date literal '2020-99-01': month must be in 1..12",
        f"{path}, row 4: expected 3 cells, got 5",
        f"{path}, row 5: Thing.slug: text is not UTF-8: invalid start byte at byte 0",
        f"{path}, row 6: Thing.slug is required, but null or missing",
    ]


def test_columns_that_do_not_fit_are_reported_together(graph, tmp_path):
    path = tmp_path / "things.parquet"
    pq.write_table(pa.table({"Slug": ["a"], "small": [1], "_rowid": [1]}), path)
    assert problems(graph, {"Thing": path}) == [
        f"{path}: column: unknown property `Slug`",
        f"{path}: column: `_rowid` is reserved",
        f"{path}: column `slug` of Thing is missing",
    ]


def test_columns_of_wrong_types_are_reported_once(graph):
    table = pa.table({"slug": [1] * 1000, "small": ["x"] * 1000, "title": pa.nulls(1000)})
    assert problems(graph, {"Thing": table}) == [
        "Thing: column `slug` has type int64, but Thing.slug is String",
        "Thing: column `small` has type string, but Thing.small is I32?",
    ]


def test_columns_of_nulls_fit_any_property(graph):
    graph.load({"Thing": pa.table({"slug": ["a"], "title": pa.nulls(1, pa.float64())})})
    assert [row["title"] for row in all_rows(graph, "node:Thing")] == [None]


def test_repeated_columns_are_reported(graph, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"slug,slug\na,b\n")
    assert problems(graph, {"Thing": path}) == [
        f"{path}: column `slug` is given more than once",
        f"{path}: column `slug` is given more than once",
    ]


def test_bad_values_are_reported_with_their_rows(graph):
    table = pa.table({"slug": ["a", None, "c", "c"], "small": [2**40, 1, 2, 3]})
    assert problems(graph, {"Thing": table}) == [
        "Thing, row 1: Thing.small: value 1099511627776 exceeds I32 (-2147483648..2147483647)",
        "Thing, row 2: Thing.slug is required, but null or missing",
        "Thing, row 4: @unique violation on Thing.slug: value 'c' held by 'c' and 'c'"
        " (first at Thing, row 3)",
    ]


def test_dictionaries_with_strange_members_are_reported(graph):
    rows = [{"slug": "a", "nope": 1}, "b", {"slug": "c", "small": "x"}]
    assert problems(graph, {"Thing": rows}) == [
        "Thing, row 1: Thing: unknown property `nope`",
        "Thing, row 2: Thing: expected a dictionary, got string",
        "Thing, row 3: Thing.small: expected integer number, got string 'x'",
    ]


@pytest.mark.parametrize(("src", "dst"), [("from", "to"), ("src", "dst")])
def test_edges_have_columns_for_their_ends(graph, src, dst):
    edges = pa.table({src: ["a"], dst: ["b"], "since": [date(2020, 1, 1)], "id": ["e1"]})
    done = graph.load({"Thing": TABLE, "near": edges})
    assert done.edges == {"Near": 1}
    assert all_rows(graph, "edge:Near") == [
        {"id": "e1", "src": "a", "dst": "b", "since": "2020-01-01", "weight": None}
    ]


def test_edges_without_ends_are_reported(graph):
    assert problems(graph, {"Near": pa.table({"from": ["a"]})}) == [
        "Near: column `to` of Near is missing"
    ]
    assert problems(graph, {"Near": [{"from": "a", "to": None}, {"to": "b"}]}) == [
        "Near, row 1: `to` of Near is null or missing",
        "Near, row 2: `from` of Near is null or missing",
    ]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("t.parquet", b"PAR1nonsense", "Parquet"),
        ("t.arrow", b"ARROW1 nonsense", ""),
        ("t.feather", b"nonsense", ""),
        ("t.csv", b"", "the file is empty; its first line should name the columns"),
    ],
)
def test_file_that_is_not_what_its_name_says_is_reported(graph, tmp_path, name, data, reason):
    (tmp_path / name).write_bytes(data)
    [reported] = problems(graph, {"Thing": tmp_path / name})
    assert reported.startswith(f"{tmp_path / name}: ")
    assert reason in reported


def test_truncated_parquet_is_reported(graph, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:-20])
    [reported] = problems(graph, {"Thing": path})
    assert reported.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"Thing": "no.parquet"}, "input_unreadable"),
        ({"Thing": "data.xlsx"}, "input_unknown"),
        ({"Thing": 7}, "input_unknown"),
        ({"Thing": b"bytes"}, "input_unknown"),
        ("things.parquet", "input_unknown"),
        (7, "input_unknown"),
        ([7], "input_unknown"),
        ("no.jsonl", "input_unreadable"),
    ],
)
def test_what_cannot_be_loaded_at_all_is_refused(graph, data, code):
    with pytest.raises(InvalidInput) as caught:
        graph.load(data)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["Thng", "node:Near", "edge:Thing", "thing"])
def test_unknown_types_are_refused(graph, name):
    with pytest.raises(NotFound) as caught:
        graph.load({name: []})
    assert caught.value.code == "unknown_type"


def test_name_of_a_node_and_an_edge_type_needs_its_kind(tmp_path):
    graph = og.init(tmp_path / "graph", "node Link { text: String }\nedge Link: Link -> Link")
    with pytest.raises(InvalidInput, match="write `node:Link` or `edge:Link`"):
        graph.load({"Link": []})
    node = [{"id": "a", "text": "x"}]
    done = graph.load({"node:Link": node, "edge:Link": [{"from": "a", "to": "a"}]})
    assert (done.nodes, done.edges) == ({"Link": 1}, {"Link": 1})


def test_large_columns_are_taken_piece_by_piece(graph, monkeypatch):
    monkeypatch.setattr("omnigraph.write.inputs.table_reader.SLICE_ROWS", 3)
    table = pa.table({"slug": [str(n) for n in range(10)], "small": list(range(10))})
    graph.load({"Thing": table})
    found = {row["slug"]: row["small"] for row in all_rows(graph, "node:Thing")}
    assert found == {str(n): n for n in range(10)}


def test_csv_writer_of_arrow_is_read_back(graph, tmp_path):
    table = pa.table({"slug": ["a", "b"], "double": [0.1, None], "flag": [True, False]})
    pa_csv.write_csv(table, tmp_path / "t.csv")
    graph.load({"Thing": tmp_path / "t.csv"})
    found = [(r["slug"], r["double"], r["flag"]) for r in all_rows(graph, "node:Thing")]
    assert found == [("a", 0.1, True), ("b", None, False)]
