"""Write a few commits the way a writer does: stage detached versions, then publish once."""

import pyarrow as pa

import omnigraph as og
from omnigraph.catalog import TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Counts
from omnigraph.commit.publish import publish
from omnigraph.commit.staged import StagedCommit, StagedDataset, mint_commit_id
from omnigraph.storage import locate, stage
from omnigraph.storage.layout import dataset_path


def add_ports(uri: str, branch: str, ports: list[tuple[str, str]]) -> Commit:
    """Upsert ports on a branch as one commit."""
    manifest = Manifest(locate(uri))
    where, state = manifest.head_state(branch)
    schema, _ = manifest.schema(state.head.schema_hash, state)
    port = schema.find(TypeKind.NODE, "Port")
    entry = state.head.datasets[port.id, port.incarnation]
    base = manifest.datasets.at(dataset_path("node", port.id, port.incarnation), entry.physical)
    fields = [base.schema.field(name) for name in ("id", "code", "city")]
    codes, cities = [code for code, _ in ports], [city for _, city in ports]
    staged = stage.upsert(base, pa.table([codes, codes, cities], schema=pa.schema(fields)))
    change = StagedDataset(
        table_key="node:Port",
        type_id=port.id,
        incarnation=port.incarnation,
        expected=entry.physical,
        physical=staged.version,
        rows=staged.count_rows(),
    )
    commit = StagedCommit(
        id=mint_commit_id(),
        operation="load",
        datasets=(change,),
        read_schema=state.head.schema_hash,
        actor="act-demo",
        counts={"node:Port": Counts(inserted=len(ports))},
    )
    return publish(manifest.lineage(where.native), branch, commit)


def city_of(uri: str, code: str, at: str) -> str:
    """Return the city of a port as it was."""
    port = og.open(uri, mode="ro").entity_at("Port", code, at=at)
    return "(no such port)" if port is None else str(port["city"])
