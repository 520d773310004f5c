"""The environment of `make` has what pyproject.toml requires, with every extra.

`pip check` compares the requirements of installed packages without their extras, so a lock that
lacks a tool for development passes it.
"""

from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement


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
