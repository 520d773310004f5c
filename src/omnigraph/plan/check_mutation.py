"""Type checks of the statements of a mutation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.catalog.defaults import default_value
from omnigraph.catalog.model import DST, ID, SRC, EdgeType, NodeType, Property
from omnigraph.lang import Code, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name
from omnigraph.plan.check_values import check_value
from omnigraph.plan.expressions import Compare, EntityKind, Expression, PropertyRef
from omnigraph.plan.query_plan import (
    ENTITY,
    Delete,
    InsertEdge,
    InsertNode,
    PlannedStatement,
    Update,
)
from omnigraph.plan.type_check_context import TypeCheckContext
from omnigraph.types import Scalar

_ENDPOINTS = {"from": SRC, "to": DST}


def check_mutation(
    body: qt.MutationBody, context: TypeCheckContext
) -> tuple[PlannedStatement, ...]:
    """Check every statement; those with errors are left out and reported."""
    checker = _MutationChecker(context)
    statements = [checker.statement(statement) for statement in body.statements]
    deletes = [s for s in body.statements if isinstance(s, qt.DeleteStatement)]
    if deletes and len(deletes) < len(body.statements):
        context.error(
            Code.MIXED_MUTATION,
            "this query mixes inserts/updates and deletes",
            deletes[0].span,
            hint="write two queries: one that inserts and updates, one that deletes",
        )
    return tuple(statement for statement in statements if statement is not None)


class _MutationChecker:
    def __init__(self, context: TypeCheckContext) -> None:
        self.context = context

    def statement(self, statement: qt.MutationStatement) -> PlannedStatement | None:
        type_ = self._type(statement)
        match statement:
            case qt.InsertStatement():
                if isinstance(type_, NodeType):
                    return self._insert_node(statement, type_)
                return None if type_ is None else self._insert_edge(statement, type_)
            case qt.UpdateStatement():
                return None if type_ is None else self._update(statement, type_)
            case qt.DeleteStatement():
                tests = () if type_ is None else self._tests(statement.tests, type_)
                return Delete(_entity_kind(type_), type_.name, tests) if type_ and tests else None

    # --- types ---------------------------------------------------------------------------------

    def _type(self, statement: qt.MutationStatement) -> NodeType | EdgeType | None:
        """Find the type; of a node and an edge type that share a name, the one that fits."""
        catalog, name = self.context.catalog, statement.type_name.text
        node, edge = catalog.nodes.get(name), catalog.edges.get(name)
        if node is not None and edge is not None:
            return self._shared(statement, node, edge)
        if node is None and edge is None:
            hint = did_you_mean(name, {*catalog.nodes, *catalog.edges})
            if name in catalog.interfaces:
                hint = f"{name} is an interface; name a node type that implements it"
            message = f"unknown type `{name}`"
            self.context.error(
                Code.UNKNOWN_MUTATION_TYPE, message, statement.type_name.span, hint=hint
            )
        return node or edge

    def _shared(
        self, statement: qt.MutationStatement, node: NodeType, edge: EdgeType
    ) -> NodeType | EdgeType | None:
        """Return the one of two types that a statement fits, the better one if it fits neither."""
        if _type_accepts(statement, node) and _type_accepts(statement, edge):
            self.context.error(
                Code.AMBIGUOUS_TYPE,
                f"`{node.name}` is a node type and an edge type, and both fit here",
                statement.type_name.span,
                hint="test a property that only one of them has, `from` or `to` for the edge, "
                "or rename one of the types",
            )
            return None
        names = _property_names(statement)
        of_edge = names & {*edge.properties, *_ENDPOINTS}
        return edge if len(of_edge) > len(names & {*node.properties}) else node

    # --- statements ----------------------------------------------------------------------------

    def _insert_node(self, statement: qt.InsertStatement, type_: NodeType) -> InsertNode | None:
        values = self._assignments(statement.assignments, type_, type_.properties)
        self._require(statement, _missing_properties(type_, _property_names(statement)))
        return InsertNode(type_.name, values, keyed=bool(type_.key))

    def _insert_edge(self, statement: qt.InsertStatement, type_: EdgeType) -> InsertEdge | None:
        addressable = {**type_.properties, **_ENDPOINTS}
        values = self._assignments(statement.assignments, type_, addressable)
        assigned = _property_names(statement)
        ends = [word for word in _ENDPOINTS if word not in assigned]
        self._require(statement, [*ends, *_missing_properties(type_, assigned)])
        src, dst = values.pop("from", None), values.pop("to", None)
        if src is None or dst is None:
            return None
        return InsertEdge(type_.name, src, dst, values, keyed=bool(type_.key))

    def _require(self, statement: qt.InsertStatement, missing: list[str]) -> None:
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            self.context.error(
                Code.REQUIRED_MISSING,
                f"insert of {statement.type_name} lacks required {names}",
                statement.type_name.span,
            )

    def _update(self, statement: qt.UpdateStatement, type_: NodeType | EdgeType) -> Update | None:
        addressable = {**_ENDPOINTS, **type_.properties}
        updatable = addressable if isinstance(type_, EdgeType) else type_.properties
        values = self._assignments(statement.assignments, type_, updatable)
        for assignment in statement.assignments:
            name = assignment.property.text
            if isinstance(type_, EdgeType) and name in _ENDPOINTS and name not in type_.properties:
                self.context.error(
                    Code.EDGE_UPDATE,
                    f"`{name}` of edge {type_.name} cannot be updated",
                    assignment.property.span,
                    hint="delete the edge and insert one between the right nodes",
                )
            elif name in type_.properties and name in type_.key:
                self.context.error(
                    Code.KEY_UPDATE,
                    f"cannot update @key property {type_.name}.{assignment.property}",
                    assignment.property.span,
                    hint="insert an entity with the new key and delete this one",
                )
        tests = self._tests(statement.tests, type_)
        return Update(_entity_kind(type_), type_.name, values, tests) if values and tests else None

    # --- assignments and tests -----------------------------------------------------------------

    def _assignments(
        self,
        assignments: Sequence[qt.Assignment],
        type_: NodeType | EdgeType,
        addressable: Mapping[str, Property],
    ) -> dict[str, Expression]:
        values: dict[str, Expression] = {}
        seen: set[str] = set()
        for assignment in assignments:
            name = assignment.property
            if name.text in seen:
                message = f"`{name}` is assigned twice"
                self.context.error(Code.ASSIGNED_TWICE, message, name.span)
                continue
            seen.add(name.text)
            property_ = addressable.get(name.text)
            if property_ is None:
                self._not_addressable(name, type_, addressable, "assigned")
                continue
            place = f"{type_.name}.{name}"
            value = check_value(assignment.value, property_.type, place, self.context, exact=True)
            if value is not None:
                values[name.text] = value
        return values

    def _not_addressable(
        self, name: Name, type_: NodeType | EdgeType, properties: Mapping[str, Property], verb: str
    ) -> None:
        kind = "node" if isinstance(type_, NodeType) else "edge"
        hint = did_you_mean(name.text, properties)
        if name.text == ID.name:
            message = f"`id` of {type_.name} cannot be {verb}"
            hint = "ids come from the key, or are generated"
        else:
            message = f"{kind} type {type_.name} has no property `{name}`"
            if isinstance(type_, EdgeType) and name.text in ("src", "dst"):
                hint = f"write `{'from' if name.text == 'src' else 'to'}`"
        self.context.error(Code.PROPERTY_NOT_ADDRESSABLE, message, name.span, hint=hint)

    def _tests(
        self, tests: Sequence[qt.MutationCondition], type_: NodeType | EdgeType
    ) -> tuple[Compare, ...]:
        checked = [self._test(test, type_) for test in tests]
        kept = tuple(test for test in checked if test is not None)
        return kept if len(kept) == len(tests) else ()

    def _test(self, test: qt.MutationCondition, type_: NodeType | EdgeType) -> Compare | None:
        properties = {**type_.properties, ID.name: ID}
        if isinstance(type_, EdgeType):
            properties |= _ENDPOINTS
        property_ = properties.get(test.property.text)
        if property_ is None:
            self._not_addressable(test.property, type_, properties, "tested")
            return None
        place = f"{type_.name}.{test.property}"
        if property_.type.scalar is Scalar.BLOB:
            message = f"blob {place} cannot be tested"
            self.context.error(Code.PROPERTY_NOT_ADDRESSABLE, message, test.property.span)
            return None
        if not property_.type.orderable:
            message = f"{place} is {property_.type.base_text}, which cannot be compared"
            self.context.error(Code.INCOMPATIBLE_TYPES, message, test.property.span)
            return None
        value = check_value(test.value, property_.type, place, self.context, exact=False)
        if value is None:
            return None
        left = PropertyRef(ENTITY, property_.name, property_.type)
        return Compare(left, test.operator, value)


def _entity_kind(type_: NodeType | EdgeType) -> EntityKind:
    return EntityKind.NODE if isinstance(type_, NodeType) else EntityKind.EDGE


def _property_names(statement: qt.MutationStatement) -> set[str]:
    """Return the properties a statement assigns or tests."""
    match statement:
        case qt.InsertStatement(assignments=assignments):
            return {a.property.text for a in assignments}
        case qt.UpdateStatement(assignments=assignments, tests=tests):
            return {a.property.text for a in assignments} | {t.property.text for t in tests}
        case qt.DeleteStatement(tests=tests):
            return {t.property.text for t in tests}


def _type_accepts(statement: qt.MutationStatement, type_: NodeType | EdgeType) -> bool:
    """Return whether a type has all a statement names, and needs no more."""
    is_edge, names = isinstance(type_, EdgeType), _property_names(statement)
    accepted = {*type_.properties, *(_ENDPOINTS if is_edge else ())}
    if not isinstance(statement, qt.InsertStatement):
        return names <= accepted | {ID.name}
    is_complete = not _missing_properties(type_, names)
    return names <= accepted and is_complete and (not is_edge or names >= _ENDPOINTS.keys())


def _missing_properties(type_: NodeType | EdgeType, assigned: set[str]) -> list[str]:
    """Return the properties that an insert must assign and does not.

    A required vector made from a source is given with its source, and a default need not be given.
    """
    return [
        p.name
        for p in type_.properties.values()
        if not (p.type.nullable or p.name in assigned or default_value(p) is not None)
        and (p.embed is None or p.embed.source not in assigned)
    ]
