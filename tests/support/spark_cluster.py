"""Real clusters beside the tests: a standalone master with workers, and a Spark Connect server.

Each is a Java or Python process of its own that ends when its input closes, so none outlives the
tests: not after a failure, not when the tests themselves are killed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from omnigraph.pipeline.sessions.java import FLAGS, find_java

START_SECONDS = 300
"""Seconds after which a start is considered to have failed."""

_MISSING = "--add-modules=jdk.incubator.vector"
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = "Successfully registered with master"
_GUARD = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
child.terminate()
child.wait()
"""
"""Program that runs another one until its standard input closes."""

_CONNECT = """
import sys
from omnigraph import pipeline
plugin = "org.apache.spark.sql.connect.SparkConnectPlugin"
config = {"spark.plugins": plugin, "spark.connect.grpc.binding.port": "0"}
spark = pipeline.session("local[2]", memory="1g", config=config)
services = spark._jvm.org.apache.spark.sql.connect.service
service = getattr(getattr(services, "SparkConnectService$"), "MODULE$")
print(service.localPort(), flush=True)
sys.stdin.read()
"""


def java_home(folder: Path) -> Path:
    """Return a JAVA_HOME that Spark's own scripts and workers can use, whichever Java this is.

    The Java of pip lacks a module that all of them require and none uses.
    """
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    real = shlex.quote(str(find_java().program))
    program.write_text(
        f"#!/bin/bash\nargs=()\n"
        f'for arg in "$@"; do [ "$arg" = "{_MISSING}" ] || args+=("$arg"); done\n'
        f'exec {real} "${{args[@]}}"\n'
    )
    program.chmod(0o755)
    return folder


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Run a master and workers on loopback within the block; yield its address."""
    home = java_home(folder / "java")
    with ExitStack() as stack:
        master = stack.enter_context(
            _java(
                folder / "master.log", home, "master.Master", "--host", "127.0.0.1", "--port", "0"
            )
        )
        address = _wait_for_log(master, lambda text: _ADDRESS.search(text))
        for number in range(workers):
            # Spark repeats slow tasks only on other hosts; several loopback addresses act as hosts.
            host = f"127.0.0.{number + 1}" if sys.platform == "linux" else "127.0.0.1"
            options = ["--cores", "1", "--memory", "1g", "--host", host]
            work = ["--work-dir", str(folder / f"work{number}")]
            log = folder / f"worker{number}.log"
            stack.enter_context(_java(log, home, "worker.Worker", *options, *work, address))
        for number in range(workers):
            _wait_for_log(
                folder / f"worker{number}.log", lambda text: re.search(f"({_JOINED})", text)
            )
        yield address


@contextmanager
def _java(log: Path, home: Path, program: str, *arguments: str) -> Iterator[Path]:
    spark_home = _find_spark_home()
    logging = log.with_suffix(".properties")
    logging.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.a.ref = a\nappender.a.type = Console\n"
        "appender.a.name = a\nappender.a.layout.type = PatternLayout\n"
        "appender.a.layout.pattern = %p %m%n\n"
    )
    command = [
        sys.executable,
        *("-c", _GUARD),
        str(home / "bin" / "java"),
        *FLAGS,
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "-Xmx512m",
        *("-cp", f"{spark_home}/conf/:{spark_home}/jars/*"),
        f"org.apache.spark.deploy.{program}",
        *("--webui-port", "0"),
        *arguments,
    ]
    environment = {
        **os.environ,
        "JAVA_HOME": str(home),
        "SPARK_HOME": spark_home,
        "SPARK_LOCAL_IP": arguments[arguments.index("--host") + 1],
        "SPARK_SCALA_VERSION": "2.13",  # which the scripts of Spark detect for the workers
        "PYSPARK_PYTHON": sys.executable,
    }
    # Executors have it on their class path, for which there is no class archive.
    environment.pop("SPARK_CONF_DIR", None)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output
        )
    try:
        yield log
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(START_SECONDS)


def _wait_for_log(log: Path, search: Callable[[str], re.Match[str] | None]) -> str:
    """Wait until a log has a match, and return its first group."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        match = search(log.read_text(errors="replace"))
        if match is not None:
            return match[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} has no match: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def connect_server() -> Iterator[str]:
    """Run a Spark Connect server within the block; yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CONNECT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port.isdigit(), "the Spark Connect server did not start"
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.stdin.close()
        process.wait(START_SECONDS)
        process.stdout.close()


@pytest.fixture(scope="session")
def spark_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one standalone cluster for all tests of this process that need it."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="session")
def spark_remote() -> Iterator[str]:
    """Run one Spark Connect server for all tests of this process that need it."""
    with connect_server() as address:
        yield address
