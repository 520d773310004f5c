"""Who may do what.

A policy file enters, is compiled to Cedar and asked: an actor, an action, a branch. A decision
leaves, with the rule that made it and the types it is about. Only permits exist; what no rule
allows, and who is in no group, is denied. This is the only room that imports cedarpy.
"""

from omnigraph.policy.actions import Action, BranchScope, BundleScope
from omnigraph.policy.bundle import Bundle, Rule
from omnigraph.policy.cases import Case, Mismatch, mismatches, read_cases
from omnigraph.policy.cedar import Asked
from omnigraph.policy.errors import PolicyDenied, PolicyInvalid, Problem
from omnigraph.policy.policy import Decision, Policy, logged_once
from omnigraph.policy.scope import EVERYTHING, NOTHING, TypeScope

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Action",
    "Asked",
    "BranchScope",
    "Bundle",
    "BundleScope",
    "Case",
    "Decision",
    "Mismatch",
    "Policy",
    "PolicyDenied",
    "PolicyInvalid",
    "Problem",
    "Rule",
    "TypeScope",
    "logged_once",
    "mismatches",
    "read_cases",
]
