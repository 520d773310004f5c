"""Proposals from their creation to the merge: embedded, over HTTP and by the command line.

`LANE_CASES=all`, as `make soak` sets it, adds a server of one process to that of three.
"""

import json
import os

import pytest

from tests.support.proposal_lanes import ADA, BOB, EVE, Refused, proposal_lane

LANES = [
    "embedded",
    "http-3",
    "cli",
    *(["http-1"] if os.environ.get("LANE_CASES") == "all" else []),
]
PROTECTED = [{"branches": ["main"], "require": {"approvals": 1}}]


@pytest.fixture(scope="module", params=LANES)
def lane(request, tmp_path_factory):
    with proposal_lane(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def actors(lane):
    return lane.session()


def insert(code, depth=None):
    value = "" if depth is None else f", depth: {depth}"
    return f'query add() {{ insert Port {{ code: "{code}"{value} }} }}'


def update(code, depth):
    return f'query set() {{ update Port set {{ depth: {depth} }} where code = "{code}" }}'


def delete(code):
    return f'query drop() {{ delete Port where code = "{code}" }}'


def proposed(actors, source="side", depth=7, title="Harbours"):
    """Return the number of a proposal of ada that adds the port NYC."""
    ada = actors(ADA)
    ada.call("branch", source)
    ada.mutate(insert("NYC", depth), source)
    return ada.call("create", source, "main", title)["number"]


def code_of(call):
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.code


# --- the life of a proposal ---------------------------------------------------------------------


def test_proposal_is_created_discussed_approved_and_merged(actors):
    ada, bob = actors(ADA), actors(BOB)
    ada.mutate(insert("OSL", 12))
    ada.call("branch", "side")
    ada.mutate(insert("BGO", 900), "side")
    made = ada.call(
        "create", "side", "main", "Bergen", description="One more.\nPlease look.", reviewers=[BOB]
    )
    assert (made["number"], made["state"], made["title"]) == (1, "open", "Bergen")
    assert (made["author_id"], made["source"], made["target"]) == (ADA, "side", "main")
    assert (made["description"], made["reviewers"]) == ("One more.\nPlease look.", [BOB])

    comment = bob.call("comment", 1, "depth looks wrong", on=("Port", "BGO", "depth"))
    assert comment["on"] == {
        "kind": "node",
        "type": "Port",
        "id": "BGO",
        "property": "depth",
        "outdated": False,
    }
    reply = ada.call("comment", 1, "it is", thread=comment["id"])
    assert (reply["thread"], reply["on"]) == (comment["id"], comment["on"])
    shown = ada.call("show", 1)
    assert [(c["actor_id"], c["body"], c["resolved"]) for c in shown["comments"]] == [
        (BOB, "depth looks wrong", False),
        (ADA, "it is", False),
    ]
    assert (shown["comment_count"], shown["unresolved_count"]) == (2, 1)

    bob.call("review", 1, "request_changes", "9 m, not 900")
    assert bob.call("show", 1)["changes_requested"] == 1
    ada.mutate(update("BGO", 9), "side")
    assert ada.call("resolve", 1, reply["id"])["resolved"] is True
    approval = bob.call("review", 1, "approve", "now it is right")
    assert (approval["verdict"], approval["stale"], approval["counts"]) == ("approve", False, True)
    shown = ada.call("show", 1)
    assert [(r["verdict"], r["stale"], r["counts"]) for r in shown["reviews"]] == [
        ("request_changes", True, False),
        ("approve", False, True),
    ]
    assert (shown["approvals"], shown["changes_requested"]) == (1, 0)
    assert shown["unresolved_count"] == 0

    [change] = ada.call("diff", 1)
    assert (change["op"], change["id"]) == ("insert", "BGO")
    assert change["after"]["properties"] == {"code": "BGO", "depth": 9, "name": None}
    assert ada.call("preview", 1)["counts"] == {
        "node:Port": {"inserted": 1, "updated": 0, "deleted": 0}
    }

    merged = ada.call("merge", 1)
    assert merged["outcome"] in ("merged", "fast_forward")
    assert ada.call("ports") == [{"code": "BGO", "depth": 9}, {"code": "OSL", "depth": 12}]
    shown = bob.call("show", 1)
    assert (shown["state"], shown["closed_by"]) == ("merged", ADA)
    assert shown["merge_commit_id"] == merged["commit"]["graph_commit_id"]
    assert shown["summary"] == {"node:Port": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert merged["commit"]["proposal"]["number"] == 1
    assert merged["commit"]["proposal"]["source_commit_id"] == shown["head_commit_id"]


def test_closed_proposal_is_opened_again_and_merged(actors):
    number, ada = proposed(actors), actors(ADA)
    closed = ada.call("close", number, "not now")
    assert (closed["state"], closed["closed_by"]) == ("closed", ADA)
    assert closed["summary"] == {"node:Port": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert [c["body"] for c in closed["comments"]] == ["not now"]
    assert ada.call("list") == []
    assert [one["number"] for one in ada.call("list", state="closed")] == [number]
    for verb, arguments in (("merge", ()), ("close", ()), ("check", ()), ("preview", ())):
        assert code_of(lambda: ada.call(verb, number, *arguments)) == "proposal_not_open"  # noqa: B023
    assert code_of(lambda: ada.call("edit", number, title="New")) == "proposal_not_open"

    opened = ada.call("reopen", number, "now")
    assert (opened["state"], opened["closed_at"], opened["summary"]) == ("open", None, None)
    assert code_of(lambda: ada.call("reopen", number)) == "proposal_not_closed"
    ada.call("merge", number)
    assert ada.call("ports") == [{"code": "NYC", "depth": 7}]


def test_merged_proposal_accepts_only_comments_and_reviews(actors):
    number, ada = proposed(actors), actors(ADA)
    ada.call("merge", number)
    for verb in ("merge", "close", "check"):
        assert code_of(lambda: ada.call(verb, number)) == "proposal_not_open"  # noqa: B023
    assert code_of(lambda: ada.call("reopen", number)) == "proposal_not_closed"
    bob = actors(BOB)
    assert bob.call("comment", number, "late")["after_merge"] is True
    assert bob.call("review", number, "request_changes")["after_merge"] is True
    shown = bob.call("show", number)
    assert (shown["state"], shown["comment_count"]) == ("merged", 1)


def test_texts_are_edited_by_the_author(actors):
    number, ada = proposed(actors), actors(ADA)
    edited = ada.call("edit", number, title="Ports", description="More", reviewers=[EVE])
    assert (edited["title"], edited["description"], edited["reviewers"]) == (
        "Ports",
        "More",
        [EVE],
    )
    assert [one["number"] for one in ada.call("list", reviewer=EVE)] == [number]
    assert ada.call("list", reviewer=BOB) == []
    assert [one["title"] for one in ada.call("list", author=ADA)] == ["Ports"]
    assert ada.call("list", author=BOB) == []


def test_proposals_are_listed_newest_first_by_state(actors):
    ada = actors(ADA)
    numbers = [proposed(actors, f"side-{n}", n, f"number {n}") for n in range(4)]
    assert numbers == [1, 2, 3, 4]
    ada.call("merge", 1)
    ada.call("close", 2)
    assert [one["number"] for one in ada.call("list")] == [4, 3]
    assert [(one["number"], one["state"]) for one in ada.call("list", state="all")] == [
        (4, "open"),
        (3, "open"),
        (2, "closed"),
        (1, "merged"),
    ]
    assert [one["number"] for one in ada.call("list", state="all", limit=3)] == [4, 3, 2]
    assert [one["number"] for one in ada.call("list", state="merged")] == [1]


def test_events_are_a_feed_in_order(actors):
    number, ada, bob = proposed(actors), actors(ADA), actors(BOB)
    first = ada.call("events")
    assert [event["kind"] for event in first["events"]] == ["created"]
    assert first["caught_up"]
    bob.call("comment", number, "hello")
    bob.call("resolve", number, 2)
    bob.call("resolve", number, 2)  # it is resolved already: no event
    bob.call("resolve", number, 2, resolved=False)
    bob.call("review", number, "approve")
    ada.call("merge", number)
    page = ada.call("events", first["cursor"])
    assert [(e["event"], e["seq"], e["kind"], e["actor_id"]) for e in page["events"]] == [
        (2, 2, "commented", BOB),
        (3, 3, "resolved", BOB),
        (4, 4, "unresolved", BOB),
        (5, 5, "reviewed", BOB),
        *([(6, 6, "merged", ADA)]),
        *([(7, 7, "checked", ADA)]),
    ]
    assert ada.call("events", page["cursor"])["events"] == []
    two = ada.call("events", None, limit=2)
    assert ([e["event"] for e in two["events"]], two["caught_up"]) == ([1, 2], False)
    assert code_of(lambda: ada.call("events", "no cursor")) == "cursor_invalid"


def test_every_event_says_whether_a_server_identified_its_actor(lane, actors):
    number, bob = proposed(actors), actors(BOB)
    bob.call("comment", number, "hello")
    bob.call("review", number, "approve")
    actors(ADA).call("merge", number)
    is_served = lane.name.startswith("http")
    shown = bob.call("show", number)
    marks = [one["verified"] for one in (*shown["comments"], *shown["reviews"])]
    assert [*marks, shown["author_verified"]] == [is_served] * 3
    events = bob.call("events")["events"]
    assert [event["verified"] for event in events] == [is_served] * len(events)
    assert len(events) == 5


# --- refusals -----------------------------------------------------------------------------------


def test_invalid_proposals_are_refused(actors):
    ada = actors(ADA)
    ada.mutate(insert("OSL"))
    ada.call("branch", "side")
    assert code_of(lambda: ada.call("create", "side", "main", "Nothing")) == "proposal_empty"
    ada.mutate(insert("BGO"), "side")
    assert code_of(lambda: ada.call("create", "main", "main", "Same")) == "proposal_same_branch"
    assert code_of(lambda: ada.call("create", "none", "main", "None")) == "branch_not_found"
    for title in (" ", "x" * 201, "two\nlines", "bell\a"):
        assert code_of(lambda: ada.call("create", "side", "main", title)) == "proposal_invalid"  # noqa: B023
    assert code_of(lambda: ada.call("show", 1)) == "proposal_not_found"
    assert ada.call("create", "side", "main", "Bergen")["number"] == 1
    assert code_of(lambda: ada.call("create", "side", "main", "Twice")) == "proposal_exists"
    assert code_of(lambda: ada.call("comment", 1, "  ")) == "proposal_invalid"
    assert code_of(lambda: ada.call("comment", 1, "x" * 65_537)) == "proposal_invalid"
    assert code_of(lambda: ada.call("comment", 1, "x", on=("Harbor",))) == "unknown_type"
    assert code_of(lambda: ada.call("comment", 1, "x", thread=77)) == "comment_not_found"
    assert code_of(lambda: ada.call("resolve", 1, 1)) == "comment_not_found"
    assert [event["kind"] for event in ada.call("events")["events"]] == ["created"]


def test_hostile_texts_are_kept_as_they_are(actors):
    number, ada = proposed(actors), actors(ADA)
    text = "<script>alert(1)</script> \x1b[31m ``` \" ' ; -- ‮ \u2028 $(id)\n"
    ada.call("comment", number, text)
    ada.call("review", number, "comment", text)
    shown = ada.call("show", number)
    assert [comment["body"] for comment in shown["comments"]] == [text]
    assert [review["body"] for review in shown["reviews"]] == [text]


# --- the branches move --------------------------------------------------------------------------


def test_conflict_is_shown_and_decided(actors):
    ada = actors(ADA)
    ada.mutate(insert("OSL", 1))
    ada.call("branch", "side")
    ada.mutate(update("OSL", 2), "side")
    number = ada.call("create", "side", "main", "Oslo")["number"]
    ada.mutate(update("OSL", 3))
    [conflict] = ada.call("preview", number)["conflicts"]
    assert (conflict["entity_id"], conflict["properties"]) == ("OSL", ["depth"])
    assert code_of(lambda: ada.call("merge", number)) == "merge_conflict"
    assert ada.call("show", number)["state"] == "open"
    ada.call("merge", number, resolve="source")
    assert ada.call("ports") == [{"code": "OSL", "depth": 2}]


def test_merge_takes_the_newest_source_and_target(actors):
    number, ada = proposed(actors), actors(ADA)
    ada.mutate(insert("BGO", 1))
    ada.mutate(insert("SVG", 2), "side")
    ada.call("merge", number, delete_branch=True)
    assert [port["code"] for port in ada.call("ports")] == ["BGO", "NYC", "SVG"]
    shown = ada.call("show", number)
    assert (shown["state"], shown["source_state"]) == ("merged", "deleted")
    assert shown["summary"] == {"node:Port": {"inserted": 2, "updated": 0, "deleted": 0}}


def test_proposal_of_a_deleted_branch_cannot_be_merged(actors):
    number, ada = proposed(actors), actors(ADA)
    bob = actors(BOB)
    bob.call("review", number, "approve")
    ada.call("delete_branch", "side")
    shown = ada.call("show", number)
    assert (shown["state"], shown["source_state"]) == ("open", "deleted")
    assert code_of(lambda: ada.call("merge", number)) == "proposal_source_gone"
    assert code_of(lambda: bob.call("review", number, "approve")) == "proposal_source_gone"

    ada.call("branch", "side")
    ada.mutate(insert("HKG", 3), "side")
    shown = ada.call("show", number)
    assert shown["source_state"] == "recreated"
    assert [(r["stale"], r["stale_reason"]) for r in shown["reviews"]] == [
        (True, "source_recreated")
    ]
    assert shown["approvals"] == 0
    ada.call("merge", number)
    assert [port["code"] for port in ada.call("ports")] == ["HKG"]


def test_review_of_a_state_that_is_gone_is_refused(actors):
    number, ada, bob = proposed(actors), actors(ADA), actors(BOB)
    seen = bob.call("show", number)["head_commit_id"]
    ada.mutate(insert("SVG"), "side")
    refused = code_of(lambda: bob.call("review", number, "approve", commit=seen))
    assert refused == "proposal_moved"
    assert bob.call("show", number)["reviews"] == []


# --- protection ---------------------------------------------------------------------------------


def test_protected_branch_changes_only_by_approved_proposals(actors):
    ada, bob = actors(ADA), actors(BOB)
    number = proposed(actors)
    ada.call("protect", PROTECTED)
    assert code_of(lambda: ada.mutate(insert("BGO"))) == "branch_protected"
    assert code_of(lambda: ada.call("merge", number)) == "review_required"
    ada.call("review", number, "approve")  # its author does not count
    assert code_of(lambda: ada.call("merge", number)) == "review_required"
    bob.call("review", number, "approve")
    ada.mutate(insert("SVG"), "side")  # the approval is stale now
    [requirement] = ada.call("show", number)["requirements"]
    assert (requirement["rule"], requirement["satisfied"]) == ("approvals", False)
    assert code_of(lambda: ada.call("merge", number)) == "review_required"
    bob.call("review", number, "approve")
    assert ada.call("show", number)["mergeable"]
    eve = actors(EVE)
    eve.call("review", number, "request_changes")  # one blocks
    assert code_of(lambda: ada.call("merge", number)) == "review_required"
    eve.call("review", number, "approve")
    ada.call("merge", number)
    assert [port["code"] for port in ada.call("ports")] == ["NYC", "SVG"]
    ada.call("unprotect")
    ada.mutate(insert("BGO"))


def test_actor_of_a_commit_cannot_approve_it(actors):
    number, ada, bob = proposed(actors), actors(ADA), actors(BOB)
    bob.mutate(insert("SVG"), "side")
    ada.call("protect", PROTECTED)
    bob.call("review", number, "approve")
    assert code_of(lambda: ada.call("merge", number)) == "review_required"
    ada.call(
        "protect", [{"branches": ["main"], "require": {"approvals": 1, "self_approval": True}}]
    )
    ada.call("merge", number)
    assert [port["code"] for port in ada.call("ports")] == ["NYC", "SVG"]


def test_values_set_by_hand_need_a_merge_by_who_approved(actors):
    ada, bob, eve = actors(ADA), actors(BOB), actors(EVE)
    ada.mutate(insert("OSL", 1))
    ada.call("branch", "side")
    ada.mutate(update("OSL", 2), "side")
    number = ada.call("create", "side", "main", "Oslo")["number"]
    ada.mutate(update("OSL", 3))
    ada.call("protect", PROTECTED)
    bob.call("review", number, "approve")
    entity = {"type": "Port", "id": "OSL"}
    own = json.dumps({"entities": [{**entity, "set": {"depth": 99}}]})
    for actor in (ada, eve):
        with pytest.raises(Refused, match="sets values that no approval covers") as caught:
            actor.call("merge", number, resolve=own)
        assert caught.value.code == "review_required"
    assert ada.call("ports") == [{"code": "OSL", "depth": 3}]
    bob.call("merge", number, resolve=own)
    assert ada.call("ports") == [{"code": "OSL", "depth": 99}]
    assert ada.call("show", number)["state"] == "merged"


def test_stale_approvals_count_where_the_rule_says_so(actors):
    number, ada, bob = proposed(actors), actors(ADA), actors(BOB)
    bob.call("review", number, "approve")
    ada.mutate(insert("SVG"), "side")
    ada.call("protect", [{"branches": ["ma*"], "require": {"approvals": 1, "fresh": False}}])
    ada.call("merge", number)
    assert ada.call("show", number)["state"] == "merged"


def test_only_listed_approvers_count(actors):
    number, ada = proposed(actors), actors(ADA)
    ada.call("protect", [{"branches": ["main"], "require": {"approvals": 1, "from": [EVE]}}])
    actors(BOB).call("review", number, "approve")
    assert code_of(lambda: ada.call("merge", number)) == "review_required"
    actors(EVE).call("review", number, "approve")
    ada.call("merge", number)
    assert ada.call("show", number)["state"] == "merged"


# --- checks -------------------------------------------------------------------------------------


def test_failing_check_prevents_the_merge_until_it_is_fixed(actors):
    number, ada = proposed(actors, depth=500), actors(ADA)
    [run] = ada.call("check", number)
    assert (run["name"], run["status"], run["severity"]) == ("too_deep", "failed", "fail")
    assert (run["message"], run["count"]) == ("ports are shallower than 100 m", 1)
    assert run["findings"] == [
        {
            "row": {"id": "NYC", "depth": 500},
            "entities": [{"kind": "node", "type": "Port", "id": "NYC"}],
        }
    ]
    assert code_of(lambda: ada.call("merge", number)) == "checks_failed"
    shown = ada.call("show", number)
    assert (shown["state"], shown["checks_state"]) == ("open", "failed")
    assert ada.call("ports") == []
    ada.mutate(update("NYC", 50), "side")
    assert ada.call("show", number)["checks_state"] == "stale"
    merged = ada.call("merge", number)
    shown = ada.call("show", number)
    assert [(c["name"], c["status"], c["commit_id"]) for c in shown["checks"]] == [
        ("too_deep", "passed", merged["commit"]["graph_commit_id"])
    ]


def test_check_sees_what_the_target_adds(actors):
    """The state that will land is checked, not the source."""
    ada = actors(ADA)
    ada.mutate(insert("OSL", 50))
    ada.call("branch", "side")
    ada.mutate(insert("BGO", 60), "side")
    number = ada.call("create", "side", "main", "Bergen")["number"]
    assert [run["status"] for run in ada.call("check", number)] == ["passed"]
    ada.mutate(update("OSL", 400))
    assert code_of(lambda: ada.call("merge", number)) == "checks_failed"
    ada.mutate(delete("OSL"))
    ada.call("merge", number)
    assert [port["code"] for port in ada.call("ports")] == ["BGO"]


def test_unknown_required_check_prevents_the_merge(actors):
    number, ada = proposed(actors), actors(ADA)
    ada.call("protect", [{"branches": ["main"], "require": {"checks": ["no_such_check"]}}])
    assert code_of(lambda: ada.call("merge", number)) == "check_unknown"
