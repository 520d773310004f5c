"""OmniGraph: a typed property-graph database on Lance storage.

Names are imported when first used, so that importing the package is fast; `__init__.pyi` declares
the same names for type checkers.

>>> import omnigraph as og
>>> og.check("node Port { code: String @key }", "query q() { match { $p: Port } return { $p } }")
[]
"""

from importlib import import_module

_HOMES = {
    "AlreadyExists": "omnigraph.errors",
    "AsyncGraph": "omnigraph.service.client",
    "Catalog": "omnigraph.catalog",
    "Category": "omnigraph.errors",
    "Change": "omnigraph.changes",
    "ChangeFeedGap": "omnigraph.changes",
    "ChangeSchemaBoundary": "omnigraph.changes",
    "Commit": "omnigraph.commit",
    "CommitHasNoParent": "omnigraph.changes",
    "Conflict": "omnigraph.merge.conflicts",
    "Contention": "omnigraph.errors",
    "CursorRejected": "omnigraph.changes",
    "Diagnostic": "omnigraph.lang",
    "EntityHistory": "omnigraph.changes",
    "ExpectedVersionMismatch": "omnigraph.errors",
    "FormatUnsupported": "omnigraph.errors",
    "Graph": "omnigraph.graph",
    "Inference": "omnigraph.write.inference",
    "GraphCorrupt": "omnigraph.errors",
    "HistoryEntry": "omnigraph.changes",
    "InvalidInput": "omnigraph.errors",
    "KeyConflict": "omnigraph.write",
    "Limits": "omnigraph.changes",
    "MergeConflicts": "omnigraph.merge.conflicts",
    "NotFound": "omnigraph.errors",
    "OmniError": "omnigraph.errors",
    "OutcomeUnknown": "omnigraph.errors",
    "Policy": "omnigraph.policy",
    "PolicyDenied": "omnigraph.policy",
    "PolicyInvalid": "omnigraph.policy",
    "PreconditionFailed": "omnigraph.errors",
    "QueryError": "omnigraph.lang",
    "QueryLimit": "omnigraph.query.limits",
    "Result": "omnigraph.query.result",
    "SchemaChangeRefused": "omnigraph.catalog",
    "SchemaError": "omnigraph.lang",
    "SchemaMoved": "omnigraph.errors",
    "Snapshot": "omnigraph.commit",
    "StorageUnavailable": "omnigraph.errors",
    "ValidationFailed": "omnigraph.write",
    "ValueOrigin": "omnigraph.changes",
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
