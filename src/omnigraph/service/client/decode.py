"""Convert answers to the values that the embedded graph returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from omnigraph.catalog import Catalog, IncarnationId, MigrationPlan, TypeId, TypeKind, read_catalog
from omnigraph.changes.commit_changes import ChangeBlock, CommitChangesPage, EntityChange
from omnigraph.changes.entity_model import EntityHistory, HistoryEntry, ValueOrigin, ValueOrigins
from omnigraph.changes.feed import FeedPage
from omnigraph.changes.model import Change, ChangeOp, EntityImage
from omnigraph.commit.model import Branch, Commit, CommitId, Counts, DatasetEntry, Tag
from omnigraph.errors import NotFound
from omnigraph.lang import Code, report_for_text
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.model import MergeOutcome, MergeResult
from omnigraph.notebook.graphs import snapshot_html
from omnigraph.plan.join_order import JoinChoice
from omnigraph.query.executor import OperatorStats
from omnigraph.query.explain import ExplainedOperator, Explanation
from omnigraph.query.neighbours import EdgeDirection, Neighbour, NeighbourGroup, Neighbours
from omnigraph.query.running import RunningQuery
from omnigraph.query.subgraph import LinkKind, Subgraph, SubgraphEdge, SubgraphNode
from omnigraph.service.client.migration_steps import read_steps
from omnigraph.write.load import LoadResult, WriteMode
from omnigraph.write.mutation import MutationResult
from omnigraph.write.schema_migration import SchemaResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JsonObject = Mapping[str, Any]


def read_instant(micros: int) -> datetime:
    """Read a time in microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def read_running_query(facts: JsonObject, graph: str) -> RunningQuery:
    """Read a query that runs at a server."""
    return RunningQuery(
        id=facts["query_id"],
        graph=graph,
        actor=facts["actor_id"],
        name=facts["query_name"],
        digest=facts["query_digest"],
        commit_id=facts["graph_commit_id"],
        started_at=read_instant(facts["started_at"]),
        seconds=facts["seconds"],
        operator=facts["operator"],
        process_id=facts["process_id"],
    )


def read_commit(facts: JsonObject | None) -> Commit | None:
    """Read a commit that may not be there."""
    return None if facts is None else Commit.from_json(facts)


def read_mutation(facts: JsonObject) -> MutationResult:
    """Read the result of a mutation."""
    return MutationResult(
        name=facts["query_name"],
        branch=facts["branch"],
        affected_nodes=facts["affected_nodes"],
        affected_edges=facts["affected_edges"],
        commit=read_commit(facts["commit"]),
        actor=facts["actor_id"],
    )


def read_load(facts: JsonObject) -> LoadResult:
    """Read the result of a load."""
    counts = {
        kind: {type_["name"]: type_["entities_loaded"] for type_ in facts[kind]}
        for kind in ("nodes", "edges")
    }
    return LoadResult(
        mode=WriteMode(facts["mode"]),
        branch=facts["branch"],
        commit=read_commit(facts["commit"]),
        base_branch=facts["base_branch"],
        branch_created=facts["branch_created"],
        **counts,
        actor=facts["actor_id"],
        notes=tuple(facts.get("notes", ())),
    )


def read_merge(facts: JsonObject) -> MergeResult:
    """Read the result of a merge or of a dry run."""
    return MergeResult(
        source=facts["source"],
        target=facts["target"],
        outcome=MergeOutcome(facts["outcome"]),
        commit=read_commit(facts.get("commit")),
        counts={key: Counts(**count) for key, count in (facts.get("counts") or {}).items()},
        conflicts=tuple(read_conflict(one) for one in facts.get("conflicts") or ()),
        actor=facts["actor_id"],
        branch_deleted=facts.get("branch_deleted"),
        branch_delete_error=facts.get("branch_delete_error"),
    )


def read_conflict(facts: JsonObject) -> Conflict:
    """Read a conflict of a merge."""
    kind = facts.get("entity_kind")
    images = {name: read_image(facts.get(name)) for name in ("base", "source", "target")}
    return Conflict(
        kind=ConflictKind(facts["kind"]),
        message=facts["message"],
        entity_kind=None if kind is None else TypeKind(kind),
        type=facts.get("type_name"),
        id=facts.get("entity_id"),
        properties=tuple(facts.get("properties", ())),
        **images,
    )


def read_image(facts: JsonObject | None) -> EntityImage | None:
    """Read the image of an entity in one state."""
    if facts is None:
        return None
    ends = facts.get("endpoints")
    return EntityImage(facts["properties"], None if ends is None else (ends["from"], ends["to"]))


def read_change(facts: JsonObject) -> Change:
    """Read the change of an entity."""
    return Change(type=facts["type"], **_change_members(facts))


def read_history(facts: JsonObject) -> EntityHistory:
    """Read the history of an entity."""
    changes = (
        HistoryEntry(
            type=one["type"], commit=Commit.from_json(one["commit"]), **_change_members(one)
        )
        for one in facts["changes"]
    )
    return EntityHistory(
        changes=tuple(changes),
        unknown_before=tuple(CommitId(id_) for id_ in facts["unknown_before"]),
    )


def read_neighbours(facts: JsonObject) -> Neighbours:
    """Read the neighbours of a node."""
    groups = (
        NeighbourGroup(
            edge=group["edge"],
            direction=EdgeDirection(group["direction"]),
            type=group["type"],
            count=group["count"],
            neighbours=tuple(Neighbour(**one) for one in group["neighbours"]),
        )
        for group in facts["groups"]
    )
    return Neighbours(commit_id=CommitId(facts["graph_commit_id"]), groups=tuple(groups))


def read_subgraph(facts: JsonObject) -> Subgraph:
    """Read the subgraph that a pattern matches."""
    return Subgraph(
        commit_id=CommitId(facts["graph_commit_id"]),
        nodes=tuple(SubgraphNode(**node) for node in facts["nodes"]),
        edges=tuple(
            SubgraphEdge(**{**edge, "kind": LinkKind(edge["kind"])}) for edge in facts["edges"]
        ),
        truncated=facts["truncated"],
    )


def read_origins(facts: JsonObject) -> ValueOrigins:
    """Read the origins of the values of an entity."""
    return ValueOrigins(
        {
            name: ValueOrigin(
                commit_id=origin["graph_commit_id"],
                actor=origin["actor_id"],
                created_at=None
                if origin["created_at"] is None
                else read_instant(origin["created_at"]),
                message=origin["message"],
                unknown_before=origin["unknown_before"],
            )
            for name, origin in facts["values"].items()
        }
    )


def _entity_change(facts: JsonObject) -> EntityChange:
    type_ = facts["type"]
    return EntityChange(type=type_["name"], type_id=type_["id"], **_change_members(facts))


def _change_members(facts: JsonObject) -> dict[str, Any]:
    return {
        "kind": TypeKind(facts["kind"]),
        "id": facts["id"],
        "op": ChangeOp(facts["op"]),
        **{side: read_image(facts.get(side)) for side in ("before", "after")},
    }


def _read_cause(facts: JsonObject) -> Commit:
    """Read the commit behind changes; missing members are left empty."""
    parents = (facts.get("parent_commit_id"), facts.get("merged_parent_commit_id"))
    return Commit(
        id=CommitId(facts["graph_commit_id"]),
        parents=tuple(CommitId(parent) for parent in parents if parent is not None),
        branch=facts["authored_branch"],
        actor=facts.get("actor_id"),
        message=None,
        operation="",
        created_at=read_instant(facts["authored_at"]),
        manifest_version=0,
    )


def read_feed(facts: JsonObject) -> FeedPage:
    """Read a page of changes."""
    blocks = (
        ChangeBlock(
            _read_cause(block["cause"]), tuple(_entity_change(one) for one in block["changes"])
        )
        for block in facts["blocks"]
    )
    names = ("next_page_token", "cursor", "caught_up")
    return FeedPage(tuple(blocks), **{name: facts.get(name) for name in names})


def read_commit_page(facts: JsonObject) -> CommitChangesPage:
    """Read a page of the changes of a commit."""
    changes = tuple(_entity_change(one) for one in facts["changes"])
    return CommitChangesPage(_read_cause(facts["cause"]), changes, facts.get("next_page_token"))


def read_branch(facts: JsonObject) -> Branch:
    """Read a branch."""
    fork, created = facts["fork_commit_id"], facts["created_at"]
    return Branch(
        name=facts["name"],
        lineage_id=None,
        parent=facts["parent"],
        fork_commit=None if fork is None else CommitId(fork),
        actor=facts["actor_id"],
        created_at=None if created is None else read_instant(created),
    )


def read_tag(facts: JsonObject) -> Tag:
    """Read a tag."""
    return Tag(
        name=facts["name"],
        commit_id=CommitId(facts["graph_commit_id"]),
        lineage_id=None,
        actor=facts["actor_id"],
        created_at=read_instant(facts["created_at"]),
    )


def read_plan(facts: JsonObject) -> MigrationPlan:
    """Read the steps of a migration."""
    return MigrationPlan(read_steps(facts["steps"]))


def read_schema_result(facts: JsonObject) -> SchemaResult:
    """Read the result of a schema apply."""
    return SchemaResult(
        branch=facts["branch"],
        plan=read_plan(facts),
        manifest_version=facts["graph_manifest_version"],
        commit=read_commit(facts["commit"]),
        actor=facts["actor_id"],
    )


def read_explanation(facts: JsonObject) -> Explanation:
    """Read the plan of a query."""
    choices = (
        JoinChoice(choice["written_start"], choice["start"], choice["costs"], choice["reason"])
        for choice in facts.get("choices", ())
    )
    steps = (_explain_step(step) for step in facts["steps"])
    return Explanation(facts["query_name"], tuple(steps), tuple(choices))


def _explain_step(facts: JsonObject) -> ExplainedOperator:
    actual = None
    if "rows" in facts:
        ways = tuple(facts.get("expand", ()))
        examined = facts.get("examined", 0)
        actual = OperatorStats(facts["rows"], facts["seconds"], facts["reads"], ways, examined)
    return ExplainedOperator(
        facts["depth"], facts["operator"], facts["estimated_rows"], actual, facts.get("index")
    )


@dataclass(frozen=True)
class RemoteSnapshot:
    """One immutable state of a remote graph."""

    branch: str
    commit_id: CommitId
    manifest_version: int
    schema_source: str
    datasets: Mapping[str, DatasetEntry]

    @classmethod
    def of(cls, facts: JsonObject) -> RemoteSnapshot:
        """Read a state with its schema."""
        datasets = {
            f"{one['entity_kind']}:{one['type_name']}": _dataset_entry(one)
            for one in facts["datasets"]
        }
        return cls(
            facts["graph_branch"],
            CommitId(facts["graph_commit_id"]),
            facts["graph_manifest_version"],
            facts["schema_source"],
            datasets,
        )

    @cached_property
    def catalog(self) -> Catalog:
        """The types of this snapshot."""
        report = report_for_text(self.schema_source, "<schema>", Code.SCHEMA_UNREADABLE)
        return read_catalog(report, persisted=True)

    def entry(self, table_key: str) -> DatasetEntry:
        """Return the dataset of a type, named `node:T` or `edge:E`."""
        if table_key not in self.datasets:
            raise NotFound(f"unknown type {table_key}", code="unknown_type", type=table_key)
        return self.datasets[table_key]

    def entries(self) -> dict[str, DatasetEntry]:
        """Return every live dataset by `node:T` or `edge:E`, sorted."""
        return dict(sorted(self.datasets.items()))

    def _repr_html_(self) -> str:
        return snapshot_html(self.branch, self.commit_id, self.type_facts())

    def type_facts(self) -> list[dict[str, Any]]:
        """Return its types with properties and numbers of entities, as notebooks show them."""
        return self.catalog.describe({key: entry.rows for key, entry in self.entries().items()})


def _dataset_entry(facts: JsonObject) -> DatasetEntry:
    ids = facts["dataset_path"].partition("/")[2].split("-")
    type_id, incarnation = (int(part, 16) for part in ids)
    return DatasetEntry(
        TypeId(type_id),
        IncarnationId(incarnation),
        facts["published_dataset_version"],
        0,
        facts["entity_count"],
    )
