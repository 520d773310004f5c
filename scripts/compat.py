"""Run a fast part of the suite on the oldest and the newest allowed versions of all dependencies.

Each combination of a Python of this machine and a resolution has an environment in build/compat,
made with uv. `--only lowest` or `--python 3.12` choose among them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "compat"
PYTHONS = ("3.11", "3.12", "3.13")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
TOOLS = (
    "editables",
    "hatchling",
    "hypothesis",
    "moto[server]",
    "networkx",
    "polars",
    "pytest>=9",
    "pytest-xdist",
)
SUITE = (
    "tests/substrate",
    "tests/unit/embed",
    "tests/unit/policy",
    "tests/unit/storage",
    "tests/unit/types",
    "tests/unit/write",
    "tests/cli/test_graphs.py",
    "tests/cli/test_program.py",
    "tests/cli/test_query_text.py",
    "tests/cli/test_writes.py",
    "tests/server/test_langchain.py",
    "tests/server/test_routes.py",
)
"""Tests that touch every dependency: storage, Arrow, the command line, the server, policies."""


def main() -> int:
    """Run every combination; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", default="uv", help="The program uv.")
    parser.add_argument("--only", choices=RESOLUTIONS)
    parser.add_argument("--python", choices=PYTHONS)
    given = parser.parse_args()
    pythons = [given.python] if given.python else [one for one in PYTHONS if find_python(one)]
    chosen = [given.only] if given.only else list(RESOLUTIONS)
    results = {
        f"Python {python}, {resolution} versions": run(given.uv, python, resolution)
        for python in pythons
        for resolution in chosen
    }
    missing = [] if given.python else [one for one in PYTHONS if one not in pythons]
    if missing:
        print(f"not on this machine: Python {', '.join(missing)}")
    for name, passed in results.items():
        print(f"{'passed' if passed else 'FAILED'}  {name}")
    return 0 if all(results.values()) else 1


def find_python(version: str) -> str | None:
    """Return the interpreter of a version, if this machine has it: on the path or from pyenv."""
    if version == ".".join(map(str, sys.version_info[:2])):
        return sys.executable
    program = f"python{version}"
    on_path = shutil.which(program)
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/{program}"))
    # A shim of pyenv is on the path for every version that is installed, and works for one only.
    candidates = [*([on_path] if on_path else []), *map(str, installed)]
    return next(filter(_works, candidates), None)


def _works(python: str) -> bool:
    done = subprocess.run([python, "-c", ""], capture_output=True, check=False)
    return done.returncode == 0


def run(uv: str, version: str, resolution: str) -> bool:
    """Make the environment and run the tests in it."""
    name = f"{version}-{resolution}"
    environment, pins = FOLDER / name, FOLDER / f"{name}.txt"
    FOLDER.mkdir(parents=True, exist_ok=True)
    python = environment / "bin" / "python"
    resolve = [f"--resolution={RESOLUTIONS[resolution]}", f"--python-version={version}"]
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    steps: Sequence[Sequence[str]] = (
        [
            uv,
            "pip",
            "compile",
            "--quiet",
            *resolve,
            "--extra=all",
            "--extra=langchain",
            "-o",
            str(pins),
            "pyproject.toml",
        ],
        [
            uv,
            "venv",
            "--quiet",
            "--clear",
            "--python",
            find_python(version) or version,
            str(environment),
        ],
        [*install, "-r", str(pins), *TOOLS],
        [*install, "--no-deps", "--no-build-isolation", "-e", "."],
        [str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "loadscope", *SUITE],
    )
    return all(_succeeds(step) for step in steps)


def _succeeds(command: Sequence[str]) -> bool:
    print(" ".join(command[:12]), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
