"""Rules that protect branches: what is read, and what would protect less than it says."""

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.policy.protection_rules import (
    describe_rule,
    lacks_approvers,
    parse_rules,
    read_rules,
)

MAIN = {"branches": ["main"]}


def rule(**require):
    return {**MAIN, "require": require}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (rule(proposal=False, approvals=1), "`proposal` is false"),
        (rule(proposal=False, checks=["deep"]), "`proposal` is false"),
        ({**rule(approvals=3), "require": {"approvals": 3, "from": ["a", "b", "a"]}}, "are 2"),
        ({**MAIN, "require": {"from": []}}, "`approvals` is 1, but the actors in `from` are 0"),
        ({"branches": ["x" * 201]}, "at most 200 characters"),
        ({"branches": ["main", "a\x00"]}, "no control characters"),
        ({"branches": ["main\u202e"]}, "no control characters"),
        ({**MAIN, "require": {"from": "x" * 201}}, "at most 200 characters"),
        ({"branches": ["main"] * 101}, "a list has 101 names"),
        (rule(checks=["c"] * 101), "a list has 101 names"),
        (7, "expected a list of rules"),
        ("main", "expected a list of rules"),
        ([7], "must be an object"),
        ([MAIN] * 101, "at most 100"),
        (rule(approvals=True), "must be a number"),
        (rule(approvals=-1), "must be a number"),
        (rule(fresh="no"), "must be true or false"),
        (rule(unknown=1), "unknown member `unknown`"),
        ({}, "needs `branches` or `tags`"),
    ],
)
def test_rule_that_cannot_do_what_it_says_is_refused(document, problem):
    with pytest.raises(InvalidInput) as caught:
        parse_rules(document)
    assert caught.value.code == "protection_invalid"
    assert problem in "; ".join(caught.value.details["problems"])


def test_rules_that_are_stored_already_are_read():
    """A graph whose rules were set by an older release stays usable."""
    [found] = read_rules([rule(proposal=False, approvals=2)])
    assert (found.proposal, found.approvals) == (False, 2)


def test_only_naming_the_approvers_requires_one_approval():
    [found] = parse_rules({**MAIN, "require": {"from": "reviewers"}})
    assert describe_rule(found) == "main: a proposal, approvals: 1 from reviewers"
    [zero] = parse_rules({**MAIN, "require": {"from": "reviewers", "approvals": 0}})
    assert describe_rule(zero) == "main: a proposal"
    assert parse_rules([zero.to_json(), found.to_json()]) == (zero, found)


def test_rule_without_a_proposal_protects_the_name():
    [found] = parse_rules(rule(proposal=False))
    assert describe_rule(found) == "main: not created or deleted"


def test_group_with_fewer_actors_than_approvals_is_noticed():
    [found] = parse_rules({**MAIN, "require": {"approvals": 2, "from": "team"}})
    assert lacks_approvers(found, {"team": ["act-ada", "act-ada"]})
    assert lacks_approvers(found, None)
    assert not lacks_approvers(found, {"team": ["act-ada", "act-bo"]})
    assert not lacks_approvers(parse_rules({**MAIN, "require": {"approvals": 9}})[0], None)
