"""This module reads what a policy is expected to decide, and tells where it decides otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.lang.diagnostics import quote
from omnigraph.policy.actions import Action
from omnigraph.policy.cedar import Asked
from omnigraph.policy.document import Document, Node
from omnigraph.policy.policy import Policy


class Expected(StrEnum):
    """What a case expects."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Case:
    """One expectation."""

    id: str
    asked: Asked
    expect: Expected


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A case that was decided otherwise, and why."""

    case: Case
    message: str

    def __str__(self) -> str:
        return f"{self.case.id}: expected {self.case.expect}, but {self.message}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "id": self.case.id,
            "expect": str(self.case.expect),
            "message": self.message,
        }


def read_cases(text: str) -> list[Case]:
    """Read a file of cases; raise PolicyInvalid with all that is wrong."""
    document = Document("file of policy tests")
    with document.reading(text) as root:
        found = document.fields(root, "a file of policy tests", ("version", "cases"))
        document.version(found.get("version"))
        cases, ids = list[Case](), set[str]()
        for item in document.items(found.get("cases"), "`cases`"):
            case = _case(document, item)
            if case is not None and case.id in ids:
                document.wrong(item, f"case `{quote(case.id)}` stands twice")
            if case is not None:
                ids.add(case.id)
                cases.append(case)
    return cases


def _case(document: Document, node: Node) -> Case | None:
    required, optional = ("id", "actor", "action", "expect"), ("branch", "target_branch")
    fields = document.fields(node, "a case", required, optional)
    id_ = document.text(fields.get("id"), "`id` of a case")
    where = f"of case `{quote(id_ or '')}`"
    actor = document.text(fields.get("actor"), f"`actor` {where}")
    action = document.word(fields.get("action"), f"`action` {where}", Action)
    expect = document.word(fields.get("expect"), f"`expect` {where}", Expected)
    branch, target = (document.text(fields.get(name), f"`{name}` {where}") for name in optional)
    if id_ is None or actor is None or action is None or expect is None:
        return None
    return Case(id_, Asked(actor, action, branch, target), expect)


def mismatches(policy: Policy, cases: list[Case]) -> list[Mismatch]:
    """Return the cases a policy decides otherwise than expected."""
    decided = ((case, policy.evaluate(case.asked)) for case in cases)
    return [
        Mismatch(case, decision.message)
        for case, decision in decided
        if decision.allowed != (case.expect is Expected.ALLOW)
    ]
