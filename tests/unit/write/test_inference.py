"""Inference of schemas: what is proposed for data, what is left undecided, and that data loads."""

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.catalog import load_catalog
from omnigraph.errors import InvalidInput
from omnigraph.write.inference import (
    find_input_files,
    infer_schema,
    input_tables,
    names,
    references,
    schema_text,
    value_sets,
)
from omnigraph.write.inference.typed_rows import typed_rows


@pytest.fixture
def infer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def infer(*inputs, encoding=None, **files):
        """Write `name_suffix` files and infer from the inputs, by default from all files."""
        written = []
        for name, content in files.items():
            path = tmp_path / ".".join(name.rsplit("_", 1))
            if isinstance(content, pa.Table):
                pq.write_table(content, path)
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            written.append(path.name)
        return infer_schema(find_input_files(inputs or written, encoding))

    return infer


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def property_of(schema, name):
    return next(p for type_ in schema.types for p in type_.properties if p.column == name)


PEOPLE = "name,age,joined\nada,36,2024-01-02\nbo,,2024-01-03\ncy,41,2024-02-03\n"
KNOWS = "from,to,since\nada,bo,2020\ncy,bo,2021\n"


def test_tables_become_types_with_the_evidence_for_each_choice(infer):
    schema = infer(people_csv=PEOPLE, knows_csv=KNOWS)
    assert schema_text(schema) == (
        "// Inferred from data: check each comment, which says what a choice is based on.\n"
        "\n"
        "// from people.csv\n"
        "// the key is `name`, unique and never null in 3 rows\n"
        "node Person {\n"
        "  name: String @key\n"
        "  age: I64? // null in 1 of 3 rows; every value is a whole number\n"
        "  joined: Date // every value is a Date\n"
        "}\n"
        "\n"
        "// from knows.csv\n"
        "// no two of 2 rows have the same ends\n"
        "// from `from`: all 2 different values are in `name` of people.csv\n"
        "// to `to`: all 1 different values are in `name` of people.csv\n"
        "edge Knows: Person -> Person @key(src, dst) {\n"
        "  since: I64 // every value is a whole number\n"
        "}\n"
    )
    assert schema.warnings == []


@pytest.mark.parametrize(
    ("cells", "type_", "note"),
    [
        (["1", "-20", "0"], "I64", "every value is a whole number"),
        (["9223372036854775807"], "I64", "every value is a whole number"),
        (["9223372036854775808"], "String", "more digits than a double"),
        (["007", "12"], "String", "leading zeros"),
        (["+4912"], "String", ""),
        (["1.5", "2", "-3e5"], "F64", "every value is a number"),
        (["0.12345678901234567890"], "String", "more digits than a double"),
        (["true", "False"], "Bool", "true or false"),
        (["2024-02-29"], "Date", "every value is a Date"),
        (["2023-02-29"], "String", ""),
        (["2024-01-01T10:00:00Z", "2024-01-01 10:00:00.5+02:00"], "DateTime", "a DateTime"),
        (["2024-01-01T10:00:00"], "DateTime", "read as UTC"),
        (["2024-01-01T10:00:00.123456Z"], "DateTime", "finer than milliseconds"),
        (["2024-01-01", "2024-01-01T10:00:00Z"], "String", ""),
        (["1", "x"], "String", ""),
        (['"[1, 2]"'], "String", "begin like JSON arrays"),
        (['"a,b"', '""'], "String", ""),
    ],
)
def test_cells_of_csv_have_a_type_that_gives_them_back(infer, cells, type_, note):
    schema = infer(rows_csv="k,x\n" + "".join(f"{n},{c}\n" for n, c in enumerate(cells)))
    found = property_of(schema, "x")
    assert (str(found.type), note in "; ".join(found.evidence)) == (type_, True), found.evidence


def test_a_type_holds_all_rows_and_not_only_the_first_ones(infer, monkeypatch):
    monkeypatch.setattr(input_tables, "_JSON_ROWS", 2)
    ints = [{"a": n, "b": n, "c": str(n), "d": "2024-01-01"} for n in range(5)]
    last = {"a": 0.5, "b": "x", "c": None, "d": "soon", "e": True}
    schema = infer(rows_jsonl=lines([*ints, last]))
    [rows] = schema.nodes
    found = {p.name: str(p.type) for p in rows.properties}
    assert found == {"a": "F64", "c": "String?", "d": "String", "e": "Bool?"}
    assert rows.left_out == ("column `b` is left out: its values are of several kinds",)
    long = infer(long_csv="n\n" + "1\n" * 3_000_000 + "x\n")
    assert str(property_of(long, "n").type) == "String"


def test_columns_of_parquet_keep_their_types(infer):
    moment = datetime(2024, 1, 1, 10, tzinfo=UTC)
    columns = {
        "a": (pa.array([1, 2], pa.int8()), "I32"),
        "b": (pa.array([1, None], pa.uint32()), "U32?"),
        "c": (pa.array([1, 2], pa.uint64()), "U64"),
        "d": (pa.array([0.5, 1], pa.float32()), "F32"),
        "e": (pa.array([moment, moment], pa.timestamp("us", "UTC")), "DateTime"),
        "f": (pa.array([date(2024, 1, 1)] * 2), "Date"),
        "g": (pa.array([["x"], []]), "[String]"),
        "h": (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), "Vector(2)"),
        "i": (pa.array([Decimal("1.5")] * 2), "F64"),
        "j": (pa.array(["x", "x"]).dictionary_encode(), "String"),
        "k": (pa.array([b"x", b"y"]), "Blob"),
        "l": (pa.array([None, None], pa.null()), "String?"),
        "m": (pa.array([{"x": 1}] * 2), None),
    }
    [node] = infer(
        rows_parquet=pa.table({name: array for name, (array, _) in columns.items()})
    ).nodes
    found = {p.name: str(p.type) for p in node.properties}
    assert found == {name: type_ for name, (_, type_) in columns.items() if type_ is not None}
    assert node.left_out == ("column `m` is left out: no property type holds struct<x: int64>",)
    assert "rounded to a double" in "".join(property_of(infer("rows.parquet"), "i").evidence)


# --- keys and ends -----------------------------------------------------------------------------


def ends(schema):
    return {e.name: (e.src.column, e.src.node, e.dst.column, e.dst.node) for e in schema.edges}


def test_ids_link_tables_and_references_become_edges(infer):
    schema = infer(
        companies_csv="id;title\n7;Seven\n8;Eight\n",
        employees_jsonl=lines(
            [
                {"id": 1, "name": "x", "company_id": 7, "manager_id": None},
                {"id": 2, "name": "y", "company_id": None, "manager_id": 1},
            ]
        ),
        reviews_csv="employee_id,company_id,stars\n1,7,5\n1,7,4\n",
    )
    assert [(n.name, n.id_column) for n in schema.nodes] == [("Company", "id"), ("Employee", "id")]
    assert ends(schema) == {
        "Reviews": ("employee_id", "Employee", "company_id", "Company"),
        "EmployeeCompany": ("id", "Employee", "company_id", "Company"),
    }
    reviews, works = schema.edges
    assert (reviews.is_keyed, works.is_keyed, works.is_reference) == (False, True, True)
    assert "a repeated load adds the edges again" in reviews.evidence[0]
    assert [p.name for p in schema.nodes[1].properties] == ["name", "manager_id"]
    [_, note] = property_of(schema, "manager_id").evidence
    assert note == "all values are values of `id` of employees.jsonl: it may refer to them"


def test_a_reference_that_is_unique_elsewhere_by_chance_stays_a_reference(infer):
    schema = infer(
        firms_csv="id,title\n7,Seven\n8,Eight\n",
        people_csv="code,name\n1,ada\n2,bo\n",
        jobs_csv="person_code,firm_id\n1,7\n2,8\n",
        ships_csv="imo,firm_id\n123,7\n124,7\n",
        calls_csv="imo,day\n123,1\n123,2\n",
    )
    assert ends(schema) == {
        "Jobs": ("person_code", "Person", "firm_id", "Firm"),
        "ShipFirm": ("imo", "Ship", "firm_id", "Firm"),
    }
    [_, reference] = next(n for n in schema.nodes if n.name == "Call").properties[0].evidence
    assert reference == "all values are in `imo` of ships.csv; an edge needs keys of both types"


def test_edges_choose_the_key_they_refer_to(infer):
    schema = infer(
        users_csv="id,email,name\n1,a@x,ada\n2,b@x,bo\n", follows_csv="src,dst\na@x,b@x\n"
    )
    [user] = schema.nodes
    assert [(p.name, p.is_key) for p in user.properties] == [
        ("id_2", False),
        ("email", True),
        ("name", False),
    ]
    assert ends(schema) == {"Follows": ("src", "User", "dst", "User")}


@pytest.mark.parametrize(
    ("knows", "reason"),
    [
        (
            "from,to\nada,zed\n",
            '`to`: 1 of 1 different values are not in `name` of people.csv, for example "zed"',
        ),
        ("from,to\nada,\n", "`to` is null in 1 row"),
        (
            "from,to\nada,eve\n",
            "the values of `to` are in `name` of dogs.csv and in `name` of cats.csv",
        ),
    ],
)
def test_ends_that_data_does_not_decide_are_left_open_and_reported(infer, knows, reason):
    schema = infer(
        people_csv="name\nada\nbo\n",
        dogs_csv="name\neve\n",
        cats_csv="name\neve\n",
        knows_csv=knows,
    )
    assert schema.edges == ()
    assert [one.reasons for one in schema.undecided] == [(reason,)]
    assert schema.warnings == [f"knows.csv is not loaded: {reason}"]
    assert f"// {reason}\n// edge Knows: FROM -> TO\n" in schema_text(schema)


def test_a_unique_column_is_a_key_only_if_its_name_or_an_edge_says_so(infer):
    schema = infer(facts_csv="title,score\na,1\nb,1\n")
    [fact] = schema.nodes
    assert (fact.id_column, [p.is_key for p in fact.properties]) == (None, [False, False])
    assert "unique, but not named like a key: `title`" in fact.evidence[0]
    schema = infer("facts.csv", "cites.csv", cites_csv="from,to\na,b\n")
    assert [p.name for p in schema.nodes[0].properties if p.is_key] == ["title"]


def test_a_name_given_with_a_file_is_the_name_of_the_type(infer):
    schema = infer("Human=people.csv", "knows.csv", people_csv=PEOPLE, knows_csv=KNOWS)
    assert ends(schema) == {"Knows": ("from", "Human", "to", "Human")}


def test_names_of_columns_become_valid_names(infer):
    schema = infer(rows_csv="Full Name,2024,id,from,firstName,É\na,1,,x,y,z\nb,2,,x,y,z\n")
    [node] = schema.nodes
    assert [p.name for p in node.properties] == [
        *("full_name", "_2024", "id_2", "from", "firstName", "e")
    ]
    assert load_catalog(schema_text(schema)).nodes["Row"].properties["id_2"].type.nullable


def test_a_column_without_a_name_is_named_by_its_position(infer):
    inferred = infer(people_csv=",name,age\n0,Ada,36\n1,Bo,4\n")
    rows = typed_rows(inferred)["node:Person"].read_all().to_pylist()
    assert [(row["_c0"], row["name"], row["age"]) for row in rows] == [(0, "Ada", 36), (1, "Bo", 4)]
    assert str(property_of(inferred, "_c0").type) == "I64"


def test_words_of_tables_become_names():
    words = ["people", "companies", "boxes", "classes", "buses", "status", "analysis", "as"]
    assert [names.singular([word])[0] for word in words] == [
        *("person", "company", "box", "class", "buse", "status", "analysis", "as")
    ]
    assert names.endpoint_pair(["w", "source_id", "target_id"]) == ("source_id", "target_id")
    assert names.endpoint_pair(["name", "to"]) is None


# --- all problems at once ----------------------------------------------------------------------


def test_files_that_cannot_be_read_are_all_named(infer, tmp_path):
    files = {
        "a_csv": "x,x\n1,2\n",
        "b_csv": "x,y\n1\n",
        "c_csv": b"x\n\xff\n",
        "d_jsonl": '{"type": "Person", "data": {}}\n',
        "e_jsonl": "{}\n[1]\n",
        "f_jsonl": '{"x": NaN}\n',
        "g_parquet": "no",
    }
    with pytest.raises(InvalidInput) as caught:
        infer(**files)
    reasons = caught.value.message.split("; cannot read ")
    assert [reason.partition(": ")[2][:40] for reason in reasons[:-1]] == [
        "columns `x` and `x` have the same name",
        "row 1: expected 2 cells, got 1",
        "column `x` is not UTF-8; give its encodi",
        "it is a graph batch, whose lines name ty",
        "line 2: expected an object, got array",
        "line 1: NaN is not a number",
    ]
    assert reasons[-1].startswith("g.parquet: ")
    assert str(property_of(infer("c.csv", encoding="latin-1"), "x").type) == "String"


@pytest.mark.parametrize("text", ["nope.csv", "rows.xls", "person=rows.csv", "*.nope"])
def test_inputs_that_are_no_tables_are_refused(infer, tmp_path, text):
    (tmp_path / "rows.xls").touch()
    (tmp_path / "rows.csv").touch()
    with pytest.raises(InvalidInput):
        infer(text)


def test_an_edge_list_alone_gives_no_type(infer):
    with pytest.raises(InvalidInput, match="no other input has nodes with a key") as caught:
        infer(knows_csv=KNOWS)
    assert caught.value.code == "inference_undecided"


# --- sets of values ----------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [0, 200, 1 << 20])
def test_sets_of_values_answer_as_sets_in_memory_do(waiting, monkeypatch):
    monkeypatch.setattr(value_sets, "WAITING_BYTES", waiting)
    chance = random.Random(waiting)
    pool = [f"{n}:tenant-production-eu" for n in range(300)] + ["", "é", "x" * 10_000]
    texts = [[chance.choice(pool) for _ in range(400)], pool, pool[:100], pool[50:]]
    with value_sets.value_sets() as sets:
        found = []
        for values in texts:
            made = sets.new()
            for start in range(0, len(values), 37):
                made.add(pa.array([*values[start : start + 37], None]).slice(0))
            found.append(made)
        for values, made in zip(texts, found, strict=True):
            assert (made.repeated() is None) == (len(set(values)) == len(values))
        for one, other in combinations(range(len(texts)), 2):
            missing = found[one].missing_from(found[other])
            lost = set(texts[one]) - set(texts[other])
            assert (missing.count, missing.of) == (len(lost), len(set(texts[one])))
            assert missing.example in (lost or {None})


def test_texts_that_differ_anywhere_are_divided_evenly():
    for pattern in ("user{}@example.com", "{:08d}-tenant-production-eu", "tenant/{}"):
        parts = value_sets.part_numbers(pa.array([pattern.format(n) for n in range(64_000)]))
        counts = [int((parts == part).sum()) for part in range(value_sets.PARTS)]
        assert sum(counts) == 64_000
        assert max(counts) < 2_000, pattern
    sliced = pa.array(["", "a", "b", "a"]).slice(1)
    assert value_sets.part_numbers(sliced)[0] == value_sets.part_numbers(sliced)[2]


# --- loading -----------------------------------------------------------------------------------


def test_inferred_types_load_exactly_the_data(infer, tmp_path):
    schema = infer(
        people_csv="name,age,zip,Full Name\nada,36,00123,Ada\nbo,,90210,\n",
        knows_parquet=pa.table({"from": ["ada"], "to": ["bo"], "since": pa.array([1], pa.int16())}),
        firms_parquet=pa.table(
            {"id": [7, 8], "v": pa.array([[1, 2]] * 2, pa.list_(pa.float32(), 2))}
        ),
        jobs_jsonl=lines(
            [
                {"code": 1, "firm_id": 8, "tags": ["a"], "at": "2024-01-01T00:00:00Z"},
                {"code": 2, "tags": [], "at": "2024-01-01T00:00:00Z", "pay": 1.5},
            ]
        ),
    )
    graph = og.init(tmp_path / "g", schema_text(schema))
    graph.load(typed_rows(schema), mode="append")
    exported = [json.loads(line) for line in graph.export()]
    assert sorted(
        exported, key=lambda e: (e.get("edge", ""), e.get("type", ""), e["data"]["id"])
    ) == [
        {"type": "Firm", "data": {"id": "7", "v": [1.0, 2.0]}},
        {"type": "Firm", "data": {"id": "8", "v": [1.0, 2.0]}},
        {
            "type": "Job",
            "data": {
                "id": "1",
                "code": 1,
                "tags": ["a"],
                "pay": None,
                "at": "2024-01-01T00:00:00.000Z",
            },
        },
        {
            "type": "Job",
            "data": {
                "id": "2",
                "code": 2,
                "tags": [],
                "pay": 1.5,
                "at": "2024-01-01T00:00:00.000Z",
            },
        },
        {
            "type": "Person",
            "data": {"id": "ada", "name": "ada", "age": 36, "zip": "00123", "full_name": "Ada"},
        },
        {
            "type": "Person",
            "data": {"id": "bo", "name": "bo", "age": None, "zip": "90210", "full_name": None},
        },
        {"edge": "JobFirm", "from": "1", "to": "8", "data": {"id": '["1","8"]'}},
        {"edge": "Knows", "from": "ada", "to": "bo", "data": {"id": '["ada","bo"]', "since": 1}},
    ]


def test_a_folder_and_a_pattern_are_one_table_each(infer, tmp_path):
    (tmp_path / "papers").mkdir()
    for n in range(3):
        pq.write_table(pa.table({"id": [n]}), tmp_path / "papers" / f"{n}.parquet")
        (tmp_path / f"people-{n}.csv").write_text(f"name\nperson {n}\n")
    schema = infer("papers", "people-*.csv")
    assert [(n.name, n.table.label) for n in schema.nodes] == [
        ("Paper", "papers"),
        ("Person", "people-*.csv"),
    ]
    assert "in 3 rows" in schema.nodes[0].evidence[0]


def test_tables_in_memory_are_inferred_and_loaded(tmp_path):
    people = pa.table({"name": ["ada", "bo"], "age": [36, None]})
    knows = pa.record_batch({"src": ["ada", "ada"], "dst": ["bo", "bo"]})
    found = og.infer({"Human": people, "Likes": knows})
    graph = og.init(tmp_path / "g", found.schema)
    assert graph.load(found.rows()).total == 4
    assert graph.entity_at("Human", "ada") == {"id": "ada", "name": "ada", "age": 36}
    for wrong in ({"human": people}, {"Human": [1]}):
        with pytest.raises(InvalidInput):
            og.infer(wrong)


def test_wide_tables_are_compared_some_columns_at_a_time(infer, monkeypatch):
    monkeypatch.setattr(references, "COLUMNS_AT_A_TIME", 3)
    monkeypatch.setattr(value_sets, "WAITING_BYTES", 1_000)
    names = [f"part{n}_firm_id" for n in range(20)]
    cells = [",".join(str(7 + (k + n) % 2) for n in range(20)) for k in (1, 2)]
    rows = "".join(f"{k},{line}\n" for k, line in enumerate(cells))
    schema = infer(
        firms_csv="id,title\n7,Seven\n8,Eight\n", deals_csv="id," + ",".join(names) + "\n" + rows
    )
    assert [edge.dst.column for edge in schema.edges] == names
    assert [node.properties[0].name for node in schema.nodes if node.properties] == ["title"]


def test_numbers_that_are_not_finite_are_refused_without_a_traceback(tmp_path):
    found = og.infer({"T": pa.table({"id": [1, 2], "x": [float("nan"), 1.0]})})
    graph = og.init(tmp_path / "graph", found.schema)
    with pytest.raises(og.ValidationFailed) as caught:
        graph.load(found.rows())
    [violation] = caught.value.violations
    assert violation.message == "column `x` of T: value nan is not a finite F64"
