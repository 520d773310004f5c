"""This module starts Spark sessions that are quiet, fit the machine, and end with it."""

from __future__ import annotations

import atexit
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.errors import SparkUnavailable
from omnigraph.pipeline.java import Machine, find_java, start_machine

LOCAL = "local[*]"
REACH_SECONDS = 10
"""How long a cluster may take to accept a connection."""

_PORTS = {"sc": 15002, "spark": 7077}
_GIB = 2**30
_MAX_MEMORY = 31 * _GIB
"""Above this, Java's references get longer and more memory holds less."""

_machine: Machine | None = None


def session(
    master: str | None = None,
    *,
    memory: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the running Spark session, or start one.

    `master` is `local[*]` by default, any master of Spark, or `sc://host:port` for Spark Connect.
    `memory` is that of the driver, as `4g`; by default half of what this machine has. `config` are
    Spark's own settings and win over ours. A session that runs already is returned as it is.
    """
    found = _running(master)
    if found is not None:
        return found
    if master is None:
        master = os.environ.get("SPARK_REMOTE") or LOCAL
    _reach(master)
    if master.startswith("sc://"):
        return _connected(master, config or {})
    return _started(master, memory, dict(config or {}))


def close() -> None:
    """End the session that `session` started and its virtual machine; without one do nothing."""
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
    machine.end()


def _running(master: str | None) -> SparkSession | None:
    """Return the session that runs; raise when another master was asked for."""
    context = SparkContext._active_spark_context
    if context is not None:
        found = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        if master is not None and master != context.master:
            message = (
                f"a Spark session on {context.master} runs already: stop it to use {master}, "
                "or name no master"
            )
            raise InvalidInput(message, code="spark_session_exists", master=context.master)
        return found
    if master is None:
        return SparkSession.getActiveSession()
    return None


def _started(master: str, memory: str | None, config: dict[str, str]) -> SparkSession:
    global _machine
    close()
    memory = memory or config.pop("spark.driver.memory", None) or _half_of_the_memory()
    flags = [f"-Xmx{memory}", *shlex.split(config.pop("spark.driver.extraJavaOptions", ""))]
    conf = {**_settings(master), **config, "spark.master": master, "spark.driver.memory": memory}
    with _environment(_worker_environment(master)):
        machine = start_machine(find_java(), Path(_find_spark_home()), conf, flags)
        gateway = {
            "PYSPARK_GATEWAY_PORT": str(machine.port),
            "PYSPARK_GATEWAY_SECRET": machine.secret,
        }
        _machine = machine
        try:
            with _environment(gateway):
                return SparkSession.builder.getOrCreate()
        except BaseException as error:
            close()
            if isinstance(error, Exception):
                raise _unavailable(master, error) from error
            raise


def _connected(master: str, config: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.remote(master)
    try:
        found = builder.getOrCreate()
        for name, value in config.items():
            found.conf.set(name, value)
    except PySparkException as error:
        raise _unavailable(master, error) from error
    return found


def _unavailable(master: str, error: Exception) -> SparkUnavailable:
    [reason, *_] = str(error).strip().splitlines() or [type(error).__name__]
    message = f"Spark did not start a session on {master}: {reason}"
    return SparkUnavailable(message, code="spark_unavailable", master=master)


def _reach(master: str) -> None:
    """Raise when nobody answers at the addresses of a master; Spark itself would try for long."""
    scheme, _, rest = master.removeprefix("k8s://").partition("://")
    if not rest:
        return
    if scheme not in (*_PORTS, "http", "https"):
        return
    refused = []
    for part in rest.split(","):
        address = urlsplit(f"//{part.partition('/')[0].partition(';')[0]}")
        host = address.hostname or "localhost"
        port = address.port or _PORTS.get(scheme) or (443 if scheme == "https" else 80)
        try:
            socket.create_connection((host, port), timeout=REACH_SECONDS).close()
        except OSError as error:
            refused.append(f"{host}:{port} ({error.strerror or error})")
        else:
            return
    message = f"nobody answers at {master}: {', '.join(refused)}. Is the cluster running?"
    raise SparkUnavailable(message, code="cluster_unreachable", master=master)


def _settings(master: str) -> dict[str, str]:
    """Return our defaults for a driver."""
    ours = {
        "spark.app.name": "omnigraph",
        "spark.executorEnv.LANCE_LOG": "error",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if not master.startswith("local"):
        return ours
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    partitions = max(4, 2 * (cores or 1))
    return {
        **ours,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(partitions),
    }


def _worker_environment(master: str) -> dict[str, str]:
    """Return what the driver and workers on this machine need to know and were not told."""
    ours = {
        "LANCE_LOG": "error",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if master.startswith("local"):
        ours["SPARK_LOCAL_IP"] = "127.0.0.1"
    return {name: value for name, value in ours.items() if name not in os.environ}


def _half_of_the_memory() -> str:
    """Return half of what this machine or its container has, within reason, as Java wants it."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text(encoding="ascii").strip()
        total = min(total, int(text)) if text.isdigit() else total
    half = min(max(total // 2, _GIB), _MAX_MEMORY)
    return f"{half // 2**20}m"


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for as long as the block lasts: PySpark reads them from nowhere else."""
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
