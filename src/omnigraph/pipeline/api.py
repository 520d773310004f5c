"""The API of pipelines: `graph.pipeline`.

Spark is imported only by methods that need it: pipeline files are checked, and runs are listed and
reported, without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import omnigraph.pipeline as spark
from omnigraph.catalog import Catalog
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.notebook.display import ReportList
from omnigraph.pipeline.config.resolve import check_types
from omnigraph.pipeline.config.selection import PipelineLineage, pipeline_lineage, select_part
from omnigraph.pipeline.config.source_check import check_pipeline
from omnigraph.pipeline.config.spec import Pipeline, PipelineSource, StoredPipeline, read_pipeline
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.pipeline.runs.html_report import report_page
from omnigraph.pipeline.runs.plan import PipelinePlan
from omnigraph.pipeline.runs.rejected_rows import read_rejects
from omnigraph.pipeline.runs.report import RunReport, read_report
from omnigraph.pipeline.runs.run import PipelineRun, RunStore
from omnigraph.pipeline.runs.start_snapshot import find_start_snapshot
from omnigraph.write.progress import ProgressListener


class Pipelines:
    """The pipelines of a graph: files that describe loads, and the runs of these files."""

    def __init__(self, graph: GraphHandle) -> None:
        self._graph = graph
        self._manifest = graph._for_spark()
        self._request = graph._request

    def validate(
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None = None,
        *,
        target: str | None = None,
    ) -> Pipeline:
        """Check a pipeline file against the types of the graph and its input files, without Spark.

        Local files must exist and have the columns that the pipeline names; `unchecked` of the
        returned pipeline lists the sources that only Spark can open.

        Raises:
            PipelineError: lists all problems with line and column.
        """
        pipeline = read_pipeline(path, variables, target=target)
        return check_pipeline(pipeline, self._catalog(pipeline))

    def lineage(
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None = None,
        *,
        target: str | None = None,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> PipelineLineage:
        """Return which sources and types of a pipeline depend on which others."""
        pipeline = self._read(path, variables, target, select, exclude)
        return pipeline_lineage(pipeline, self._catalog(pipeline))

    def _read(
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None,
        target: str | None,
        select: Sequence[str],
        exclude: Sequence[str],
    ) -> Pipeline:
        """Read a pipeline file and check its types; Spark checks its sources."""
        pipeline = read_pipeline(path, variables, target=target)
        catalog = self._catalog(pipeline)
        check_types(pipeline, catalog)
        return select_part(pipeline, catalog, select, exclude)

    def _catalog(self, pipeline: Pipeline) -> Catalog:
        return find_start_snapshot(self._manifest, pipeline)[0].schema.catalog

    def plan(  # noqa: PLR0913 - the options of a run
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None = None,
        *,
        count: bool = False,
        full_refresh: bool = False,
        target: str | None = None,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> PipelinePlan:
        """Return what a run would read, create and change, without writing anything.

        With `count`, rows are counted after `where` and `dedupe`, which reads all of them.
        """
        pipeline = self._read(path, variables, target, select, exclude)
        return spark.plan_pipeline(self._manifest, pipeline, count=count, full_refresh=full_refresh)

    def run(  # noqa: PLR0913 - the options of a run
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None = None,
        *,
        force: bool = False,
        full_refresh: bool = False,
        progress: ProgressListener | None = None,
        target: str | None = None,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        again: bool | None = None,
    ) -> RunReport:
        """Run a pipeline and publish the loaded data as one commit, or nothing.

        A pipeline does not load the same files twice unless `force` is true. With `full_refresh`,
        `incremental` sources are read from the beginning. `target` is one of
        the file's `targets`. `select` and `exclude` choose types: `Person`, `Person+` with all
        that depends on it, `+Knows` with all it depends on, `source:people`. `again` is a
        deprecated alias of `force`.
        """
        if again is not None:
            warnings.warn("`again` is deprecated, use `force`", DeprecationWarning, stacklevel=2)
            force = force or again
        pipeline = self._read(path, variables, target, select, exclude)
        running = spark.PipelineExecution(self._manifest, self._request, pipeline, progress)
        running.declared = path.name if isinstance(path, StoredPipeline) else None
        running.full_refresh = full_refresh
        return spark.run_pipeline(running, force=force)

    def status(self) -> list[PipelineRun]:
        """Return all runs, the newest first."""
        return ReportList("Pipeline runs", RunStore(self._manifest.objects).list()[::-1])

    def resume(
        self,
        run: str,
        path: PipelineSource | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        progress: ProgressListener | None = None,
    ) -> RunReport:
        """Resume an interrupted run; finished stages are not repeated.

        `path` is the pipeline file, if it was moved since the run started.
        """
        record = self._find(run)
        file = path if path is not None else record.about.get("file")
        if file is None:
            message = (
                f"run {record.id} was not started from a pipeline file on this machine: give the "
                "file, or the cluster that declares the pipeline"
            )
            raise InvalidInput(message, code="run_not_resumable", run=record.id)
        choices = [record.about.get(word) for word in ("target", "select", "exclude")]
        pipeline = self._read(file, variables, choices[0], choices[1] or (), choices[2] or ())
        running = spark.PipelineExecution(self._manifest, self._request, pipeline, progress)
        running.full_refresh = bool(record.about.get("full_refresh"))
        return spark.resume_pipeline(running, record)

    def abort(self, run: str) -> PipelineRun:
        """Abort a run and remove its staged files."""
        record = self._find(run)
        self._request("pipeline", record.branch, None)
        return spark.abort_run(self._manifest, record)

    def report(self, run: str | None = None) -> RunReport:
        """Return the report of a run, by default of the newest one."""
        return read_report(self._manifest.objects, self._find(run))

    def rejects(self, run: str | None = None) -> Iterator[dict[str, Any]]:
        """Return the rejected rows of a run, by default of the newest one.

        Each has the broken `rule`, a `message`, its `source` and the row itself. Rows in a folder
        that the pipeline file names are not part of the graph.
        """
        record = self._find(run)
        report = read_report(self._manifest.objects, record)
        return read_rejects(self._manifest, f"{record.folder}/rejects", report)

    def page(self, run: str | None = None) -> str:
        """Return the report of a run as an HTML page."""
        return report_page(self.report(run))

    def analyze(  # noqa: PLR0913 - what to compute, where it goes, and within which limits
        self,
        algorithm: str,
        edges: Sequence[str],
        into: str,
        *,
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        engine: str | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        **options: Any,  # noqa: ANN401 - those of the algorithm
    ) -> spark.AnalysisResult:
        """Compute a value for every node over edges of some types, and store it as a property.

        Algorithms, `options`, `timeout` and `memory` are those of `Graph.analyze`. `into` is a
        property of a node type such as `Person.rank`. The values are published as one commit on
        the branch, which is created `from_` another branch if it does not exist. Without an
        `engine`, the local one computes what fits 2 GiB of memory, and Spark what does not.
        """
        analysis = spark.Analysis(
            algorithm=algorithm,
            edges=edges,
            into=into,
            options=options,
            branch=branch,
            from_=from_,
            message=message,
            engine=engine,
            timeout=timeout,
            memory=memory,
        )
        return spark.analyze(self._graph, analysis)

    def _find(self, run: str | None) -> PipelineRun:
        runs = RunStore(self._manifest.objects)
        if run is not None:
            return runs.find(run)
        newest = runs.list()[-1:]
        if not newest:
            raise NotFound("no pipeline has run on this graph yet", code="run_not_found")
        return newest[0]
