"""Read a policy file: groups of actors, protected branches, and rules that permit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.lang.diagnostics import quote
from omnigraph.policy.permissions import (
    BRANCH_ACTIONS,
    GRANT_ALL,
    READ_ACTIONS,
    TARGET_ACTIONS,
    BranchScope,
    BundleScope,
    PolicyAction,
    TypeGrant,
    bundle_scope,
)
from omnigraph.policy.protection_rules import ProtectionRule, parse_rules
from omnigraph.policy.yaml_document import PolicyDocument, YamlFields, YamlNode

POLICY = "policy"
_SCOPES = ("branch_scope", "target_branch_scope")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One permission: what the actors of a group may do, and to what."""

    id: str
    group: str
    actions: tuple[PolicyAction, ...]
    branch_scope: BranchScope | None = None
    target_branch_scope: BranchScope | None = None
    grant: TypeGrant = GRANT_ALL


@dataclass(frozen=True, slots=True)
class PolicyBundle:
    """A whole policy file."""

    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str] = frozenset()
    rules: tuple[PolicyRule, ...] = ()
    protection: tuple[ProtectionRule, ...] = ()

    @property
    def actors(self) -> frozenset[str]:
        """All actors that are in a group."""
        return frozenset(actor for members in self.groups.values() for actor in members)


def read_bundle(text: str, scope: BundleScope) -> PolicyBundle:
    """Read a policy for a graph or for a server; raise PolicyInvalid with every problem."""
    document = PolicyDocument(POLICY)
    with document.parse(text) as root:
        # `kind` of some server files is ignored: where a file is used decides its scope.
        optional = ("protected_branches", "rules", "kind", "protect")
        fields = document.fields(root, "a policy", ("version", "groups"), optional)
        document.version(fields.get("version"))
        reader = _PolicyRuleReader(document, scope, _read_groups(document, fields.get("groups")))
        protected = document.texts(fields.get("protected_branches"), "`protected_branches`")
        rules = tuple(reader.read(fields.get("rules")))
        protection = _read_protection(document, fields.get("protect"), reader.groups, scope)
    return PolicyBundle(reader.groups, frozenset(protected), rules, protection)


def _read_protection(
    document: PolicyDocument,
    node: YamlNode | None,
    groups: Mapping[str, tuple[str, ...]],
    scope: BundleScope,
) -> tuple[ProtectionRule, ...]:
    """Read `protect`: a rule or a list of rules, as `omnigraph protection set` takes them."""
    if node is None:
        return ()
    if scope is not BundleScope.GRAPH:
        document.add_problem(node, "`protect` belongs in the policy of a graph, not of a server")
        return ()
    try:
        rules = parse_rules(document.plain(node))
    except InvalidInput as error:
        for problem in error.details["problems"]:
            document.add_problem(node, f"`protect`: {problem}")
        return ()
    for rule in rules:
        group = rule.approvers
        if isinstance(group, str) and group not in groups:
            hint = did_you_mean(group, list(groups)) or "declare it under `groups`"
            document.add_problem(node, f"`protect`: unknown group `{quote(group)}`: {hint}")
    return rules


def _read_groups(document: PolicyDocument, node: YamlNode | None) -> dict[str, tuple[str, ...]]:
    if node is None:
        return {}
    return {
        name: tuple(document.texts(members, f"group `{quote(name)}`", some=True))
        for name, members in document.mapping(node, "`groups`").items()
    }


class _PolicyRuleReader:
    """Reads the rules of a policy."""

    def __init__(
        self, document: PolicyDocument, scope: BundleScope, groups: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._document = document
        self._scope = scope
        self.groups = groups

    def read(self, node: YamlNode | None) -> list[PolicyRule]:
        """Return the rules that are right."""
        rules, ids = list[PolicyRule](), set[str]()
        for item in self._document.items(node, "`rules`"):
            fields = self._document.fields(item, "a rule", ("id", "allow"))
            id_ = self._document.text(fields.get("id"), "`id` of a rule")
            if id_ in ids:
                self._document.add_problem(fields["id"], f"rule `{quote(id_)}` is declared twice")
            if id_ is not None:
                ids.add(id_)
            if "allow" in fields:
                rule = self._rule(id_ or "", fields["allow"])
                rules += [] if rule is None else [rule]
        return rules

    def _rule(self, id_: str, node: YamlNode) -> PolicyRule | None:
        document, where = self._document, f"`allow` of rule `{quote(id_)}`"
        optional = (*_SCOPES, "types", "mask")
        fields = document.fields(node, where, ("actors", "actions"), optional)
        group = self._group(fields, where)
        actions = self._actions(fields, where)
        scopes = {
            name: document.enum_value(fields.get(name), f"`{name}` of {where}", BranchScope)
            for name in _SCOPES
        }
        self._check_scopes(fields, actions, where)
        grant = self._grant(fields, where)
        if group is None or not actions:
            return None
        return PolicyRule(id=id_, group=group, actions=actions, grant=grant, **scopes)

    def _group(self, fields: YamlFields, where: str) -> str | None:
        if "actors" not in fields:
            return None
        actors = self._document.fields(fields["actors"], f"`actors` of {where}", ("group",))
        group = self._document.text(actors.get("group"), f"`group` of {where}")
        if group is not None and group not in self.groups:
            hint = did_you_mean(group, list(self.groups)) or "declare it under `groups`"
            self._document.add_problem(actors["group"], f"unknown group `{quote(group)}`: {hint}")
        return group

    def _actions(self, fields: YamlFields, where: str) -> tuple[PolicyAction, ...]:
        if "actions" not in fields:
            return ()
        place = f"`actions` of {where}"
        items = self._document.items(fields["actions"], place, some=True)
        words = [
            self._document.enum_value(item, f"each of {place}", PolicyAction) for item in items
        ]
        for item, word in zip(items, words, strict=True):
            if word is not None and bundle_scope(word) is not self._scope:
                belongs = bundle_scope(word)
                message = f"`{word}` belongs in the policy of a {belongs}, not of a {self._scope}"
                self._document.add_problem(item, message)
        return tuple(dict.fromkeys(word for word in words if word is not None))

    def _check_scopes(
        self, fields: YamlFields, actions: tuple[PolicyAction, ...], where: str
    ) -> None:
        wrong = self._document.add_problem
        if all(name in fields for name in _SCOPES):
            message = f"{where} has either `branch_scope` or `target_branch_scope`"
            wrong(fields["target_branch_scope"], message)
        for name, fitting in (
            ("branch_scope", BRANCH_ACTIONS),
            ("target_branch_scope", TARGET_ACTIONS),
            ("types", BRANCH_ACTIONS),
            ("mask", READ_ACTIONS),
        ):
            others = [action for action in actions if action not in fitting]
            if name in fields and others:
                allowed = ", ".join(action for action in PolicyAction if action in fitting)
                message = (
                    f"`{name}` of {where} is for {allowed}; it does not fit {', '.join(others)}"
                )
                wrong(fields[name], message)

    def _grant(self, fields: YamlFields, where: str) -> TypeGrant:
        document = self._document
        if "mask" in fields and "types" not in fields:
            message = f"`mask` of {where} needs `types`, so that a renamed type is not shown whole"
            document.add_problem(fields["mask"], message)
        if "types" not in fields:
            return GRANT_ALL
        types = frozenset(document.texts(fields["types"], f"`types` of {where}", some=True))
        masks = set[tuple[str, str]]()
        if "mask" in fields:
            for name, node in document.mapping(fields["mask"], f"`mask` of {where}").items():
                if name not in types:
                    document.add_problem(
                        node, f"`mask` of {where} names `{quote(name)}`, `types` do not"
                    )
                place = f"`mask` of `{quote(name)}` of {where}"
                masks |= {(name, hidden) for hidden in document.texts(node, place, some=True)}
        return TypeGrant(types, frozenset(masks))
