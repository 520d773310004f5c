"""Base classes of objects that notebooks show."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from omnigraph.notebook.results import records_html, report_html

_ReportT = TypeVar("_ReportT", bound="ReportDisplay")


class ReportDisplay(ABC):
    """A report that notebooks show as the tables of its JSON form."""

    __slots__ = ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""

    def _repr_html_(self) -> str:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()
        return report_html(words, self.to_json())


class ReportList(list[_ReportT]):
    """A list of reports that notebooks show as one table."""

    def __init__(self, title: str, reports: Iterable[_ReportT]) -> None:
        super().__init__(reports)
        self._title = title

    def _repr_html_(self) -> str:
        return records_html(self._title, [report.to_json() for report in self])
