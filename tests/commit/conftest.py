"""What the suites of real processes share: places to make graphs, on disk and in a bucket."""

import itertools
import os

import pytest

from tests.support.children import Place

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS") or 0)
"""How long `make soak` lets each of these suites run; without it they take a few minutes in all."""


@pytest.fixture(params=["local", "s3"])
def fresh_place(request, tmp_path):
    """Return a function that names places where nothing is."""
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        return lambda: Place(server.fresh(), server.options)
    numbers = itertools.count()
    return lambda: Place(str(tmp_path / str(next(numbers))))
