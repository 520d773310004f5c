"""Plan the steps from one accepted schema to another, or the refusals.

Things are compared by identity, never by name, so a rename is one step wherever the name is used.
The planner looks at schemas only: whether entities exist makes no difference to its answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.catalog.accepted_schema import AcceptedSchema
from omnigraph.catalog.defaults import DEFAULT, default_value
from omnigraph.catalog.identity import IdentityError, PropertyId, identity_text
from omnigraph.catalog.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangeKey,
    DeclareEmbeddingModel,
    DropProperty,
    DropType,
    ExtendEnum,
    MakeOptional,
    MakeRequired,
    MigrationPlan,
    MigrationStep,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.catalog.model import (
    AcceptedType,
    Annotation,
    Constraint,
    EdgeType,
    Embed,
    Index,
    Key,
    NodeType,
    Property,
    TypeKind,
    ValueConstraint,
    annotation_text,
    constraint_columns,
    constraint_text,
    constraint_word,
    ordered_columns,
    type_constraints,
)
from omnigraph.catalog.properties import canonical_annotations
from omnigraph.lang import Code
from omnigraph.types import PropertyType, Scalar

# ----------------------------------------------------------------------
# Steps between two types of a property
#
# A type may become any that holds all its values, and whether null is one of them may change either
# way: a property that becomes required is looked at when the change is made.


WIDER_SCALARS = {Scalar.I32: Scalar.I64, Scalar.U32: Scalar.U64, Scalar.F32: Scalar.F64}
"""The type each number may become: values keep their meaning, in a column of their own."""


def _property_type_steps(
    place: tuple[TypeKind, str, str], old: PropertyType, new: PropertyType, *, in_key: bool
) -> Iterator[MigrationStep]:
    """Yield what leads from one type to another, or the refusal; `in_key`: ids are made from it."""
    plain = old.as_nullable(new.nullable)
    if plain != new:
        added = _added_values(plain, new)
        wider = is_wider(plain, new)
        if added:
            yield ExtendEnum(*place, added)
        # A wider float has more digits, so that ids would read differently.
        elif wider and not (in_key and plain.scalar is Scalar.F32):
            yield WidenProperty(*place, old.as_nullable(False), new.as_nullable(False))
        else:
            reason = f"the type cannot change ({old} -> {new}); it may only become wider"
            if wider:
                reason = f"the type of a key cannot change ({old} -> {new}): ids are made from it"
            kind, type_name, name = place
            entity = f"{kind}:{type_name}.{name}"
            yield UnsupportedChange(entity, reason, Code.PROPERTY_TYPE_CHANGED)
            return
    if old.nullable != new.nullable:
        yield MakeOptional(*place) if new.nullable else MakeRequired(*place)


def is_wider(old: PropertyType, new: PropertyType) -> bool:
    """Return whether a type differs only by holding more values than those of an enum or number."""
    if old.enum_values is not None:
        return replace(old, enum_values=None) == new
    return old.scalar in WIDER_SCALARS and replace(old, scalar=WIDER_SCALARS[old.scalar]) == new


def _added_values(old: PropertyType, new: PropertyType) -> tuple[str, ...]:
    """Return the enum values a change adds; nothing when it is something else."""
    if old.enum_values is None or new.enum_values is None:
        return ()
    if not set(old.enum_values) < set(new.enum_values):
        return ()
    return tuple(sorted(set(new.enum_values) - set(old.enum_values)))


# ----------------------------------------------------------------------
# Steps between two accepted states of a type
#
# A `@key`, `@unique` or `@index` over one property is treated beside that property, however it was
# written; all other constraints belong to the type as a whole.


_METADATA_ANNOTATIONS = ("description", "instruction", DEFAULT)


def type_steps(
    old: AcceptedType, new: AcceptedType, accepted: AcceptedSchema, desired: AcceptedSchema
) -> Iterator[MigrationStep]:
    """Yield the steps from one state of a type to another, in the order they are taken."""
    before, after = _SchemaTypeState.of(old, accepted), _SchemaTypeState.of(new, desired)
    if old.name != new.name:
        yield _rename_step(old, new)
    yield from _structure_steps(before, after)
    yield from _type_metadata_steps(old, new)
    for name, property_id in sorted(new.property_ids.items()):
        if property_id in before.names:
            yield from _property_steps(property_id, before, after)
        else:
            yield from _new_property_steps(name, property_id, before, after)
    yield from _drop_steps(before, after)
    if old.incarnation != new.incarnation:
        yield ChangeKey(new.kind, new.name, _key(before, after), _key(after))
    yield from _constraint_steps(None, before, after)


@dataclass(frozen=True, slots=True)
class _SchemaTypeState:
    """A type before or after, with everything it refers to known by identity."""

    type: AcceptedType
    schema: AcceptedSchema
    names: Mapping[PropertyId, str]
    constraints: Mapping[Hashable, Constraint]

    @classmethod
    def of(cls, type_: AcceptedType, schema: AcceptedSchema) -> _SchemaTypeState:
        names = {property_id: name for name, property_id in type_.property_ids.items()}
        constraints = {
            _constraint_identity(c, type_): c for c in type_constraints(type_.definition)
        }
        return cls(type_, schema, names, constraints)

    def property(self, property_id: PropertyId) -> Property:
        """Return one property by identity."""
        return self.type.definition.properties[self.names[property_id]]

    def entity_path(self, property_id: PropertyId) -> str:
        """Return the spelling of a property in refusals: `node:Ship.imo`."""
        return f"{self.type.entity}.{self.names[property_id]}"

    def reference(self, name: str) -> Hashable:
        """Return the identity behind a property name; system properties are their own."""
        return self.type.property_ids.get(name, name)

    def property_of(self, constraint: Constraint) -> PropertyId | None:
        """Return the property beside which a constraint is treated, if there is one."""
        columns = constraint_columns(constraint)
        if isinstance(constraint, ValueConstraint) or len(columns) > 1:
            return None
        return self.type.property_ids.get(columns[0])

    def linked_type(self, kind: TypeKind, name: str) -> AcceptedType:
        """Return a type this one refers to."""
        linked = self.schema.find(kind, name)
        assert linked is not None, "an accepted schema has no dangling references"
        return linked


def _constraint_identity(constraint: Constraint, type_: AcceptedType) -> Hashable:
    columns = constraint_columns(constraint)
    members = frozenset(type_.property_ids.get(name, name) for name in columns)
    facts: tuple[Hashable, ...] = ()
    if isinstance(constraint, ValueConstraint):
        facts = tuple(constraint.members().values())
    elif isinstance(constraint, Index):
        facts = (constraint.metric,)
    return constraint_word(constraint), members, *facts


# --- the type itself ---------------------------------------------------------------------------


def _rename_step(old: AcceptedType, new: AcceptedType) -> MigrationStep:
    if new.kind is TypeKind.INTERFACE:
        reason = f"renaming an interface is not supported: {old.name} -> {new.name}"
        return UnsupportedChange(new.entity, reason)
    return RenameType(new.kind, old.name, new.name)


def _structure_steps(before: _SchemaTypeState, after: _SchemaTypeState) -> Iterator[MigrationStep]:
    """Refuse changes of what a node implements and of what an edge connects."""
    entity = after.type.entity
    match before.type.definition, after.type.definition:
        case NodeType(interfaces=old), NodeType(interfaces=new):
            if _linked_type_ids(before, TypeKind.INTERFACE, old) != _linked_type_ids(
                after, TypeKind.INTERFACE, new
            ):
                change = f"{', '.join(old) or 'none'} -> {', '.join(new) or 'none'}"
                reason = f"changing the implemented interfaces is not supported: {change}"
                yield UnsupportedChange(entity, reason)
        case EdgeType() as old_edge, EdgeType() as new_edge:
            for word, old_end, new_end in (
                ("src", old_edge.src, new_edge.src),
                ("dst", old_edge.dst, new_edge.dst),
            ):
                node = TypeKind.NODE
                if before.linked_type(node, old_end).id != after.linked_type(node, new_end).id:
                    reason = f"changing edge endpoints is not supported: {word}"
                    yield UnsupportedChange(entity, f"{reason} {old_end} -> {new_end}")
            if old_edge.cardinality != new_edge.cardinality:
                limits = (old_edge.cardinality, new_edge.cardinality)
                yield ChangeCardinality(TypeKind.EDGE, after.type.name, *limits)


def _key(side: _SchemaTypeState, later: _SchemaTypeState | None = None) -> Key | None:
    """Return the key of a type, with the names its properties have later."""
    keys = (c for c in side.constraints.values() if isinstance(c, Key))
    key = next(keys, None)
    if key is None or later is None:
        return key
    renamed = _with_current_names(key, side, later)
    assert isinstance(renamed, Key), "names do not change the kind"
    return renamed


def _linked_type_ids(side: _SchemaTypeState, kind: TypeKind, names: tuple[str, ...]) -> set[int]:
    return {side.linked_type(kind, name).id for name in names}


def _type_metadata_steps(old: AcceptedType, new: AcceptedType) -> Iterator[MigrationStep]:
    match old.definition, new.definition:
        case (NodeType(annotations=was), NodeType(annotations=wanted)) | (
            EdgeType(annotations=was),
            EdgeType(annotations=wanted),
        ):
            refusal = _annotation_refusal(new.entity, was, wanted)
            if refusal is not None:
                yield refusal
            elif set(was) != set(wanted):
                yield UpdateTypeMetadata(new.kind, new.name, wanted)


def _annotation_refusal(
    entity: str, was: tuple[Annotation, ...], annotations: tuple[Annotation, ...]
) -> UnsupportedChange | None:
    changed = [a for a in set(was) ^ set(annotations) if a.name not in _METADATA_ANNOTATIONS]
    if not changed:
        return None
    texts = ", ".join(annotation_text(a) for a in canonical_annotations(changed))
    reason = f"only @description, @instruction and @default can change, not {texts}"
    return UnsupportedChange(entity, reason)


# --- its properties ----------------------------------------------------------------------------


def _new_property_steps(
    name: str, property_id: PropertyId, before: _SchemaTypeState, after: _SchemaTypeState
) -> Iterator[MigrationStep]:
    property_ = after.property(property_id)
    type_ = property_.type
    if type_.nullable or default_value(property_) is not None:
        default = next((a.value for a in property_.annotations if a.name == DEFAULT), None)
        shown = None if type_.nullable else default
        yield AddProperty(after.type.kind, after.type.name, name, type_, shown)
        yield from _constraint_steps(property_id, before, after)
    else:
        optional = f"make it {type_.as_nullable()} or give it a @default"
        reason = f"a required property cannot be added ({type_}); {optional}"
        yield UnsupportedChange(
            after.entity_path(property_id), reason, Code.REQUIRED_PROPERTY_ADDED
        )


def _property_steps(
    property_id: PropertyId, before: _SchemaTypeState, after: _SchemaTypeState
) -> Iterator[MigrationStep]:
    old, new = before.property(property_id), after.property(property_id)
    kind, type_name, place = after.type.kind, after.type.name, after.entity_path(property_id)
    if old.name != new.name:
        yield RenameProperty(kind, type_name, old.name, new.name)
    in_key = any(isinstance(c, Key) and new.name in c.columns for c in after.constraints.values())
    names = (kind, type_name, new.name)
    yield from _property_type_steps(names, old.type, new.type, in_key=in_key)
    yield from _embed_steps(property_id, before, after)
    yield from _constraint_steps(property_id, before, after)
    yield from _provenance_steps(property_id, before, after)
    refusal = _annotation_refusal(place, old.annotations, new.annotations)
    if refusal is not None:
        yield refusal
    elif set(old.annotations) != set(new.annotations):
        yield UpdatePropertyMetadata(kind, type_name, new.name, new.annotations)


def _embed_steps(
    property_id: PropertyId, before: _SchemaTypeState, after: _SchemaTypeState
) -> Iterator[MigrationStep]:
    """Yield what changes about `@embed`; a model that was not declared may be."""
    old, new = before.property(property_id).embed, after.property(property_id).embed
    same_source = _embed_source(old, before) == _embed_source(new, after)
    was, new_model = (None if embed is None else embed.model for embed in (old, new))
    if same_source and was is None and new_model is not None:
        name = after.names[property_id]
        yield DeclareEmbeddingModel(after.type.kind, after.type.name, name, new_model)
    elif not same_source or was != new_model:
        reason = "changing the source or model of @embed is not supported"
        yield UnsupportedChange(after.entity_path(property_id), reason)


def _embed_source(embed: Embed | None, side: _SchemaTypeState) -> Hashable:
    return None if embed is None else side.reference(embed.source)


def _provenance_steps(
    property_id: PropertyId, before: _SchemaTypeState, after: _SchemaTypeState
) -> Iterator[MigrationStep]:
    old, new = before.property(property_id), after.property(property_id)
    place = after.entity_path(property_id)
    if old.declared_directly != new.declared_directly:
        words = {True: "declared directly", False: "injected by an interface"}
        change = f"{words[old.declared_directly]} -> {words[new.declared_directly]}"
        reason = f"changing the declaration provenance is not supported: {change}"
        yield UnsupportedChange(place, reason)
    if _satisfied_interface_properties(old, before) != _satisfied_interface_properties(new, after):
        change = f"{', '.join(old.satisfies) or 'none'} -> {', '.join(new.satisfies) or 'none'}"
        reason = f"changing which interfaces a property satisfies is not supported: {change}"
        yield UnsupportedChange(place, reason)


def _satisfied_interface_properties(
    property_: Property, side: _SchemaTypeState
) -> set[tuple[int, int]]:
    interfaces = (side.linked_type(TypeKind.INTERFACE, name) for name in property_.satisfies)
    return {(interface.id, interface.property_ids[property_.name]) for interface in interfaces}


def _drop_steps(before: _SchemaTypeState, after: _SchemaTypeState) -> Iterator[MigrationStep]:
    for name, property_id in sorted(before.type.property_ids.items()):
        if property_id not in after.names:
            yield DropProperty(after.type.kind, after.type.name, name)
            yield from _constraint_steps(property_id, before, after)


# --- constraints -------------------------------------------------------------------------------


def _constraint_steps(
    focus: PropertyId | None, before: _SchemaTypeState, after: _SchemaTypeState
) -> Iterator[MigrationStep]:
    """Yield what changes about the constraints beside one property, or about all others."""
    entity = after.type.entity
    if focus is not None:
        entity += f".{after.names.get(focus) or before.names[focus]}"
    for identity, constraint in before.constraints.items():
        if identity in after.constraints or before.property_of(constraint) != focus:
            continue
        if isinstance(constraint, Key) and after.type.kind is TypeKind.EDGE:
            if before.type.incarnation == after.type.incarnation:
                spelled = _with_current_names(constraint, before, after)
                yield RemoveConstraint(after.type.kind, after.type.name, spelled)
        elif isinstance(constraint, Key):
            what = "constraints" if focus is None else "property constraints"
            reason = f"removing {what} is not supported: {constraint_text(constraint)}"
            yield UnsupportedChange(entity, reason)
        elif not _is_dropped_with_properties(constraint, before, after):
            spelled = _with_current_names(constraint, before, after)
            yield RemoveConstraint(after.type.kind, after.type.name, spelled)
    for identity, constraint in after.constraints.items():
        if identity in before.constraints or after.property_of(constraint) != focus:
            continue
        if isinstance(constraint, Key) and after.type.kind is TypeKind.EDGE:
            continue  # a step of its own
        if isinstance(constraint, Key):
            text = constraint_text(constraint)
            reason = f"a key cannot be added to an existing type: {text}"
            yield UnsupportedChange(entity, reason)
        else:
            yield AddConstraint(after.type.kind, after.type.name, constraint)


def _is_dropped_with_properties(
    constraint: Constraint, before: _SchemaTypeState, after: _SchemaTypeState
) -> bool:
    """Return whether a constraint ends because its properties do."""
    members = {before.reference(name) for name in constraint_columns(constraint)}
    dropped = before.names.keys() - after.names.keys()
    return members <= dropped


def _with_current_names(
    constraint: Constraint, before: _SchemaTypeState, after: _SchemaTypeState
) -> Constraint:
    """Return a constraint that ends with the names its properties have by then."""

    def now(name: str) -> str:
        identity = before.type.property_ids.get(name)
        return name if identity is None else after.names.get(identity, name)

    if isinstance(constraint, ValueConstraint):
        return replace(constraint, property=now(constraint.property))
    columns = ordered_columns(map(now, constraint.columns), type(constraint), after.type.kind)
    return replace(constraint, columns=columns)


def plan_migration(accepted: AcceptedSchema, desired: AcceptedSchema) -> MigrationPlan:
    """Return the steps that lead from the accepted to the desired schema.

    Raises IdentityError when the two cannot belong to one history.
    """
    _check_history(accepted, desired)
    steps = tuple(step for kind in TypeKind for step in _steps_of_kind(kind, accepted, desired))
    if not steps and accepted != desired:
        steps = (UnsupportedChange("schema", "the schemas differ in a way no step covers"),)
    return MigrationPlan(steps)


def _steps_of_kind(
    kind: TypeKind, accepted: AcceptedSchema, desired: AcceptedSchema
) -> Iterator[MigrationStep]:
    for new in desired.of_kind(kind):
        old = accepted.by_id(new.id)
        if old is None:
            yield AddType(kind, new.name)
        else:
            yield from type_steps(old, new, accepted, desired)
    for old in accepted.of_kind(kind):
        if desired.by_id(old.id) is not None:
            continue
        if kind is TypeKind.INTERFACE:
            yield UnsupportedChange(old.entity, "removing an interface is not supported")
        else:
            yield DropType(kind, old.name)


def _check_history(accepted: AcceptedSchema, desired: AcceptedSchema) -> None:
    """Refuse schemas whose identities cannot come from one graph."""
    if accepted.domain != desired.domain:
        raise IdentityError(
            f"the schemas belong to different graphs: {accepted.domain} and {desired.domain}"
        )
    owners = dict(_identity_roles(accepted))
    for identity, role in _identity_roles(desired):
        before = owners.get(identity, role)
        if before != role:
            raise IdentityError(
                f"identity {identity_text(identity)} was the {before} and cannot be the {role}"
            )
    for new in desired.types:
        old = accepted.by_id(new.id)
        is_edge = new.kind is TypeKind.EDGE  # its incarnation changes with its key
        if old is not None and old.incarnation != new.incarnation and not is_edge:
            raise IdentityError(f"{new.entity} changed its incarnation but kept its identity")


def _identity_roles(schema: AcceptedSchema) -> Iterator[tuple[int, str]]:
    """Yield each identity with what it must stay for ever."""
    for type_ in schema.types:
        yield type_.id, f"identity of some {type_.kind} type"
        if type_.incarnation is not None:
            yield type_.incarnation, f"incarnation of type {identity_text(type_.id)}"
        for property_id in type_.property_ids.values():
            yield property_id, f"identity of a property of type {identity_text(type_.id)}"
