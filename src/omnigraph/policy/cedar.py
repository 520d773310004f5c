"""Translate a policy bundle to Cedar (schema, policies, entities) and evaluate requests.

Everything is parsed once. Each action of a rule becomes one `permit`.
"""

from __future__ import annotations

import json
import string
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from omnigraph.errors import Category, OmniError, install_command
from omnigraph.policy.bundle import PolicyBundle, PolicyRule
from omnigraph.policy.permissions import SERVER_ACTIONS, BranchScope, PolicyAction

_CONTEXT = """{
    has_branch: Bool,
    branch: String,
    has_target_branch: Bool,
    target_branch: String,
    branch_is_protected: Bool,
    target_branch_is_protected: Bool,
  }"""
SCHEMA = f"""namespace Omnigraph {{
  entity Group;
  entity Actor in [Group];
  entity Graph;
  entity Server;
  type Request = {_CONTEXT};
  action {", ".join(json.dumps(a) for a in PolicyAction if a not in SERVER_ACTIONS)}
    appliesTo {{ principal: [Actor], resource: [Graph], context: Request }};
  action {", ".join(json.dumps(a) for a in PolicyAction if a in SERVER_ACTIONS)}
    appliesTo {{ principal: [Actor], resource: [Server], context: Request }};
}}
"""


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """Who wants to do what, and where."""

    actor: str
    action: PolicyAction
    branch: str | None = None
    target_branch: str | None = None


@dataclass(frozen=True, slots=True)
class CedarEngine:
    """A compiled bundle; `graph` is the name of its graph."""

    bundle: PolicyBundle
    graph: str
    text: str = field(init=False)
    _policies: Any = field(init=False, repr=False, compare=False)
    _entities: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the bundle; a policy that does not fit the Cedar schema is a bug."""
        cedarpy, text = _cedarpy(), policy_text(self.bundle, self.graph)
        checked = cedarpy.validate_policies(text, SCHEMA)
        assert checked.validation_passed, checked.errors
        entities = json.dumps(_entities(self.bundle, self.graph))
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "_policies", cedarpy.PolicySet.from_str(text))
        object.__setattr__(
            self, "_entities", cedarpy.Entities.from_json_str(entities, schema=SCHEMA)
        )

    def matching(self, authorization: AuthorizationRequest) -> list[str]:
        """Return the ids of all rules that allow this, sorted; none means that it is denied."""
        protected = self.bundle.protected_branches
        request = {
            "principal": _uid("Actor", authorization.actor),
            "action": _uid("Action", authorization.action),
            "resource": _resource(authorization.action, self.graph),
            "context": {
                "has_branch": authorization.branch is not None,
                "branch": _replace_surrogates(authorization.branch),
                "has_target_branch": authorization.target_branch is not None,
                "target_branch": _replace_surrogates(authorization.target_branch),
                "branch_is_protected": authorization.branch in protected,
                "target_branch_is_protected": authorization.target_branch in protected,
            },
        }
        cedarpy = _cedarpy()
        answer = cedarpy.is_authorized(
            request, self._policies, self._entities, schema=_parsed_schema()
        )
        if answer.decision is cedarpy.Decision.NoDecision or answer.diagnostics.errors:
            details = {"errors": [str(error) for error in answer.diagnostics.errors]}
            message = "the policy could not be evaluated; nothing is allowed"
            code, category = "policy_evaluation_failed", Category.INTERNAL
            raise OmniError(message, code=code, category=category, details=details)
        if not answer.allowed:
            return []
        labels = answer.diagnostics.id_annotations_by_reason.values()
        return sorted({label.removesuffix(f":{authorization.action}") for label in labels})


_PLAIN = frozenset(string.ascii_letters + string.digits + " -_:./@")


@cache
def _cedarpy() -> Any:  # noqa: ANN401 - a library that may not be there
    """Import Cedar; without it nothing that has a policy is opened."""
    try:
        return import_module("cedarpy")
    except ModuleNotFoundError as error:
        message = f"policies need the package {error.name}: {install_command('policy')}"
        code, category = "policy_library_missing", Category.UNAVAILABLE
        raise OmniError(message, code=code, category=category) from error


@cache
def _parsed_schema() -> Any:  # noqa: ANN401 - of cedarpy
    return _cedarpy().Schema.from_str(SCHEMA)


def _replace_surrogates(name: str | None) -> str:
    """Return a name that Cedar can read; no condition uses it."""
    return (name or "").encode(errors="replace").decode()


def policy_text(bundle: PolicyBundle, graph: str) -> str:
    """Return the Cedar policies of a bundle."""
    permits = (_permit(rule, action, graph) for rule in bundle.rules for action in rule.actions)
    return "\n".join(permits)


def _permit(rule: PolicyRule, action: PolicyAction, graph: str) -> str:
    when = [
        f"context.has_{name} && {'!' if scope is BranchScope.UNPROTECTED else ''}"
        f"context.{name}_is_protected"
        for name, scope in (
            ("branch", rule.branch_scope),
            ("target_branch", rule.target_branch_scope),
        )
        if scope not in (None, BranchScope.ANY)
    ]
    condition = f"\nwhen {{ {' && '.join(when)} }}" if when else ""
    return (
        f"@id({_cedar_string(f'{rule.id}:{action}')})\n"
        f"permit (\n"
        f"  principal in Omnigraph::Group::{_cedar_string(rule.group)},\n"
        f"  action == Omnigraph::Action::{_cedar_string(action)},\n"
        f"  resource == {_literal(_resource(action, graph))}\n"
        f"){condition};\n"
    )


def _resource(action: PolicyAction, graph: str) -> dict[str, str]:
    return _uid("Server", "root") if action in SERVER_ACTIONS else _uid("Graph", graph)


def _uid(type_: str, id_: str) -> dict[str, str]:
    return {"type": f"Omnigraph::{type_}", "id": id_}


def _literal(uid: dict[str, str]) -> str:
    return f"{uid['type']}::{_cedar_string(uid['id'])}"


def _cedar_string(text: str) -> str:
    """Return a Cedar string; all but plain letters and digits is written by its number."""
    plain = (c if c in _PLAIN else f"\\u{{{ord(c):x}}}" for c in text)
    return f'"{"".join(plain)}"'


def _entities(bundle: PolicyBundle, graph: str) -> list[dict[str, object]]:
    def entity(uid: dict[str, str], parents: list[dict[str, str]]) -> dict[str, object]:
        return {"uid": uid, "attrs": {}, "parents": parents}

    groups = [entity(_uid("Group", name), []) for name in bundle.groups]
    actors = [
        entity(
            _uid("Actor", actor),
            [_uid("Group", name) for name, members in bundle.groups.items() if actor in members],
        )
        for actor in sorted(bundle.actors)
    ]
    places = [entity(_uid("Graph", graph), []), entity(_uid("Server", "root"), [])]
    return [*groups, *actors, *places]
