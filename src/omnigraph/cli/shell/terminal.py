"""Read statements from a terminal, with history and completion.

prompt_toolkit is used where it is installed (`pip install 'omnigraph[shell]'`), else readline.
"""

from __future__ import annotations

import os
import readline
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omnigraph.cli.shell.completion import complete
from omnigraph.cli.shell.session import ShellSession
from omnigraph.cli.shell.statements import is_finished

HISTORY_VARIABLE = "OMNIGRAPH_HISTORY"
_CONTINUED = "... "
_HISTORY_LENGTH = 1000

ReadText = Callable[[], str]
"""Return the next text that is typed; raises EOFError at the end and KeyboardInterrupt."""


def history_path() -> Path:
    """Return the file of typed statements: `OMNIGRAPH_HISTORY`, or one in the state folder."""
    chosen = os.environ.get(HISTORY_VARIABLE)
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "omnigraph" / "history"


def open_terminal(session: ShellSession) -> ReadText:
    """Return a function that reads from the terminal."""
    path = history_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        path = Path(os.devnull)  # without a home folder there is no history
    if find_spec("prompt_toolkit") is not None:
        return _open_prompt_toolkit(session, path)
    return _open_readline(session, path)


def _open_prompt_toolkit(session: ShellSession, path: Path) -> ReadText:
    toolkit = import_module("prompt_toolkit")
    completions = import_module("prompt_toolkit.completion")
    bindings = import_module("prompt_toolkit.key_binding").KeyBindings()

    class _Completer(completions.Completer):  # type: ignore[misc, name-defined]
        def get_completions(self, document: Any, _: Any) -> Any:  # noqa: ANN401 - not a dependency
            text = document.text_before_cursor
            for found in complete(text, session):
                yield completions.Completion(
                    found.word, start_position=found.start - len(text), display_meta=found.about
                )

    @bindings.add("enter")  # type: ignore[untyped-decorator]
    def _(event: Any) -> None:  # noqa: ANN401 - not a dependency
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and not is_finished(buffer.text):
            buffer.newline(copy_margin=True)
        else:
            buffer.validate_and_handle()

    history = import_module("prompt_toolkit.history").FileHistory(str(path))
    prompt = toolkit.PromptSession(
        history=history,
        completer=_Completer(),
        complete_while_typing=False,
        key_bindings=bindings,
        multiline=True,
        prompt_continuation=lambda width, *_: _CONTINUED.rjust(width),
    )
    return lambda: str(prompt.prompt(session.prompt))


def _open_readline(session: ShellSession, path: Path) -> ReadText:
    lines: list[str] = []

    def candidates(typed: str, number: int) -> str | None:
        """Return the candidate with a number, as readline asks for them one after the other."""
        text = "\n".join([*lines, readline.get_line_buffer()[: readline.get_endidx()]])
        found = [c.word for c in complete(text, session)]
        # Readline replaces the word since the last delimiter, which may begin later.
        fitting = [word for word in found if word.startswith(typed)]
        return fitting[number] if number < len(fitting) else None

    def read() -> str:
        lines.clear()
        while True:
            lines.append(input(_CONTINUED if lines else session.prompt))
            text = "\n".join(lines)
            if is_finished(text):
                readline.append_history_file(1, path)
                return text

    readline.set_completer(candidates)
    readline.set_completer_delims(" \t\n{}()[],:;=<>\"'")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(_HISTORY_LENGTH)
    readline.read_history_file(path)
    return read
