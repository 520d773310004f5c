"""The text format of the case files in `tests/cases`; `case_runs` runs them.

    === E22 a String literal cannot be compared with a Date
    --- schema harbour
    --- query
    query q() { match { $s: Ship  $s.built = "2020-01-01" } return { $s } }
    --- expect
    error T7 1:31 cannot compare built (Date) = a String literal
      help: write a day as

A schema is written below its header or named after a file of `tests/cases/schemas`, data after one
of `tests/cases/data`; `hex` spells bytes. The sections that say what is given and what must come
out are listed in `GIVEN` and `OUTCOMES`. `expect` is the complete list of diagnostics in order,
each with a part of its message and of its hint; it may be left out where nothing is said and there
is another outcome.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "cases"

GIVEN = {
    "from": "the accepted schema; `schema` is then the one to migrate to",
    "schema": "the schema",
    "query": "a query file; its name may follow when there are several",
    "name": "(NAME) which query to compile, instead of linting the file",
    "data": "what the graph holds, a JSON object a line as for `load`",
    "params": "JSON parameters of the query; `javascript` for that mode",
    "pipeline": "a pipeline file, held against the schema",
    "set": "JSON of what `--set` says to the pipeline",
    "row": "(TYPE) JSON properties of a node, of which `id` is asked",
}
OUTCOMES = {
    "expect": "`ok`, or the diagnostics: `severity CODE line:column part of the message`",
    "plan": "the plan of the last query",
    "operation": "JSON of what that query returns, reads and writes",
    "values": "JSON of the bound parameters",
    "rows": "what the query returns, a JSON object a line, or `none`; in any order without `order`",
    "steps": "the migration, a JSON object a line, or `none`; `hard` when data may be lost",
    "id": "the id of the row, or `generated`",
}


class CaseError(Exception):
    """A case file is not written as it should be."""


@dataclass(frozen=True, slots=True)
class Section:
    """`--- word argument` and the lines below it."""

    word: str
    argument: str
    body: str

    def __str__(self) -> str:
        head = f"--- {self.word} {self.argument}".rstrip()
        return f"{head}\n{self.body}\n" if self.body else f"{head}\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its title and its sections in the order of the file."""

    title: str
    sections: tuple[Section, ...]

    def __str__(self) -> str:
        return f"=== {self.title}\n{''.join(map(str, self.sections))}"

    def all(self, word: str) -> list[Section]:
        """Return the sections with this word."""
        return [section for section in self.sections if section.word == word]

    def one(self, word: str) -> Section | None:
        """Return the section with this word, if there is one."""
        return next(iter(self.all(word)), None)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A file of cases; its comments stand above the first one."""

    comments: str
    cases: tuple[Case, ...]

    def __str__(self) -> str:
        return "\n".join([self.comments, *map(str, self.cases)]).lstrip("\n")


def parse_cases(text: str) -> CaseFile:
    """Read a case file; raise CaseError when it is not one from beginning to end."""
    comments, *parts = re.split(r"^=== ", text, flags=re.MULTILINE)
    if any(line and not line.startswith("#") for line in comments.splitlines()):
        raise CaseError("only `# comments` stand above the first `=== title`")
    cases = tuple(_parse_case(part) for part in parts)
    titles = [case.title for case in cases]
    if not cases:
        raise CaseError("the file holds no case")
    for title in titles:
        if titles.count(title) > 1:
            raise CaseError(f"two cases are called `{title}`")
    return CaseFile(comments.rstrip("\n") + "\n" if comments else "", cases)


def _parse_case(text: str) -> Case:
    head, *parts = re.split(r"^--- ", text, flags=re.MULTILINE)
    title, _, rest = head.partition("\n")
    if rest.strip() or not title.strip():
        raise CaseError(f"`=== {title}` is not followed by `--- section`")
    sections = tuple(_parse_section(part) for part in parts)
    seen = [(s.word, s.argument if s.word == "query" else "") for s in sections]
    if len(set(seen)) < len(seen):
        raise CaseError(f"`{title}` has a section twice")
    words = {section.word for section in sections}
    unknown = words - {*GIVEN, *OUTCOMES}
    if unknown:
        raise CaseError(f"`{title}` has unknown sections {sorted(unknown)}")
    if "schema" not in words or not words & {*OUTCOMES}:
        raise CaseError(f"`{title}` is not finished: it needs a schema and an outcome")
    return Case(title, sections)


def _parse_section(text: str) -> Section:
    head, _, body = text.partition("\n")
    word, _, argument = head.partition(" ")
    return Section(word, argument, body.rstrip("\n"))
