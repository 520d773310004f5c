"""Proposals under hostile texts, moving branches, lost rights, hidden types and great numbers."""

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.changes.type_delta import ENTITY_BATCH
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.model import Counts
from omnigraph.commit.proposal_log import EventKind, ProposalLog
from omnigraph.dataset_view.version_reader import VersionReader
from omnigraph.errors import NotFound, OmniError
from omnigraph.policy import PolicyDenied
from omnigraph.query.checks import CheckSeverity, QueryCheck, RowCountCheck, StateCheck
from tests.support.many_proposals import settle_proposals
from tests.support.proposal_lanes import TOKENS
from tests.support.serving import serving

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "reviewing.md"
SCHEMA = """
node Port { code: String @key  depth: I64?  secret: String? }
node Hidden { code: String @key  depth: I64? }
"""
ADA, BOB, EVE = "act-ada", "act-bob", "act-eve"
POLICY = """version: 1
groups: { all: [act-ada], some: [act-bob], none: [act-eve] }
rules:
  - { id: all, allow: { actors: { group: all }, actions: [read, export, change] } }
  - id: all-branches
    allow:
      actors: { group: all }
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
  - { id: all-rest, allow: { actors: { group: all }, actions: [invoke_query, admin] } }
  - id: some
    allow:
      actors: { group: some }
      actions: [read]
      types: [Port]
      mask: { Port: [secret] }
"""
CHECKS = 'query none_hidden() @check("hidden") { match { $h: Hidden } return { $h } }\n'


def graph_with_proposal(path, policy=POLICY):
    og.init(path, SCHEMA)
    graph = og.open(path, policy=policy, actor=ADA)
    graph.branches.create("side")
    graph.load({"Port": [{"code": "BGO", "depth": 7, "secret": "x"}]}, branch="side")
    graph.load({"Hidden": [{"code": "H", "depth": 1}]}, branch="side")
    graph.proposals.create("side", into="main", title="Both")
    return graph


def code_of(call):
    with pytest.raises(OmniError) as caught:
        call()
    return caught.value.code


def ports(graph, at="main"):
    return graph.query(
        "query q() { match { $p: Port } return { $p.code as code } order { code } }", at=at
    ).rows


# --- hidden types -------------------------------------------------------------------------------


@pytest.fixture(params=["embedded", "http"])
def views(request, tmp_path):
    """Return a function from actors to the graph as they see it."""
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "checks.gq").write_text(CHECKS)
    graph = graph_with_proposal(tmp_path / "g")
    if request.param == "embedded":
        checks = og.read_checks(tmp_path / "queries")
        yield lambda actor: graph.as_actor(actor).with_checks(checks)
        return
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = [f"--graph=g={graph.uri}", f"--policy={tmp_path / 'policy.yaml'}"]
    words.append(f"--queries={tmp_path / 'queries'}")
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tmp_path / "tokens.json")}
    with serving(*words, environment=tokens) as server:
        yield lambda actor: og.connect(server.url, token=TOKENS[actor], graph="g")


def test_hidden_types_are_absent_from_all_of_a_proposal(views):
    ada, bob = views(ADA), views(BOB)
    proposal = ada.proposals.get(1)
    for place in (("Hidden", "H"), ("Hidden",), ("Port", "BGO", "secret")):
        thread = proposal.comment("about it", on=place)
        proposal.comment("a reply", thread=thread.id)
        proposal.resolve(thread)
    shown = proposal.comment("seen", on=("Port", "BGO", "depth"))
    assert [run.status for run in proposal.run_checks()] == ["failed"]

    seen = bob.proposals.get(1)
    text = json.dumps(seen.to_json())
    assert "Hidden" not in text
    assert "secret" not in text
    assert [comment.id for comment in seen.comments] == [shown.id]
    assert (seen.to_json()["comment_count"], seen.to_json()["unresolved_count"]) == (1, 1)
    assert (seen.checks, seen.to_json()["checks_state"]) == ((), "none")
    [listed] = bob.proposals.list()
    assert (listed.comment_count, listed.unresolved_count, listed.checks_state) == (1, 1, "none")
    [change] = seen.diff()
    assert (change.type, change.id) == ("Port", "BGO")
    assert change.after.properties == {"code": "BGO", "depth": 7}
    events = json.dumps(bob.proposals.events().to_json())
    assert "Hidden" not in events
    assert "secret" not in events
    assert "failed" not in events
    assert code_of(seen.preview) == "forbidden"  # as a merge that is only tried

    hidden = [c.id for c in ada.proposals.get(1).comments if c.on.type == "Hidden"]
    assert len(hidden) == 4
    for id_ in hidden:
        assert code_of(lambda: seen.comment("x", thread=id_)) == "comment_not_found"  # noqa: B023
        assert code_of(lambda: seen.resolve(id_)) == "comment_not_found"  # noqa: B023
    assert code_of(lambda: seen.comment("x", on=("Hidden", "H"))) == "unknown_type"
    assert code_of(lambda: seen.comment("x", on=("Port", "BGO", "secret"))) == "unknown_property"

    proposal.close()
    assert set(ada.proposals.get(1).counts) == {"node:Port", "node:Hidden"}
    assert set(bob.proposals.get(1).counts) == {"node:Port"}
    assert "Hidden" not in json.dumps(bob.proposals.events().to_json())


def test_a_check_of_hidden_types_does_not_name_them(tmp_path):
    rights = "actors: { group: some }, actions"
    policy = (
        POLICY.split("  - id: some")[0]
        + f"""  - id: some
    allow: {{ {rights}: [read, change], types: [Port] }}
  - {{ id: some-merge, allow: {{ {rights}: [branch_merge] }} }}
"""
    )
    graph = graph_with_proposal(tmp_path / "g", policy)
    graph.branches.create("ports", from_="main")
    graph.load({"Port": [{"code": "BGO", "depth": 7}]}, branch="ports")
    number = graph.proposals.create("ports", title="A port").number
    text = CHECKS + 'query deep() @check("deep") { match { $p: Port  $p.depth > 9 } return { $p } }'
    (tmp_path / "checks.gq").write_text(text)
    checks = og.read_checks(tmp_path / "checks.gq")
    seen = graph.as_actor(BOB).with_checks(checks).proposals.get(number)
    hidden, deep = seen.run_checks()
    assert (hidden.status, hidden.types) == ("error", ("node:Port",))
    assert (deep.status, deep.types) == ("passed", ("node:Port",))
    with pytest.raises(OmniError) as caught:
        seen.merge()
    assert caught.value.code == "checks_failed"
    assert "Hidden" not in repr((hidden, deep, caught.value.message, caught.value.details))
    [run, _] = graph.with_checks(checks).proposals.get(number).run_checks()
    assert (run.status, run.types) == ("passed", ("node:Hidden",))


def test_a_change_of_hidden_properties_only_is_not_counted(views):
    ada, bob = views(ADA), views(BOB)
    ada.mutate('query m() { delete Hidden where code = "H" }', branch="side")
    ada.proposals.get(1).merge()
    ada.mutate('query m() { update Port set { secret: "y" } where code = "BGO" }', branch="side")
    ada.proposals.create("side", title="Secret").close()
    ada.load({"Port": [{"code": "OSL", "secret": "z"}]}, branch="side")
    ada.proposals.get(2).reopen().close()
    assert ada.proposals.get(2).counts["node:Port"] == Counts(inserted=1, updated=1)
    assert bob.proposals.get(2).counts == {"node:Port": Counts(inserted=1)}
    assert bob.proposals.get(1).counts == {"node:Port": Counts(inserted=1)}
    ada.mutate('query m() { delete Port where code = "OSL" }', branch="side")
    ada.proposals.get(2).reopen().close()
    assert ada.proposals.get(2).counts == {"node:Port": Counts(updated=1)}
    assert bob.proposals.get(2).counts == {}
    assert [proposal.state for proposal in bob.proposals.list(state="all")] == ["closed", "merged"]


BY_BRANCH = """version: 1
protected_branches: [main]
groups: { all: [act-ada], some: [act-bob] }
rules:
  - { id: all, allow: { actors: { group: all }, actions: [read, change] } }
  - id: all-branches
    allow: { actors: { group: all }, actions: [branch_create, branch_delete, branch_merge] }
  - id: some-MORE
    allow: { actors: { group: some }, actions: [read], branch_scope: MORE }
  - id: some-LESS
    allow:
      actors: { group: some }
      actions: [read]
      branch_scope: LESS
      types: [Port]
      mask: { Port: [secret] }
"""


@pytest.mark.parametrize(
    ("more", "less"), [("protected", "unprotected"), ("unprotected", "protected")]
)
def test_what_one_of_both_branches_hides_is_absent(tmp_path, more, less):
    """Bob sees all of main and little of other branches, or the other way round."""
    policy = BY_BRANCH.replace("MORE", more).replace("LESS", less)
    graph = graph_with_proposal(tmp_path / "g", policy)
    graph.load({"Hidden": [{"code": "OLD"}]})
    proposal, bob = graph.proposals.get(1), graph.as_actor(BOB)
    for place in (("Hidden", "H"), ("Hidden",), ("Port", "BGO", "secret")):
        proposal.comment("about it", on=place)
    shown = proposal.comment("seen", on=("Port", "BGO", "depth"))

    seen = bob.proposals.get(1)
    assert [comment.id for comment in seen.comments] == [shown.id]
    assert [change.id for change in seen.diff()] == ["BGO"]
    assert [change.id for change in bob.diff("main", "side")] == ["BGO"]  # OLD is hidden, not gone
    assert [change.id for change in bob.diff("side", "main")] == ["BGO"]
    assert "Hidden" not in json.dumps(bob.proposals.events().to_json())
    assert code_of(lambda: seen.comment("x", on=("Hidden", "H"))) == "unknown_type"
    assert code_of(lambda: seen.comment("x", on=("Port", "BGO", "secret"))) == "unknown_property"

    proposal.close()
    assert set(bob.proposals.get(1).counts) == {"node:Port"}
    graph.branches.delete("side")  # what the rules say of its name still holds
    assert [comment.id for comment in bob.proposals.get(1).comments] == [shown.id]
    assert len(graph.proposals.get(1).comments) == 4


def test_actor_without_rights_sees_and_does_nothing(views):
    eve = views(EVE)
    with suppress(PolicyDenied):  # by a server; an embedded graph shows that there is nothing
        assert eve.proposals.list() == []
        assert eve.proposals.events().events == ()
    for call in (
        lambda: eve.proposals.get(1),
        lambda: eve.proposals.get(2),
        lambda: eve.proposals.create("side", into="main", title="Mine"),
    ):
        assert code_of(call) in ("forbidden", "proposal_not_found")
    bob = views(BOB)
    found = bob.proposals.get(1)
    for call in (found.merge, found.close, lambda: found.edit(title="Other")):
        assert code_of(call) == "forbidden"
    assert views(ADA).proposals.get(1).state == "open"
    assert code_of(lambda: bob.protection.set([{"branches": ["main"]}])) == "forbidden"


# --- rights that change -------------------------------------------------------------------------

TEAM = """version: 1
groups: { team: [act-ada, act-bob], reviewers: [REVIEWERS] }
rules:
  - { id: all, allow: { actors: { group: team }, actions: [read, change, admin] } }
  - id: all-branches
    allow: { actors: { group: team }, actions: [branch_create, branch_delete, branch_merge] }
protect: { branches: [main], require: { approvals: 1, from: reviewers } }
"""


def test_approval_of_a_reviewer_who_loses_the_right_does_not_count(tmp_path):
    graph = graph_with_proposal(tmp_path / "g", TEAM.replace("REVIEWERS", "act-bob"))
    graph.as_actor(BOB).proposals.get(1).review("approve")
    assert graph.proposals.get(1).mergeable
    later = og.open(graph.uri, policy=TEAM.replace("REVIEWERS", "act-cy"), actor=ADA)
    found = later.proposals.get(1)
    assert not found.mergeable
    assert [review.verdict for review in found.reviews] == ["approve"]
    assert code_of(found.merge) == "review_required"
    assert og.open(graph.uri).query("query q() { match { $p: Port } return { $p } }").rows == []


def test_author_who_loses_all_rights_keeps_the_proposal(tmp_path):
    graph = graph_with_proposal(tmp_path / "g", TEAM.replace("REVIEWERS", "act-bob"))
    without = TEAM.replace("act-ada, act-bob", "act-bob").replace("REVIEWERS", "act-bob")
    bob = og.open(graph.uri, policy=without, actor=BOB)
    assert code_of(lambda: bob.as_actor(ADA).proposals.get(1)) == "proposal_not_found"
    proposal = bob.proposals.get(1)
    assert proposal.author == ADA
    proposal.review("approve")
    assert proposal.merge().commit.actor == BOB


def test_group_that_no_policy_knows_lets_nobody_approve(tmp_path):
    graph = graph_with_proposal(tmp_path / "g", None)
    graph.protection.set([{"branches": ["main"], "require": {"approvals": 1, "from": "team"}}])
    graph.as_actor(BOB).proposals.get(1).review("approve")
    found = graph.proposals.get(1)
    assert code_of(found.merge) == "review_required"
    [requirement] = found.requirements
    assert "no group 'team'" in requirement.message


# --- texts --------------------------------------------------------------------------------------

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\x1b]0;owned\x07\x1b[2J\r\n\t\x08",
    "‮txt.exe ﷽ 👩‍👩‍👧‍👦 \u0000"[:-1],
    "'; DROP TABLE x; -- {{7*7}} ${7*7} %s",
    "\u2028\u2029\ufeff\x85",
    "=cmd|' /C calc'!A0",
    "x" * 65_536,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_kept_as_it_is(tmp_path, text):
    graph = graph_with_proposal(tmp_path / "g")
    found = graph.proposals.get(1)
    found.edit(description=text)
    found.comment(text, on=("Port", text[:4096]))
    found.review("comment", text)
    shown = og.open(graph.uri, policy=POLICY, actor=ADA).proposals.get(1)
    assert shown.description == text
    assert [(c.body, c.on.id) for c in shown.comments] == [(text, text[:4096])]
    assert [review.body for review in shown.reviews] == [text]
    assert graph.verify().ok


@pytest.mark.parametrize("text", ["x" * 1_048_576, "\x00", "a\x00b", "\ud800", 7, None, b"x"])
def test_text_that_cannot_be_stored_is_refused_and_changes_nothing(tmp_path, text):
    graph = graph_with_proposal(tmp_path / "g")
    found = graph.proposals.get(1)
    before = graph.proposals.events().to_json()
    for call in (
        lambda: found.comment(text),
        lambda: found.review("approve", text),
        lambda: found.edit(title=text if text is not None else 7),
        lambda: found.edit(description=text if text is not None else 7),
        lambda: graph.proposals.create("side", into="main", title=text),
    ):
        assert code_of(call) == "proposal_invalid"
    assert graph.proposals.events().to_json() == before


def test_anchors_of_any_shape_are_refused(tmp_path):
    found = graph_with_proposal(tmp_path / "g").proposals.get(1)
    for on in ((), ("Port", 1), ("Port", "a", "b", "c"), {"id": "x"}, {"type": "Port", "x": 1}, 7):
        assert code_of(lambda: found.comment("x", on=on)) == "proposal_invalid"  # noqa: B023
    assert code_of(lambda: found.comment("x", on=("Port", "y" * 4097))) == "proposal_invalid"
    assert code_of(lambda: found.comment("x", on=("Port", "BGO", "nope"))) == "unknown_property"


def test_wrong_use_is_explained(views):
    graph = views(ADA)
    found = graph.proposals.get(1)
    thread = found.comment("first")
    assert found.comment("reply", thread=thread).thread == thread.id
    for call in (
        lambda: graph.proposals.get("1"),
        lambda: found.comment("x", thread=str(thread.id)),
        lambda: found.resolve(str(thread.id)),
        lambda: found.resolve(None),
        lambda: found.review("approved"),
        lambda: graph.proposals.list(state="opened"),
    ):
        assert code_of(call) == "proposal_invalid"
    assert code_of(lambda: graph.proposals.events("2x")) == "cursor_invalid"
    assert graph.proposals.events(1).events[0].event == 2
    assert code_of(lambda: graph.proposals.list(limit=-1)) == "limit_invalid"


NO_NUMBERS = ["", "²", "٣", "-1", "1e3", "9" * 19, "9" * 5_000, 1.5]


def test_numbers_cursors_and_page_tokens_of_any_size_are_refused(views):
    graph = views(ADA)
    for number in (0, -1, 10**18, 2**63, 2**64, 10**30):
        assert code_of(lambda: graph.proposals.get(number)) == "proposal_not_found"  # noqa: B023
    for text in NO_NUMBERS:
        for call, code in (
            (lambda: graph.proposals.events(text), "cursor_invalid"),  # noqa: B023
            (lambda: graph.proposals.page("all", page_token=text), "page_token_invalid"),  # noqa: B023
        ):
            assert code_of(call) == code, text
    for limit in ("x", 0, -1, 10**30, 1.5):
        for listed in (
            lambda: graph.proposals.page(limit=limit),  # noqa: B023
            lambda: graph.proposals.events(limit=limit),  # noqa: B023
        ):
            assert code_of(listed) in ("limit_invalid", "body_invalid"), limit
    for call in (
        lambda: graph.proposals.list(limit="5"),
        lambda: graph.proposals.get(1).edit(reviewers=7),
        lambda: graph.proposals.create(7, title="x"),
        lambda: graph.proposals.create("side", into=7, title="x"),
    ):
        assert code_of(call) in ("proposal_invalid", "limit_invalid")
    assert code_of(lambda: graph.proposals.events(proposal=10**30)) in (
        "proposal_not_found",
        "limit_invalid",
    )
    assert graph.proposals.page("all", page_token="2").proposals[0].number == 1
    assert graph.proposals.events("9" * 18).cursor == "9" * 18


@pytest.mark.parametrize("name", ["", " \t", "x" * 201, "a\x00", "a\x1b[31m", "a\nb", "\u202ea"])
def test_actor_whose_name_cannot_be_shown_takes_no_part(tmp_path, name):
    graph = graph_with_proposal(tmp_path / "g", None).as_actor(name)
    before, found = graph.proposals.events().to_json(), graph.proposals.get(1)
    for call in (
        lambda: found.review("approve"),
        lambda: found.comment("x"),
        lambda: found.edit(title="x"),
        found.merge,
        found.close,
        found.run_checks,
    ):
        assert code_of(call) == "actor_invalid"
    assert graph.proposals.events().to_json() == before
    assert [row["code"] for row in ports(graph)] == []


def test_event_that_follows_while_a_page_is_read_is_delivered_once(tmp_path, monkeypatch):
    graph = graph_with_proposal(tmp_path / "g")
    found, plain = graph.proposals.get(1), ProposalLog.events_of
    meanwhile = [lambda: found.comment("second")]

    def events_of(self, number, state=None):
        if meanwhile:
            meanwhile.pop()()
        return plain(self, number, state)

    monkeypatch.setattr(ProposalLog, "events_of", events_of)
    first = graph.proposals.events(proposal=1)
    second = graph.proposals.events(first.cursor, proposal=1)
    assert [e.event for page in (first, second) for e in page.events] == [1, 2]
    assert second.caught_up


def test_payloads_of_events_are_those_documented(tmp_path):
    graph = graph_with_proposal(tmp_path / "g", None)
    checks = [StateCheck("ports", RowCountCheck("node:Port", minimum=1))]
    found = graph.with_checks(checks).proposals.get(1)
    thread = found.comment("deep", on=("Port", "BGO", "depth"))
    found.comment("no", thread=thread)
    plain = found.comment("plain")
    for comment in (thread, plain):
        found.resolve(comment)
        found.resolve(comment, resolved=False)
    for members in ({"title": "New"}, {"description": "More"}, {"reviewers": [BOB]}):
        found.edit(**members)
    found.review("comment", "hm")
    for note in ("why", None):
        found.close(note)
        found.reopen(note)
    found.merge()

    documented = {}
    for kinds, cell in re.findall(
        r"^\| (`[a-z`, ]+`) \| (.*`.*) \|$", GUIDE.read_text(), re.MULTILINE
    ):
        optional = set(re.findall(r"\(`(\w+)`", cell))
        members = set(re.findall(r"`(\w+)`", re.sub(r": `kind`.*?\)", ")", cell)))
        documented |= dict.fromkeys(re.findall(r"\w+", kinds), (members - optional, members))
    seen = {}
    for event in graph.proposals.events().events:
        needed, allowed = documented[event.kind]
        assert needed <= event.payload.keys() <= allowed, event
        seen.setdefault(str(event.kind), set()).update(event.payload)
    assert seen == {str(kind): documented[kind][1] for kind in EventKind}


def test_page_of_few_among_many_settled_proposals_reads_their_numbers_once(tmp_path, monkeypatch):
    graph = graph_with_proposal(tmp_path / "g", None)
    settle_proposals(graph, 1_000)
    scans, plain = [], LineageState.rows

    def noting(self, condition, **options):
        scans.append(condition)
        return plain(self, condition, **options)

    monkeypatch.setattr(LineageState, "rows", noting)
    assert graph.proposals.list("all", author="act-nobody", limit=1) == []
    assert len(scans) <= 12  # the numbers, and blocks of 2, 4, 8 … proposals
    scans.clear()
    page = graph.proposals.page("closed", limit=3)
    assert [one.number for one in page.proposals] == [1_000, 998, 996]
    assert len(scans) <= 3
    after = graph.proposals.page("closed", limit=3, page_token=page.next_page_token)
    assert [one.number for one in after.proposals] == [994, 992, 990]
    scans.clear()
    assert [e.event for e in graph.proposals.events("1", limit=500).events] == [*range(2, 502)]
    assert len(scans) <= 2  # the events, and their proposals


def test_checks_are_read_from_files(tmp_path):
    graph = graph_with_proposal(tmp_path / "g")
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "hidden.gq").write_text(CHECKS)
    checks = og.read_checks(str(tmp_path / "checks"))
    assert [check.name for check in checks] == ["none_hidden"]
    assert checks == og.read_checks(tmp_path / "checks" / "hidden.gq")
    assert code_of(graph.with_checks(checks).proposals.get(1).merge) == "checks_failed"
    for wrong in (str(tmp_path / "checks"), [CHECKS], [None]):
        assert code_of(lambda: graph.with_checks(wrong)) == "check_invalid"  # noqa: B023
    assert code_of(lambda: og.read_checks(tmp_path / "none")) == "stored_queries_missing"


def test_check_that_cannot_run_prevents_the_merge_and_is_named(tmp_path):
    graph = graph_with_proposal(tmp_path / "g")
    rule = QueryCheck("query gone() { match { $x: Nope } return { $x } }")
    found = graph.with_checks([StateCheck("gone", rule, CheckSeverity.WARN)]).proposals.get(1)
    [run] = found.run_checks()
    assert (run.status, run.is_blocking) == ("error", True)
    with pytest.raises(OmniError, match="1 check failed, nothing was published: gone: the check"):
        found.merge()
    assert ports(graph) == []


@pytest.mark.parametrize("required", [False, True])
def test_check_that_the_target_requires_must_pass_whatever_its_severity(tmp_path, required):
    graph = graph_with_proposal(tmp_path / "g")
    if required:
        graph.protection.set([{"branches": ["main"], "require": {"checks": ["few"]}}])
    rule = RowCountCheck("node:Port", maximum=0)
    found = graph.with_checks([StateCheck("few", rule, CheckSeverity.WARN)]).proposals.get(1)
    [run] = found.run_checks()
    assert run.status == ("failed" if required else "warned")
    if required:
        assert code_of(found.merge) == "checks_failed"
    else:
        found.merge()
    assert len(ports(graph)) == (not required)


def test_comments_follow_renames(tmp_path):
    graph = graph_with_proposal(tmp_path / "g")
    found = graph.proposals.get(1)
    found.comment("deep", on=("Port", "BGO", "depth"))
    found.comment("type", on=("Hidden",))
    renamed = (
        SCHEMA.replace("node Port {", 'node Harbour @rename_from("Port") {')
        .replace("depth: I64?  secret", 'metres: I64? @rename_from("depth")  secret')
        .replace("node Hidden { code: String @key  depth: I64? }", "")
    )
    graph.schema.apply(renamed, branch="side", allow_data_loss=True)
    graph.merge("side")
    shown = [(c.on.type, c.on.id, c.on.property, c.on.outdated) for c in found.refresh().comments]
    assert shown == [("Harbour", "BGO", "metres", False), ("Hidden", None, None, True)]


EVOLVED = """
node Harbour @rename_from("Port") {
  code: String @key  depth: I64?  age: I64 @default(3)  note: String? @unique
}
edge Leads: Harbour -> Harbour { since: I64? }
"""
EARLIER = """
node Port { code: String @key  depth: I32?  secret: String?  photo: Blob?  note: String? }
node Hidden { code: String @key }
"""


def test_proposal_of_a_schema_change_shows_its_plan_and_what_it_does_to_the_data(tmp_path):
    graph = og.init(tmp_path / "g", EARLIER, actor=ADA)
    ports = [{"code": f"P{n}", "depth": n, "secret": "x" if n % 2 else None} for n in range(5)]
    graph.load({"Port": [*ports, {"code": "Q", "photo": b"bytes"}], "Hidden": [{"code": "H"}]})
    graph.branches.create("side")
    graph.schema.apply(EVOLVED, branch="side", allow_data_loss=True)
    proposal = graph.proposals.create("side", into="main", title="Evolve")
    graph.load({"Port": [{"code": "NEW", "secret": "y"}]})  # of the target, not of the source
    plan = proposal.preview().schema
    effects = {
        (step["kind"], step.get("property_name", step.get("name", step.get("type_name")))): (
            step.get("affected"),
            step.get("effect"),
        )
        for step in plan["steps"]
    }
    assert effects == {
        ("rename_type", None): (None, None),
        ("add_property", "age"): (7, "7 entities get the default"),
        ("widen_property", "depth"): (7, "7 values are converted"),
        ("drop_property", "secret"): (3, "3 values are dropped"),
        ("drop_property", "photo"): (1, "1 value is dropped"),
        ("add_constraint", "Harbour"): (7, "7 entities are checked"),
        ("add_type", "Leads"): (None, None),
        ("drop_type", "Hidden"): (1, "1 entity is dropped"),
    }
    assert plan["supported"]
    assert plan["step_count"] == len(plan["steps"]) == len(plan["descriptions"])
    assert "drop property node Harbour.secret (soft): 3 values are dropped" in plan["descriptions"]
    graph.branches.create("data")
    graph.load({"Port": [{"code": "Z"}]}, branch="data")
    assert graph.proposals.create("data", into="main", title="Data").preview().schema is None


# --- many changes -------------------------------------------------------------------------------

MANY = 20_000


@pytest.fixture
def rows_read(monkeypatch):
    """Return the numbers of entities whose values are read."""
    read, plain = [], VersionReader.entities_at

    def noting(self, addresses):
        rows = plain(self, addresses)
        read.append(rows.num_rows)
        return rows

    monkeypatch.setattr(VersionReader, "entities_at", noting)
    return read


def many_changes(path):
    """Return a proposal that changes many entities of several types."""
    graph = og.init(path, EARLIER, actor=ADA)
    codes = [f"P{n:05}" for n in range(MANY)]
    graph.load({"Port": pa.table({"code": codes[: MANY // 2], "secret": ["old"] * (MANY // 2)})})
    graph.load({"Hidden": [{"code": "H"}, {"code": "I"}]})
    graph.branches.create("side")
    graph.optimize(branch="side")
    graph.load({"Port": pa.table({"code": codes[MANY // 2 :]})}, branch="side")
    graph.load({"Port": [{"code": "Q", "photo": b"bytes"}]}, branch="side")
    for text in (
        'update Port set { depth: 7 } where code < "P00010"',
        'update Port set { secret: "new" } where code = "P00011"',
        'update Port set { secret: "old" } where code = "P00011"',
        'delete Port where code < "P00003"',
        'delete Hidden where code = "H"',
    ):
        graph.mutate(f"query q() {{ {text} }}", branch="side")
    return graph.proposals.create("side", into="main", title="Many")


def test_summary_of_many_changes_reads_only_what_may_be_updated(tmp_path, rows_read):
    proposal = many_changes(tmp_path / "g")
    rows_read.clear()
    counts = proposal.close().counts
    assert counts == {
        "node:Port": Counts(inserted=MANY // 2 + 1, updated=7, deleted=3),
        "node:Hidden": Counts(deleted=1),
    }
    assert sum(rows_read) <= 2 * 9  # both states of the updated ones, and of one that is as before
    opened = proposal.reopen()
    listed = Counter((f"{c.kind}:{c.type}", str(c.op)) for c in opened.diff())
    assert listed == {
        ("node:Port", "insert"): MANY // 2 + 1,
        ("node:Port", "update"): 7,
        ("node:Port", "delete"): 3,
        ("node:Hidden", "delete"): 1,
    }
    assert opened.preview().merge.counts == counts


def test_many_changes_are_read_as_far_as_they_are_used(tmp_path, rows_read):
    proposal = many_changes(tmp_path / "g")
    rows_read.clear()
    changes = proposal.diff(types=["Port"])
    assert next(changes).id == "P00000"
    assert sum(rows_read) <= 2 * ENTITY_BATCH
    ids = [change.id for change in changes]
    assert ids == sorted(ids, key=str.encode)
    assert len(ids) == MANY // 2 + 1 + 7 + 3 - 1


# --- branches -----------------------------------------------------------------------------------


def test_target_that_is_created_again_is_merged_into_as_it_is(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, actor=ADA)
    graph.branches.create("target")
    graph.branches.create("side")
    graph.load({"Port": [{"code": "BGO"}]}, branch="side")
    found = graph.proposals.create("side", into="target", title="One")
    graph.branches.delete("target")
    assert code_of(found.merge) == "branch_not_found"
    assert found.refresh().state == "open"
    [requirement] = found.requirements
    assert (requirement.rule, requirement.satisfied, found.mergeable) == ("target", False, False)
    assert "branch 'target' was deleted" in requirement.message
    assert [change.id for change in found.diff()] == ["BGO"]
    graph.load({"Port": [{"code": "OSL"}]})
    graph.branches.create("target")
    assert found.refresh().mergeable
    found.merge()
    assert [row["code"] for row in ports(graph, "target")] == ["BGO", "OSL"]
    assert found.refresh().state == "merged"


def test_open_proposal_of_two_deleted_branches_shows_its_changes(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, actor=ADA)
    graph.branches.create("target")
    graph.branches.create("side")
    graph.load({"Port": [{"code": "BGO"}]}, branch="side")
    found = graph.proposals.create("side", into="target", title="One")
    graph.branches.delete("side")
    graph.branches.delete("target")
    assert [change.id for change in found.refresh().diff()] == ["BGO"]
    assert found.close().counts == {"node:Port": Counts(inserted=1)}


def test_source_that_was_merged_otherwise_is_settled_without_a_commit(tmp_path):
    graph = graph_with_proposal(tmp_path / "g")
    graph.merge("side")
    before = [commit.id for commit in graph.commits.list()]
    assert graph.proposals.get(1).merge().outcome == "already_up_to_date"
    shown = graph.proposals.get(1)
    assert (shown.state, shown.merge_commit, dict(shown.counts)) == ("merged", None, {})
    assert [commit.id for commit in graph.commits.list()] == before
    assert code_of(shown.merge) == "proposal_not_open"


def test_merged_and_closed_proposals_answer_after_their_branch_and_history_are_gone(tmp_path):
    graph = graph_with_proposal(tmp_path / "g")
    graph.branches.create("other")
    graph.load({"Port": [{"code": "X"}, {"code": "Y"}]}, branch="other")
    graph.proposals.create("other", into="main", title="Other").close()
    graph.proposals.get(1).merge(delete_branch=True)
    graph.branches.delete("other")
    graph.load({"Port": [{"code": "Z"}]})
    graph.cleanup(keep=1, confirm=True)
    for number, state, inserted in ((1, "merged", 1), (2, "closed", 2)):
        shown = og.open(graph.uri, policy=POLICY, actor=ADA).proposals.get(number)
        assert shown.state == state
        assert shown.counts["node:Port"].inserted == inserted
    assert graph.verify().ok


def test_open_proposal_answers_after_its_branch_was_deleted_and_cleaned_up(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, actor=ADA)
    graph.load({"Port": [{"code": "BGO", "depth": 1}]})
    graph.branches.create("side")
    graph.load({"Port": [{"code": "BGO", "depth": 2}]}, mode="merge", branch="side")
    graph.proposals.create("side", into="main", title="Kept")
    for depth in (3, 4, 5):
        graph.load({"Port": [{"code": "BGO", "depth": depth}]}, mode="merge")
    graph.branches.delete("side")
    graph.cleanup(keep=1, confirm=True)
    graph.optimize()
    graph.cleanup(keep=1, confirm=True)
    kept = og.open(graph.uri, actor=ADA).proposals.get(1)
    assert kept.state == "open"
    [change] = kept.diff()
    depths = [image.properties["depth"] for image in (change.before, change.after)]
    assert (change.id, depths) == ("BGO", [1, 2])
    assert kept.close().counts["node:Port"].updated == 1
    with pytest.raises(NotFound, match="were deleted with branch 'side'"):
        list(kept.diff())
    assert graph.verify().ok


def test_archive_with_history_has_the_proposals(tmp_path):
    graph = graph_with_proposal(tmp_path / "g", None)
    found = graph.proposals.get(1)
    found.comment("deep", on=("Port", "BGO", "depth"))
    found.review("approve")
    found.close("later")
    graph.branches.create("other")
    graph.load({"Port": [{"code": "X"}]}, branch="other")
    graph.proposals.create("other", into="main", title="Other").merge()
    found.reopen()
    graph.export_archive(tmp_path / "archive", history=True)
    og.import_archive(tmp_path / "archive", tmp_path / "copy")
    copy = og.open(tmp_path / "copy", actor=ADA)
    assert copy.proposals.events().to_json() == graph.proposals.events().to_json()
    for number in (1, 2):
        one, other = (g.proposals.get(number).to_json() for g in (copy, graph))
        assert one == other
    [change] = copy.proposals.get(1).diff(types=["Port"])
    assert change.id == "BGO"
    copy.proposals.get(1).merge()
    copy.branches.create("more")
    copy.load({"Port": [{"code": "Y"}]}, branch="more")
    assert copy.proposals.create("more", into="main", title="More").number == 3
    assert copy.verify().ok
