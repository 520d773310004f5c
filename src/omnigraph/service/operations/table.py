"""The table of operations: every declaration of the modules of this package."""

from __future__ import annotations

from typing import Any, TypeAlias

from omnigraph.service.operations import (
    blobs,
    branches,
    changes,
    entity_history,
    explore,
    maintenance,
    mutations,
    pipelines,
    proposals,
    queries,
    review,
    running,
    schema,
    server,
    sessions,
    stored,
)
from omnigraph.service.operations.operation import Operation

AnyOperation: TypeAlias = Operation[Any, Any, Any]

OPERATIONS: tuple[AnyOperation, ...] = tuple(
    declared
    for module in (
        server,
        sessions,
        schema,
        queries,
        stored,
        mutations,
        proposals,
        review,
        branches,
        changes,
        entity_history,
        explore,
        blobs,
        pipelines,
        maintenance,
        running,
    )
    for declared in vars(module).values()
    if isinstance(declared, Operation) and declared.function.__module__ == module.__name__
)
"""All operations, by module and in the order of their declaration."""
