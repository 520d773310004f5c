"""This module loads data: all that is given becomes one commit, or none of it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, Snapshot
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.view import seen
from omnigraph.errors import InvalidInput, NotFound, OmniError, OutcomeUnknown, SchemaMoved
from omnigraph.write.apply import apply
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.coerce import Rules
from omnigraph.write.committed import Committed
from omnigraph.write.external import ExternalBlobs
from omnigraph.write.inputs.sources import read_all, total_bytes
from omnigraph.write.inputs.streams import check_encoding
from omnigraph.write.intake import Intake
from omnigraph.write.progress import Listener, Meter
from omnigraph.write.request import Request
from omnigraph.write.rows import Spill


class Mode(StrEnum):
    """What becomes of entities that exist: refuse, replace by id, or replace whole types."""

    APPEND = "append"
    MERGE = "merge"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How to load.

    `from_` is where a branch that does not exist is forked from. Lines are read by the strict
    grammar, or else by the older, forgiving one. `encoding` is that of text files, by default
    UTF-8. With `always`, a load that changes nothing is a commit, too: one that records something.
    """

    mode: Mode = Mode.MERGE
    partial: bool = False
    strict: bool = True
    from_: str | None = None
    always: bool = False
    progress: Listener | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.partial and self.mode is not Mode.MERGE:
            message = f"a partial load merges; it cannot {self.mode}"
            raise InvalidInput(message, code="load_mode_invalid")


def mode_of(word: str) -> Mode:
    """Return the mode a word names."""
    try:
        return Mode(word)
    except ValueError:
        known = ", ".join(Mode)
        message = f"unknown load mode '{word}'; it is one of {known}"
        raise InvalidInput(message, code="load_mode_invalid") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a load did; `nodes` and `edges` count the rows given, by type.

    `commit` counts what changed, and is None when nothing did.
    """

    mode: Mode
    branch: str
    commit: Commit | None
    base_branch: str | None = None
    branch_created: bool = False
    nodes: dict[str, int] = field(default_factory=dict)
    edges: dict[str, int] = field(default_factory=dict)
    actor: str | None = None

    @property
    def total(self) -> int:
        """How many entities were given."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": str(self.mode),
            "nodes": _counts(self.nodes),
            "edges": _counts(self.edges),
            "total_entities": self.total,
            "actor_id": self.actor,
            "commit": self.commit.to_json() if self.commit is not None else None,
        }


def _counts(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": counts[name]} for name in sorted(counts)]


def load(
    manifest: Manifest,
    request: Request,
    data: Any,  # noqa: ANN401 - what people gave
    options: LoadOptions,
) -> LoadResult:
    """Load everything that is given as one commit."""
    meter = Meter(options.progress, total_bytes(data))
    source, exists = start(manifest, request.branch, options.from_)
    with Spill() as spill:
        rules = Rules(external=ExternalBlobs.below(request.external_blobs))
        shown = seen(manifest, source, request.rights.named)
        intake = Intake(
            shown.schema, spill, partial=options.partial, rules=rules, encoding=options.encoding
        )
        read_all(data, intake, meter, strict=options.strict)
        changes = intake.finish(
            strict=options.mode is Mode.APPEND, replace=options.mode is Mode.OVERWRITE
        )
        if not intake.is_whole:
            # What was not read might be what other rows rely on.
            changes.findings.check()
        meter.enter("write")
        with on_branch(manifest, request, source, exists=exists):
            commit = _publish(manifest, request, changes, source, options)
    return LoadResult(
        mode=options.mode,
        branch=request.branch,
        commit=commit,
        base_branch=options.from_,
        branch_created=not exists,
        nodes=intake.counts(TypeKind.NODE),
        edges=intake.counts(TypeKind.EDGE),
        actor=request.actor,
    )


def start(manifest: Manifest, branch: str, from_: str | None) -> tuple[Snapshot, bool]:
    """Return the state to start from, and whether it is that of the branch itself."""
    if branch.strip() == MAIN or branch.strip() in manifest.branches():
        return head_snapshot(manifest, branch), True
    if from_ is None:
        message = f"branch '{branch}' does not exist; say from where to create it"
        raise NotFound(message, code="branch_not_found", branch=branch)
    return head_snapshot(manifest, from_), False


@contextmanager
def on_branch(
    manifest: Manifest, request: Request, source: Snapshot, *, exists: bool
) -> Iterator[None]:
    """Fork the branch if it does not exist, and remove it again if the load fails."""
    if exists:
        yield
        return
    create_branch(manifest, request.branch, source, actor=request.actor)
    with removing_branch(manifest, request.branch, source.commit_id):
        yield


@contextmanager
def removing_branch(manifest: Manifest, branch: str, head: str) -> Iterator[None]:
    """Remove a branch that was forked at a commit if what it was forked for fails."""
    try:
        yield
    except OutcomeUnknown:
        # The commit may be there.
        raise
    except BaseException:
        with suppress(OmniError):
            if head_snapshot(manifest, branch).commit_id == head:
                delete_branch(manifest, branch)
        raise


def _publish(
    manifest: Manifest, request: Request, changes: ChangeSet, source: Snapshot, options: LoadOptions
) -> Commit | None:
    def prepare(committed: Committed) -> ChangeSet:
        read, now = source.head.schema_hash, committed.snapshot.head.schema_hash
        if read != now:
            # The rows were made for the types of another schema.
            raise SchemaMoved(read, now)
        return changes

    # A load without a single row is a commit, as it is in the original.
    always = options.always or changes.is_empty

    def again() -> bool:
        return options.mode is not Mode.OVERWRITE

    return apply(manifest, request, prepare, again=again, always=always)
