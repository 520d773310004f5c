"""OmniGraph: a typed property-graph database on Lance storage.

Names are imported when first used, so that importing the package is fast; `__init__.pyi` declares
the same names for type checkers.

>>> import omnigraph as og
>>> og.check("node Port { code: String @key }", "query q() { match { $p: Port } return { $p } }")
[]
"""

from importlib import import_module

_HOMES = {
    "AheadBehind": "omnigraph.commit.commit_log",
    "AlreadyExists": "omnigraph.errors",
    "AnalysisResult": "omnigraph.pipeline.analytics.analysis",
    "ArchiveReport": "omnigraph.maintain.archive",
    "AsyncGraph": "omnigraph.service.client",
    "Baseline": "omnigraph.changes.baseline",
    "Blob": "omnigraph.query.entities",
    "Branch": "omnigraph.commit.model",
    "Catalog": "omnigraph.catalog",
    "Category": "omnigraph.errors",
    "Change": "omnigraph.changes",
    "ChangeFeedGap": "omnigraph.changes",
    "ChangeSchemaBoundary": "omnigraph.changes",
    "CheckResult": "omnigraph.query.checks",
    "CheckRun": "omnigraph.review.model",
    "CleanupReport": "omnigraph.maintain.cleanup_report",
    "Comment": "omnigraph.review.model",
    "Commit": "omnigraph.commit",
    "CommitChangesPage": "omnigraph.changes.commit_changes",
    "CommitHasNoParent": "omnigraph.changes",
    "Conflict": "omnigraph.merge.conflicts",
    "Contention": "omnigraph.errors",
    "Counts": "omnigraph.commit.model",
    "CursorRejected": "omnigraph.changes",
    "DatasetRepair": "omnigraph.maintain.repair",
    "Diagnostic": "omnigraph.lang",
    "Difference": "omnigraph.changes.difference",
    "Durability": "omnigraph.graph.modes",
    "EmbedResult": "omnigraph.write.embedding_backfill",
    "EngineName": "omnigraph.graph.modes",
    "EntityHistory": "omnigraph.changes",
    "EventPage": "omnigraph.review.views",
    "ExpectedVersionMismatch": "omnigraph.errors",
    "Explanation": "omnigraph.query.explain",
    "FeedPage": "omnigraph.changes.feed",
    "FormatUnsupported": "omnigraph.errors",
    "Graph": "omnigraph.graph",
    "GraphCorrupt": "omnigraph.errors",
    "GraphStatus": "omnigraph.maintain.status",
    "HistoryEntry": "omnigraph.changes",
    "IndexStatus": "omnigraph.maintain.indexes",
    "Inference": "omnigraph.write.inference",
    "InvalidInput": "omnigraph.errors",
    "KeyConflict": "omnigraph.write",
    "Limits": "omnigraph.changes",
    "LoadMode": "omnigraph.graph.modes",
    "LoadResult": "omnigraph.write.load",
    "MaintenancePass": "omnigraph.maintain.maintenance_steps",
    "MaintenanceReport": "omnigraph.maintain.optimize",
    "MergeConflicts": "omnigraph.merge.conflicts",
    "MergeResult": "omnigraph.merge.model",
    "MigrationPlan": "omnigraph.catalog.migration_steps",
    "MutationResult": "omnigraph.write.mutation",
    "Neighbours": "omnigraph.query.neighbours",
    "NotFound": "omnigraph.errors",
    "OmniError": "omnigraph.errors",
    "OpenMode": "omnigraph.graph.modes",
    "OutcomeUnknown": "omnigraph.errors",
    "Pipeline": "omnigraph.pipeline.config.spec",
    "PipelineLineage": "omnigraph.pipeline.config.selection",
    "PipelinePlan": "omnigraph.pipeline.runs.plan",
    "PipelineRun": "omnigraph.pipeline.runs.run",
    "Pipelines": "omnigraph.pipeline.api",
    "Policy": "omnigraph.policy",
    "PolicyDenied": "omnigraph.policy",
    "PolicyInvalid": "omnigraph.policy",
    "PreconditionFailed": "omnigraph.errors",
    "Proposal": "omnigraph.graph.proposal_protocol",
    "ProposalDetails": "omnigraph.review.model",
    "ProposalPage": "omnigraph.review.views",
    "ProposalPreview": "omnigraph.graph.proposal_protocol",
    "ProposalState": "omnigraph.commit.proposal_log",
    "ProposalSummary": "omnigraph.review.model",
    "ProtectionRule": "omnigraph.policy.protection_rules",
    "QueryError": "omnigraph.lang",
    "QueryLimit": "omnigraph.query.limits",
    "RecoveryAction": "omnigraph.commit.recovery",
    "RemoteGraph": "omnigraph.service.client.graph",
    "RemoteSnapshot": "omnigraph.service.client.decode",
    "Requirement": "omnigraph.review.model",
    "Result": "omnigraph.query.result",
    "ResultStream": "omnigraph.query.result",
    "Retention": "omnigraph.maintain.retention",
    "Review": "omnigraph.review.model",
    "RunReport": "omnigraph.pipeline.runs.report",
    "RunningQuery": "omnigraph.query.running",
    "SchemaChangeRefused": "omnigraph.catalog",
    "SchemaError": "omnigraph.lang",
    "SchemaMoved": "omnigraph.errors",
    "SchemaResult": "omnigraph.write.schema_migration",
    "Snapshot": "omnigraph.commit",
    "StateCheck": "omnigraph.query.checks",
    "StorageUnavailable": "omnigraph.errors",
    "Subgraph": "omnigraph.query.subgraph",
    "Tag": "omnigraph.commit.model",
    "TypeList": "omnigraph.graph.type_summary",
    "TypeSummary": "omnigraph.graph.type_summary",
    "ValidationFailed": "omnigraph.write",
    "ValueOrigin": "omnigraph.changes",
    "VerifyReport": "omnigraph.maintain.verify",
    "VersionReclaimed": "omnigraph.errors",
    "Violation": "omnigraph.write",
    "__version__": "omnigraph.version",
    "aconnect": "omnigraph.service.client",
    "check": "omnigraph.plan",
    "compile_query": "omnigraph.plan",
    "connect": "omnigraph.service.client",
    "format_queries": "omnigraph.lang",
    "format_schema": "omnigraph.lang",
    "import_archive": "omnigraph.graph",
    "infer": "omnigraph.write.inference",
    "init": "omnigraph.graph",
    "load_catalog": "omnigraph.catalog",
    "open": "omnigraph.graph",
    "read_checks": "omnigraph.service.stored_checks",
    "repair_to_last_good": "omnigraph.graph",
    "set_query_disk": "omnigraph.query.limits",
    "set_query_memory": "omnigraph.query.limits",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
