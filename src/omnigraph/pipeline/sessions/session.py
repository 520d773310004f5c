"""Start and stop Spark sessions that suit this machine and end with this process."""

from __future__ import annotations

import atexit
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.connector.data_source import register
from omnigraph.pipeline.errors import SparkUnavailable
from omnigraph.pipeline.sessions.class_archive import archive_flags
from omnigraph.pipeline.sessions.java import STOP_SECONDS, DriverJvm, find_java, start_jvm

LOCAL = "local[*]"
REACH_SECONDS = 10
"""How long a cluster may take to accept a connection."""

_LOOPBACK = "127.0.0.1"
_PORTS = {"sc": 15002, "spark": 7077}
_GIB = 2**30
_MAX_MEMORY = 31 * _GIB
"""Above this limit Java cannot compress references, and a larger heap holds less."""

_machine: DriverJvm | None = None


def session(
    master: str | None = None,
    *,
    memory: str | None = None,
    config: Mapping[str, str] | None = None,
    ui: bool = False,
) -> SparkSession:
    """Return the running Spark session, or start one.

    `master` is `local[*]` by default, any master of Spark, or `sc://host:port` for Spark Connect.
    `memory` is that of the driver, such as `4g`; by default half of the memory of this machine.
    `config` are Spark's own settings and override our defaults; `ui` serves the page of Spark at a
    free port. A running session is returned unchanged. The format `omnigraph` is registered in any
    case.
    """
    found = _active_session(master)
    if found is not None:
        return register(found)
    if master is None:
        master = os.environ.get("SPARK_REMOTE") or LOCAL
    address = _reachable_address(master)
    if master.startswith("sc://"):
        return register(_connect_session(master, config or {}))
    page = {"spark.ui.enabled": str(ui).lower(), "spark.ui.killEnabled": "false"}
    given = {**page, "spark.ui.port": "0", **(config or {})}
    return register(_start_session(master, address, memory, given))


def close(*, patience: float = STOP_SECONDS) -> None:
    """Stop the session that `session` started and its JVM; without one do nothing.

    A JVM that does not end within `patience` seconds is killed.
    """
    global _machine
    machine, _machine = _machine, None
    if machine is None:
        return
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
    machine.end(patience)


def _active_session(master: str | None) -> SparkSession | None:
    """Return the running session; raise when another master is requested."""
    context = SparkContext._active_spark_context
    if context is not None:
        found = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        if master is not None and master != context.master:
            message = (
                f"a Spark session on {context.master} is already running: stop it to use "
                f"{master}, or do not name a master"
            )
            raise InvalidInput(message, code="spark_session_exists", master=context.master)
        return found
    if master is None:
        return SparkSession.getActiveSession()
    return None


def _start_session(
    master: str, address: str | None, memory: str | None, config: dict[str, str]
) -> SparkSession:
    global _machine
    close()
    memory = memory or config.pop("spark.driver.memory", None) or _half_of_the_memory()
    java = find_java()
    given = shlex.split(config.pop("spark.driver.extraJavaOptions", ""))
    flags = [*archive_flags(java), f"-Xmx{memory}", *given]
    ours = _settings(master, address)
    conf = {**ours, **config, "spark.master": master, "spark.driver.memory": memory}
    with _environment(_worker_environment(address)):
        machine = start_jvm(java, Path(_find_spark_home()), conf, flags)
        gateway = {
            "PYSPARK_GATEWAY_PORT": str(machine.port),
            "PYSPARK_GATEWAY_SECRET": machine.secret,
        }
        _machine = machine
        try:
            with _environment(gateway):
                return SparkSession.builder.getOrCreate()
        except Exception as error:
            # The log must be read before the JVM is closed.
            failure = _unavailable(master, error, machine.log_tail())
            close()
            raise failure from error
        except BaseException:
            close()
            raise


def _connect_session(master: str, config: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.remote(master)
    try:
        found = builder.getOrCreate()
        for name, value in config.items():
            found.conf.set(name, value)
    except PySparkException as error:
        raise _unavailable(master, error) from error
    return found


def _unavailable(master: str, error: Exception, log: Sequence[str] = ()) -> SparkUnavailable:
    lines = [line for line in str(error).splitlines() if line.strip()]
    reason = " ".join(lines[:2]) or type(error).__name__
    message = f"Spark did not start a session on {master}: {reason}"
    return SparkUnavailable(message, code="spark_unavailable", master=master, log=list(log))


def _reachable_address(master: str) -> str | None:
    """Return the address by which a master sees this machine, None if that is not known.

    Raise when no process answers at the addresses of a master; Spark itself would retry for long.
    """
    if master.startswith("local"):
        return _LOOPBACK
    scheme, _, rest = master.removeprefix("k8s://").partition("://")
    if scheme not in (*_PORTS, "http", "https"):
        return None
    refused = []
    for part in rest.split(","):
        place = urlsplit(f"//{part.partition('/')[0].partition(';')[0]}")
        host = place.hostname or "localhost"
        port = place.port or _PORTS.get(scheme) or (443 if scheme == "https" else 80)
        try:
            with socket.create_connection((host, port), timeout=REACH_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            refused.append(f"{host}:{port} ({error.strerror or error})")
    message = f"no Spark cluster answers at {master}: {', '.join(refused)}. Is it running?"
    raise SparkUnavailable(message, code="cluster_unreachable", master=master)


def _settings(master: str, address: str | None) -> dict[str, str]:
    """Return our defaults for a driver that is reachable at an address."""
    ours = {
        "spark.app.name": "omnigraph",
        "spark.executorEnv.LANCE_LOG": "error",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    if address is not None:
        ours |= {"spark.driver.host": address}
    if master.startswith("local"):
        found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ours |= {"spark.sql.shuffle.partitions": str(max(4, 2 * (found or 1)))}
    return ours


def _worker_environment(address: str | None) -> dict[str, str]:
    """Return environment variables for the driver and local workers that are not set yet."""
    ours = {
        "LANCE_LOG": "error",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **({} if address is None else {"SPARK_LOCAL_IP": address}),
    }
    return {name: value for name, value in ours.items() if name not in os.environ}


def _half_of_the_memory() -> str:
    """Return half of the memory of this machine or container, within limits, in Java notation."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text(encoding="ascii").strip()
        total = min(total, int(text)) if text.isdigit() else total
    half = min(max(total // 2, _GIB), _MAX_MEMORY)
    return f"{half // 2**20}m"


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the block; PySpark reads them only from there."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


atexit.register(close)
