"""The command `omnigraph pipeline init`."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.catalog import load_catalog
from omnigraph.cli.inference import (
    infer_inputs,
    input_options,
    proposal_json,
    refuse_existing,
    types_text,
    write_files,
)
from omnigraph.cli.options import json_option
from omnigraph.cli.output import print_notes, print_result
from omnigraph.pipeline.config.resolve import check_types
from omnigraph.pipeline.config.scaffold import pipeline_text
from omnigraph.pipeline.config.spec import StoredPipeline, read_pipeline
from omnigraph.write.inference import schema_text


@click.command("init")
@input_options(required=True)
@click.option(
    "--out",
    "folder",
    default=".",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the new files.",
    show_default=True,
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
@json_option
def init(inputs: tuple[str, ...], encoding: str | None, folder: Path, force: bool) -> None:
    """Propose a schema and a pipeline file for data.

    Reads all rows, without Spark. Every choice has its evidence as a comment in the files."""
    files = {"schema": folder / "schema.pg", "pipeline": folder / "pipeline.yaml"}
    if not force:
        refuse_existing(files.values())
    schema = infer_inputs(inputs, encoding)
    name = folder.resolve().name
    texts = (schema_text(schema), pipeline_text(schema, folder, name))
    _check(*texts, folder)
    write_files(dict(zip(files.values(), texts, strict=True)))
    print_result(
        proposal_json(schema, files),
        f"wrote {files['schema']} ({types_text(schema)}) and {files['pipeline']}",
        f"next: omnigraph init ./my-graph --schema {files['schema']}",
        f"      omnigraph pipeline run {files['pipeline']} --store ./my-graph",
    )
    print_notes(schema.warnings)


def _check(schema: str, pipeline: str, folder: Path) -> None:
    """Refuse what could not be run, before it is written."""
    stored = StoredPipeline("pipeline", pipeline.encode(), folder.resolve())
    check_types(read_pipeline(stored), load_catalog(schema))
