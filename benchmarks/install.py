"""Installed size, and the start of a first query, beside two embedded databases.

Each program is installed alone into an environment of its own: omnigraph from the wheel of these
sources, the others from the package index. All of them query the same prepared table of three rows.
"""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ONCE = 1.0
"""These have no scale."""
_ROOT = Path(__file__).resolve().parent.parent
_REPEATS = 9
_TOOLS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
_SIZE_BUDGET = 560
_ROWS = '[{"name": "Ada", "age": 36}, {"name": "Bo", "age": 4}, {"name": "Cy", "age": 12}]'
_ANSWER = "['Ada', 'Cy']"
_PREPARE = {
    "omnigraph": f"""
import omnigraph as og
graph = og.init("data", "node Person {{ name: String @key  age: I64 }}")
graph.load({{"Person": {_ROWS}}}, mode="append")
""",
    "duckdb": """
import duckdb
database = duckdb.connect("data")
database.sql("create table people (name text, age bigint)")
database.sql("insert into people values ('Ada', 36), ('Bo', 4), ('Cy', 12)")
""",
    "lancedb": f"""
import lancedb
lancedb.connect("data").create_table("people", {_ROWS})
""",
}
_QUERY = {
    "omnigraph": """
import omnigraph as og
query = "match { $p: Person  $p.age > 10 } return { $p.name as n }"
print(sorted(row["n"] for row in og.open("data", mode="ro").query(query).rows))
""",
    "duckdb": """
import duckdb
found = duckdb.connect("data", read_only=True).sql("select name from people where age > 10")
print(sorted(name for name, in found.fetchall()))
""",
    "lancedb": """
import lancedb
rows = lancedb.connect("data").open_table("people").search().where("age > 10").to_list()
print(sorted(row["name"] for row in rows))
""",
}


def installations() -> list[dict[str, object]]:
    """Install each program, and measure its size and the CPU of a process with one query."""
    rows: list[dict[str, object]] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        wheel = _wheel(folder / "dist")
        for program in _PREPARE:
            python = _environment(
                folder / program, str(wheel) if program == "omnigraph" else program
            )
            rows += _measure(program, python, folder / program)
    return rows


def _wheel(out: Path) -> Path:
    for command in (
        ["scripts/build_ui.py"],
        ["-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
    ):
        subprocess.run([sys.executable, *command], cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    [wheel] = out.glob("*.whl")
    return wheel


def _environment(folder: Path, requirement: str) -> Path:
    """Return the interpreter of a new environment with one package."""
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", requirement], check=True, env=_alone()
    )
    return python


def _alone() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def _measure(program: str, python: Path, folder: Path) -> list[dict[str, object]]:
    _output(python, _PREPARE[program], folder)
    found = _output(python, _QUERY[program], folder).strip()
    if found != _ANSWER:
        raise SystemExit(f"{program} answers {found} instead of {_ANSWER}")
    ratios = [
        _cpu(python, _QUERY[program], folder) / _cpu(python, "pass", folder)
        for _ in range(_REPEATS)
    ]
    size = round(_size(python.parent.parent) / 1e6)
    ours = program == "omnigraph"
    return [
        {
            "name": f"installed size of {program}",
            "best": size,
            "median": size,
            "unit": "MB",
            "budget": _SIZE_BUDGET if ours else None,
        },
        {
            "name": f"open and query three rows with {program}",
            "best": round(min(ratios), 2),
            "median": round(statistics.median(ratios), 2),
            "unit": "x the CPU of `python -c pass`",
            "budget": None,
        },
    ]


def _size(environment: Path) -> int:
    """Return the bytes of an environment apart from pip."""
    [packages] = environment.glob("lib/python*/site-packages")
    return sum(
        path.stat().st_size
        for path in packages.rglob("*")
        if path.is_file() and not path.relative_to(packages).parts[0].startswith(_TOOLS)
    )


def _output(python: Path, program: str, folder: Path) -> str:
    command: Sequence[str] = (str(python), "-c", program)
    done = subprocess.run(
        command, cwd=folder, env=_alone(), check=True, capture_output=True, text=True
    )
    return done.stdout


def _cpu(python: Path, program: str, folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _output(python, program, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
