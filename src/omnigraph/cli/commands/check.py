"""`omnigraph check`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import click

from omnigraph.cli.files import replaced_file
from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.output import count_text, print_result, printable_lines
from omnigraph.cli.progress import show_progress
from omnigraph.cli.stored_checks import NO_CHECKS, checks_option, with_checks
from omnigraph.query.checks import CheckResult

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@click.command()
@graph_command(lazy=True)
@checks_option
@click.option("--at", default="main", help="Branch, tag, commit ID or timestamp to check.")
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write a JUnit report."
)
def check(opens: GraphOpener, checks: Path | None, at: str, junit: Path | None) -> None:
    """Run the checks on a state: queries with `@check` must return no rows.

    The exit code is 1 if a check fails.
    """
    graph = with_checks(opens(), checks)
    with show_progress("running checks"):
        results = graph.run_checks(at=at)
    if junit is not None:
        _write_junit(junit, results)
    failed = [result for result in results if result.is_failed]
    value = {"at": at, "ok": not failed, "checks": [result.to_json() for result in results]}
    lines = [line for result in results for line in _lines(result)]
    ended = f"{count_text(len(results), 'check')}, {len(failed)} failed"
    print_result(value, *lines, ended)
    if not results:
        click.echo(f"warning: {NO_CHECKS}", err=True)
    if failed:
        raise SystemExit(1)


def _lines(result: CheckResult) -> list[str]:
    word = "failed" if result.is_failed else "passed" if result.is_passed else "warning"
    lines = [f"{result.name}: {word}: {' '.join(printable_lines(result.message))}"]
    for row in result.rows:
        values = ", ".join(f"{name}: {value!r}" for name, value in row.items())
        lines.append(f"  {values}")
    return lines


def _write_junit(path: Path, results: Sequence[CheckResult]) -> None:
    """Write the results as JUnit XML; characters that XML does not allow are replaced."""
    failures = sum(result.is_failed for result in results)
    counts = {"tests": str(len(results)), "failures": str(failures)}
    suite = ElementTree.Element("testsuite", {"name": "omnigraph check", **counts})
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", {"name": result.name})
        if not result.is_passed:
            kind = "failure" if result.is_failed else "system-out"
            found = ElementTree.SubElement(case, kind)
            found.text = _xml_text("\n".join(_lines(result)))
            if result.is_failed:
                found.set("message", _xml_text(result.message))
    with replaced_file(path) as file:
        file.write(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def _xml_text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
