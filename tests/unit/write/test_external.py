import pytest

from omnigraph.errors import InvalidInput
from omnigraph.write.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobs

ALLOWED = ExternalBlobs.below(["s3://pictures/public", "file:///data/files/"])


@pytest.mark.parametrize(
    "uri",
    [
        "s3://pictures/public/a.png",
        "S3://Pictures/public/a/b.png",
        "s3://pictures/public",
        "file:///data/files/x",
        "s3://pictures/public/%C3%A9t%C3%A9",
    ],
)
def test_uri_below_a_base_is_allowed(uri):
    ALLOWED.check(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://pictures/publication/a.png",
        "s3://pictures/",
        "s3://others/public/a.png",
        "https://pictures/public/a.png",
        "file:///data/filesystem",
        "s3://pictures/public/../private/a.png",
        "s3://pictures/public/./a",
        "s3://pictures/public//a",
        "s3://pictures/public/%2e%2e/private",
        "s3://pictures/public/a%2Fb",
        "s3://pictures/public/a%5cb",
        "s3://pictures/public\\..\\a",
        "s3://me:secret@pictures/public/a",
        "s3://pictures/public/a?versionId=1",
        "s3://pictures/public/a#part",
        "s3://pictures/public/a b",
        "s3://pictures/public/a\nb",
        "pictures/public/a",
        "",
    ],
)
def test_uri_that_might_lead_elsewhere_is_refused(uri):
    with pytest.raises(ValueError, match=r"."):
        ALLOWED.check(uri)


def test_nothing_is_allowed_without_bases():
    with pytest.raises(ValueError, match="this graph allows none"):
        NO_EXTERNAL_BLOBS.check("s3://pictures/public/a.png")


@pytest.mark.parametrize(
    "bases",
    [
        ["s3://a/b", "s3://a/b/c"],
        ["s3://a/b", "s3://A/b/"],
        ["nothing"],
        ["s3://a/b?x"],
        ["s3://a/../b"],
    ],
)
def test_bases_that_overlap_or_are_none_are_refused(bases):
    with pytest.raises(InvalidInput) as caught:
        ExternalBlobs.below(bases)
    assert caught.value.code == "external_blobs_invalid"
