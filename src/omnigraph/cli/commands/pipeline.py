"""The commands `omnigraph pipeline …`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import omnigraph.pipeline as spark
from omnigraph.cli.commands.pipeline_init import init
from omnigraph.cli.commands.pipeline_warmup import prepare_faster_starts, warmup
from omnigraph.cli.errors import diagnostics_text
from omnigraph.cli.exit_codes import ExitCode, exits_by_cause, run_exit_code
from omnigraph.cli.files import open_catalog, replaced_file
from omnigraph.cli.open_graph import graph_command, open_addressed_graph
from omnigraph.cli.options import (
    actor_option,
    collect_options,
    graph_options,
    json_option,
    location_options,
)
from omnigraph.cli.output import count_text, json_requested, print_json, print_result
from omnigraph.cli.pipelines import (
    find_cluster_pipeline,
    find_run_pipeline,
    list_cluster_pipelines,
    print_lineage,
    print_pipeline_plan,
    print_run_report,
    print_runs,
    read_variables,
    unchecked_text,
)
from omnigraph.cli.progress import log_format_option, show_progress
from omnigraph.graph import Graph
from omnigraph.graph.modes import OpenMode
from omnigraph.pipeline.config.resolve import check_types
from omnigraph.pipeline.config.selection import pipeline_lineage, select_part
from omnigraph.pipeline.config.source_check import check_pipeline
from omnigraph.pipeline.config.spec import Pipeline, PipelineSource, read_pipeline
from omnigraph.pipeline.runs.html_report import report_page
from omnigraph.pipeline.runs.report import RunReport
from omnigraph.pipeline.runs.requests import PipelineInterrupted

_PATH = click.Path(path_type=Path)


def _file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for a pipeline file, its graph and its variables, passed as `source`."""
    options = (
        graph_options(),
        click.argument("path", metavar="FILE|NAME", type=_PATH),
        click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a variable."),
        click.option("--target", metavar="NAME", help="Target of the file to run at."),
        json_option,
    )
    command = collect_options("given", ("path", "uri", "store", "pairs", "target"))(command)
    for option in reversed(options):
        command = option(command)
    return command


def _selection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose some of the types, passed as `selection`."""
    command = collect_options("selection", ("select", "exclude"))(command)
    for name, verb in (("exclude", "Leave out"), ("select", "Only")):
        command = click.option(
            f"--{name}",
            multiple=True,
            metavar="NAME",
            help=f"{verb} a type or source:NAME; NAME+ and +NAME add what depends on it and what "
            "it depends on. Repeatable.",
        )(command)
    return command


_full_refresh_option = click.option(
    "--full-refresh", is_flag=True, help="Read incremental sources from the beginning."
)


@click.group()
def pipeline() -> None:
    """Load data with Spark, as described by a pipeline file."""


pipeline.add_command(init)
pipeline.add_command(warmup)


@pipeline.command()
@_file_options
@click.option("--schema", type=_PATH, help="Check against this schema instead of a graph.")
def validate(given: dict[str, Any], schema: Path | None) -> None:
    """Check a pipeline file without starting Spark."""
    path, variables, target = given["path"], read_variables(given["pairs"]), given["target"]
    if schema is not None:
        read = read_pipeline(path, variables, target=target)
        checked = check_pipeline(read, open_catalog(schema)[0])
    else:
        graph, source = _addressed(**given)
        checked = graph.pipeline.validate(source, variables, target=target)
    warnings = checked.report.sorted()
    if warnings and not json_requested():
        click.echo(diagnostics_text(warnings), err=True)
    counts = (
        f"{count_text(len(checked.sources), 'source')}, {count_text(len(checked.types), 'type')}"
    )
    value = {
        "status": "ok",
        "pipeline": checked.name,
        "diagnostics": [diagnostic.to_json() for diagnostic in warnings],
        "unchecked_sources": dict(checked.unchecked),
    }
    print_result(value, f"{path} is valid ({counts}; {unchecked_text(checked)})")


@pipeline.command()
@_file_options
@_selection_options
@click.option("--schema", type=_PATH, help="Use the types of this schema instead of a graph.")
def ls(given: dict[str, Any], selection: dict[str, Any], schema: Path | None) -> None:
    """List the sources and types of a pipeline, and what each is made from."""
    variables, target = read_variables(given["pairs"]), given["target"]
    if schema is not None:
        catalog = open_catalog(schema)[0]
        read = read_pipeline(given["path"], variables, target=target)
        check_types(read, catalog)
        lineage = pipeline_lineage(select_part(read, catalog, **selection), catalog)
    else:
        graph, source = _addressed(**given)
        lineage = graph.pipeline.lineage(source, variables, target=target, **selection)
    if json_requested():
        print_json(lineage.to_json())
    else:
        print_lineage(lineage)


@pipeline.command()
@_file_options
@_selection_options
@click.option("--count", is_flag=True, help="Count rows exactly. This reads all of them.")
@_full_refresh_option
def plan(given: dict[str, Any], selection: dict[str, Any], count: bool, full_refresh: bool) -> None:
    """Show what a run would read, create and change. Writes nothing."""
    graph, source = _addressed(**given)
    variables = read_variables(given["pairs"])
    with show_progress("planning", spark.running_tasks, link=spark.spark_ui):
        pipeline_plan = graph.pipeline.plan(
            source,
            variables,
            count=count,
            full_refresh=full_refresh,
            target=given["target"],
            **selection,
        )
    if json_requested():
        print_json(pipeline_plan.to_json())
    else:
        print_pipeline_plan(pipeline_plan)


@exits_by_cause
@pipeline.command()
@_file_options
@_selection_options
@actor_option
@log_format_option
@click.option("--force", is_flag=True, help="Run even if the same files were loaded before.")
@_full_refresh_option
@click.option("--again", is_flag=True, hidden=True, help="Deprecated: use --force.")
@click.option("--html", type=_PATH, help="Also write the report as an HTML page.")
def run(
    given: dict[str, Any],
    selection: dict[str, Any],
    actor: str | None,
    force: bool,
    full_refresh: bool,
    again: bool,
    html: Path | None,
    log_format: str,
) -> None:
    """Run a pipeline and publish the loaded data as one commit.

    If the run fails, nothing is published. The exit code says why."""
    if again:
        click.echo("--again is deprecated, use --force", err=True)
    graph, source = _addressed(**given, mode="rw", actor=actor)
    variables = read_variables(given["pairs"])
    options = {"target": given["target"], "full_refresh": full_refresh, **selection}
    report = _interruptible(
        lambda progress: graph.pipeline.run(
            source, variables, force=force or again, progress=progress, **options
        ),
        log_format,
    )
    _show(report, html)
    prepare_faster_starts()
    sys.exit(run_exit_code(report))


@exits_by_cause
@pipeline.command()
@graph_command(actor=True, mode="rw")
@click.argument("run_id", metavar="RUN")
@click.option("--file", "path", type=_PATH, help="The pipeline file, if it was moved.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a variable.")
@click.option("--html", type=_PATH, help="Also write the report as an HTML page.")
@log_format_option
def resume(
    graph: Graph,
    run_id: str,
    path: Path | None,
    pairs: tuple[str, ...],
    html: Path | None,
    log_format: str,
) -> None:
    """Resume an interrupted run. Finished stages are not repeated."""
    variables = read_variables(pairs)
    source = path or find_run_pipeline(graph, run_id)
    report = _interruptible(
        lambda progress: graph.pipeline.resume(run_id, source, variables, progress=progress),
        log_format,
    )
    _show(report, html)
    sys.exit(run_exit_code(report))


@pipeline.command("list")
@location_options
@json_option
def list_() -> None:
    """List the pipelines of a cluster."""
    pipelines = list_cluster_pipelines()
    facts = [{"name": p.name, "graph_id": p.graph, "digest": p.digest} for p in pipelines]
    lines = [f"{pipeline.name}\t{pipeline.graph}" for pipeline in pipelines]
    print_result({"pipelines": facts}, *(lines or ["(no pipelines declared)"]))


@pipeline.command()
@graph_command(optional="run_id")
@click.argument("run_id", metavar="RUN", required=False)
def status(graph: Graph, run_id: str | None) -> None:
    """List the runs of a graph, or show one."""
    runs = [run for run in graph.pipeline.status() if run_id in (None, run.id)]
    if json_requested():
        print_json({"runs": [run.to_json() for run in runs]})
    else:
        print_runs(runs)


@pipeline.command()
@graph_command(actor=True, mode="rw")
@click.argument("run_id", metavar="RUN")
def abort(graph: Graph, run_id: str) -> None:
    """Abort a run and remove its staged files."""
    aborted = graph.pipeline.abort(run_id)
    print_result(aborted.to_json(), f"run {aborted.id} is {aborted.state}")


@pipeline.command()
@graph_command(optional="run_id")
@click.argument("run_id", metavar="RUN", required=False)
@click.option("--html", type=_PATH, help="Also write the report as an HTML page.")
def report(graph: Graph, run_id: str | None, html: Path | None) -> None:
    """Show the report of a run, by default of the newest one."""
    _show(graph.pipeline.report(run_id), html)


def _addressed(
    path: Path,
    uri: str | None,
    store: str | None,
    pairs: tuple[str, ...],
    target: str | None,
    *,
    mode: OpenMode = "ro",
    actor: str | None = None,
) -> tuple[Graph, PipelineSource]:
    """Open the graph named by the options, the cluster or the file; return it and the pipeline."""
    declared = None if uri or store else find_cluster_pipeline(str(path))
    if declared is not None:
        graph = open_addressed_graph(None, None, mode=mode, actor=actor, graph_id=declared.graph)
        return graph, declared.source
    if uri is None and store is None:
        spec: Pipeline = read_pipeline(path, read_variables(pairs), target=target)
        if spec.graph is not None:
            uri = spec.address(spec.graph)
    return open_addressed_graph(uri, store, mode=mode, actor=actor), path


def _interruptible(work: Callable[[Any], RunReport], log_format: str) -> RunReport:
    try:
        with show_progress("pipeline", spark.running_tasks, log_format, spark.spark_ui) as progress:
            return work(progress)
    except PipelineInterrupted as error:
        click.echo(_interruption(error), err=True)
        sys.exit(ExitCode.INTERRUPTED)


def _interruption(error: PipelineInterrupted) -> str:
    resume = f"`omnigraph pipeline resume {error.run}`"
    if error.is_published:
        return f"interrupted after the commit was published; {resume} completes the run"
    return f"interrupted; nothing was published and staged files were removed. {resume} starts over"


def _show(report: RunReport, html: Path | None) -> None:
    """Print a report, and write it as a page if that was requested."""
    if html is not None:
        with replaced_file(html) as file:
            file.write(report_page(report).encode())
        click.echo(f"report written to {html}", err=True)
    if json_requested():
        print_json(report.to_json())
    else:
        print_run_report(report)
