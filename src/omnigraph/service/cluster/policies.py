"""This module checks a policy file of a cluster against the scopes it shall decide about."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.policy import BundleScope, Policy, PolicyInvalid
from omnigraph.service.cluster.config import CLUSTER


def bundle_scope(applies_to: Sequence[str]) -> BundleScope:
    """Return what kind of actions a policy with these scopes may speak about."""
    return BundleScope.SERVER if CLUSTER in applies_to else BundleScope.GRAPH


def policy_problems(content: bytes, applies_to: Sequence[str]) -> list[tuple[str, int]]:
    """Return everything that is wrong with a policy file, each with its line."""
    try:
        Policy.parse(content.decode("utf-8"), bundle_scope(applies_to))
    except UnicodeDecodeError:
        return [("the file is not UTF-8 text", 1)]
    except PolicyInvalid as error:
        return [(problem.message, problem.line) for problem in error.problems]
    return []
