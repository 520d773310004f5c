"""Merge the results of staging tasks: fragments and violations per type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.pipeline.load.staging import raise_error
from omnigraph.pipeline.runs.run import PipelineRun
from omnigraph.storage import ObjectStore
from omnigraph.storage.columns import with_column
from omnigraph.storage.layout import STAGED
from omnigraph.storage.staged_writes import fragment_from_json
from omnigraph.write.violations import Violation, ViolationCollector, ViolationRule

RESULTS = f"{STAGED}/results.json"
"""What all tasks have staged, apart from the record of the run, which is read at each heartbeat."""


@dataclass(frozen=True, slots=True)
class StagedFragment:
    """Rows one worker wrote: `at` is the file that keeps where they stood, from row `start` on."""

    metadata: Any
    at: str
    start: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.metadata.physical_rows)

    @property
    def paths(self) -> tuple[str, ...]:
        """The data files, which identify fragments."""
        return tuple(file.path for file in self.metadata.files)

    @property
    def bytes(self) -> int:
        """How large the data files are."""
        return sum(file.file_size_bytes or 0 for file in self.metadata.files)


@dataclass(slots=True)
class StagedType:
    """Everything that was staged of one type.

    `path` is that of the dataset. `fresh` means that every id is new. `gives` are properties
    whose vectors came with the rows, `made` the models that made others. By property, `lacks`
    counts rows without a vector that have a text to make it from, `wordless` those that have none.
    """

    table_key: str
    path: str = ""
    given: int = 0
    rows: int = 0
    fresh: bool = True
    gives: set[str] = field(default_factory=set)
    made: dict[str, str] = field(default_factory=dict)
    lacks: Counter[str] = field(default_factory=Counter)
    wordless: Counter[str] = field(default_factory=Counter)
    fragments: list[StagedFragment] = field(default_factory=list)

    def add(self, document: Mapping[str, Any]) -> None:
        """Take what one worker staged."""
        self.path = document["path"]
        self.given += document["given"]
        self.rows += document["rows"]
        if document["given"]:
            self.fresh = self.fresh and document["fresh"]
        self.gives |= set(document["gives"])
        self.lacks.update(document["lacks"])
        self.wordless.update(document["wordless"])
        start = 0
        for found in document["fragments"]:
            metadata = fragment_from_json(found)
            self.fragments.append(StagedFragment(metadata, document["at"], start))
            start += self.fragments[-1].rows

    def fill(self, facts: Mapping[str, Any]) -> None:
        """Take what was embedded for the rows: models, numbers, and the files of vectors."""
        self.made |= facts["made"]
        self.lacks.subtract(facts["filled"])
        places = {(fragment.at, fragment.start): n for n, fragment in enumerate(self.fragments)}
        for at, start, file in facts["files"]:
            number = places[at, start]
            old = self.fragments[number]
            self.fragments[number] = replace(old, metadata=with_column(old.metadata, file))

    @property
    def bytes(self) -> int:
        """How many bytes were written."""
        return sum(fragment.bytes for fragment in self.fragments)


@dataclass(slots=True)
class StagedLoad:
    """Everything that was staged, with violations.

    `read` are violations of inputs, `checked` those of values; `files` are the inputs by number.
    """

    types: dict[str, StagedType] = field(default_factory=dict)
    read: ViolationCollector = field(default_factory=ViolationCollector)
    checked: ViolationCollector = field(default_factory=ViolationCollector)
    rejected: dict[str, Counter[str]] = field(default_factory=dict)
    is_whole: bool = True
    files: Sequence[tuple[str, str]] = ()

    def findings(self) -> ViolationCollector:
        """Return all violations that workers found, to which others are added."""
        findings = ViolationCollector()
        for before in (self.read, self.checked):
            for violation in before.listed:
                findings.add(violation)
            for rule, count in before.totals.items():
                kept = sum(violation.rule is rule for violation in before.listed)
                findings.count(rule, count - kept) if count > kept else None
        return findings


def read_staged(objects: ObjectStore, run: PipelineRun) -> StagedLoad | None:
    """Return what the finished stages of a run have staged; None before the first one."""
    stage = run.stages.get("stage")
    if stage is None:
        return None
    if "results" not in stage:  # runs of older releases have them in their record
        data = objects.get(f"{run.folder}/{RESULTS}")
        if data is None:
            return None
        stage = json.loads(data)
    staged = merge_results(stage["results"], stage["files"])
    for key, facts in run.stages.get("embed", {"types": ()})["types"]:
        staged.types[key].fill(facts)
    return staged


def merge_results(
    results: Iterable[Mapping[str, Any]], files: Sequence[tuple[str, str]]
) -> StagedLoad:
    """Put results together, in the order of the parts; raise the first error a worker met."""
    staged = StagedLoad(files=tuple((name, unit) for name, unit in files))
    seen: set[str] = set()
    for result in results:
        if "error" in result:
            raise_error(result["error"])
        staged.is_whole = staged.is_whole and result["is_whole"]
        _add_findings(staged.read, result["read"], seen)
        _add_findings(staged.checked, result["checked"], seen)
        for key, counts in result["rejected"].items():
            staged.rejected.setdefault(key, Counter()).update(counts)
        for found in result["types"]:
            key = found["table_key"]
            staged.types.setdefault(key, StagedType(key)).add(found)
    return staged


def _add_findings(
    findings: ViolationCollector, document: Mapping[str, Any], seen: set[str]
) -> None:
    """Add findings; those about a whole file, repeated by every part, are added once."""
    totals = Counter({ViolationRule(rule): count for rule, count in document["totals"].items()})
    for found in document["listed"]:
        violation = Violation.from_json(found)
        totals[violation.rule] -= 1
        if violation.source is not None and violation.source.number is None:
            text = json.dumps(found, sort_keys=True)
            if text in seen:
                continue
            seen.add(text)
        findings.add(violation)
    for rule, count in totals.items():
        if count:
            findings.count(rule, count)
