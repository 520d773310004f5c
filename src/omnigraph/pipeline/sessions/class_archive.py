"""The location of the class archive that makes Spark sessions start faster.

Java reads it instead of hundreds of class files. It belongs to one Java and one Spark version,
which determine its name; a Java that it does not match ignores it. `warmup` creates it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyspark

from omnigraph.pipeline.sessions.java import JavaRuntime


def class_archive_path(java: JavaRuntime) -> Path:
    """Return where the archive for a Java is, or would be."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    facts = "\n".join([str(java.program), java.version, pyspark.__version__, pyspark.__file__])
    name = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return Path(base, "omnigraph", "spark", f"{name}.jsa")


def archive_flags(java: JavaRuntime) -> list[str]:
    """Return the flags that make a Java use its archive; none if there is no archive."""
    archive = class_archive_path(java)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []
