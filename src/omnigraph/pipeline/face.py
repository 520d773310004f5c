"""This module is the face of pipelines: what `graph.pipeline` offers.

Spark is loaded only by what needs it: a pipeline file is checked, and runs are listed and reported,
without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import omnigraph.pipeline as room
from omnigraph.catalog import Catalog
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.graphs import GraphHandle
from omnigraph.pipeline.page import report_page
from omnigraph.pipeline.plans import PipelinePlan
from omnigraph.pipeline.report import RunReport, read_report
from omnigraph.pipeline.resolve import check_types
from omnigraph.pipeline.runs import PipelineRun, RunStore
from omnigraph.pipeline.source_check import check_pipeline
from omnigraph.pipeline.spec import Pipeline, PipelineSource, StoredPipeline, read_pipeline
from omnigraph.pipeline.states import find_start_snapshot
from omnigraph.write.progress import ProgressListener


class Pipelines:
    """The pipelines of a graph: files that say what is loaded, and their runs."""

    def __init__(self, graph: GraphHandle) -> None:
        self._graph = graph
        self._manifest = graph._for_spark()
        self._request = graph._request

    def validate(
        self, path: PipelineSource, variables: Mapping[str, str] | None = None
    ) -> Pipeline:
        """Check a pipeline file against the types of the graph and its files, without Spark.

        Files of this machine must exist and have the columns that are named; `unchecked` of what is
        returned lists the sources that only Spark can open.

        Raises:
            PipelineError: with everything that was found, with line and column.
        """
        pipeline = read_pipeline(path, variables)
        return check_pipeline(pipeline, self._catalog(pipeline))

    def _read(self, path: PipelineSource, variables: Mapping[str, str] | None = None) -> Pipeline:
        """Read a pipeline whose sources are opened next."""
        pipeline = read_pipeline(path, variables)
        check_types(pipeline, self._catalog(pipeline))
        return pipeline

    def _catalog(self, pipeline: Pipeline) -> Catalog:
        return find_start_snapshot(self._manifest, pipeline)[0].schema.catalog

    def plan(
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None = None,
        *,
        count: bool = False,
    ) -> PipelinePlan:
        """Tell what a run would read, create and change; nothing is written.

        With `count`, rows are counted after `where` and `dedupe`, which reads them all.
        """
        return room.plan_pipeline(self._manifest, self._read(path, variables), count=count)

    def run(
        self,
        path: PipelineSource,
        variables: Mapping[str, str] | None = None,
        *,
        again: bool = False,
        progress: ProgressListener | None = None,
    ) -> RunReport:
        """Run a pipeline: what it loads becomes one commit of its branch, or nothing does.

        The same files are not loaded twice by the same pipeline unless `again` says so.
        """
        pipeline = self._read(path, variables)
        running = room.PipelineExecution(self._manifest, self._request, pipeline, progress)
        running.declared = path.name if isinstance(path, StoredPipeline) else None
        return room.run_pipeline(running, again=again)

    def status(self) -> list[PipelineRun]:
        """Return every run, the newest first."""
        return RunStore(self._manifest.objects).list()[::-1]

    def resume(
        self,
        run: str,
        path: PipelineSource | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        progress: ProgressListener | None = None,
    ) -> RunReport:
        """Go on with a run that was interrupted; what it finished is not done again.

        `path` is where the pipeline file is now, if it is not where it was.
        """
        found = self._find(run)
        file = path if path is not None else found.about.get("file")
        if file is None:
            message = (
                f"run {found.id} was not begun by a pipeline file of this machine; name the file, "
                "or the cluster that declares the pipeline"
            )
            raise InvalidInput(message, code="run_not_resumable", run=found.id)
        pipeline = self._read(file, variables)
        running = room.PipelineExecution(self._manifest, self._request, pipeline, progress)
        return room.resume_pipeline(running, found)

    def abort(self, run: str) -> PipelineRun:
        """Give a run up and remove what it staged."""
        found = self._find(run)
        self._request("pipeline", found.branch, None)
        return room.abort_run(self._manifest, found)

    def report(self, run: str | None = None) -> RunReport:
        """Return the report of a run, by default the newest."""
        return read_report(self._manifest.objects, self._find(run))

    def page(self, run: str | None = None) -> str:
        """Return the report of a run as one page of HTML."""
        return report_page(self.report(run))

    def analyze(
        self,
        algorithm: str,
        edges: Sequence[str],
        into: str,
        *,
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        **options: Any,  # noqa: ANN401 - those of the algorithm
    ) -> room.AnalysisResult:
        """Compute a value for every node over edges of some types, and store it as a property.

        `algorithm` is `pagerank`, `components`, `labels` or `degrees`, `options` are its own;
        `into` is a property of a node type, as `Person.rank`. It is one commit of the branch, which
        is forked `from_` another if it does not exist.
        """
        asked = room.Analysis(
            algorithm=algorithm,
            edges=edges,
            into=into,
            options=options,
            branch=branch,
            from_=from_,
            message=message,
        )
        return room.analyze(self._graph, asked)

    def _find(self, run: str | None) -> PipelineRun:
        runs = RunStore(self._manifest.objects)
        if run is not None:
            return runs.find(run)
        newest = runs.list()[-1:]
        if not newest:
            raise NotFound("no pipeline ran on this graph yet", code="run_not_found")
        return newest[0]
