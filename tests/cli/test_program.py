"""The program as a whole: version, help, usage errors, closed pipes."""

import json
import subprocess
import sys
import tomllib

import omnigraph as package
from omnigraph.cli.app import COMMANDS
from tests.support.program import ROOT, omnigraph

ERRORS = "omnigraph.errors"


def test_version_prints_two_lines():
    ran = omnigraph("version")
    assert (ran.code, ran.out) == (0, f"omnigraph {package.__version__}\ninternal-schema 2\n")


def test_version_as_json():
    assert json.loads(omnigraph("version", "--json").out) == {
        "omnigraph": package.__version__,
        "internal_schema": 2,
    }


def test_version_flag_prints_one_line():
    assert omnigraph("-v").out == omnigraph("--version").out == f"omnigraph {package.__version__}\n"


def test_help_lists_every_command():
    out = omnigraph("--help").out
    sections = out.split("\nData:\n")[1].split("\n  Examples:")[0]
    listed = [line.split()[0] for line in sections.splitlines() if line.startswith("  ")]
    assert listed == list(COMMANDS)


def test_the_server_is_a_program_of_its_own():
    run = "from omnigraph.cli.app import server; server()"
    command = [sys.executable, "-c", run, "--bind", "nowhere"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, "expected HOST:PORT" in ran.stderr) == (2, True)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert declared["omnigraph-server"] == "omnigraph.cli.app:server"


def test_an_unknown_command_is_wrong_usage_with_a_suggestion():
    ran = omnigraph("lnt")
    assert ran.code == 2
    assert "No such command 'lnt'. Did you mean 'lint'?" in ran.err


def test_version_loads_neither_languages_nor_heavy_libraries():
    program = (
        "import sys; sys.argv = ['omnigraph', 'version']\n"
        "import atexit; atexit.register(lambda: print(*sorted(sys.modules)))\n"
        "from omnigraph.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"omnigraph.lang", "omnigraph.plan", "rich", "pyarrow"}


def test_a_reader_that_goes_away_is_no_traceback():
    program = f"{sys.executable} -m omnigraph.cli schema show samples/harbour/schema.pg | head -1"
    done = subprocess.run(program, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_stub_and_package_name_the_same_things():
    stub = (ROOT / "src" / "omnigraph" / "__init__.pyi").read_text(encoding="utf-8")
    reported = {line.rsplit(" as ", 1)[1] for line in stub.splitlines() if " as " in line}
    assert reported == set(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert dir(package) == sorted(package.__all__)


def test_package_names_every_error_and_every_value_that_results_are_made_of():
    def below(class_):
        return {class_, *(found for one in class_.__subclasses__() for found in below(one))}

    shared = {one.__name__ for one in below(package.OmniError) if one.__module__ == ERRORS}
    assert shared - {"CleanupBegan"} <= set(package.__all__)
    assert {"Commit", "Change", "Conflict", "Violation"} <= set(package.__all__)
