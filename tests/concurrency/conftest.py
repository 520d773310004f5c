"""What the suites of changes by real processes share: places to make graphs."""

import itertools

import pytest

from tests.support.children import Place


@pytest.fixture(params=["local", "s3"])
def fresh_place(request):
    """Return a function that names places where nothing is."""
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        return lambda: Place(server.fresh(), server.options)
    return request.getfixturevalue("fresh_local")


@pytest.fixture
def fresh_local(tmp_path):
    """Return a function that names places on disk where nothing is."""
    numbers = itertools.count()
    return lambda: Place(str(tmp_path / str(next(numbers))))
