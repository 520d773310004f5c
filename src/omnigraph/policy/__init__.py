"""Policies: which actors may perform which actions.

A policy file is compiled to Cedar and evaluated for an actor, an action and a branch. A decision
has the rule that allowed it and the types it applies to. There are only permits: what no rule
allows, and actors without a group, are denied. No other package imports cedarpy.
"""

from omnigraph.policy.bundle import PolicyBundle, PolicyRule
from omnigraph.policy.cedar import AuthorizationRequest
from omnigraph.policy.errors import PolicyDenied, PolicyInvalid, PolicyProblem
from omnigraph.policy.permissions import (
    ALL_TYPES,
    NO_TYPES,
    BranchScope,
    BundleScope,
    PolicyAction,
    TypeScope,
)
from omnigraph.policy.policy import Policy, PolicyDecision, log_decisions_once
from omnigraph.policy.policy_tests import (
    PolicyTestCase,
    PolicyTestFailure,
    find_policy_test_failures,
    read_policy_tests,
)

__all__ = [
    "ALL_TYPES",
    "NO_TYPES",
    "AuthorizationRequest",
    "BranchScope",
    "BundleScope",
    "Policy",
    "PolicyAction",
    "PolicyBundle",
    "PolicyDecision",
    "PolicyDenied",
    "PolicyInvalid",
    "PolicyProblem",
    "PolicyRule",
    "PolicyTestCase",
    "PolicyTestFailure",
    "TypeScope",
    "find_policy_test_failures",
    "log_decisions_once",
    "read_policy_tests",
]
