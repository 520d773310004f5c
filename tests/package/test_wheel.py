"""The distribution in an environment of its own: built, installed with pip, and used.

The sdist is built from the sources and the wheel from the sdist, as an installer of sources does.
pip downloads the dependencies from the package index that is configured.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import omnigraph
from tests.support.docs import ROOT, console_commands, page_blocks, shows

LIMIT = 560e6
"""Bytes of an installation without extras, apart from pip itself."""
TOOLS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")


def run(command, cwd, **variables):
    """Run a command without the packages of this environment; return its exit code and output."""
    env = {name: text for name, text in os.environ.items() if not name.startswith("OMNIGRAPH_")}
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**env, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def build(source, target, out):
    """Build a distribution of a source tree and return its path."""
    code, text = run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out], source)
    assert code == 0, text
    [path] = Path(out).glob("*.whl" if target == "wheel" else "*.tar.gz")
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    code, text = run([sys.executable, "scripts/build_ui.py"], ROOT)
    assert code == 0, text
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build(folder / f"omnigraph-{omnigraph.__version__}", "wheel", folder / "dist")


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """Return the folder of programs of an environment in which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    for command in (
        [sys.executable, "-m", "venv", folder],
        [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        [folder / "bin/pip", "check", "--disable-pip-version-check"],
    ):
        code, text = run(command, folder.parent)
        assert code == 0, text
    return folder / "bin"


def test_the_wheel_has_what_the_sources_have(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        facts = Parser().parsestr(archive.read(metadata).decode())
    package = ROOT / "src" / "omnigraph"
    sources = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    compiled = {name for name in names | sources if re.search(r"/_kernels\.\w+", name)}
    installed = {name for name in names if name.startswith("omnigraph/")}
    assert installed - compiled == sources - compiled
    assert "omnigraph/server/studio/index.html" in installed
    assert facts["Version"] == omnigraph.__version__
    assert facts["Requires-Python"] == ">=3.11"
    assert "database" in facts["Keywords"].split(",")
    assert facts["Project-URL"].startswith("Homepage, https://")
    assert "maintainers" in facts["Author"]
    extras = facts.get_all("Provides-Extra")
    assert {
        "all",
        "aws",
        "embed",
        "langchain",
        "mcp",
        "policy",
        "server",
        "spark",
        "telemetry",
    } <= set(extras)


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_first_commands_of_a_page_work_in_an_empty_folder(programs, tmp_path, page):
    block = next(b for b in page_blocks(ROOT / page) if b.language == "console")
    commands = dict(console_commands(block))
    if page == "README.md":
        assert commands.pop("pip install 'omnigraph[server]'") == ""
        assert len(commands) == 3
    for command, shown in commands.items():
        code, text = run(["sh", "-c", f"PATH={programs}:$PATH; {command}"], tmp_path)
        text = text.replace(str(tmp_path), ".")
        assert (code, shows(shown, text)) == (0, True), text


def test_own_data_and_an_answer_from_python(programs, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBo,4\nCy,12\n")
    lines = """
import omnigraph as og
graph = og.init("people", "node People { name: String @key  age: I64 }")
graph.load({"People": "people.csv"}, mode="append")
print(graph.query("match { $p: People  $p.age > 10 } return { $p.name as n } order { n }").rows)
"""
    answer = "[{'n': 'Ada'}, {'n': 'Cy'}]\n"
    assert run([programs / "python", "-c", lines], tmp_path) == (0, answer)
    ask = ["-e", "match { $p: People } return { sum($p.age) as years }", "--json"]
    code, text = run([programs / "omnigraph", "query", "./people", *ask], tmp_path)
    assert (code, json.loads(text)["rows"]) == (0, [{"years": 52}])


@pytest.fixture(scope="module")
def notes(programs, tmp_path_factory):
    """Return a folder with a graph of notes, and files that commands with extras read."""
    folder = tmp_path_factory.mktemp("notes")
    schema = "node Note { slug: String @key  text: String  v: Vector(8)? @embed(text) }\n"
    (folder / "schema.pg").write_text(schema)
    (folder / "data.ndjson").write_text('{"type":"Note","data":{"slug":"a","text":"b"}}\n')
    (folder / "notes.csv").write_text("slug,text\nc,d\n")
    (folder / "pipeline.yaml").write_text(
        "version: 1\nname: notes\nsources: { notes: { csv: notes.csv } }\n"
        "nodes: { Note: { source: notes, properties: { slug: slug, text: text } } }\n"
    )
    shutil.copy(ROOT / "samples" / "harbour" / "policy.yaml", folder)
    program = programs / "omnigraph"
    assert run([program, "init", "./g", "--schema", "schema.pg"], folder)[0] == 0
    loaded = run([program, "load", "./g", "--data", "data.ndjson", "--mode", "append"], folder)
    assert loaded[0] == 0, loaded[1]
    return folder


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["serve", "./g", "--unauthenticated"], "server"),
        (["studio", "./g"], "server"),
        (["mcp", "./g"], "mcp"),
        (["snapshot", "./g", "--policy", "policy.yaml", "--as", "ada"], "policy"),
        (["embed", "./g", "Note"], "embed"),
        (["pipeline", "run", "pipeline.yaml", "--store", "./g"], "spark"),
    ],
)
def test_an_error_names_the_extra(programs, notes, words, extra):
    code, text = run([programs / "omnigraph", *words], notes)
    assert code != 0
    assert f"pip install 'omnigraph[{extra}]'" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("import omnigraph.langchain", "pip install 'omnigraph[langchain]'"),
        ("result.to_pandas()", "pip install pandas"),
        ("result.to_polars()", "pip install polars"),
    ],
)
def test_an_error_in_python_names_what_to_install(programs, tmp_path, line, command):
    lines = f"""
import omnigraph as og
graph = og.init("g", "node Note {{ slug: String @key }}")
result = graph.query("match {{ $n: Note }} return {{ $n.slug }}")
{line}
"""
    code, text = run([programs / "python", "-c", lines], tmp_path)
    assert (code, command in text.splitlines()[-1]) == (1, True), text


def test_an_installation_is_not_larger_than_its_limit(programs):
    [packages] = programs.parent.glob("lib/python*/site-packages")
    size = sum(
        path.stat().st_size
        for path in packages.rglob("*")
        if path.is_file() and not path.relative_to(packages).parts[0].startswith(TOOLS)
    )
    assert size <= LIMIT
