"""Graphs that are built once and copied for each test that changes them.

A graph holds no address of its own, so a copy of its files is the same graph elsewhere.
"""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Callable, Hashable, Mapping
from typing import Any

Build = Callable[[str, Mapping[str, str] | None], Any]
"""Makes a graph at an address; what it returns is kept for every copy."""


class Templates:
    """Builds graphs in a folder and in buckets of the S3 server of the tests, and copies them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._built: dict[tuple[str | None, Hashable], tuple[str, Any]] = {}

    def copy(
        self, key: Hashable, build: Build, uri: str, options: Mapping[str, str] | None = None
    ) -> Any:
        """Copy the graph of `key` to an empty address; return what `build` returned for it."""
        endpoint = (options or {}).get("aws_endpoint")
        if (endpoint, key) not in self._built:
            number = len(self._built)
            template = f"s3://graphs-template-{number}/graph" if endpoint else self._path(number)
            self._built[endpoint, key] = (template, build(template, options))
        template, result = self._built[endpoint, key]
        if endpoint is None:
            shutil.copytree(template, uri)
        else:
            copy_in_server(endpoint, template, uri)
        return result

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number}"


def copy_in_server(endpoint: str, source: str, target: str) -> None:
    """Copy all objects below one address of the S3 server of the tests to another."""
    one, other = (uri.removeprefix("s3://") for uri in (source, target))
    request = urllib.request.Request(
        f"{endpoint}/copy-of/{one}", method="POST", headers={"X-Target": other}
    )
    urllib.request.urlopen(request, timeout=60).close()
