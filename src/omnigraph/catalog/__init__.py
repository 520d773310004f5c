"""The resolved schema: types, constraints, stable identities, and how one becomes another.

A `SchemaTree` enters, a `Catalog` leaves, or diagnostics do. A catalog alone says what the schema
means; an accepted schema also says which identity each type and property has, so that renames keep
their data. The planner compares two accepted schemas and lists the steps between them.
"""

from omnigraph.catalog.accepted_schema import AcceptedSchema
from omnigraph.catalog.builder import build_catalog, load_catalog, read_catalog
from omnigraph.catalog.fingerprint import schema_shape, shape_hash
from omnigraph.catalog.identity import (
    IdentityAllocator,
    IdentityError,
    IncarnationId,
    SequentialAllocator,
    TimeOrderedAllocator,
    TypeId,
    identity_text,
    parse_identity,
)
from omnigraph.catalog.identity_resolution import accept_schema, resolve_schema
from omnigraph.catalog.migration_planner import plan_migration
from omnigraph.catalog.migration_steps import (
    DeclareEmbeddingModel,
    DropMode,
    MigrationPlan,
    MigrationStep,
    SchemaChangeRefused,
)
from omnigraph.catalog.model import (
    AcceptedType,
    Annotation,
    Cardinality,
    Catalog,
    Check,
    Constraint,
    EdgeType,
    Embed,
    Index,
    InterfaceType,
    Key,
    Metric,
    NodeType,
    Property,
    Range,
    SchemaCorrupt,
    TypeKind,
    Unique,
    vector_metric,
)

__all__ = [
    "AcceptedSchema",
    "AcceptedType",
    "Annotation",
    "Cardinality",
    "Catalog",
    "Check",
    "Constraint",
    "DeclareEmbeddingModel",
    "DropMode",
    "EdgeType",
    "Embed",
    "IdentityAllocator",
    "IdentityError",
    "IncarnationId",
    "Index",
    "InterfaceType",
    "Key",
    "Metric",
    "MigrationPlan",
    "MigrationStep",
    "NodeType",
    "Property",
    "Range",
    "SchemaChangeRefused",
    "SchemaCorrupt",
    "SequentialAllocator",
    "TimeOrderedAllocator",
    "TypeId",
    "TypeKind",
    "Unique",
    "accept_schema",
    "build_catalog",
    "identity_text",
    "load_catalog",
    "parse_identity",
    "plan_migration",
    "read_catalog",
    "resolve_schema",
    "schema_shape",
    "shape_hash",
    "vector_metric",
]
