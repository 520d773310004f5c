"""Send OpenLineage events of pipeline runs: what was read, what was written, and by which columns.

Events go to a file, as lines of JSON, or to an HTTP API such as Marquez. A run never fails because
of them; what could not be sent is a note in its report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyspark
from ulid import ULID

from omnigraph.catalog import Catalog, EdgeType
from omnigraph.pipeline.config.resolve import type_of
from omnigraph.pipeline.config.spec import (
    FILE_KINDS,
    OpenLineageSpec,
    Pipeline,
    SourceSpec,
    sources_below,
    without_literals,
)
from omnigraph.pipeline.runs.report import RunReport
from omnigraph.pipeline.runs.run import PipelineRun
from omnigraph.pipeline.sources.extract import SourceFrames
from omnigraph.pipeline.sources.prepare import PreparedPipeline
from omnigraph.version import __version__

TIMEOUT_SECONDS = 5.0
_PRODUCER = f"urn:omnigraph:{__version__}"
_SPEC = "https://openlineage.io/spec"
_FACETS = {
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet.json",
    "errorMessage": "1-0-1/ErrorMessageRunFacet.json",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet.json",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet.json",
    "schema": "1-1-1/SchemaDatasetFacet.json",
    "version": "1-0-1/DatasetVersionDatasetFacet.json",
}
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")


@dataclass(slots=True)
class LineageEvents:
    """The events of one run."""

    spec: OpenLineageSpec
    ready: PreparedPipeline
    run: PipelineRun
    catalog: Catalog
    graph: str
    """The address of the graph."""
    problems: list[str] = field(default_factory=list)
    """Why events could not be sent."""

    def send(self, state: str, report: RunReport) -> None:
        """Send an event: `START`, `RUNNING`, `COMPLETE`, `FAIL` or `ABORT`."""
        event = self._event(state, report)
        try:
            if self.spec.file is not None:
                path = Path(self.ready.pipeline.address(self.spec.file))
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(event, ensure_ascii=False) + "\n")
            if self.spec.url is not None:
                self._post(self.spec.url, event)
        except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
            where = self.spec.file or urlsplit(self.spec.url or "").netloc.rpartition("@")[2]
            problem = f"OpenLineage event {state} was not sent to {where}: {error}"
            self.problems.append(problem)

    def _post(self, url: str, event: Mapping[str, Any]) -> None:
        parts = urlsplit(url)
        address = url if parts.path.strip("/") else f"{url.rstrip('/')}/api/v1/lineage"
        key = self.spec.api_key
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        answer = httpx.post(address, json=event, headers=headers, timeout=TIMEOUT_SECONDS)
        if answer.is_error:
            message = f"the server answered {answer.status_code} {answer.reason_phrase}"
            raise httpx.HTTPStatusError(message, request=answer.request, response=answer)

    def _event(self, state: str, report: RunReport) -> dict[str, Any]:
        facets = {
            "processing_engine": _facet(
                "processing_engine",
                name="spark",
                version=pyspark.__version__,
                openlineageAdapterVersion=__version__,
            )
        }
        if report.error is not None:
            facets["errorMessage"] = _facet(
                "errorMessage", message=report.error["message"], programmingLanguage="Python"
            )
        return {
            "eventType": state,
            "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "producer": _PRODUCER,
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": str(ULID.from_str(self.run.id).to_uuid()), "facets": facets},
            "job": {"namespace": self.spec.namespace, "name": self.ready.pipeline.name},
            "inputs": list(self._inputs()),
            "outputs": list(self._outputs(report)),
        }

    def _inputs(self) -> Iterator[dict[str, Any]]:
        pipeline, sources = self.ready.pipeline, self.ready.sources
        for name, spec in pipeline.sources.items():
            columns = _columns(sources, name)
            facets = {}
            if columns:
                facets["schema"] = _facet("schema", fields=[{"name": column} for column in columns])
            for dataset in self._datasets(spec):
                yield {**dataset, "facets": facets}

    def _datasets(self, spec: SourceSpec) -> list[dict[str, str]]:
        return source_datasets(self.ready.pipeline, spec, self.spec.namespace)

    def _outputs(self, report: RunReport) -> Iterator[dict[str, Any]]:
        """Yield the types of the load; those of graph batches are known once it is done."""
        keys = dict.fromkeys([spec.table_key for spec in self.ready.pipeline.types])
        for key in dict.fromkeys([*keys, *report.types]):
            kind, _, name = key.partition(":")
            type_ = (self.catalog.nodes if kind == "node" else self.catalog.edges).get(name)
            if type_ is None:
                continue
            ends = ["from", "to"] if isinstance(type_, EdgeType) else []
            declared = [{"name": end, "type": "String"} for end in ends]
            declared += [{"name": p.name, "type": str(p.type)} for p in type_.properties.values()]
            facets = {"schema": _facet("schema", fields=declared)}
            lineage = self._column_lineage(key)
            if lineage:
                facets["columnLineage"] = _facet("columnLineage", fields=lineage)
            output: dict[str, Any] = {**_graph_dataset(self.graph, report.branch, key)}
            if report.commit is not None:
                commit = report.commit["graph_commit_id"]
                facets["version"] = _facet("version", datasetVersion=commit)
                facts = report.types.get(key, {"accepted": 0, "bytes": 0})
                output["outputFacets"] = {
                    "outputStatistics": _facet(
                        "outputStatistics", rowCount=facts["accepted"], size=facts["bytes"]
                    )
                }
            yield {**output, "facets": facets}

    def _column_lineage(self, key: str) -> dict[str, Any]:
        """Return by property the columns of inputs that its expression uses."""
        pipeline = self.ready.pipeline
        specs = [spec for spec in pipeline.types if spec.table_key == key]
        mapped = [one for one in self.ready.mapped if one.input.table_key == key]
        if not specs or not mapped or type_of(specs[0], self.catalog) is None:
            return {}
        source = specs[0].source.value
        found = {}
        for name, (text, _) in mapped[0].columns.items():
            is_plain = text.strip().strip("`") in _columns(self.ready.sources, source)
            is_same = is_plain and pipeline.sources[source].kind != "sql"
            kind = {"type": "DIRECT", "subtype": "IDENTITY" if is_same else "TRANSFORMATION"}
            fields = [
                {**dataset, "field": column, "transformations": [kind]}
                for base, column in self._used(source, text)
                for dataset in self._datasets(pipeline.sources[base])
            ]
            if fields:
                found[name] = {"inputFields": fields}
        return found

    def _used(self, source: str, text: str) -> list[tuple[str, str]]:
        """Return the columns, with their sources, that an expression over a source uses.

        Through a query, these are the columns of its sources with the names of those it uses, and
        all that it names if none is called so.
        """
        sources, pipeline = self.ready.sources, self.ready.pipeline
        spec = pipeline.sources[source]
        used = _named(_columns(sources, source), text)
        if spec.kind != "sql":
            return [(source, column) for column in used]
        query = spec.given[0].value
        below = sorted(sources_below(source, pipeline.sources) - {source})
        leaves = [one for one in below if pipeline.sources[one].kind != "sql"]
        found = []
        for column in used:
            same = [(leaf, column) for leaf in leaves if column in _columns(sources, leaf)]
            named = [(leaf, c) for leaf in leaves for c in _named(_columns(sources, leaf), query)]
            found += same or named
        return list(dict.fromkeys(found))


def source_datasets(pipeline: Pipeline, spec: SourceSpec, namespace: str) -> list[dict[str, str]]:
    """Return the datasets that a source reads, named as OpenLineage does; none for queries."""
    if spec.kind in FILE_KINDS or spec.paths:
        return [_file_dataset(pipeline.address(path.value)) for path in spec.paths]
    if spec.kind == "jdbc":
        return [_database_dataset(spec)]
    if spec.kind == "sql":
        return []
    return [{"namespace": namespace, "name": spec.given[0].value}]


def _file_dataset(address: str) -> dict[str, str]:
    plain = re.sub("^file:/+", "/", address)
    if not _ADDRESS.match(plain):
        return {"namespace": "file", "name": str(Path(plain))}
    parts = urlsplit(plain)
    host = parts.netloc.rpartition("@")[2]
    return {"namespace": f"{parts.scheme}://{host}", "name": parts.path.lstrip("/") or "/"}


def _database_dataset(spec: SourceSpec) -> dict[str, str]:
    """Name a table of a database, without the credentials that its address may have."""
    address = re.split("[?;]", spec.given[0].value.removeprefix("jdbc:"))[0]
    scheme, _, rest = address.partition(":")
    host, _, database = rest.removeprefix("//").partition("/")
    if not rest.startswith("//"):
        host, database = "", rest
    scheme = {"postgresql": "postgres"}.get(scheme, scheme)
    table = "query" if spec.table is None else spec.table.value
    name = ".".join(part for part in (database, table) if part)
    return {"namespace": f"{scheme}://{host.rpartition('@')[2]}", "name": name}


def _graph_dataset(graph: str, branch: str, key: str) -> dict[str, str]:
    found = _file_dataset(graph)
    return {**found, "name": f"{found['name']}/{key.replace(':', '/')}@{branch}"}


def _columns(sources: SourceFrames, name: str) -> tuple[str, ...]:
    source = sources.opened(name)
    return () if source is None else source.columns


def _named(columns: Sequence[str], text: str) -> list[str]:
    """Return the columns that an expression or query names."""
    words = {word.lower() for word in re.findall(r"`[^`]+`|\w+", without_literals(text))}
    return [c for c in columns if c.lower() in words or f"`{c.lower()}`" in words]


def _facet(name: str, /, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    schema = f"{_SPEC}/facets/{_FACETS[name]}"
    return {"_producer": _PRODUCER, "_schemaURL": schema, **members}
