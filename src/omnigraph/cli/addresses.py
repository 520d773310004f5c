"""This module takes the address of a graph, and what else graphs need, from the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from omnigraph.errors import InvalidInput
from omnigraph.query.choice import ENGINES, LOCAL

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


class WrongUse(click.UsageError):
    """A command line that can be parsed and means nothing; it fails like anything else does."""

    exit_code = 1


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def graph_options(*, positional: bool) -> Callable[[_CommandT], _CommandT]:
    """Let a command take the address of a graph, as an argument or as `--uri`, or as `--store`."""

    def decorate(command: _CommandT) -> _CommandT:
        if positional:
            command = click.argument("uri", required=False)(command)
        else:
            command = click.option("--uri", help="Address of the graph.")(command)
        command = click.option("--store", help="Address of the graph.")(command)
        given = {parameter.name for parameter in getattr(command, "__click_params__", ())}
        command = scope_options(command)
        return policy_option(command if "actor" in given else acting_option(command))

    return decorate


_SCOPE = (
    ("server", "NAME|URL", "Server that serves the graph."),
    ("graph", "ID", "Graph of the server or cluster."),
    ("cluster", "DIR|URI", "Cluster that has the graph."),
    ("profile", "NAME", "Profile that says where the graph is."),
)
_FLAGS = (
    ("yes", "Do not ask before something is destroyed elsewhere."),
    ("quiet", "Do not report what is addressed, and no progress."),
)


def scope_options(command: _CommandT) -> _CommandT:
    """Let a command say where its graph is, if it is not at an address."""
    parameters = getattr(command, "__click_params__", getattr(command, "params", ()))
    taken = {option for parameter in parameters for option in parameter.opts}
    for name, flag_help in reversed(_FLAGS):
        flag = click.option(
            f"--{name}",
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_note(name),
            help=flag_help,
        )
        command = flag(command)
    for name, metavar, help_ in reversed(_SCOPE):
        if f"--{name}" not in taken:
            option = click.option(
                f"--{name}", metavar=metavar, expose_value=False, callback=_note(name), help=help_
            )
            command = option(command)
    return command


def global_options(command: _CommandT) -> _CommandT:
    """Let the program take before any command what commands take behind it."""
    option = click.option(
        "--store",
        metavar="URI",
        expose_value=False,
        callback=_note("store"),
        help="Address of the graph.",
    )
    return option(acting_option(scope_options(command)))


def take_globals(command: click.Command) -> click.Command:
    """Let a command, and all below it, take what the program takes; what it cannot use it refuses.

    Options that mean nothing to a command are hidden, and told apart from misspelled ones.
    """
    if isinstance(command, click.Group):
        for below in command.commands.values():
            take_globals(below)
        return command
    taken = {option for parameter in command.params for option in parameter.opts}
    lacking = [name for name in (*_OPTIONS, *dict(_FLAGS)) if f"--{name}" not in taken]
    for name in lacking:
        noting = _note(_OPTIONS.get(name, name))
        is_flag = name not in _OPTIONS
        option = click.Option(
            [f"--{name}"],
            is_flag=is_flag,
            default=None,
            expose_value=False,
            hidden=True,
            callback=noting,
        )
        command.params.append(option)
    run = command.callback
    if lacking and run is not None:
        command.callback = _refusing(run)
    return command


def _refusing(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def checked(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - of any command
        refuse_scope(verb())
        return run(*arguments, **options)

    return checked


def noted(name: str) -> Any:  # noqa: ANN401 - the value of an option
    """Return what an option said, before the command or after it."""
    return click.get_current_context().meta.get(f"omnigraph.{name}")


_PLACES = ("server", "graph", "cluster", "profile", "store")
_OPTIONS = {**{name: name for name in _PLACES}, "as": "actor"}
_UNUSED = {
    "init": ("direct", _PLACES),
    "import": ("direct", _PLACES),
    "lint": ("direct", ("actor",)),
    "embed": ("local", ("server", "graph", "cluster", "profile")),
    "mcp": ("local", ("server", "cluster", "profile")),
    "serve": ("local", _PLACES),
    "login": ("local", (*_PLACES, "actor")),
    "logout": ("local", (*_PLACES, "actor")),
    "version": ("local", (*_PLACES, "actor")),
    "completion": ("local", (*_PLACES, "actor")),
    "fmt": ("local", (*_PLACES, "actor")),
    "alias": ("local", (*_PLACES, "actor")),
    "profile": ("local", ("server", "graph", "cluster", "store", "actor")),
    "graphs": ("served", ("graph", "store", "cluster", "actor")),
    "cluster": ("control", _PLACES),
    **{
        f"cluster {name}": ("control", (*_PLACES, "actor"))
        for name in ("validate", "plan", "status", "refresh", "import", "force-unlock")
    },
    "policy": ("control", ("server", "store", "actor")),
    "queries": ("control", ("server", "store", "actor")),
}
"""Commands that some options mean nothing to, and what sort of command each is."""


def refuse_scope(command: str) -> None:
    """Raise WrongUse when options were given that mean nothing to a command."""
    sort, unused = _UNUSED.get(command) or _UNUSED.get(command.split(" ")[0], ("", ()))
    given = [f"--{_SAID.get(name, name)}" for name in unused if noted(name) is not None]
    if given:
        do = "does" if len(given) == 1 else "do"
        raise WrongUse(f"`{command}` is a {sort} command: {', '.join(given)} {do} not apply")


_SAID = {"actor": "as"}


def is_addressed() -> bool:
    """Tell whether options say where the graph is, so that no argument needs to."""
    return any(noted(name) is not None for name in ("server", "cluster", "profile", "store"))


def verb() -> str:
    """Return the words of the command that runs, without the program's name."""
    return click.get_current_context().command_path.partition(" ")[2]


def actor_option(command: _CommandT) -> _CommandT:
    """Let a command say who acts."""
    return click.option("--as", "actor", metavar="ACTOR", help="Who acts.")(command)


def acting_option(command: _CommandT) -> _CommandT:
    """Let a command say who acts where only a policy wants to know."""
    option = click.option(
        "--as", metavar="ACTOR", expose_value=False, callback=_note("actor"), help="Who acts."
    )
    return option(command)


def policy_option(command: _CommandT) -> _CommandT:
    """Let a command say which policy decides."""
    option = click.option(
        "--policy",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_note("policy"),
        help="Policy (YAML) that decides what the actor may do.",
    )
    return option(command)


def _note(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keep what an option says for whoever opens the graph; said nearer to the command, it wins."""

    def note(context: click.Context, _: click.Parameter, value: Any) -> None:  # noqa: ANN401
        if value is not None:
            context.meta[f"omnigraph.{name}"] = value

    return note


class Acting(NamedTuple):
    """Who acts, and the policy that decides about it."""

    policy: Path | None
    actor: str | None


def acting(actor: str | None = None) -> Acting:
    """Return who acts, and the policy that decides about it."""
    meta = click.get_current_context().meta
    return Acting(meta.get("omnigraph.policy"), actor or meta.get("omnigraph.actor"))


def engine_option(command: _CommandT) -> _CommandT:
    """Let a command say who does the work."""
    choice = click.Choice(ENGINES)
    about = "Who does the work: this process, or Spark."
    return click.option("--engine", type=choice, default=LOCAL, help=about)(command)


def read_duration(text: str | None) -> timedelta | None:
    """Read `90s`, `15m`, `12h`, `30d`, `2w`; a number alone means seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})\s*([smhdw]?)", text.strip())
    if match is None:
        message = f"'{text}' is no duration; write e.g. 90s, 15m, 12h, 30d or 2w"
        raise InvalidInput(message, code="duration_invalid")
    return timedelta(**{_UNITS[match[2] or "s"]: int(match[1])})
