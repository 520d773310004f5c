"""Infer schemas from the files of `--from`, and write what is proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.files import replaced_file
from omnigraph.cli.output import count_text
from omnigraph.errors import Category, OmniError
from omnigraph.write.inference import InferredSchema, find_input_files, infer_schema


def input_options(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options for files to infer a schema from, passed as `inputs` and `encoding`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command = click.option(
            "--encoding", help="Encoding of CSV and JSON files.  [default: utf-8]"
        )(command)
        return click.option(
            "--from",
            "inputs",
            multiple=True,
            required=required,
            metavar="[TYPE=]FILE",
            help="Parquet, CSV or JSON lines file, folder or pattern; repeatable.",
        )(command)

    return decorate


def infer_inputs(inputs: Sequence[str], encoding: str | None) -> InferredSchema:
    """Return the schema of the files of `--from`."""
    return infer_schema(find_input_files(inputs, encoding))


def refuse_existing(paths: Iterable[Path]) -> None:
    """Raise OmniError with all files that exist."""
    existing = [str(path) for path in paths if path.exists()]
    if existing:
        verb = "exists" if len(existing) == 1 else "exist"
        raise OmniError(
            f"{' and '.join(existing)} {verb} already: use --force to replace, or another --out",
            code="already_exists",
            category=Category.CONFLICT,
            details={"files": existing},
        )


def write_files(texts: Mapping[Path, str]) -> None:
    """Write files, each atomically, and the folders they are in."""
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot create the folder {path.parent}: {error.strerror or error}"
            raise OmniError(message, code="file_unwritable") from error
        with replaced_file(path) as file:
            file.write(text.encode())


def types_text(schema: InferredSchema) -> str:
    """Return `3 node types, 1 edge type`."""
    nodes, edges = len(schema.nodes), len(schema.edges)
    return f"{count_text(nodes, 'node type')}, {count_text(edges, 'edge type')}"


def proposal_json(schema: InferredSchema, files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the wire form of a proposal and where it was written."""
    return {**{word: str(path) for word, path in files.items()}, **schema.to_json()}
