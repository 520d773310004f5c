"""Policy decisions: whether an actor may do something. Every decision is logged."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.lang.diagnostics import quote
from omnigraph.policy.bundle import PolicyBundle, read_bundle
from omnigraph.policy.cedar import AuthorizationRequest, CedarEngine
from omnigraph.policy.permissions import NO_TYPES, BundleScope, PolicyAction, TypeScope

DECISION_CACHE_SIZE = 4_096
"""Decisions that are kept; a policy never changes, so neither do they."""
DEFAULT_GRAPH = "graph"
_log = logging.getLogger("omnigraph.policy")
_logged_requests: ContextVar[set[tuple[int, AuthorizationRequest]] | None] = ContextVar(
    "logged", default=None
)


@contextmanager
def log_decisions_once() -> Iterator[None]:
    """Log each decision once within the block, however often it is requested."""
    token = _logged_requests.set(set())
    try:
        yield
    finally:
        _logged_requests.reset(token)


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """A decision: the smallest id of the rules that allow it, and what they grant."""

    allowed: bool
    matched_rule_id: str | None
    message: str
    scope: TypeScope = NO_TYPES


class Policy:
    """A policy for one graph, or for a server."""

    def __init__(self, bundle: PolicyBundle, graph: str = DEFAULT_GRAPH) -> None:
        self.bundle = bundle
        self.cedar = CedarEngine(bundle, graph)
        self.evaluate = lru_cache(DECISION_CACHE_SIZE)(self._evaluate)
        """Return the decision about a request, without logging it."""

    @classmethod
    def parse(
        cls, text: str, scope: str = BundleScope.GRAPH, *, graph: str = DEFAULT_GRAPH
    ) -> Policy:
        """Read the policy of a graph, or with `scope="server"` of a server.

        Raises:
            PolicyInvalid: with every problem, by line.
        """
        return cls(read_bundle(text, BundleScope(scope)), graph)

    @classmethod
    def of(cls, source: Policy | str | os.PathLike[str]) -> Policy:
        """Return a policy from a `Policy`, a file or a text."""
        if isinstance(source, Policy):
            return source
        is_text = isinstance(source, str) and ("\n" in source or ":" in source)
        return cls.parse(os.fspath(source) if is_text else read_policy_text(Path(source)))

    @property
    def representative_branches(self) -> tuple[str, ...]:
        """Branches of which each other one is decided about like one of them."""
        protected = sorted(self.bundle.protected_branches)
        return (*protected[:1], f"not {' '.join(protected)}")

    def decide(
        self,
        actor: str,
        action: str,
        branch: str | None = None,
        target_branch: str | None = None,
    ) -> PolicyDecision:
        """Return whether an actor may do something, and log the decision."""
        request = AuthorizationRequest(actor, parse_action(action), branch, target_branch)
        decision = self.evaluate(request)
        if _log.isEnabledFor(logging.INFO) and self._is_first_in_request(request):
            facts = {
                "actor": actor,
                "action": str(request.action),
                "branch": branch,
                "target_branch": target_branch,
                "allowed": decision.allowed,
                "matched_rule": decision.matched_rule_id,
            }
            _log.info("%s", decision.message, extra=facts)
        return decision

    def evaluate_bypass(self, actor: str, branch: str | None) -> bool:
        """Return whether an actor may bypass the protection of a branch; nothing is logged."""
        action = PolicyAction.BYPASS_PROTECTION
        return self.evaluate(AuthorizationRequest(actor, action, None, branch)).allowed

    def _is_first_in_request(self, request: AuthorizationRequest) -> bool:
        logged, key = _logged_requests.get(), (id(self), request)
        if logged is None:
            return True
        is_first = key not in logged
        logged.add(key)
        return is_first

    def allows_somewhere(self, actor: str, action: str) -> bool:
        """Return whether an actor may do something on any branch; nothing is logged."""
        parsed, places = parse_action(action), (None, *self.representative_branches)
        return any(
            self.evaluate(AuthorizationRequest(actor, parsed, branch, target)).allowed
            for branch in places
            for target in places
        )

    def _evaluate(self, request: AuthorizationRequest) -> PolicyDecision:
        is_known = request.actor in self.bundle.actors
        rules = self.cedar.matching(request) if is_known else []
        granted = TypeScope.of(rule.grant for rule in self.bundle.rules if rule.id in rules)
        message = _decision_message(request, allowed=bool(rules), is_known=is_known)
        return PolicyDecision(bool(rules), rules[0] if rules else None, message, granted)


def parse_action(word: str) -> PolicyAction:
    """Return the action of this name; raise InvalidInput when there is none."""
    if word not in list(PolicyAction):
        message = f"unknown action '{quote(word)}': {did_you_mean(word, list(PolicyAction))}"
        raise InvalidInput(message, code="policy_action_unknown", action=word)
    return PolicyAction(word)


def read_policy_text(path: Path) -> str:
    """Return the text of a file that belongs to a policy."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        message = f"cannot read the policy file {path}: {reason}"
        raise InvalidInput(message, code="policy_file_unreadable") from error


def _decision_message(request: AuthorizationRequest, *, allowed: bool, is_known: bool) -> str:
    branch, target = request.branch, request.target_branch
    where = "" if branch is None else f" on branch '{quote(branch)}'"
    where += "" if target is None else f" targeting branch '{quote(target)}'"
    actor = f"{'' if is_known else 'unknown '}actor '{quote(request.actor)}'"
    return (
        f"policy {'allowed' if allowed else 'denied'} action '{request.action}'{where} for {actor}"
    )
