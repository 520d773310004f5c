"""Test cases of a policy: expected decisions, compared with the actual ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.lang.diagnostics import quote
from omnigraph.policy.cedar import AuthorizationRequest
from omnigraph.policy.permissions import PolicyAction
from omnigraph.policy.policy import Policy
from omnigraph.policy.yaml_document import PolicyDocument, YamlNode


class ExpectedDecision(StrEnum):
    """What a case expects."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PolicyTestCase:
    """One expectation."""

    id: str
    request: AuthorizationRequest
    expect: ExpectedDecision


@dataclass(frozen=True, slots=True)
class PolicyTestFailure:
    """A case that was decided otherwise, and why."""

    case: PolicyTestCase
    message: str

    def __str__(self) -> str:
        return f"{self.case.id}: expected {self.case.expect}, but {self.message}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        case = self.case
        return {"id": case.id, "expect": str(case.expect), "message": self.message}


def read_policy_tests(text: str) -> list[PolicyTestCase]:
    """Read a file of cases; raise PolicyInvalid with every problem."""
    document = PolicyDocument("file of policy tests")
    with document.parse(text) as root:
        fields = document.fields(root, "a file of policy tests", ("version", "cases"))
        document.version(fields.get("version"))
        cases, ids = list[PolicyTestCase](), set[str]()
        for item in document.items(fields.get("cases"), "`cases`"):
            case = _read_case(document, item)
            if case is not None and case.id in ids:
                document.add_problem(item, f"case `{quote(case.id)}` is declared twice")
            if case is not None:
                ids.add(case.id)
                cases.append(case)
    return cases


def _read_case(document: PolicyDocument, node: YamlNode) -> PolicyTestCase | None:
    required, optional = ("id", "actor", "action", "expect"), ("branch", "target_branch")
    fields = document.fields(node, "a case", required, optional)
    id_ = document.text(fields.get("id"), "`id` of a case")
    where = f"of case `{quote(id_ or '')}`"
    actor = document.text(fields.get("actor"), f"`actor` {where}")
    action = document.enum_value(fields.get("action"), f"`action` {where}", PolicyAction)
    expect = document.enum_value(fields.get("expect"), f"`expect` {where}", ExpectedDecision)
    branch, target = (document.text(fields.get(name), f"`{name}` {where}") for name in optional)
    if id_ is None or actor is None or action is None or expect is None:
        return None
    return PolicyTestCase(id_, AuthorizationRequest(actor, action, branch, target), expect)


def find_policy_test_failures(
    policy: Policy, cases: list[PolicyTestCase]
) -> list[PolicyTestFailure]:
    """Return the cases a policy decides otherwise than expected."""
    decided = ((case, policy.evaluate(case.request)) for case in cases)
    return [
        PolicyTestFailure(case, decision.message)
        for case, decision in decided
        if decision.allowed != (case.expect is ExpectedDecision.ALLOW)
    ]
