"""Rules that protect branches and tags: what a commit on a branch needs, in files and requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from omnigraph.errors import InvalidInput

MAX_RULES = 100
MAX_NAMES = 100
"""Names in one list of a rule."""
MAX_NAME = 200
"""Characters of a name or a pattern: every head of the graph holds the rules."""
_REQUIREMENTS = ("proposal", "approvals", "from", "checks", "fresh", "self_approval")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionRule:
    """What a commit on some branches needs; patterns as in `release/*`.

    `approvers` is a group of the policy, a list of actors, or None for every other actor. `tags`
    are patterns of tags that may not be created or deleted.
    """

    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    proposal: bool = True
    approvals: int = 0
    approvers: str | tuple[str, ...] | None = None
    checks: tuple[str, ...] = ()
    fresh: bool = True
    self_approval: bool = False

    def covers(self, branch: str) -> bool:
        """Return whether the rule is about a branch."""
        return any(fnmatchcase(branch, pattern) for pattern in self.branches)

    def covers_tag(self, tag: str) -> bool:
        """Return whether the rule is about a tag."""
        return any(fnmatchcase(tag, pattern) for pattern in self.tags)

    def to_json(self) -> dict[str, Any]:
        """Return the form of policy files and of the wire."""
        listed = isinstance(self.approvers, tuple)
        return {
            "branches": list(self.branches),
            "tags": list(self.tags),
            "require": {
                "proposal": self.proposal,
                "approvals": self.approvals,
                "from": list(self.approvers or ()) if listed else self.approvers,
                "checks": list(self.checks),
                "fresh": self.fresh,
                "self_approval": self.self_approval,
            },
        }


def parse_rules(document: object) -> tuple[ProtectionRule, ...]:
    """Read rules that a user gives, which some proposal can satisfy, and all of which take effect.

    Raises:
        InvalidInput: the rules are invalid; every problem is listed.
    """
    problems: list[str] = []
    rules = _parse_rules(document, problems)
    for number, rule in enumerate(rules):
        problems += (f"rules[{number}]: {one}" for one in _contradictions(rule))
    _raise(problems)
    return rules


def read_rules(document: object) -> tuple[ProtectionRule, ...]:
    """Read rules that are stored or served."""
    problems: list[str] = []
    rules = _parse_rules(document, problems)
    _raise(problems)
    return rules


def _raise(problems: Sequence[str]) -> None:
    if problems:
        message = f"the protection cannot be read: {'; '.join(problems)}"
        raise InvalidInput(message, code="protection_invalid", problems=list(problems))


def _contradictions(rule: ProtectionRule) -> Iterator[str]:
    """Yield why a rule would protect less than it says, or cannot be satisfied."""
    if not rule.proposal and (rule.approvals or rule.checks):
        yield "`proposal` is false, but `approvals` and `checks` are those of a proposal"
    if isinstance(rule.approvers, tuple) and rule.approvals > len(set(rule.approvers)):
        count = len(set(rule.approvers))
        yield f"`approvals` is {rule.approvals}, but the actors in `from` are {count}"
    lists = (rule.branches, rule.tags, rule.checks, rule.approvers)
    for names in (listed for listed in lists if isinstance(listed, tuple)):
        if len(names) > MAX_NAMES:
            yield f"a list has {len(names)} names; at most {MAX_NAMES} are allowed"
    texts = [name for listed in lists if listed for name in _listed(listed)]
    if any(len(text) > MAX_NAME or not text.isprintable() for text in texts):
        yield f"names have at most {MAX_NAME} characters, and no control characters"


def _listed(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _parse_rules(document: object, problems: list[str]) -> tuple[ProtectionRule, ...]:
    if isinstance(document, Mapping):
        document = [document]
    if not isinstance(document, Sequence) or isinstance(document, str):
        problems.append("expected a list of rules")
        document = []
    if len(document) > MAX_RULES:
        problems.append(f"there are {len(document)} rules; at most {MAX_RULES} are allowed")
        document = []
    return tuple(_parse_rule(one, f"rules[{n}]", problems) for n, one in enumerate(document))


def _parse_rule(rule: object, where: str, problems: list[str]) -> ProtectionRule:
    if not isinstance(rule, Mapping):
        problems.append(f"{where} must be an object")
        return ProtectionRule()
    problems += [
        f"{where} has unknown member `{name}`"
        for name in rule
        if name not in ("branches", "tags", "require")
    ]
    branches = _texts(rule.get("branches"), f"{where}.branches", problems)
    tags = _texts(rule.get("tags"), f"{where}.tags", problems)
    if not branches and not tags:
        problems.append(f"{where} needs `branches` or `tags`")
    require = rule.get("require")
    require = {} if require is None else require
    if not isinstance(require, Mapping):
        problems.append(f"{where}.require must be an object")
        require = {}
    problems += [
        f"{where}.require has unknown member `{name}`"
        for name in require
        if name not in _REQUIREMENTS
    ]
    return ProtectionRule(
        branches=branches,
        tags=tags,
        approvals=_number(require, f"{where}.require", problems),
        approvers=_approvers(require.get("from"), f"{where}.require.from", problems),
        checks=_texts(require.get("checks"), f"{where}.require.checks", problems),
        **{
            name: _flag(require, name, default=default, where=where, problems=problems)
            for name, default in (("proposal", True), ("fresh", True), ("self_approval", False))
        },
    )


def _texts(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(
        isinstance(text, str) and text.strip() for text in texts
    ):
        problems.append(f"{where} must be a list of names")
        return ()
    return tuple(text.strip() for text in texts)


def _approvers(value: object, where: str, problems: list[str]) -> str | tuple[str, ...] | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return value if value is None else str(value).strip()
    return _texts(value, where, problems)


def _number(require: Mapping[str, Any], where: str, problems: list[str]) -> int:
    """Return the number of approvals: one, if only whose they have to be is given."""
    value = require.get("approvals", 0 if require.get("from") is None else 1)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 1000:
        problems.append(f"{where}.approvals must be a number from 0 to 1000")
        return 0
    return value


def _flag(
    require: Mapping[str, Any], name: str, *, default: bool, where: str, problems: list[str]
) -> bool:
    value = require.get(name, default)
    if not isinstance(value, bool):
        problems.append(f"{where}.require.{name} must be true or false")
        return default
    return value


def describe_rule(rule: ProtectionRule) -> str:
    """Return the branches and tags of a rule, and what it requires, on one line."""
    needs = ["a proposal"] if rule.proposal else []
    if rule.approvals:
        listed = isinstance(rule.approvers, tuple)
        who = ", ".join(rule.approvers or ()) if listed else rule.approvers
        needs.append(f"approvals: {rule.approvals}" + (f" from {who}" if who else ""))
    needs += [f"check {name}" for name in rule.checks]
    names = ", ".join([*rule.branches, *(f"tag {tag}" for tag in rule.tags)])
    return f"{names}: {', '.join(needs) or 'not created or deleted'}"


def group_members(
    rule: ProtectionRule, groups: Mapping[str, Iterable[str]] | None
) -> frozenset[str] | None:
    """Return the actors whose approvals count for a rule, None for all.

    Without a policy the members of a group are not known: no approval counts.
    """
    if rule.approvers is None:
        return None
    if isinstance(rule.approvers, str):
        return frozenset((groups or {}).get(rule.approvers, ()))
    return frozenset(rule.approvers)


def lacks_approvers(rule: ProtectionRule, groups: Mapping[str, Iterable[str]] | None) -> bool:
    """Return whether fewer actors may approve than have to, so that no proposal satisfies it."""
    members = group_members(rule, groups)
    return members is not None and len(members) < rule.approvals
