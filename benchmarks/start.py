"""CPU of whole commands, as multiples of that of an interpreter that does nothing."""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ONCE = 1.0
"""These have no scale."""
_REPEATS = 9
_PROGRAM = ("-m", "omnigraph.cli")


def starts_of_commands() -> list[dict[str, object]]:
    """Measure help, completion and a query that has next to nothing to do."""
    with TemporaryDirectory() as folder:
        _small_graph(Path(folder))
        query = (
            *_PROGRAM,
            "query",
            "--store",
            "graph",
            "-e",
            "match { $p: Port } return { $p.code }",
        )
        return [
            _row("omnigraph --help", (*_PROGRAM, "--help"), folder, 8),
            _row("complete omnigraph query --f", _PROGRAM, folder, 8, _completion("query --f")),
            _row("omnigraph query, one node", query, folder, 25),
        ]


def _small_graph(folder: Path) -> None:
    (folder / "schema.pg").write_text("node Port { code: String @key }\n", encoding="utf-8")
    (folder / "data.ndjson").write_text('{"type":"Port","data":{"code":"a"}}\n', encoding="utf-8")
    for words in ("init graph --schema schema.pg", "load graph --data data.ndjson --mode merge"):
        command = [sys.executable, *_PROGRAM, *words.split(), "--quiet"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _completion(words: str) -> Mapping[str, str]:
    line = f"omnigraph {words}"
    count = str(len(line.split()) - 1)
    return {"_OMNIGRAPH_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": count}


def _row(
    name: str,
    arguments: Sequence[str],
    folder: str,
    budget: float,
    variables: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Run a command and an idle interpreter in turn; compare the CPU that each pair took."""
    _cpu(arguments, folder, variables)
    ratios = [
        _cpu(arguments, folder, variables) / min(_cpu(("-c", "pass"), folder) for _ in range(3))
        for _ in range(_REPEATS)
    ]
    best, median = round(min(ratios), 2), round(statistics.median(ratios), 2)
    unit = "x the CPU of `python -c pass`"
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}


def _cpu(
    arguments: Sequence[str], folder: str, variables: Mapping[str, str] | None = None
) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
