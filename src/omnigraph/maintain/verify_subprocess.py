"""Run a deep verify in a child process with limited memory.

A child that ends by a damaged file is reported as a problem. It writes the place it reads next,
each problem, and at the end the report.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from omnigraph.commit.graph_creation import open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmniError
from omnigraph.maintain.child_process import (
    CHILD_TIMEOUT_SECONDS,
    child_program,
    limit_memory,
    run_child,
    write_line,
)
from omnigraph.maintain.damaged_files import DamagedFile
from omnigraph.maintain.verify import IntegrityProblem, VerifyReport
from omnigraph.maintain.verify_checksums import ChecksumVerifier, verify_deep
from omnigraph.storage import Location

_PROGRAM = child_program(__name__)


def verify_in_subprocess(
    location: Location, *, plain: bool = True, silence: float = CHILD_TIMEOUT_SECONDS
) -> VerifyReport:
    """Verify a graph deeply in a child; a child that dies is reported with its last place."""
    request = {"uri": location.uri, "options": dict(location.options), "plain": plain}
    output = _ChildOutput()
    how = run_child(_PROGRAM, request, output.receive, silence)
    if output.report is not None:
        return output.report
    message = f"reading it {how}: a file is damaged, and nothing after it was verified"
    return VerifyReport(
        files=0, problems=[*output.problems, IntegrityProblem(output.place, message)]
    )


class _ChildOutput:
    """The output of a child so far."""

    def __init__(self) -> None:
        self.place = "manifest"
        self.problems: list[IntegrityProblem] = []
        self.report: VerifyReport | None = None

    def receive(self, document: Mapping[str, Any]) -> None:
        self.place = document.get("place", self.place)
        if "problem" in document:
            self.problems.append(IntegrityProblem(**document["problem"]))
        if "report" in document:
            self.report = _parse_report(document["report"])
        if "damaged_file" in document and self.report is not None:
            self.report.damaged_files.append(DamagedFile.from_json(document["damaged_file"]))


def _parse_report(document: Mapping[str, Any]) -> VerifyReport:
    return VerifyReport(
        branches=document["branches"],
        commits=document["commits"],
        versions=document["versions"],
        files=document.get("files", 0),
        unsummed=document.get("files_without_checksum", 0),
        problems=[IntegrityProblem(**problem) for problem in document["problems"]],
    )


# --- the child -----------------------------------------------------------------------------------


def main() -> None:
    """Verify the graph of the request on standard input."""
    run_child_verify(json.load(sys.stdin))


def run_child_verify(request: Mapping[str, Any]) -> None:
    """Limit the memory of this process, verify a graph and write the problems."""
    location = Location(request["uri"], request["options"])
    report, sent, written = VerifyReport(files=0), 0, ""

    def note(place: str) -> None:
        nonlocal sent, written
        while sent < len(report.problems):
            write_line({"problem": asdict(report.problems[sent])})
            sent += 1
        if place != written:
            write_line({"place": place})
            written = place

    manifest = Manifest(location)
    try:
        limit_memory(manifest)
        note("manifest")
        open_graph(manifest)
        deep = ChecksumVerifier(manifest, note)
        verify_deep(manifest, deep, report, plain=request["plain"])
    except OmniError as error:
        report.problems.append(IntegrityProblem("manifest", error.message))
        deep = None
    write_line({"report": report.to_json()})
    # Reading a damaged file may end this process, after everything else was reported.
    with suppress(OmniError):
        for file in deep.describe_damage() if deep is not None else ():
            write_line({"damaged_file": file.to_json()})
