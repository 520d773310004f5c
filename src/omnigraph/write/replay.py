"""This module repeats changes made elsewhere: entities as they are now, ids that are gone.

What is repeated is a state, not a step, so doing it again on top of what others did is fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.errors import SchemaMoved
from omnigraph.query.entity import find_type
from omnigraph.write.apply import apply
from omnigraph.write.cascade import incident_edges
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.coerce import Rules
from omnigraph.write.committed import Committed
from omnigraph.write.external import ExternalBlobs
from omnigraph.write.inputs.ndjson import read_ndjson
from omnigraph.write.inputs.streams import as_file
from omnigraph.write.intake import Intake
from omnigraph.write.progress import Meter
from omnigraph.write.request import Request
from omnigraph.write.rows import Spill


@dataclass(frozen=True, slots=True)
class Replay:
    """Entities as lines that `load` reads, and ids that are gone, by `node:T` and `edge:E`."""

    lines: Iterable[str]
    gone: Mapping[str, Iterable[str]] = field(default_factory=dict)


def replay(manifest: Manifest, request: Request, changes: Replay) -> Commit:
    """Make a branch show these entities, and not those, as one commit.

    Edges of a node that is gone go with it, whoever made them.
    """
    source = head_snapshot(manifest, request.branch)
    gone = {find_type(source, k).entity: dict.fromkeys(ids) for k, ids in changes.gone.items()}
    with Spill() as spill:
        rules = Rules(external=ExternalBlobs.below(request.external_blobs))
        intake = Intake(source.schema, spill, rules=rules)
        read_ndjson(as_file(iter(changes.lines)), intake, Meter(None, None))
        found = intake.finish(strict=False, replace=False)
        found.findings.check()

        def prepare(committed: Committed) -> ChangeSet:
            read, now = source.head.schema_hash, committed.snapshot.head.schema_hash
            if read != now:
                # The rows were made for the types of another schema.
                raise SchemaMoved(read, now)
            _remove(found, committed, gone)
            return found

        commit = apply(manifest, request, prepare, again=lambda: True, always=True)
    assert commit is not None, "a replay always commits"
    return commit


def _remove(
    changes: ChangeSet, committed: Committed, gone: Mapping[str, Mapping[str, None]]
) -> None:
    """Mark what is gone, and what goes with it in this state."""
    for change in changes.types.values():
        change.deleted = {}
    for table_key, ids in gone.items():
        kind, _, name = table_key.partition(":")
        shape = committed.shape(TypeKind(kind), name)
        changes.of(shape).deleted.update(ids)
        if shape.kind is TypeKind.NODE and ids:
            for incident, edges in incident_edges(committed, shape, pa.array(ids, pa.string())):
                changes.of(incident).deleted.update(dict.fromkeys(edges.to_pylist()))
