"""The change feed: where it begins, how it is cut into pages, how it goes on, how it refuses."""

import pytest

import omnigraph.graph as og
from omnigraph.changes import ChangeFeedGap, ChangeSchemaBoundary, Limits
from omnigraph.changes.errors import CursorRejected
from omnigraph.errors import InvalidInput, NotFound
from tests.support.graphs import NOTE, PORT, SCHEMA, accept_schema, clean_at_once, insert, upsert

ONE = Limits(changes=1)


def notes(graph, *names, branch="main"):
    return insert(graph, NOTE, {name: {"text": name} for name in names}, branch=branch)


def reported(page):
    """Return the blocks of a page: the commit and the ids it touched."""
    return [(block.commit.id, [c.id for c in block.changes]) for block in page.blocks]


def follow(graph, sizes, **asked):
    """Read until the head; return what was reported of each commit, in order."""
    found, pages = {}, []
    page = graph.changes.poll(**asked, limits=sizes)
    scope = {name: asked[name] for name in ("branch", "kinds", "types", "ops") if name in asked}
    while True:
        pages.append(page)
        for block in page.blocks:
            found.setdefault(block.commit.id, []).extend(c.id for c in block.changes)
        if page.next_page_token is not None:
            assert (page.cursor, page.caught_up) == (None, None)
            token = page.next_page_token
            page = graph.changes.poll(**scope, page_token=token, limits=sizes)
        elif page.caught_up:
            return list(found.items()), pages
        else:
            page = graph.changes.poll(**scope, cursor=page.cursor, limits=sizes)


# --- where it begins ---------------------------------------------------------------------------


def test_feed_begins_now_unless_reported_otherwise(graph):
    notes(graph, "a")
    page = graph.changes.poll()
    assert (reported(page), page.caught_up, page.next_page_token) == ([], True, None)
    made = notes(graph, "b")
    page = graph.changes.poll(cursor=page.cursor)
    assert (reported(page), page.caught_up) == ([(made.id, ["b"])], True)


def test_feed_from_the_beginning_tells_every_commit_but_the_first(graph):
    made = [notes(graph, "a"), notes(graph, "b")]
    page = graph.changes.poll(start="beginning")
    assert reported(page) == [(made[0].id, ["a"]), (made[1].id, ["b"])]


def test_feed_begins_after_a_commit(graph):
    first, second = notes(graph, "a"), notes(graph, "b")
    assert reported(graph.changes.poll(start=f"after:{first.id}")) == [(second.id, ["b"])]
    assert reported(graph.changes.poll(start=f"after:{second.id}")) == []


@pytest.mark.parametrize("start", ["", "later", "after", "Now"])
def test_start_nobody_knows_is_refused(graph, start):
    with pytest.raises(InvalidInput) as caught:
        graph.changes.poll(start=start)
    assert caught.value.code == "feed_start_invalid"


def test_start_after_a_commit_of_nowhere_is_refused(graph):
    with pytest.raises(NotFound) as caught:
        graph.changes.poll(start="after:01M7H26EYJTYZ18MHHDC64QB0R")
    assert caught.value.code == "commit_not_found"


def test_start_after_a_commit_of_another_line_is_refused(graph):
    graph.branches.create("work")
    made = notes(graph, "a", branch="work")
    with pytest.raises(InvalidInput) as caught:
        graph.changes.poll(start=f"after:{made.id}")
    assert caught.value.code == "commit_not_on_branch"


@pytest.mark.parametrize("two", [("start", "cursor"), ("cursor", "page_token")])
def test_two_places_to_go_on_from_are_refused(graph, two):
    with pytest.raises(InvalidInput) as caught:
        graph.changes.poll(**dict.fromkeys(two, "now"))
    assert caught.value.code == "feed_position_ambiguous"


def test_branch_nobody_knows_is_refused(graph):
    with pytest.raises(NotFound) as caught:
        graph.changes.poll(branch="nowhere")
    assert caught.value.code == "branch_not_found"


# --- pages -------------------------------------------------------------------------------------


@pytest.fixture
def history(graph):
    """Return what the commits of a graph did, in order."""
    made = [notes(graph, *(f"a{n}" for n in range(5))), insert(graph, PORT, {"p": {"city": "x"}})]
    made += [graph.optimize().commit, notes(graph, *(f"b{n}" for n in range(3)))]
    did = [[f"a{n}" for n in range(5)], ["p"], [], [f"b{n}" for n in range(3)]]
    return [(commit.id, ids) for commit, ids in zip(made, did, strict=True)]


@pytest.mark.parametrize("commits", [1, 2, 3, 128])
def test_pages_of_every_size_tell_the_same(graph, history, commits):
    for size in range(1, 11):
        found, pages = follow(graph, Limits(changes=size, commits=commits), start="beginning")
        assert found == history
        assert all(len(page.blocks) <= commits for page in pages)
        assert all(sum(len(b.changes) for b in page.blocks) <= size for page in pages)


def test_change_that_is_too_large_has_a_page_of_its_own(graph, history):
    found, pages = follow(graph, Limits(bytes=1), start="beginning")
    assert found == history
    assert max(sum(len(b.changes) for b in page.blocks) for page in pages) == 1


def test_page_that_ends_with_a_block_gives_a_cursor(graph, history):
    page = graph.changes.poll(start="beginning", limits=Limits(changes=6))
    assert reported(page) == history[:3], "an empty block costs nothing"
    assert (page.next_page_token, page.caught_up) == (None, False)
    assert reported(graph.changes.poll(cursor=page.cursor)) == history[3:]


def test_page_that_ends_within_a_block_gives_a_page_token(graph, history):
    page = graph.changes.poll(start="beginning", limits=Limits(changes=2))
    assert reported(page) == [(history[0][0], ["a0", "a1"])]
    assert (page.cursor, page.caught_up) == (None, None)
    assert set(page.to_json()) == {"blocks", "next_page_token"}
    rest = graph.changes.poll(page_token=page.next_page_token)
    assert reported(rest) == [(history[0][0], ["a2", "a3", "a4"]), *history[1:]]
    assert set(rest.to_json()) == {"blocks", "cursor", "caught_up"}


def test_empty_blocks_are_reported_and_passed(graph):
    notes(graph, "a")
    notes(graph, "b")
    start = graph.changes.poll()
    made = graph.optimize().commit
    page = graph.changes.poll(cursor=start.cursor)
    assert reported(page) == [(made.id, [])]
    assert page.cursor != start.cursor


def test_commits_nobody_asked_for_are_empty_blocks(graph, history):
    found, _ = follow(graph, ONE, start="beginning", types=["Port"])
    assert found == [(commit_id, ids if ids == ["p"] else []) for commit_id, ids in history]


def test_page_token_keeps_its_cut(graph, history):
    page = graph.changes.poll(start="beginning", limits=Limits(changes=2))
    later = notes(graph, "late")
    rest = graph.changes.poll(page_token=page.next_page_token)
    assert [commit for commit, _ in reported(rest)] == [commit for commit, _ in history]
    assert rest.caught_up is False, "there is a newer head"
    assert reported(graph.changes.poll(cursor=rest.cursor)) == [(later.id, ["late"])]


def test_asking_again_tells_the_same_again(graph, history):
    page = graph.changes.poll(start="beginning", limits=Limits(changes=2))
    for _ in range(2):
        again = og.open(graph.uri).changes.poll(page_token=page.next_page_token)
        assert reported(again)[0] == (history[0][0], ["a2", "a3", "a4"])


def test_feed_of_a_branch_tells_what_it_inherited_and_its_own(graph, history):
    graph.branches.create("work")
    own = notes(graph, "w", branch="work")
    notes(graph, "m")
    found, _ = follow(graph, ONE, branch="work", start="beginning")
    assert found == [*history, (own.id, ["w"])]


def test_merge_is_one_block_of_what_it_brought(graph, history):
    graph.branches.create("work")
    start = graph.changes.poll()
    notes(graph, "w1", branch="work")
    notes(graph, "w2", branch="work")
    own = notes(graph, "m")
    merged = graph.merge("work").commit
    page = graph.changes.poll(cursor=start.cursor)
    assert reported(page) == [(own.id, ["m"]), (merged.id, ["w1", "w2"])]


def test_wire_form_of_a_page(graph):
    made = notes(graph, "a")
    page = graph.changes.poll(start="beginning")
    [block] = page.blocks
    assert page.to_json() == {
        "blocks": [graph.commits.changes(made.id).to_json()],
        "cursor": page.cursor,
        "caught_up": True,
    }
    assert block.to_json() == graph.commits.changes(made.id).to_json()


# --- refusals ----------------------------------------------------------------------------------


@pytest.fixture
def tokens(graph):
    """Return a cursor and a page token of main."""
    notes(graph, "a", "b")
    notes(graph, "c")
    page = graph.changes.poll(start="beginning", limits=ONE)
    return {"cursor": graph.changes.poll().cursor, "page_token": page.next_page_token}


def test_token_for_another_use_is_refused(graph, tokens):
    with pytest.raises(CursorRejected, match="feed-cursor token, not a feed-page"):
        graph.changes.poll(page_token=tokens["cursor"])
    with pytest.raises(CursorRejected, match="feed-page token, not a feed-cursor"):
        graph.changes.poll(cursor=tokens["page_token"])
    with pytest.raises(CursorRejected, match="feed-page token, not a commit-page"):
        graph.commits.changes(graph.snapshot().commit_id, page_token=tokens["page_token"])


@pytest.mark.parametrize("name", ["cursor", "page_token"])
def test_token_of_another_filter_branch_or_graph_is_refused(graph, tokens, name, tmp_path):
    graph.branches.create("work")
    given = {name: tokens[name]}
    with pytest.raises(CursorRejected, match="another filter"):
        graph.changes.poll(**given, types=["Note"])
    with pytest.raises(CursorRejected, match="another branch"):
        graph.changes.poll(**given, branch="work")
    with pytest.raises(CursorRejected, match="another graph"):
        og.init(tmp_path / "twin", SCHEMA).changes.poll(**given)
    with pytest.raises(
        CursorRejected, match=r"^change cursor rejected: it is (damaged|not a valid token)$"
    ):
        graph.changes.poll(**{name: tokens[name][:-1] + "A" + tokens[name][-1]})
    assert graph.changes.poll(**given, kinds=["edge", "node"]).caught_up


def test_cursor_of_a_branch_that_was_made_again_is_refused(graph):
    graph.branches.create("work")
    cursor = graph.changes.poll(branch="work").cursor
    graph.branches.delete("work")
    graph.branches.create("work")
    with pytest.raises(CursorRejected, match="deleted and made again"):
        graph.changes.poll(branch="work", cursor=cursor)


def test_type_nobody_knows_is_refused(graph):
    with pytest.raises(NotFound, match="did you mean `Note`"):
        graph.changes.poll(types=["Noet"])


def test_page_ends_before_a_change_of_the_schema_which_is_refused_next(graph):
    first = notes(graph, "a")
    boundary = accept_schema(graph, SCHEMA.replace("tons:", "weight:"))
    later = notes(graph, "b")
    page = graph.changes.poll(start="beginning")
    assert (reported(page), page.caught_up) == ([(first.id, ["a"])], False)
    with pytest.raises(ChangeSchemaBoundary) as caught:
        graph.changes.poll(cursor=page.cursor)
    assert caught.value.details["graph_commit_id"] == boundary.id
    assert f"after:{boundary.id}" in caught.value.message
    assert reported(graph.changes.poll(start=f"after:{boundary.id}")) == [(later.id, ["b"])]


def swept(graph, keep):
    """Clean up and return the graph as a new process sees it."""
    clean_at_once(graph, keep=keep)
    return og.open(graph.uri)


def test_reclaimed_commit_is_a_gap_that_tells_the_way_on(graph):
    notes(graph, "a")
    cursor = graph.changes.poll().cursor
    lost = [upsert(graph, NOTE, {"a": {"text": str(n)}}) for n in range(4)]
    fresh = swept(graph, keep=2)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes.poll(cursor=cursor)
    assert caught.value.code == "change_feed_gap"
    assert caught.value.details == {
        "cursor": cursor,
        "first_unreadable_commit_id": lost[0].id,
    }
    baseline = fresh.changes.baseline()
    assert baseline.snapshot_commit_id == lost[-1].id
    assert reported(fresh.changes.poll(cursor=baseline.resume_cursor)) == []
    assert reported(fresh.changes.poll(start=f"after:{lost[2].id}")) == [(lost[3].id, ["a"])]


def test_page_ends_before_a_gap(graph):
    start = graph.changes.poll()
    first = notes(graph, "a")
    graph.tags.create("first")
    lost = [upsert(graph, NOTE, {"a": {"text": str(n)}}) for n in range(3)]
    fresh = swept(graph, keep=1)
    page = fresh.changes.poll(cursor=start.cursor)
    assert (reported(page), page.caught_up) == ([(first.id, ["a"])], False)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes.poll(cursor=page.cursor)
    assert caught.value.details["first_unreadable_commit_id"] == lost[0].id


def test_gap_within_a_block_tells_where_the_block_began(graph):
    cursor = graph.changes.poll().cursor
    made = notes(graph, "a", "b", "c")
    page = graph.changes.poll(cursor=cursor, limits=ONE)
    for number in range(3):
        upsert(graph, NOTE, {"a": {"text": str(number)}})
    fresh = swept(graph, keep=1)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes.poll(page_token=page.next_page_token)
    assert caught.value.details == {"cursor": cursor, "first_unreadable_commit_id": made.id}
