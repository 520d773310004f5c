"""Check the pipelines of a cluster, and read those that were applied."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from omnigraph.catalog import Catalog
from omnigraph.errors import NotFound
from omnigraph.lang import DiagnosticReport
from omnigraph.pipeline.config.resolve import report_types
from omnigraph.pipeline.config.spec import StoredPipeline, parse_pipeline
from omnigraph.service.cluster.config import read_config
from omnigraph.service.cluster.diagnostics import ClusterDiagnostics
from omnigraph.service.cluster.ledger import resource_names
from omnigraph.service.cluster.store import ClusterStore


class _PlaceholderVariables(dict[str, str]):
    """Placeholder values of variables, whose values are not known before a pipeline runs."""

    def get(self, name: str, default: str | None = None) -> str:  # type: ignore[override]
        return "0" if default is None else default


def check_pipeline_file(report: DiagnosticReport, folder: Path, catalog: Catalog | None) -> None:
    """Report the errors of a pipeline file; its sources are not read."""
    pipeline = parse_pipeline(report, folder, environment=_PlaceholderVariables())
    if pipeline is not None and catalog is not None:
        report_types(pipeline, catalog)


@dataclass(frozen=True, slots=True)
class AppliedPipeline:
    """A pipeline that was applied, and the graph it loads into."""

    name: str
    graph: str
    digest: str


def applied_pipelines(store: ClusterStore) -> list[AppliedPipeline]:
    """Return the pipelines of the applied revision by name."""
    resources = store.read().state.resources
    pipelines = []
    for name in sorted(resource_names(resources, "pipeline")):
        entry = resources[f"pipeline.{name}"]
        graph = (entry.applies_to or ("",))[0].removeprefix("graph.")
        pipelines.append(AppliedPipeline(name, graph, entry.digest))
    return pipelines


def find_pipeline(store: ClusterStore, name: str) -> AppliedPipeline:
    """Return an applied pipeline by name."""
    pipelines = {pipeline.name: pipeline for pipeline in applied_pipelines(store)}
    if name not in pipelines:
        message = f"the cluster has no pipeline '{name}'; it has: {', '.join(pipelines) or 'none'}"
        raise NotFound(message, code="pipeline_not_applied", pipeline=name)
    return pipelines[name]


def read_pipeline_text(
    store: ClusterStore, pipeline: AppliedPipeline, source: str | os.PathLike[str]
) -> StoredPipeline:
    """Return the text of a pipeline as it was applied.

    Relative addresses in it are relative to the folder of its file if `source` is the folder of
    the configuration, otherwise to the current folder.
    """
    content = store.payload(f"pipeline.{pipeline.name}", pipeline.digest)
    text, folder = os.fspath(source), Path.cwd()
    config = None if "://" in text else read_config(Path(text), ClusterDiagnostics())
    if config is not None and pipeline.name in config.pipelines:
        folder = (config.folder / config.pipelines[pipeline.name].file).resolve().parent
    return StoredPipeline(pipeline.name, content, folder)
