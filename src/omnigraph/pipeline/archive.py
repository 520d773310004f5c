"""This module says where the class archive is that makes sessions start sooner, if there is one.

Java reads it instead of hundreds of class files. It fits one Java and one Spark, which its name
tells; a Java that it does not fit after all ignores it. `warmup` makes it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyspark

from omnigraph.pipeline.java import JavaRuntime


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
