"""Print pipeline plans, runs and reports; find the pipelines a cluster declares."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from omnigraph.cli.graph_address import GraphAddress, cluster_address
from omnigraph.cli.open_graph import address_options, load_user_config
from omnigraph.cli.options import InvalidUsage
from omnigraph.cli.output import count_text, print_notes, print_table
from omnigraph.graph import Graph
from omnigraph.pipeline.config.selection import PipelineLineage
from omnigraph.pipeline.config.spec import Pipeline, StoredPipeline
from omnigraph.pipeline.runs.html_report import seconds_text, size_text, state_text
from omnigraph.pipeline.runs.plan import PipelinePlan
from omnigraph.pipeline.runs.report import RunReport
from omnigraph.pipeline.runs.run import PipelineRun
from omnigraph.service.cluster.pipelines import (
    AppliedPipeline,
    applied_pipelines,
    find_pipeline,
    read_pipeline_text,
)
from omnigraph.service.cluster.serving import open_store

_SHOWN_ENTITIES = 5

# --- pipelines of a cluster --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusterPipeline:
    """A pipeline of the addressed cluster: its graph, and its text as applied."""

    graph: str
    source: StoredPipeline


def list_cluster_pipelines() -> list[AppliedPipeline]:
    """Return the pipelines of the addressed cluster, or of the addressed graph in it."""
    address = _cluster()
    if address is None:
        raise InvalidUsage("name the cluster with --cluster DIR|URI, or with a profile")
    pipelines = applied_pipelines(open_store(address.address, None))
    return [one for one in pipelines if address.graph in (None, one.graph)]


def find_cluster_pipeline(name: str) -> ClusterPipeline | None:
    """Return a pipeline by name; None when no cluster was addressed."""
    address = _cluster()
    if address is None:
        return None
    store = open_store(address.address, None)
    pipeline = find_pipeline(store, name)
    if address.graph not in (None, pipeline.graph):
        raise InvalidUsage(
            f"pipeline '{name}' loads into graph '{pipeline.graph}', not '{address.graph}'"
        )
    return ClusterPipeline(pipeline.graph, read_pipeline_text(store, pipeline, address.address))


def find_run_pipeline(graph: Graph, run: str) -> StoredPipeline | None:
    """Return the pipeline that a run started with, if the addressed cluster declares it."""
    record = next((one for one in graph.pipeline.status() if one.id == run), None)
    name = None if record is None else record.about.get("declared")
    pipeline = None if name is None else find_cluster_pipeline(name)
    return None if pipeline is None else pipeline.source


def _cluster() -> GraphAddress | None:
    return cluster_address(address_options(None, None), load_user_config())


def read_variables(pairs: Sequence[str]) -> dict[str, str]:
    """Return the variables given with `--set NAME=VALUE`."""
    variables: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--set needs NAME=VALUE, got '{pair}'")
        if name in variables:
            raise click.UsageError(f"--set {name} is given twice")
        variables[name] = value
    return variables


def unchecked_text(pipeline: Pipeline) -> str:
    """Return what `validate` did not check, and which command does."""
    if not pipeline.unchecked:
        return 'expressions not checked, run "plan" to check them'
    named = ", ".join(f"{name} ({why})" for name, why in pipeline.unchecked.items())
    return f'expressions and these sources not checked: {named}; run "plan" to open them'


def print_lineage(lineage: PipelineLineage) -> None:
    """Print the sources and types of a pipeline, and what each is made from."""
    found = lineage.to_json()
    sources = [(one["name"], one["kind"], ", ".join(one["reads"])) for one in found["sources"]]
    _table(f"pipeline {lineage.pipeline}: sources", ("source", "kind", "reads"), sources)
    types = [
        (one["type"].replace(":", " "), ", ".join(one["reads"]), _type_names(one["needs"]))
        for one in found["types"]
    ]
    _table("types", ("type", "source", "endpoints"), types)


def _type_names(keys: Sequence[str]) -> str:
    return ", ".join(key.partition(":")[2] for key in keys)


def print_pipeline_plan(plan: PipelinePlan) -> None:
    """Print what a pipeline would do."""
    where = plan.branch if plan.branch_exists else f"{plan.branch} (created from {plan.base})"
    into = f", then merged into {plan.merge_into}" if plan.merge_into else ""
    click.echo(f"pipeline {plan.pipeline} would {plan.mode} into {where}{into}")
    rows = [
        (
            s["name"],
            s["kind"],
            _count_or_unknown(s["files"]),
            _count_or_unknown(s["rows"]),
            _count_or_unknown(s["broken"]),
        )
        for s in plan.sources
    ]
    _table("sources", ("source", "kind", "files", "rows", "unreadable"), rows)
    for key, type_ in plan.types.items():
        count = "an unknown number of" if type_["rows"] is None else f"{type_['rows']:,}"
        sign = "" if plan.is_counted or type_["rows"] is None else "at most "
        title = (
            f"{key.replace(':', ' ')}: {sign}{count} rows of {type_['source']}; "
            f"{count_text(type_['committed'], 'entity', 'entities')} committed"
        )
        columns = [
            (name, column["expression"], column["type"])
            for name, column in type_["columns"].items()
        ]
        _table(title, ("column", "expression", "type"), columns)
    click.echo("nothing was written")


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with a header, also where output is not a terminal."""
    print_table(title, heads, rows if sys.stdout.isatty() or not rows else [heads, *rows])


def _count_or_unknown(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def print_runs(runs: Sequence[PipelineRun]) -> None:
    """Print runs, a line each."""
    if not runs:
        click.echo("no pipeline has run on this graph yet")
        return
    rows = [
        (
            run.id,
            "interrupted" if run.is_interrupted else str(run.state),
            str(run.about.get("pipeline", "")),
            run.branch,
            f"{run.started_at:%Y-%m-%d %H:%M:%S}",
            ", ".join(run.stages),
        )
        for run in runs
    ]
    _table("runs", ("run", "state", "pipeline", "branch", "started", "finished stages"), rows)


def print_run_report(report: RunReport) -> None:
    """Print what a run did."""
    click.echo(
        f"pipeline {report.pipeline}: {state_text(report)}, "
        f"{count_text(report.given, 'row')} in, {report.accepted:,} accepted, "
        f"{report.rejected:,} rejected, {size_text(report.bytes)} written "
        f"in {seconds_text(report.seconds)}"
    )
    rows = [_type_row(key, type_) for key, type_ in report.types.items()]
    heads = ("type", "rows in", "accepted", "rejected", "inserted", "updated", "deleted", "rules")
    if rows:
        _table("types", heads, rows)
    stages = [(stage["name"], seconds_text(stage["seconds"])) for stage in report.stages]
    _table("stages", ("stage", "time"), stages)
    checks = [
        (one["name"], _outcome_text(one), one["message"], _entities_text(one))
        for one in report.checks
    ]
    if checks:
        _table("checks", ("check", "outcome", "finding", "entities"), checks)
    for line in _summary_lines(report):
        click.echo(line)
    print_notes(report.notes)


def _outcome_text(check: Mapping[str, Any]) -> str:
    return "passed" if check["passed"] else {"warn": "warning", "fail": "failed"}[check["severity"]]


def _entities_text(check: Mapping[str, Any]) -> str:
    shown = [f"{one['type']} {one['id']}" for one in check["entities"][:_SHOWN_ENTITIES]]
    return ", ".join(shown) + (", …" if len(check["entities"]) > _SHOWN_ENTITIES else "")


def _type_row(key: str, type_: Mapping[str, Any]) -> tuple[str, ...]:
    rejected = type_["rejected"]
    numbers = [type_["given"], type_["accepted"], sum(rejected.values())]
    numbers += [type_[word] for word in ("inserted", "updated", "deleted")]
    rules = ", ".join(f"{rule} {count:,}" for rule, count in rejected.items())
    return (key.replace(":", " "), *(f"{number:,}" for number in numbers), rules)


def _summary_lines(report: RunReport) -> Iterator[str]:
    """Yield lines about rejected rows, vectors, the commit, the merge and errors."""
    if report.unreadable:
        yield f"{count_text(report.unreadable, 'row')} in files could not be read"
    if report.rejects is not None:
        yield f"rejected rows are in {report.rejects}"
    for made in report.embedded:
        for item in made["properties"]:
            vectors = count_text(item["embedded"], "vector")
            kept = f", {item['kept']:,} kept" if item.get("kept") else ""
            yield f"embedded {vectors} of {made['type']}.{item['name']} by {made['model']}{kept}"
    if report.commit is not None:
        verb = "already loaded by commit" if report.repeated else "commit"
        yield f"{verb} {report.commit['graph_commit_id']} on branch {report.branch}"
    if report.merge is not None:
        conflicts = report.merge.get("conflicts")
        if conflicts:
            yield (
                f"{count_text(len(conflicts), 'conflict')} with {report.merge['target']}; branch "
                f"{report.branch} is kept: resolve with omnigraph merge {report.branch} --resolve …"
            )
        else:
            yield f"merged into {report.merge['target']}: {report.merge['outcome']}"
    if report.error is not None:
        yield f"error[{report.error['code']}]: {report.error['message']}"
    yield f"run {report.run}"
