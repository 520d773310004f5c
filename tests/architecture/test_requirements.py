"""The environment of `make` has what pyproject.toml requires, with every extra.

`pip check` compares the requirements of installed packages without their extras, so a lock that
lacks a tool for development passes it.
"""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from scripts import compat


def requirements_with_extra(extra: str) -> Iterator[Requirement]:
    """Return the requirements of an extra, and of the extras of the project that it includes."""
    for line in metadata.requires("omnigraph") or []:
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "omnigraph":
            for included in requirement.extras:
                yield from requirements_with_extra(included)
        else:
            yield requirement


def test_every_requirement_is_installed() -> None:
    required = {str(requirement): requirement for requirement in requirements_with_extra("dev")}
    assert any(text.startswith("mkdocs-material") for text in required)
    missing = []
    for text, requirement in required.items():
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            missing.append(f"{text}: not installed")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            missing.append(f"{text}: {version} is installed")
    assert missing == [], "run make lock"


def test_a_python_that_does_not_start_is_not_chosen(tmp_path: Path, monkeypatch: Any) -> None:
    for name, code in (("shims/python3.9", 127), (".pyenv/versions/3.9.2/bin/python3.9", 0)):
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("HOME", str(tmp_path))
    installed = tmp_path / ".pyenv/versions/3.9.2/bin/python3.9"
    assert compat.find_python("3.9") == str(installed)
    installed.unlink()
    assert compat.find_python("3.9") is None
