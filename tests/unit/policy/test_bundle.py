"""Policy files and files of tests for them: what is refused, with all reasons and their lines."""

import re

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.policy import Policy, PolicyInvalid, find_policy_test_failures, read_policy_tests

GOOD = """\
version: 1
groups:
  team: [act-ada]
"""
RULE = GOOD + "rules:\n  - id: r\n    allow: "

BAD = {
    "empty": ("", ["1: it is empty"]),
    "no YAML": ("version: [1", ["1: expected ',' or ']'"]),
    "control characters": ("version: \x00", ["1: it has characters that YAML does not allow"]),
    "two documents": ("version: 1\n---\nversion: 1", ["2: but found another document"]),
    "deep": ("[" * 5_000, ["1: it is nested too deeply"]),
    "a list": ("[1]", ["1: a policy must be a mapping of keys and values"]),
    "nothing": ("{}", ["1: a policy lacks `groups`", "1: a policy lacks `version`"]),
    "version": ("version: 2\ngroups: {}", ["1: `version` of the policy must be 1"]),
    "version as text": ("version: '1'\ngroups: {}", ["1: `version` of the policy must be 1"]),
    "unknown key": (GOOD + "rule: []", ["4: a policy has no key `rule`: did you mean `rules`?"]),
    "key twice": (
        GOOD + "groups: {}",
        ["4: a policy has the key `groups` twice"],
    ),
    "empty group": ("version: 1\ngroups: {team: []}", ["2: group `team` must name at least one"]),
    "group of one": ("version: 1\ngroups: {team: ada}", ["2: group `team` must be a list"]),
    "blank actor": (
        "version: 1\ngroups: {team: [' ']}",
        ["2: each of group `team` must not be blank"],
    ),
    "number for an actor": (
        "version: 1\ngroups: {team: [7]}",
        ["2: each of group `team` must be text (put it in quotes)"],
    ),
    "rule without anything": (
        GOOD + "rules:\n  - {}",
        ["5: a rule lacks `allow`", "5: a rule lacks `id`"],
    ),
    "blank id": (
        RULE.replace("id: r", "id: ''") + "{actors: {group: team}, actions: [read]}",
        ["5: `id` of a rule must not be blank"],
    ),
    "id twice": (
        RULE
        + "{actors: {group: team}, actions: [read]}\n"
        + "  - {id: r, allow: {actors: {group: team}, actions: [read]}}",
        ["7: rule `r` is declared twice"],
    ),
    "deny": (
        GOOD + "rules:\n  - id: r\n    deny: {}",
        ["5: a rule lacks `allow`", "6: a rule has no key `deny`"],
    ),
    "unknown group": (
        RULE + "{actors: {group: teem}, actions: [read]}",
        ["6: unknown group `teem`: did you mean `team`?"],
    ),
    "actors by name": (
        RULE + "{actors: {group: team, actor: act-ada}, actions: [read]}",
        ["6: `actors` of `allow` of rule `r` has no key `actor`"],
    ),
    "no action": (
        RULE + "{actors: {group: team}, actions: []}",
        ["6: `actions` of `allow` of rule `r` must name at least one"],
    ),
    "unknown action": (
        RULE + "{actors: {group: team}, actions: [reads]}",
        ["6: each of `actions` of `allow` of rule `r` cannot be `reads`: did you mean `read`?"],
    ),
    "action of a server": (
        RULE + "{actors: {group: team}, actions: [graph_list]}",
        ["6: `graph_list` belongs in the policy of a server, not of a graph"],
    ),
    "unknown scope": (
        RULE + "{actors: {group: team}, actions: [read], branch_scope: all}",
        ["6: `branch_scope` of `allow` of rule `r` cannot be `all`"],
    ),
    "both scopes": (
        RULE
        + "{actors: {group: team}, actions: [read], branch_scope: any, target_branch_scope: any}",
        [
            "6: `allow` of rule `r` has either `branch_scope` or `target_branch_scope`",
            "6: `target_branch_scope` of `allow` of rule `r` is for schema_apply, branch_create, "
            "branch_delete, branch_merge, bypass_protection; it does not fit read",
        ],
    ),
    "branch scope of a merge": (
        RULE + "{actors: {group: team}, actions: [read, branch_merge], branch_scope: any}",
        [
            "6: `branch_scope` of `allow` of rule `r` is for read, export, change; "
            "it does not fit branch_merge"
        ],
    ),
    "scope of an admin": (
        RULE + "{actors: {group: team}, actions: [admin], target_branch_scope: any}",
        ["it does not fit admin"],
    ),
    "types of a merge": (
        RULE + "{actors: {group: team}, actions: [branch_merge], types: [Person]}",
        ["6: `types` of `allow` of rule `r` is for read, export, change; "],
    ),
    "no types": (
        RULE + "{actors: {group: team}, actions: [read], types: []}",
        ["6: `types` of `allow` of rule `r` must name at least one"],
    ),
    "mask of a change": (
        RULE
        + "{actors: {group: team}, actions: [read, change], types: [Person], mask: {Person: [a]}}",
        ["6: `mask` of `allow` of rule `r` is for read, export; it does not fit change"],
    ),
    "mask without types": (
        RULE + "{actors: {group: team}, actions: [read], mask: {Person: [salary]}}",
        ["6: `mask` of `allow` of rule `r` needs `types`"],
    ),
    "mask of another type": (
        RULE + "{actors: {group: team}, actions: [read], types: [Knows], mask: {Person: [salary]}}",
        ["6: `mask` of `allow` of rule `r` names `Person`, `types` do not"],
    ),
    "mask of nothing": (
        RULE + "{actors: {group: team}, actions: [read], types: [Person], mask: {Person: []}}",
        ["6: `mask` of `Person` of `allow` of rule `r` must name at least one"],
    ),
    "everything at once": (
        "version: 3\ngroups: {team: []}\nprotected_branches: main\nrules:\n  - id: 7\n"
        "    allow:\n      actors: {group: none}\n      actions: [fly]\n      extra: 1\n",
        [
            "1: `version` of the policy must be 1",
            "2: group `team` must name at least one",
            "3: `protected_branches` must be a list",
            "5: `id` of a rule must be text",
            "7: unknown group `none`",
            "8: each of `actions` of `allow` of rule `` cannot be `fly`",
            "9: `allow` of rule `` has no key `extra`",
        ],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_policy_is_refused_with_all_that_is_wrong(name):
    text, expected = BAD[name]
    with pytest.raises(PolicyInvalid) as caught:
        Policy.parse(text)
    problems = [f"{p.line}: {p.message}" for p in caught.value.problems]
    assert len(problems) == len(expected), problems
    for problem, start in zip(problems, expected, strict=True):
        assert start in problem
    assert caught.value.code == "policy_invalid"


def test_action_of_a_graph_is_refused_in_the_policy_of_a_server():
    with pytest.raises(PolicyInvalid, match="`read` belongs in the policy of a graph"):
        Policy.parse(RULE + "{actors: {group: team}, actions: [read]}", scope="server")


def test_long_policy_is_refused():
    with pytest.raises(InvalidInput) as caught:
        Policy.parse(GOOD + "#" * 1024 * 1024)
    assert caught.value.code == "policy_too_long"


def test_policy_is_read_from_a_file_or_given_as_text(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    policy = Policy.parse(GOOD)
    for source in (policy, GOOD, path, str(path)):
        assert Policy.of(source).bundle == policy.bundle
    with pytest.raises(InvalidInput) as caught:
        Policy.of(tmp_path / "none.yaml")
    assert caught.value.code == "policy_file_unreadable"


CASES = """\
version: 1
cases:
  - { id: reads, actor: act-ada, action: read, branch: main, expect: allow }
  - { id: wrong, actor: act-ada, action: change, expect: allow }
  - { id: stranger, actor: act-bo, action: read, expect: deny }
  - { id: wrong-too, actor: act-ada, action: read, target_branch: main, expect: deny }
"""


def test_cases_tell_every_decision_that_differs():
    policy = Policy.parse(RULE + "{actors: {group: team}, actions: [read]}")
    assert list(map(str, find_policy_test_failures(policy, read_policy_tests(CASES)))) == [
        "wrong: expected allow, but policy denied action 'change' for actor 'act-ada'",
        "wrong-too: expected deny, but policy allowed action 'read' targeting branch 'main' "
        "for actor 'act-ada'",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("version: 1", "version: 0", "line 1: `version` of the file of policy tests must be 1"),
        ("id: wrong,", "id: reads,", "line 4: case `reads` is declared twice"),
        ("id: wrong,", "id: '',", "line 4: `id` of a case must not be blank"),
        ("action: change", "action: fly", "line 4: `action` of case `wrong` cannot be `fly`"),
        ("expect: allow }\n  - { id: s", "expect: yes }\n  - { id: s", "line 4: `expect` of case"),
        ("actor: act-bo, ", "", "line 5: a case lacks `actor`"),
        ("actor: act-bo", "actor: act-bo, group: team", "line 5: a case has no key `group`"),
        ("cases:", "tests:", "line 1: a file of policy tests lacks `cases`"),
    ],
)
def test_bad_file_of_cases_is_refused(old, new, problem):
    with pytest.raises(PolicyInvalid, match=re.escape(problem)):
        read_policy_tests(CASES.replace(old, new))
