"""Run the program `omnigraph` as a person or a script would: as a process of its own."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from tests.support.preloaded_cli import warm

ROOT = Path(__file__).resolve().parents[2]
HARBOUR = ROOT / "samples" / "harbour"
_PROGRAM = (sys.executable, "-m", "omnigraph.cli")


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run of the program ended."""

    code: int
    out: str
    err: str


def omnigraph(*arguments: str | Path, cwd: Path = ROOT, typed: str = "") -> Ran:
    """Run the program with its output captured; `typed` is its standard input."""
    with TemporaryFile() as out, TemporaryFile() as err:
        code = _run(arguments, cwd, os.environ, (out.fileno(), err.fileno()), typed)
        texts = [_content(file.fileno()) for file in (out, err)]
    return Ran(code, *texts)


def omnigraph_with(
    arguments: Sequence[str], env: Mapping[str, str], cwd: Path, given: str | None = None
) -> Ran:
    """Run the program with variables, a folder and, if any, a text on standard input."""
    with TemporaryFile() as out, TemporaryFile() as err, TemporaryFile() as text:
        text.write((given or "").encode())
        text.seek(0)
        streams = [text.fileno(), out.fileno(), err.fileno()]
        code = warm().run(list(arguments), cwd, env, streams)
        texts = [_content(file.fileno()) for file in (out, err)]
    return Ran(code, *texts)


def omnigraph_said(
    arguments: Sequence[str], env: Mapping[str, str], cwd: Path = ROOT, typed: str = ""
) -> str:
    """Run the program and return all it said, errors among the rest."""
    with TemporaryFile() as out:
        _run(arguments, cwd, env, (out.fileno(), out.fileno()), typed)
        return _content(out.fileno())


def _run(
    arguments: Sequence[str | Path],
    cwd: Path,
    env: Mapping[str, str],
    outputs: tuple[int, int],
    typed: str = "",
) -> int:
    words = [str(argument) for argument in arguments]
    if not typed:
        with open(os.devnull) as nothing:
            return warm().run(words, cwd, env, [nothing.fileno(), *outputs])
    with TemporaryFile() as given:
        os.pwrite(given.fileno(), typed.encode(), 0)
        return warm().run(words, cwd, env, [given.fileno(), *outputs])


def _content(file: int) -> str:
    return os.pread(file, os.fstat(file).st_size, 0).decode().replace("\r\n", "\n")


def omnigraph_on_terminal(*arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run the program on a terminal of its own and return what the terminal got."""
    return on_terminal(_command(arguments), cwd)


def on_terminal(command: Sequence[str], cwd: Path = ROOT) -> str:
    """Run any command on a terminal of its own and return what the terminal got."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, cwd=cwd, stdout=follower, stderr=follower, env=environment):
        os.close(follower)
        chunks = []
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(leader)
    return b"".join(chunks).decode()


def _command(arguments: Sequence[str | Path]) -> list[str]:
    return [*_PROGRAM, *(str(argument) for argument in arguments)]
