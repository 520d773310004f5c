"""Which names branches and tags may have."""

import pytest

from omnigraph.commit.model import MAX_NAME_LENGTH, check_ref_name, is_commit_id
from omnigraph.errors import InvalidInput

COMMIT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "feature/x",
        "feature/x/y",
        "v1.2-rc_3",
        "Ünïcode",
        "日本",
        "0",
        "-",
        "a.b",
        "mainly",
        "main/sub",
        "a" * MAX_NAME_LENGTH,
        "locked",
        "x.lock/y",
        COMMIT.lower(),
        COMMIT[:-1],
        "2026-11-15",
    ],
)
def test_usable_name_is_accepted_as_it_is(name):
    assert check_ref_name(name) == name


def test_space_around_a_name_is_dropped():
    assert check_ref_name("  agent/42\n") == "agent/42"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("main", "main is reserved"),
        ("a" * (MAX_NAME_LENGTH + 1), "longer than 200 characters"),
        ("__manifest", "are reserved"),
        (COMMIT, "looks like a commit ID"),
        ("a..b", "`..` and a final `.lock`"),
        ("a.lock", "`..` and a final `.lock`"),
        ("/a", "use letters"),
        ("a/", "use letters"),
        ("a//b", "use letters"),
        ("a b", "use letters"),
        ("a:b", "use letters"),
        ("a@b", "use letters"),
        ("a\\b", "use letters"),
        ("a'b", "use letters"),
        ("a\nb", "use letters"),
        ("é\u0000", "use letters"),
        ("*", "use letters"),
    ],
)
@pytest.mark.parametrize("what", ["branch", "tag"])
def test_unusable_name_is_refused_with_the_reason(name, says, what):
    with pytest.raises(InvalidInput) as caught:
        check_ref_name(name, what)
    assert caught.value.code == f"{what}_name_invalid"
    assert f"is not a valid {what} name: " in caught.value.message
    assert says in caught.value.message
    assert len(caught.value.message) < 250


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(COMMIT, True), (COMMIT.lower(), False), ("8" + COMMIT[1:], False), (COMMIT + "0", False)],
)
def test_commit_id_is_an_upper_case_ulid(text, is_one):
    assert is_commit_id(text) is is_one
