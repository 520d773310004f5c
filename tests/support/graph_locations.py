"""Fixtures that say where a graph of a test lives: in a folder, or in a bucket of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.graph_templates import Templates
from tests.support.race_pool import Racers, racing
from tests.support.s3 import Server, s3_server


class Root(NamedTuple):
    """An address nothing is stored at yet, and the options that reach it."""

    uri: str
    options: dict[str, str]


@pytest.fixture(scope="session")
def s3() -> Iterator[Server]:
    """Run one S3 server for all tests that want it."""
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Keep graphs that tests build once and copy."""
    return Templates(str(tmp_path_factory.mktemp("templates")))


@pytest.fixture(params=["local", "s3"])
def graph_root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    """Give a test both kinds of storage, one after the other."""
    if request.param == "local":
        return Root(str(tmp_path / "graph"), {})
    server: Server = request.getfixturevalue("s3")
    return Root(server.fresh(), server.options)


@pytest.fixture(scope="session")
def racers() -> Iterator[Racers]:
    """Keep four processes ready that start a function together."""
    with racing(4) as found:
        yield found
