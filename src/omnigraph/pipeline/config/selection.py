"""The graph of sources and types of a pipeline, and the choice of a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.catalog import Catalog, EdgeType, TypeKind
from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.pipeline.config.resolve import type_of
from omnigraph.pipeline.config.spec import Pipeline, TypeSpec, referenced_sources


@dataclass(frozen=True, slots=True)
class PipelineLineage:
    """What each source and type of a pipeline is made from, in the order of the file.

    Names are `source:people`, `node:Person` and `edge:Knows`. An edge type depends on its source
    and on those node types of its endpoints that the pipeline loads.
    """

    pipeline: str
    parents: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]
    """The kind of each source."""

    def upstream(self, names: Iterable[str]) -> set[str]:
        """Return names and all that they are made from."""
        return _reach(names, self.parents)

    def downstream(self, names: Iterable[str]) -> set[str]:
        """Return names and all that is made from them."""
        children: dict[str, list[str]] = {}
        for name, parents in self.parents.items():
            for parent in parents:
                children.setdefault(parent, []).append(name)
        return _reach(names, children)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "pipeline": self.pipeline,
            "sources": [
                {"name": name.removeprefix("source:"), "kind": kind, "reads": self._reads(name)}
                for name, kind in self.kinds.items()
            ],
            "types": [
                {"type": name, "reads": self._reads(name), "needs": self._needs(name)}
                for name in self.parents
                if name not in self.kinds
            ],
        }

    def _reads(self, name: str) -> list[str]:
        reads = (one for one in self.parents[name] if one in self.kinds)
        return [one.removeprefix("source:") for one in reads]

    def _needs(self, name: str) -> list[str]:
        return [one for one in self.parents[name] if one not in self.kinds]


def _reach(names: Iterable[str], arcs: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += arcs.get(name, ())
    return found


def pipeline_lineage(pipeline: Pipeline, catalog: Catalog) -> PipelineLineage:
    """Return the graph of the sources and types of a pipeline."""
    sources = pipeline.sources
    parents = {
        f"source:{name}": tuple(f"source:{one}" for one in referenced_sources(source, sources))
        for name, source in sources.items()
    }
    loaded = {spec.table_key for spec in pipeline.types}
    for spec in pipeline.types:
        parents[spec.table_key] = (f"source:{spec.source}", *_ends(spec, catalog, loaded))
    kinds = {f"source:{name}": source.kind for name, source in sources.items()}
    return PipelineLineage(pipeline.name, parents, kinds)


def _ends(spec: TypeSpec, catalog: Catalog, loaded: set[str]) -> Iterable[str]:
    type_ = type_of(spec, catalog)
    if not isinstance(type_, EdgeType):
        return ()
    nodes = dict.fromkeys(f"{TypeKind.NODE}:{name}" for name in (type_.src, type_.dst))
    return [node for node in nodes if node in loaded]


def select_part(
    pipeline: Pipeline, catalog: Catalog, select: Sequence[str], exclude: Sequence[str]
) -> Pipeline:
    """Return a pipeline that loads only some of its types.

    `Person`, `node:Person` and `source:people` are names; `Person+` adds what depends on it,
    `+Knows` what it depends on. A source stands for the types that are made from it.

    Raises:
        InvalidInput: lists the names that the pipeline does not have, or nothing is left.
    """
    if not select and not exclude:
        return pipeline
    lineage = pipeline_lineage(pipeline, catalog)
    problems: list[str] = []
    chosen = _chosen(lineage, select, problems) if select else set(lineage.parents)
    chosen -= _chosen(lineage, exclude, problems)
    if problems:
        raise InvalidInput("; ".join(problems), code="selection_invalid")
    types = tuple(spec for spec in pipeline.types if spec.table_key in chosen)
    batches = {
        name
        for name, source in pipeline.sources.items()
        if source.kind == "ndjson" and f"source:{name}" in chosen
    }
    if not types and not batches:
        message = "the selection leaves no type to load: see `omnigraph pipeline ls`"
        raise InvalidInput(message, code="selection_invalid")
    # Node types that edges depend on are not loaded with them, unless they were selected.
    read = lineage.upstream(f"source:{spec.source}" for spec in types)
    kept = {
        name: source
        for name, source in pipeline.sources.items()
        if f"source:{name}" in read or name in batches
    }
    return replace(
        pipeline, types=types, sources=kept, select=tuple(select), exclude=tuple(exclude)
    )


def _chosen(lineage: PipelineLineage, texts: Sequence[str], problems: list[str]) -> set[str]:
    """Return everything that some selectors name; sources bring the types made from them."""
    found: set[str] = set()
    for text in (part.strip() for one in texts for part in one.split(",")):
        name = text.removeprefix("+").removesuffix("+")
        names = _named(lineage, name)
        if not names:
            types = {one.partition(":")[2] for one in lineage.parents if one not in lineage.kinds}
            hint = did_you_mean(name, {*types, *lineage.kinds})
            problems.append(f"the pipeline has no source or type '{name}': {hint}")
        sources = {one for one in names if one in lineage.kinds}
        found |= names | (_made_from(lineage, sources) if sources else set())
        if text.endswith("+"):
            found |= lineage.downstream(names)
        if text.startswith("+"):
            found |= lineage.upstream(names)
    return found


def _named(lineage: PipelineLineage, name: str) -> set[str]:
    if ":" in name:
        return {name} & set(lineage.parents)
    return {f"{kind}:{name}" for kind in TypeKind} & set(lineage.parents)


def _made_from(lineage: PipelineLineage, sources: set[str]) -> set[str]:
    """Return the types whose rows come from some sources, also by way of queries."""
    made = {name for name in lineage.kinds if lineage.upstream([name]) & sources}
    return {name for name, parents in lineage.parents.items() if set(parents) & made}
