"""This module loads frames on Spark: staged once, validated as staged, published as one commit."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.pipeline.model import Input, OnViolation, Outcome, SparkLoadOptions, TypeOutcome
from omnigraph.pipeline.runs import Run
from omnigraph.write.request import Request

__all__ = [
    "Input",
    "OnViolation",
    "Outcome",
    "SparkLoadOptions",
    "TypeOutcome",
    "abort_run",
    "load_frames",
]


def load_frames(
    manifest: Manifest,
    request: Request,
    inputs: Sequence[Input],
    options: SparkLoadOptions,
    spark: SparkSession,
) -> Outcome:
    """Load the rows of frames as one commit.

    Raises:
        ValidationFailed: rows break rules and are not to be rejected, or too many are.
        SchemaMoved: the schema changed after the rows were staged.
    """
    raise NotImplementedError


def abort_run(manifest: Manifest, run: Run) -> Run:
    """Give a run up: nobody can publish it any more, and what it staged is removed."""
    raise NotImplementedError
