"""What the unit tests of the storage core share: a real, empty graph on disk."""

import pytest

from tests.support.graphs import make_graph


@pytest.fixture
def graph(tmp_path):
    return make_graph(str(tmp_path / "graph"))
