"""This module holds what the type checker knows while it reads a query."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.lang import Code, Report, Span, did_you_mean
from omnigraph.lang.codes import Severity
from omnigraph.lang.query_tree import ANONYMOUS, Variable
from omnigraph.plan.expressions import Binding, EntityKind
from omnigraph.types import PropertyType


@dataclass(slots=True)
class Context:
    """One query being checked: the catalog, its parameters, and where to report."""

    catalog: Catalog
    report: Report
    parameters: dict[str, PropertyType] = field(default_factory=dict)
    _used_names: dict[str, int] = field(default_factory=dict)

    def error(self, code: Code, message: str, span: Span, *, hint: str | None = None) -> None:
        """Refuse the query."""
        self.report.add(code, message, span, hint=hint, severity=Severity.ERROR)

    def warn(self, code: Code, message: str, span: Span, *, hint: str | None = None) -> None:
        """Tell about something legal that is probably a mistake."""
        self.report.add(code, message, span, hint=hint)

    def entity_type(self, binding: Binding) -> NodeType | EdgeType:
        """Return the catalog type a binding stands for."""
        if binding.kind is EntityKind.NODE:
            return self.catalog.nodes[binding.type_name]
        return self.catalog.edges[binding.type_name]

    def property(self, binding: Binding, name: str) -> Property | None:
        """Return a property of a bound entity."""
        return self.entity_type(binding).lookup(name)

    def new_binding(self, name: str, kind: EntityKind, type_name: str) -> Binding:
        """Make a binding whose plan name is unique in the query.

        Two negations may use one variable name for different things, and `$_` never names
        anything; `#` cannot be written in a query, so the extra names clash with nothing.
        """
        uses = self._used_names.get(name, 0) + 1
        self._used_names[name] = uses
        plain = name != ANONYMOUS and uses == 1
        return Binding(name if plain else f"{name}#{uses}", kind, type_name)


@dataclass(slots=True)
class Scope:
    """The bindings visible at a place; a negation opens a scope inside another.

    `poisoned` variables were introduced by a clause that could not be understood; what is said
    about them later is neither right nor wrong.
    """

    bindings: dict[str, Binding] = field(default_factory=dict)
    outer: frozenset[str] = frozenset()
    poisoned: set[str] = field(default_factory=set)

    def child(self) -> Scope:
        """Return the scope inside a negation."""
        return Scope(dict(self.bindings), frozenset(self.bindings), set(self.poisoned))

    def poison(self, *variables: Variable | None) -> None:
        """Remember variables whose meaning was lost by an error."""
        self.poisoned.update(v.name for v in variables if v and v.name not in self.bindings)

    def get(self, variable: Variable) -> Binding | None:
        """Return what a variable stands for; `$_` stands for nothing."""
        return None if variable.name == ANONYMOUS else self.bindings.get(variable.name)

    def bind(self, variable: Variable, binding: Binding) -> Binding:
        """Make a variable stand for a binding from here on."""
        if variable.name != ANONYMOUS:
            self.bindings[variable.name] = binding
        return binding

    def hint(self, name: str) -> str | None:
        """Return a hint naming the variable probably meant."""
        return did_you_mean(name, self.bindings, prefix="$")
