"""Pipelines proposed for data load exactly that data, without a change."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import omnigraph as og
from omnigraph.cli.app import cli
from omnigraph.write.inference import find_input_files, infer_schema
from omnigraph.write.inference.typed_rows import typed_rows


def test_a_proposed_pipeline_loads_what_the_files_hold(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = {"order": ["x", "y"], "a b": ["007", None], "user": ["a", "b"], "current_date": [1, 2]}
    people = pa.table({"code": [11, 12], "day": pa.array([1, 2], pa.date32()), **words})
    pq.write_table(people, "people.parquet")
    (tmp_path / "firms.csv").write_text("id;title;at\n7;Seven;2024-01-01T10:00:00.5\n8;Äcme;\n")
    jobs = [{"person_code": 11, "firm_id": 7, "tags": ["a"]}, {"person_code": 12, "firm_id": 8}]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    (tmp_path / "ships.csv").write_text("name,firm_id\nada,7\nbo,\n")
    files = ["people.parquet", "firms.csv", "jobs.jsonl", "ships.csv"]
    options = [word for file in files for word in ("--from", file)]
    made = CliRunner().invoke(cli, ["pipeline", "init", *options, "--out", "out"])
    assert made.exit_code == 0, made.output
    schema = tmp_path / "out" / "schema.pg"
    loaded = og.init(tmp_path / "piped", schema)
    report = loaded.pipeline.run(tmp_path / "out" / "pipeline.yaml")
    assert (report.state, report.rejected) == ("finished", 0)
    direct = og.init(tmp_path / "direct", schema)
    direct.load(typed_rows(infer_schema(find_input_files(files))), mode="append")
    exported = sorted(loaded.export())
    assert exported == sorted(direct.export())
    assert {"edge": "ShipFirm", "from": "ada", "to": "7", "data": {"id": '["ada","7"]'}} in map(
        json.loads, exported
    )
    person = loaded.entity_at("Person", "11")
    assert person == {
        "id": "11",
        "code": 11,
        "day": person["day"],
        "order": "x",
        "a_b": "007",
        "user": "a",
        "current_date": 1,
    }
