"""Refuse to build a distribution without Studio; an editable installation works without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PAGE = "src/omnigraph/server/studio/index.html"


class StudioIsBuilt(BuildHookInterface):  # type: ignore[type-arg]
    """Check that the files of Studio are there to be packaged."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise FileNotFoundError for a distribution whose `/` would be a page of instructions."""
        if version != "editable" and not (Path(self.root) / _PAGE).is_file():
            message = "Studio is not built: run `make ui`, then build the distribution"
            raise FileNotFoundError(message)
