"""Decisions: every action, scope, actor and kind of branch, and what Cedar makes of bundles."""

import itertools
import logging

import pytest
from hypothesis import given, settings

from omnigraph.errors import Category, InvalidInput
from omnigraph.policy import Policy, PolicyAction
from tests.support.policies import (
    ACTIONS,
    ACTORS,
    BRANCHED,
    BRANCHES,
    PLAIN,
    TARGETED,
    as_text,
    bundles,
    permits,
)

PLACES = [None, "main", "draft"]
"""No branch, a protected one, one that is not."""


def bundle(action, key, scope):
    allow = {"actors": {"group": "team"}, "actions": [action]}
    if scope is not None:
        allow[key] = scope
    return {
        "version": 1,
        "groups": {"team": ["act-ada"], "others": ["act-bo"]},
        "protected_branches": ["main"],
        "rules": [{"id": "the-rule", "allow": allow}],
    }


def rows():
    scopes = ["any", "protected", "unprotected", None]
    for actions, key, known in [
        (BRANCHED, "branch_scope", scopes),
        (TARGETED, "target_branch_scope", scopes),
        (PLAIN, None, [None]),
    ]:
        yield from ((action, key, scope) for action in actions for scope in known)


@pytest.mark.parametrize(("action", "key", "scope"), list(rows()))
def test_rule_allows_its_action_to_its_group_on_its_branches_and_nothing_else(action, key, scope):
    policy = Policy.parse(as_text(bundle(action, key, scope)))
    for actor, asked, branch, target in itertools.product(
        ["act-ada", "act-bo", "act-nobody"], ACTIONS, PLACES, PLACES
    ):
        looked_at = {"branch_scope": branch, "target_branch_scope": target}.get(key)
        fits = {
            None: True,
            "any": True,
            "protected": looked_at == "main",
            "unprotected": looked_at == "draft",
        }[scope]
        expected = actor == "act-ada" and asked == action and fits
        decision = policy.decide(actor, asked, branch, target)
        assert decision.allowed == expected
        assert decision.matched_rule_id == ("the-rule" if expected else None)
        assert decision.scope.is_everything == expected


@pytest.mark.parametrize("actor", ["act-ops", "act-ada", "act-nobody"])
def test_server_policy_decides_about_the_list_of_graphs(actor):
    text = """
version: 1
kind: server
groups: { ops: [act-ops], others: [act-ada] }
rules:
  - id: ops-enumerate
    allow: { actors: { group: ops }, actions: [graph_list] }
"""
    policy = Policy.parse(text, scope="server")
    assert policy.decide(actor, "graph_list").allowed == (actor == "act-ops")
    assert not policy.decide(actor, "read", "main").allowed


@settings(max_examples=60, deadline=None)
@given(bundles())
def test_cedar_decides_as_the_specification_says(made):
    policy = Policy.parse(as_text(made), graph='a "graph"')
    places = [None, *BRANCHES]
    for actor, action in itertools.product([*ACTORS, "act-nobody"], ACTIONS):
        for branch, target in zip(places, reversed(places), strict=True):
            expected = permits(made, actor, action, branch, target)
            decision = policy.decide(actor, action, branch, target)
            assert decision.allowed == bool(expected)
            assert decision.matched_rule_id == (expected[0] if expected else None)


def test_messages_say_who_wanted_what_and_where():
    policy = Policy.parse(as_text(bundle("branch_merge", "target_branch_scope", "unprotected")))
    asked = [
        ("act-ada", "branch_merge", "main", "draft"),
        ("act-ada", "branch_merge", "draft", "main"),
        ("act-ada", "change", "main", None),
        ("act-nobody", "invoke_query", None, None),
    ]
    assert [policy.decide(*a).message for a in asked] == [
        "policy allowed action 'branch_merge' on branch 'main' targeting branch 'draft' "
        "for actor 'act-ada'",
        "policy denied action 'branch_merge' on branch 'draft' targeting branch 'main' "
        "for actor 'act-ada'",
        "policy denied action 'change' on branch 'main' for actor 'act-ada'",
        "policy denied action 'invoke_query' for unknown actor 'act-nobody'",
    ]


def test_smallest_id_of_several_rules_is_reported():
    made = bundle("read", None, None)
    made["rules"] = [{**made["rules"][0], "id": id_} for id_ in ("b", "a", "c")]
    assert Policy.parse(as_text(made)).decide("act-ada", "read").matched_rule_id == "a"


def test_every_decision_is_logged_also_when_it_is_known_already(caplog):
    policy = Policy.parse(as_text(bundle("read", "branch_scope", "protected")))
    with caplog.at_level(logging.INFO, logger="omnigraph.policy"):
        for branch in ("main", "main", "draft"):
            policy.decide("act-ada", "read", branch)
    facts = [
        (r.actor, r.action, r.branch, r.target_branch, r.allowed, r.matched_rule)
        for r in caplog.records
    ]
    allowed = ("act-ada", "read", "main", None, True, "the-rule")
    assert facts == [allowed, allowed, ("act-ada", "read", "draft", None, False, None)]


def test_names_no_text_can_encode_are_denied_like_any_other():
    policy = Policy.parse(as_text(bundle("read", "branch_scope", "protected")))
    assert not policy.decide("act-ada", "read", "\udc80").allowed
    assert not policy.decide("\udc80", "read", "main").allowed


def test_unknown_action_is_reported_with_the_one_that_was_meant():
    policy = Policy.parse(as_text(bundle("read", None, None)))
    with pytest.raises(InvalidInput, match="did you mean `export`") as caught:
        policy.decide("act-ada", "exports")
    assert (caught.value.code, caught.value.category) == ("policy_action_unknown", Category.INVALID)


def test_every_action_of_a_graph_is_in_the_table():
    assert {*ACTIONS, "graph_list"} == set(PolicyAction)


def test_types_of_all_rules_that_match_add_up():
    text = """
version: 1
groups: { team: [act-ada] }
rules:
  - id: people
    allow:
      actors: { group: team }
      actions: [read]
      types: [Person, Knows]
      mask: { Person: [salary, phone] }
  - id: phones
    allow: { actors: { group: team }, actions: [read], types: [Person], mask: { Person: [salary] } }
  - id: all-on-drafts
    allow: { actors: { group: team }, actions: [read], branch_scope: unprotected }
"""
    policy = Policy.parse(text)
    drafts, nowhere = (policy.decide("act-ada", "read", b).scope for b in ("draft", None))
    assert drafts.is_everything
    assert not nowhere.is_everything
    assert [nowhere.covers(name) for name in ("Person", "Knows", "Company")] == [True, True, False]
    assert sorted(map(sorted, nowhere.masks_of("Person"))) == [["phone", "salary"], ["salary"]]


@settings(max_examples=60, deadline=None)
@given(bundle=bundles())
def test_what_is_allowed_somewhere_is_allowed_on_some_branch(bundle):
    policy = Policy.parse(as_text(bundle))
    places = [None, *BRANCHES, "another"]
    for actor, action in itertools.product(ACTORS, ACTIONS):
        somewhere = any(
            permits(bundle, actor, action, branch, target)
            for branch, target in itertools.product(places, places)
        )
        assert policy.allows_somewhere(actor, action) == somewhere
