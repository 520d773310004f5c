"""Pipeline files for inferred schemas."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from omnigraph.catalog import load_catalog
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.config.scaffold import pipeline_text
from omnigraph.pipeline.config.source_check import check_pipeline
from omnigraph.pipeline.config.spec import read_pipeline
from omnigraph.write.inference import find_input_files, infer_schema, schema_text


def scaffold(folder, *inputs, encoding=None):
    """Write both files; return the text of the pipeline and the pipeline as it is checked."""
    schema = infer_schema(find_input_files(inputs, encoding))
    text = pipeline_text(schema, folder, "on")
    (folder / "pipeline.yaml").write_text(text, encoding="utf-8")
    catalog = load_catalog(schema_text(schema))
    return text, check_pipeline(read_pipeline(folder / "pipeline.yaml", environment={}), catalog)


def test_a_pipeline_maps_every_column_and_names_files_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("data", "out"):
        Path(name).mkdir()
    Path("data/people.csv").write_text("name;works at\nada;7\nbo;\n", encoding="utf-16")
    Path("data/firms.csv").write_text("id;title\n7;Seven\n", encoding="utf-16")
    Path("data/knows.csv").write_text("from;to\nada;bo\nbo;zed\n", encoding="utf-16")
    files = ("data/people.csv", "data/firms.csv", "data/knows.csv")
    text, pipeline = scaffold(Path("out"), *files, encoding="utf-16")
    assert text == (
        "# Proposed from data; schema.pg has the types and the evidence for them.\n"
        "version: 1\n"
        'name: "on"\n'
        "# graph: ./my-graph\n"
        "\n"
        "sources:\n"
        "  people:\n"
        "    csv: ../data/people.csv\n"
        '    options: {delimiter: ";"}\n'
        "    encoding: utf-16\n"
        "  firms:\n"
        "    csv: ../data/firms.csv\n"
        '    options: {delimiter: ";"}\n'
        "    encoding: utf-16\n"
        "\n"
        "nodes:\n"
        "  Person:\n"
        "    source: people\n"
        "    properties:\n"
        "      name: name\n"
        '      works_at: "`works at`"\n'
        "  Firm:\n"
        "    source: firms\n"
        "    id: id\n"
        "    properties:\n"
        "      title: title\n"
        "\n"
        "# ../data/knows.csv is not loaded; declare edge Knows first:\n"
        "#   `to`: 1 of 2 different values are not in `name` of data/people.csv, for example "
        '"zed"\n'
        "\n"
        "mode: merge\n"
        "on_violation: fail\n"
    )
    assert [type_.table_key for type_ in pipeline.types] == ["node:Person", "node:Firm"]


def test_columns_with_any_name_are_quoted(tmp_path):
    names = ["order", "a`b", "a: b", "${x}", "a.b", "null", "user", "# c", "plain_1", "yes", "é"]
    (tmp_path / "rows.csv").write_text(",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    _, pipeline = scaffold(tmp_path, str(tmp_path / "rows.csv"))
    [rows] = pipeline.types
    assert [text.value for _, text in rows.properties.values()] == [
        *("`order`", "`a``b`", "`a: b`", "`${x}`", "`a.b`", "`null`", "`user`", "`# c`"),
        *("plain_1", "yes", "`é`"),
    ]


def test_files_that_pipelines_do_not_read_are_refused(tmp_path):
    feather.write_feather(pa.table({"id": [1]}), tmp_path / "rows.arrow")
    with pytest.raises(InvalidInput, match="write it as Parquet"):
        scaffold(tmp_path, str(tmp_path / "rows.arrow"))
