"""Plan a pipeline without writing anything."""

from __future__ import annotations

from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.pipeline.config.spec import Pipeline
from omnigraph.pipeline.runs.plan import PipelinePlan
from omnigraph.pipeline.runs.start_snapshot import find_start_snapshot
from omnigraph.pipeline.sources.mapping import MappedType
from omnigraph.pipeline.sources.prepare import PreparedPipeline, prepare_pipeline


def plan_pipeline(
    manifest: Manifest, pipeline: Pipeline, *, count: bool = False, full_refresh: bool = False
) -> PipelinePlan:
    """Return what a run would do; with `count`, rows are counted after `where` and `dedupe`."""
    snapshot, exists = find_start_snapshot(manifest, pipeline)
    ready = prepare_pipeline(manifest, pipeline, full_refresh=full_refresh)
    try:
        types = {}
        for mapped in ready.mapped:
            key = mapped.input.table_key
            committed = snapshot.entry(key).rows
            types[key] = {**_type_facts(ready, mapped, count=count), "committed": committed}
        return PipelinePlan(
            pipeline=pipeline.name,
            graph=manifest.location.uri,
            branch=pipeline.branch,
            base=None if exists else pipeline.base,
            branch_exists=exists,
            mode=pipeline.mode,
            on_violation=pipeline.on_violation,
            merge_into=pipeline.publish.merge_into,
            is_counted=count,
            sources=[_source_facts(ready, name) for name in pipeline.sources],
            types=types,
            warnings=[d.render() for d in pipeline.report.sorted()],
        )
    finally:
        ready.sources.close()


def _source_facts(ready: PreparedPipeline, name: str) -> dict[str, Any]:
    spec, source = ready.pipeline.sources[name], ready.sources.opened(name)
    return {
        "name": name,
        "kind": spec.kind,
        "files": 0 if source is None else source.files,
        "rows": None if source is None else source.rows,
        "broken": 0 if source is None else source.broken,
        **ready.sources.increments.facts(name),
    }


def _type_facts(ready: PreparedPipeline, mapped: MappedType, *, count: bool) -> dict[str, Any]:
    kind_and_name = mapped.input.table_key.partition(":")
    [spec] = [t for t in ready.pipeline.types if (t.kind, t.name.value) == kind_and_name[::2]]
    source = ready.sources.opened(spec.source.value)
    assert source is not None, "what was mapped was opened"
    most = None if source.rows is None else source.rows - source.broken
    rows = mapped.input.frame.count() if count else most
    columns = {
        name: {"expression": text, "type": type_} for name, (text, type_) in mapped.columns.items()
    }
    return {"source": spec.source.value, "rows": rows, "columns": columns}
