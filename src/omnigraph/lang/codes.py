"""The registry of diagnostic codes; codes never change meaning.

`S` speaks of schemas; `Q`, `T` and `D` of queries; `L` of lint rules; `P` of parameter values; `Y`
of pipeline files; `OG-` of refused schema changes. The reference page of codes is made from here.
"""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """How much a diagnostic matters: an error refuses, the rest only informs."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """One kind of diagnostic: its stable code, its usual severity, and what it means."""

    severity: Severity
    about: str

    def __new__(cls, code: str, about: str, severity: Severity = Severity.ERROR) -> Code:
        """Make a member that is its code and knows the rest."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.about = about
        member.severity = severity
        return member

    @property
    def slug(self) -> str:
        """The readable name of the code, as stable as the code."""
        return self.name.lower()

    SCHEMA_SYNTAX = "S000", "the schema text does not follow the grammar"
    SCHEMA_UNREADABLE = "S001", "the schema is not UTF-8 text, or is larger than 16 MiB"
    SCHEMA_TOO_DEEP = "S002", "the schema has more errors than are worth listing"
    DUPLICATE_TYPE = "S101", "two node types, two edge types or two interfaces share a name"
    EDGE_NAME_COLLISION = "S102", "two edge names differ only by case (edge name collision)"
    UNKNOWN_ENDPOINT = "S103", "an edge starts or ends at something that is not a node type"
    UNKNOWN_INTERFACE = "S104", "a node implements an interface that is not declared"
    DUPLICATE_PROPERTY = "S105", "a type declares the same property twice"
    RESERVED_PROPERTY = "S106", "a property has a name the storage needs for itself"
    INTERFACE_MISMATCH = "S107", "a node declares an interface's property with another type"
    INTERFACE_CONFLICT = "S108", "two interfaces give a node incompatible property semantics"
    CONSTRAINT_MISPLACED = "S201", "an annotation or constraint has no meaning there"
    MULTIPLE_KEYS = "S202", "a node or an edge has multiple @key constraints"
    NULLABLE_KEY = "S203", "a key property cannot be nullable"
    CONSTRAINT_UNSUPPORTED = "S204", "a constraint is not supported on this kind of property"
    CONSTRAINT_UNKNOWN_PROPERTY = "S205", "a constraint names an unknown property"
    ANNOTATION_MISUSE = "S206", "an annotation is repeated, or its arguments are wrong"
    EMBED_MISUSE = "S207", "@embed needs a Vector and a String source of the same type"
    RANGE_INVALID = "S208", "@range needs a number property and bounds in order"
    CHECK_INVALID = "S209", "@check needs a String property and a valid regular expression"
    CARDINALITY_INVALID = "S210", "@card minimum exceeds its maximum"
    TYPE_INVALID = "S211", "a type cannot be formed: a list of Blob, or an enum value given twice"
    DEFAULT_MISUSE = "S212", "@default has an invalid value, or is not allowed there"
    EDGE_KEY_INVALID = "S213", "the @key of an edge does not start with src and dst"
    RENAME_UNKNOWN = "S301", "@rename_from names something the accepted schema does not have"
    RENAME_ACROSS_KINDS = "S302", "@rename_from points across declaration kinds"
    RENAME_CONSUMED_TWICE = "S303", "two declarations claim the same @rename_from origin"
    RENAME_ACROSS_OWNERS = "S304", "a property cannot move from one type to another"
    RENAME_INTO_NEW_OWNER = "S305", "a new type cannot import the identity of a property"
    IGNORED_EXACT_MATCH_RENAME_HINT = (
        "S391",
        "@rename_from is ignored because the new name already exists in the accepted schema",
        Severity.INFO,
    )
    INERT_INITIALIZATION_RENAME_HINT = (
        "S392",
        "@rename_from has no effect on the first schema of a graph",
        Severity.INFO,
    )

    QUERY_SYNTAX = "Q000", "the query text does not follow the grammar"
    QUERY_UNREADABLE = "Q001", "the query file is not UTF-8 text, or is larger than 16 MiB"
    QUERY_TOO_DEEP = "Q002", "the query is too large or too deeply nested, or has too many errors"
    DUPLICATE_QUERY = "Q003", "two queries of one file share a name"
    QUERY_NOT_FOUND = "Q004", "no query has the requested name, or none was named among several"

    UNKNOWN_NODE_TYPE = "T1", "a binding names an unknown node type"
    UNKNOWN_MATCH_PROPERTY = "T2", "an inline match uses an unknown property"
    LITERAL_MISFIT = (
        "T3",
        "a literal does not fit the property: type, enum value, vector length, list or blob",
    )
    UNKNOWN_EDGE = "T4", "a traversal uses an unknown edge"
    WRONG_ENDPOINT = "T5", "a traversal endpoint has a type the edge does not connect"
    UNKNOWN_PROPERTY = "T6", "`$x.p` where `$x` is not bound or has no property `p`"
    INCOMPATIBLE_TYPES = "T7", "the two sides of a comparison or assignment have incompatible types"
    AGGREGATE_MISFIT = "T8", "an aggregate does not apply to its argument's type"
    UNGROUPED_OR_UNCORRELATED = (
        "T9",
        "a projection is neither aggregate nor group key, or a block has no outer variable",
    )
    UNKNOWN_MUTATION_TYPE = "T10", "a mutation names an unknown type, or assigns nothing"
    PROPERTY_NOT_ADDRESSABLE = (
        "T11",
        "a mutation assigns or tests a property that cannot be addressed",
    )
    REQUIRED_MISSING = "T12", "an insert lacks a required property or endpoint"
    ASSIGNED_TWICE = "T13", "a mutation assigns the same property twice"
    UNDECLARED_PARAMETER = "T14", "a variable used as a value is not a declared parameter"
    BOUNDS_OR_NEAREST = (
        "T15",
        "traversal bounds are missing or out of order, or nearest() has unusable arguments",
    )
    EDGE_UPDATE = "T16", "an endpoint of an edge is updated"
    NEAREST_NEEDS_LIMIT = "T17", "ordering by nearest() needs a limit"
    NEAREST_WITH_ALIAS = "T18", "ordering by nearest() cannot be combined with an alias"
    SEARCH_MISFIT = "T19", "search() or fuzzy() has unusable arguments"
    MATCH_TEXT_MISFIT = "T20", "match_text() or bm25() has unusable arguments"
    RRF_MISFIT = "T21", "rrf() has unusable arguments, or orders without a limit"
    UNDIRECTED_ENDPOINTS = "T22", "`<edge>` needs an edge whose two endpoint types are the same"
    EDGE_VARIABLE_MISUSE = "T23", "an edge variable is used in a way only node variables can be"
    BLOB_READ = "T24", "a Blob cannot be read by a query"
    VARIABLE_REBOUND = (
        "T25",
        "a variable is bound again, to another type, or beside its `optional` block",
    )
    UNBOUND_VARIABLE = "T26", "a variable is neither bound by the match nor a parameter"
    PARAMETER_INVALID = (
        "T27",
        "a parameter is declared twice, has a reserved name, or is a list of Blob",
    )
    LIST_LITERAL_INVALID = "T28", "a list literal is nested or mixes types"
    DUPLICATE_COLUMN = "T29", "two result columns have the same name"
    ORDER_INVALID = (
        "T30",
        "an order, limit or offset uses something the result cannot be ordered or cut by",
    )
    FUNCTION_MISUSE = "T31", "a function is unknown, or used where it cannot be"
    TEMPORAL_LITERAL_INVALID = "T32", "invalid Date literal or invalid DateTime literal"
    KEY_UPDATE = "T33", "cannot update @key property: keys are immutable"
    AMBIGUOUS_TYPE = "T34", "a mutation fits a node type and an edge type of the same name"

    MIXED_MUTATION = "D2", "one query mixes inserts/updates and deletes"

    NO_PARAMS = (
        "L101",
        "mutation declares no params; hardcoded mutations are easy to miss",
        Severity.WARNING,
    )
    DUPLICATE_ACROSS_FILES = (
        "L102",
        "two files linted together declare a query of the same name",
        Severity.WARNING,
    )
    NEVER_UPDATED = (
        "L201",
        "a nullable property is never assigned by any update query of its type",
        Severity.WARNING,
    )
    NEVER_MATCHES = (
        "L202",
        "a comparison with a value outside the enum can never match",
        Severity.WARNING,
    )
    DIRECTION_IGNORED = (
        "L203",
        "a ranking always puts the best match first, whatever direction is written",
        Severity.WARNING,
    )

    PARAMETER_MISSING = "P001", "a required parameter was not provided"
    PARAMETER_VALUE = "P002", "a parameter value does not fit its declared type"
    PARAMETERS_NOT_AN_OBJECT = "P003", "parameters must be a JSON object"

    PIPELINE_SYNTAX = "Y000", "the pipeline file is not YAML, or uses what pipelines do without"
    PIPELINE_UNREADABLE = "Y001", "the pipeline file is not UTF-8 text, or is larger than 16 MiB"
    PIPELINE_UNKNOWN_FIELD = "Y101", "a field is unknown there"
    PIPELINE_FIELD_MISSING = "Y102", "a field that must be there is missing"
    PIPELINE_VALUE = "Y103", "a field has a value it cannot have"
    PIPELINE_FIELD_TWICE = "Y104", "a name is given twice"
    PIPELINE_CONTRADICTION = "Y105", "fields exclude one another"
    PIPELINE_VARIABLE = "Y106", "a variable is not declared, or has no value"
    PIPELINE_UNKNOWN_SOURCE = "Y201", "a source is named that is not declared"
    PIPELINE_SOURCE_CYCLE = "Y202", "sources are made from one another in a circle"
    PIPELINE_SOURCE_MISUSED = "Y203", "a source is used where its kind cannot be"
    PIPELINE_SOURCE_UNUSED = "Y204", "a source is declared and used by nothing", Severity.WARNING
    PIPELINE_UNKNOWN_TYPE = "Y301", "a type is named that the graph does not have"
    PIPELINE_UNKNOWN_PROPERTY = "Y302", "a property is named that the type does not have"
    PIPELINE_PROPERTY_MISSING = "Y303", "a property that must have a value is given none"
    PIPELINE_ID_MISUSED = "Y304", "an id is given to a type whose ids are made from its key"
    PIPELINE_ENDPOINT_INVALID = "Y305", "an endpoint does not give the key of its node type"
    PIPELINE_EMBED_INVALID = "Y306", "a property to embed is not one that is made from a text"
    PIPELINE_CHECK = "Y307", "a check does not fit the types of the graph, or its query is refused"
    PIPELINE_SOURCE_UNREADABLE = "Y401", "Spark cannot open a source"
    PIPELINE_EXPRESSION = "Y402", "Spark does not accept an expression"

    REQUIRED_PROPERTY_ADDED = "OG-MF-103", "a required property without @default is added"
    PROPERTY_TYPE_CHANGED = "OG-MF-106", "a property type becomes one that not all its values fit"
