"""Create the class archive that makes later Spark sessions start faster."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.errors import SparkUnavailable
from omnigraph.pipeline.sessions.class_archive import class_archive_path
from omnigraph.pipeline.sessions.java import JavaRuntime, find_java
from omnigraph.pipeline.sessions.session import close, session

DUMP_SECONDS = 600
"""How long Java may take to write an archive; alone it needs about fifteen."""

RETRY_SECONDS = 24 * 60 * 60
"""How long no other process tries it after one did not succeed."""


@dataclass(frozen=True, slots=True)
class WarmupReport:
    """What was made."""

    archive: Path
    java: JavaRuntime
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        java = {"program": str(self.java.program), "version": self.java.version}
        return {"archive": str(self.archive), "java": java, "bytes": self.bytes}


def warm_up_in_background() -> Path | None:
    """Make the archive in a process of low priority that outlives this one, unless there is one.

    Return where it will be; None when it exists, another process is making it, or no JVM of this
    process runs that could use it.
    """
    if SparkContext._active_spark_context is None:
        return None
    archive = class_archive_path(find_java())
    lock = archive.with_suffix(".lock")
    with suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime > RETRY_SECONDS:
            lock.unlink()
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        if archive.is_file():
            return None
        lock.touch(exist_ok=False)
    except OSError:  # it is there, or nothing can be written
        return None
    command = [sys.executable, "-m", "omnigraph.cli", "pipeline", "warmup"]
    subprocess.Popen(  # noqa: S603 - this Python
        ["nice", "-n", "19", *command] if shutil.which("nice") else command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return archive


def warm_up() -> WarmupReport:
    """Run a small job once and keep the classes it loaded, for this Java and this Spark."""
    if SparkContext._active_spark_context is not None:
        message = "a Spark session is already running: warm up in a separate process"
        raise InvalidInput(message, code="spark_session_exists")
    java = find_java()
    archive = class_archive_path(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    base, new = archive.with_suffix(".base.jsa"), archive.with_suffix(".new.jsa")
    archive.unlink(missing_ok=True)
    _dump_base(java, base)
    flags = [f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={new}"]
    spark = session("local[2]", config={"spark.driver.extraJavaOptions": shlex.join(flags)})
    try:
        numbers = spark.range(1_000).selectExpr("id % 7 as a", "cast(id as string) as b")
        numbers.mapInArrow(_same, numbers.schema).groupBy("a").count().collect()
    finally:
        close(patience=DUMP_SECONDS)
    if not new.is_file():
        message = (
            f"Java {java.version} wrote no archive; sessions work without it, but start slower"
        )
        raise SparkUnavailable(message, code="warmup_failed", java=str(java.program))
    new.replace(archive)
    archive.with_suffix(".lock").unlink(missing_ok=True)
    return WarmupReport(archive, java, base.stat().st_size + archive.stat().st_size)


def _same(batches: Any) -> Any:  # noqa: ANN401 - what Spark hands over
    return batches


def _dump_base(java: JavaRuntime, base: Path) -> None:
    """Write the archive of Java's own classes, which ours builds on."""
    command = [str(java.program), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=DUMP_SECONDS)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        message = f"Java {java.version} cannot write a class archive: {error}"
        raise SparkUnavailable(message, code="warmup_failed", java=str(java.program)) from error
