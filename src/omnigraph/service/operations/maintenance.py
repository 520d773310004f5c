"""Operations of administrators: the audit of recovery."""

from __future__ import annotations

from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.access import on_graph
from omnigraph.service.operations.answers import epoch_micros, to_answer
from omnigraph.service.operations.operation import operation
from omnigraph.service.session import GraphSession


@operation(
    name="listRecoveries",
    route="GET /recoveries",
    tag="management",
    summary="List what recovery did with operations of dead processes",
    access=on_graph(PolicyAction.ADMIN),
    extension=True,
)
def list_recoveries(session: GraphSession, _: wire.NoRequest) -> wire.RecoveryListOutput:
    """Return the audit of recovery: which interrupted operations were finished or undone."""
    rows = [
        {**row, "created_at": epoch_micros(row["created_at"])} for row in session.graph.recoveries()
    ]
    return to_answer({"recoveries": rows}, wire.RecoveryListOutput)
