"""Operations that report the condition of a graph: sizes, indexes, cleanup, integrity, recovery."""

from __future__ import annotations

from datetime import timedelta

from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.access import READ_STATE, on_graph, state
from omnigraph.service.operations.answers import epoch_micros, to_answer
from omnigraph.service.operations.operation import operation
from omnigraph.service.session import GraphSession

_MAX_SECONDS = timedelta.max // timedelta(seconds=1)


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


@operation(
    name="getGraphStatus",
    route="GET /status",
    tag="management",
    summary="Return sizes, fragments, the retention and the maintainer",
    errors=(400, 404, 503),
    access=on_graph(PolicyAction.ADMIN),
    extension=True,
    example={"branch": "main"},
)
def graph_status(session: GraphSession, request: wire.StateQuery) -> wire.GraphStatusOutput:
    """Return the rows, fragments and stored files of each type, and what maintenance did last.

    Files are listed; no row is read.
    """
    at = state(session, request.branch, request.snapshot)
    return to_answer(session.graph.maintenance.status(at).to_json(), wire.GraphStatusOutput)


@operation(
    name="listIndexes",
    route="GET /indexes",
    tag="management",
    summary="List the indexes that the schema requires, and the rows they cover",
    access=READ_STATE,
    errors=(400, 404, 503),
    extension=True,
    example={"branch": "main"},
)
def list_indexes(session: GraphSession, request: wire.StateQuery) -> wire.IndexListOutput:
    """Return every required index of a state; a missing or incomplete one only costs time."""
    at = state(session, request.branch, request.snapshot)
    indexes = [index.to_json() for index in session.graph.indexes.status(at)]
    head = {"graph_branch": at.branch, "graph_commit_id": at.commit_id}
    return to_answer({**head, "indexes": indexes}, wire.IndexListOutput)


@operation(
    name="estimateCleanup",
    route="GET /cleanup-estimate",
    tag="management",
    summary="Estimate what a cleanup would remove",
    errors=(400, 404, 503),
    access=on_graph(PolicyAction.ADMIN),
    extension=True,
    example={"keep": 100},
)
def estimate_cleanup(
    session: GraphSession, request: wire.CleanupQuery
) -> wire.CleanupEstimateOutput:
    """Return the files that no retained state needs, by dataset. Nothing is removed."""
    seconds = request.older_than_secs
    age = None if seconds is None else timedelta(seconds=min(seconds, _MAX_SECONDS))
    report = session.graph.cleanup(keep=request.keep, older_than=age)
    return to_answer(report.to_json(), wire.CleanupEstimateOutput)


@operation(
    name="verifyGraph",
    route="GET /verify",
    tag="management",
    summary="Check the integrity of the graph",
    errors=(400, 404, 503),
    access=on_graph(PolicyAction.ADMIN),
    extension=True,
)
def verify_graph(session: GraphSession, request: wire.VerifyQuery) -> wire.VerifyOutput:
    """Check every branch, commit and dataset version, and report problems.

    With `deep`, every file is compared with its checksum, too, which reads the whole graph.
    """
    return to_answer(session.graph.verify(deep=request.deep).to_json(), wire.VerifyOutput)
