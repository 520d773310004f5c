"""This module is the face of pipelines: what `graph.pipeline` offers.

Spark is loaded only by what needs it: a pipeline file is checked, and runs are listed and reported,
without it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import omnigraph.pipeline as room
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.page import report_page
from omnigraph.pipeline.plans import PipelinePlan
from omnigraph.pipeline.report import RunReport, read_report
from omnigraph.pipeline.requests import MakeRequest
from omnigraph.pipeline.resolve import check_types
from omnigraph.pipeline.runs import Run, Runs
from omnigraph.pipeline.spec import Pipeline, read_pipeline
from omnigraph.pipeline.states import start_of
from omnigraph.write.progress import Listener


class Pipelines:
    """The pipelines of a graph: files that say what is loaded, and their runs."""

    def __init__(self, manifest: Manifest, request: MakeRequest) -> None:
        self._manifest = manifest
        self._request = request

    def validate(
        self, path: str | os.PathLike[str], variables: Mapping[str, str] | None = None
    ) -> Pipeline:
        """Check a pipeline file against the types of the graph, without Spark.

        Raises:
            PipelineError: something is wrong; everything is told, with line and column.
        """
        pipeline = read_pipeline(path, variables)
        check_types(pipeline, start_of(self._manifest, pipeline)[0].schema.catalog)
        return pipeline

    def plan(
        self,
        path: str | os.PathLike[str],
        variables: Mapping[str, str] | None = None,
        *,
        count: bool = False,
    ) -> PipelinePlan:
        """Tell what a run would read, create and change; nothing is written.

        With `count`, rows are counted after `where` and `dedupe`, which reads them all.
        """
        return room.plan_pipeline(self._manifest, self.validate(path, variables), count=count)

    def run(
        self,
        path: str | os.PathLike[str],
        variables: Mapping[str, str] | None = None,
        *,
        again: bool = False,
        progress: Listener | None = None,
    ) -> RunReport:
        """Run a pipeline: what it loads becomes one commit of its branch, or nothing does.

        The same files are not loaded twice by the same pipeline unless `again` says so.
        """
        pipeline = self.validate(path, variables)
        running = room.Running(self._manifest, self._request, pipeline, progress)
        return room.run_pipeline(running, again=again)

    def status(self) -> list[Run]:
        """Return every run, the newest first."""
        return Runs(self._manifest.objects).list()[::-1]

    def resume(
        self,
        run: str,
        path: str | os.PathLike[str] | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        progress: Listener | None = None,
    ) -> RunReport:
        """Go on with a run that was interrupted; what it finished is not done again.

        `path` is where the pipeline file is now, if it is not where it was.
        """
        found = self._find(run)
        file = path if path is not None else found.about.get("file")
        if file is None:
            message = f"run {found.id} was not begun by a pipeline file; it cannot be resumed"
            raise InvalidInput(message, code="run_not_resumable", run=found.id)
        pipeline = self.validate(file, variables)
        running = room.Running(self._manifest, self._request, pipeline, progress)
        return room.resume_pipeline(running, found)

    def abort(self, run: str) -> Run:
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

    def _find(self, run: str | None) -> Run:
        runs = Runs(self._manifest.objects)
        if run is not None:
            return runs.find(run)
        newest = runs.list()[-1:]
        if not newest:
            raise NotFound("no pipeline ran on this graph yet", code="run_not_found")
        return newest[0]
