"""Native branches of a dataset: the lineages of `__manifest` behind graph branches."""

import lance
import pytest

from tests.support.lances import append, content, create, files, rows


@pytest.fixture
def main(tmp_path):
    """Three versions on main."""
    first = create(tmp_path / "d", rows(a=1))
    return append(append(first, rows(b=2)), rows(c=3))


def branch(main, name):
    """Open a branch as storage/layout.py addresses it."""
    return lance.dataset(f"{main.uri}/tree/{name}")


# commit/branches.py: a branch may start at any commit, whose rows it inherits without a copy.
def test_branch_from_an_older_version_shows_that_version(main):
    main.create_branch("B", 2)
    made = branch(main, "B")
    assert (made.version, made.latest_version) == (2, 2)
    assert content(made) == {"a": 1, "b": 2}
    assert {name for name in files(main.uri) if name.startswith("tree/B/data")} == set()


# commit/publish.py: manifest versions of a branch go on from where it was forked.
def test_writes_on_a_branch_count_on_from_the_fork_and_leave_main_alone(main):
    main.create_branch("B", 2)
    made = append(branch(main, "B"), rows(x=9))
    assert (made.version, content(made)) == (3, {"a": 1, "b": 2, "x": 9})
    assert (lance.dataset(main.uri).version, content(lance.dataset(main.uri))) == (
        3,
        {"a": 1, "b": 2, "c": 3},
    )


# commit/branches.py: a branch of a branch is forked from the handle of its parent's lineage.
def test_branch_of_a_branch_inherits_its_rows(main):
    main.create_branch("B", 2)
    parent = append(branch(main, "B"), rows(x=9))
    parent.create_branch("C", 3)
    child = append(branch(main, "C"), rows(y=8))
    assert content(child) == {"a": 1, "b": 2, "x": 9, "y": 8}
    assert content(branch(main, "B")) == {"a": 1, "b": 2, "x": 9}


# maintain/verify.py, maintain/cleanup.py: all lineages are found through main, nested ones too.
def test_branches_of_branches_are_listed_on_main(main):
    main.create_branch("B", 2)
    branch(main, "B").create_branch("C", 2)
    listed = lance.dataset(main.uri).branches.list()
    assert {name: listed[name]["parent_branch"] for name in listed} == {"B": None, "C": "B"}


# commit/snapshot.py: versions from before the fork are read on the lineage they were made on.
def test_versions_before_the_fork_are_not_opened_on_the_branch(main):
    main.create_branch("B", 2)
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(f"{main.uri}/tree/B", version=1)


# commit/manifest.py: a lineage that is gone is not found, like any dataset.
def test_branch_that_never_was_is_not_found(main):
    with pytest.raises(ValueError, match="was not found"):
        branch(main, "nope")


# commit/branches.py: fork points that were cleaned up are noticed.
def test_branch_from_a_version_that_is_gone_is_refused(main):
    with pytest.raises(OSError, match=r"77\.manifest was not found"):
        main.create_branch("B", 77)


# maintain/cleanup.py removes lineages in any order and tries again later.
def test_branch_with_children_is_not_deleted_until_they_are(main):
    main.create_branch("B", 2)
    branch(main, "B").create_branch("C", 2)
    with pytest.raises(OSError, match=r"Branch B is referenced by \[\(\"C\", 2\)\] versions"):
        main.branches.delete("B")
    assert content(branch(main, "B")) == {"a": 1, "b": 2}
    main.branches.delete("C")
    main.branches.delete("B")
    assert lance.dataset(main.uri).branches.list() == {}
    assert {name for name in files(main.uri) if name.startswith(("tree/", "_refs/"))} == set()


# maintain/cleanup.py: two cleanups at once may both want to delete a lineage.
def test_branch_that_is_gone_cannot_be_deleted_again(main):
    main.create_branch("B", 2)
    main.branches.delete("B")
    with pytest.raises(ValueError, match="Branch B does not exist"):
        main.branches.delete("B")


# commit/branches.py closes a lineage but leaves it to cleanup: removed at once, a writer that still
# holds it would succeed on what nobody can read any more.
def test_handle_that_outlives_its_branch_can_still_write(main):
    main.create_branch("B", 2)
    survivor = append(branch(main, "B"), rows(x=9))
    main.branches.delete("B")
    assert append(survivor, rows(y=1)).version == 4
    assert lance.dataset(main.uri).branches.list() == {}


# commit/branches.py: native names are fresh ULIDs, which Lance takes as they are.
def test_name_of_a_branch_is_its_folder(main):
    name = "01M7GER1X62X52BVNTEH1YTBPZ"
    main.create_branch(name, 3)
    assert {path.split("/")[1] for path in files(main.uri) if path.startswith("tree/")} == {name}
    assert f"_refs/branches/{name}.json" in files(main.uri)
