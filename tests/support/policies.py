"""What a policy must decide, in the plainest form: a direct evaluator, and bundles to try."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import yaml

BRANCHED = ("read", "export", "change")
TARGETED = (
    "schema_apply",
    "branch_create",
    "branch_delete",
    "branch_merge",
    "bypass_protection",
)
PLAIN = ("admin", "invoke_query")
ACTIONS = (*BRANCHED, *TARGETED, *PLAIN)
ACTORS = ("act-ada", "act-bo", "act-cy")
BRANCHES = ("main", "release", "draft")


def permits(bundle: dict[str, Any], actor: str, action: str, *where: str | None) -> list[str]:
    """Return the rules of a bundle that allow something, by what the specification says."""
    protected = bundle.get("protected_branches", [])

    def fits(scope: str | None, branch: str | None) -> bool:
        if scope in (None, "any"):
            return True
        return branch is not None and (branch in protected) == (scope == "protected")

    return sorted(
        rule["id"]
        for rule in bundle.get("rules", [])
        if actor in bundle["groups"][rule["allow"]["actors"]["group"]]
        and action in rule["allow"]["actions"]
        and fits(rule["allow"].get("branch_scope"), where[0])
        and fits(rule["allow"].get("target_branch_scope"), where[1])
    )


def as_text(bundle: dict[str, Any]) -> str:
    """Return a bundle as the text of its file."""
    text: str = yaml.safe_dump(bundle, sort_keys=False, allow_unicode=True)
    return text


_NAMES = st.text("ab\"\\'${}: é\n☃", min_size=1, max_size=4).filter(lambda text: text.strip())
_SCOPES = st.sampled_from(["any", "protected", "unprotected", None])


@st.composite
def bundles(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a bundle that is right."""
    names = draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True))
    members = st.lists(st.sampled_from(ACTORS), min_size=1, max_size=3, unique=True)
    groups = {name: draw(members) for name in names}
    ids = draw(st.lists(_NAMES, max_size=4, unique=True))
    rules = []
    for id_ in ids:
        allow: dict[str, Any] = {"actors": {"group": draw(st.sampled_from(names))}}
        family, key = draw(
            st.sampled_from(
                [(BRANCHED, "branch_scope"), (TARGETED, "target_branch_scope"), (PLAIN, None)]
            )
        )
        allow["actions"] = draw(st.lists(st.sampled_from(family), min_size=1, unique=True))
        scope = draw(_SCOPES)
        if key is not None and scope is not None:
            allow[key] = scope
        rules.append({"id": id_, "allow": allow})
    protected = draw(st.lists(st.sampled_from(BRANCHES), unique=True))
    return {"version": 1, "groups": groups, "protected_branches": protected, "rules": rules}
