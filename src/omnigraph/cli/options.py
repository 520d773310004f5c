"""This module takes the address of a graph, and what else graphs need, from the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from omnigraph.errors import InvalidInput
from omnigraph.query.limits import ENGINES, LOCAL_ENGINE

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


class InvalidUsage(click.UsageError):
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
        command = location_options(command)
        return policy_option(command if "actor" in given else policy_actor_option(command))

    return decorate


_LOCATION_HELP = (
    ("server", "NAME|URL", "Server that serves the graph."),
    ("graph", "ID", "Graph of the server or cluster."),
    ("cluster", "DIR|URI", "Cluster that has the graph."),
    ("profile", "NAME", "Profile that says where the graph is."),
)
_FLAGS = (
    ("yes", "Do not ask before something is destroyed elsewhere."),
    ("quiet", "Do not report what is addressed, and no progress."),
)


def location_options(command: _CommandT) -> _CommandT:
    """Let a command say where its graph is, if it is not at an address."""
    parameters = getattr(command, "__click_params__", getattr(command, "params", ()))
    taken = {option for parameter in parameters for option in parameter.opts}
    for name, flag_help in reversed(_FLAGS):
        flag = click.option(
            f"--{name}",
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_store_option(name),
            help=flag_help,
        )
        command = flag(command)
    for name, metavar, help_ in reversed(_LOCATION_HELP):
        if f"--{name}" not in taken:
            option = click.option(
                f"--{name}",
                metavar=metavar,
                expose_value=False,
                callback=_store_option(name),
                help=help_,
            )
            command = option(command)
    return command


def global_options(command: _CommandT) -> _CommandT:
    """Let the program take before any command what commands take behind it."""
    option = click.option(
        "--store",
        metavar="URI",
        expose_value=False,
        callback=_store_option("store"),
        help="Address of the graph.",
    )
    return option(policy_actor_option(location_options(command)))


def accept_global_options(command: click.Command) -> click.Command:
    """Let a command, and all below it, take what the program takes; what it cannot use it refuses.

    Options that mean nothing to a command are hidden, and told apart from misspelled ones.
    """
    if isinstance(command, click.Group):
        for below in command.commands.values():
            accept_global_options(below)
        return command
    taken = {option for parameter in command.params for option in parameter.opts}
    lacking = [name for name in (*_OPTION_FIELDS, *dict(_FLAGS)) if f"--{name}" not in taken]
    for name in lacking:
        noting = _store_option(_OPTION_FIELDS.get(name, name))
        is_flag = name not in _OPTION_FIELDS
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
        command.callback = _refuse_unused(run)
    return command


def _refuse_unused(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def checked(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - of any command
        refuse_unused_options(command_words())
        return run(*arguments, **options)

    return checked


def option_value(name: str) -> Any:  # noqa: ANN401 - the value of an option
    """Return what an option said, before the command or after it."""
    return click.get_current_context().meta.get(f"omnigraph.{name}")


_LOCATION_OPTIONS = ("server", "graph", "cluster", "profile", "store")
_OPTION_FIELDS = {**{name: name for name in _LOCATION_OPTIONS}, "as": "actor"}
_UNUSED_OPTIONS = {
    "init": ("direct", _LOCATION_OPTIONS),
    "import": ("direct", _LOCATION_OPTIONS),
    "lint": ("direct", ("actor",)),
    "embed": ("local", ("server", "graph", "cluster", "profile")),
    "mcp": ("local", ("server", "cluster", "profile")),
    "serve": ("local", _LOCATION_OPTIONS),
    "login": ("local", (*_LOCATION_OPTIONS, "actor")),
    "logout": ("local", (*_LOCATION_OPTIONS, "actor")),
    "version": ("local", (*_LOCATION_OPTIONS, "actor")),
    "completion": ("local", (*_LOCATION_OPTIONS, "actor")),
    "fmt": ("local", (*_LOCATION_OPTIONS, "actor")),
    "alias": ("local", (*_LOCATION_OPTIONS, "actor")),
    "profile": ("local", ("server", "graph", "cluster", "store", "actor")),
    "graphs": ("served", ("graph", "store", "cluster", "actor")),
    "cluster": ("control", _LOCATION_OPTIONS),
    **{
        f"cluster {name}": ("control", (*_LOCATION_OPTIONS, "actor"))
        for name in ("validate", "plan", "status", "refresh", "import", "force-unlock")
    },
    "policy": ("control", ("server", "store", "actor")),
    "queries": ("control", ("server", "store", "actor")),
}
"""Commands that some options mean nothing to, and what sort of command each is."""


def refuse_unused_options(command: str) -> None:
    """Raise InvalidUsage when options were given that mean nothing to a command."""
    sort, unused = _UNUSED_OPTIONS.get(command) or _UNUSED_OPTIONS.get(
        command.split(" ")[0], ("", ())
    )
    given = [
        f"--{_FIELD_OPTIONS.get(name, name)}" for name in unused if option_value(name) is not None
    ]
    if given:
        do = "does" if len(given) == 1 else "do"
        raise InvalidUsage(f"`{command}` is a {sort} command: {', '.join(given)} {do} not apply")


_FIELD_OPTIONS = {"actor": "as"}


def has_location() -> bool:
    """Tell whether options say where the graph is, so that no argument needs to."""
    return any(option_value(name) is not None for name in ("server", "cluster", "profile", "store"))


def command_words() -> str:
    """Return the words of the command that runs, without the program's name."""
    return click.get_current_context().command_path.partition(" ")[2]


def actor_option(command: _CommandT) -> _CommandT:
    """Let a command say who acts."""
    return click.option("--as", "actor", metavar="ACTOR", help="Who acts.")(command)


def policy_actor_option(command: _CommandT) -> _CommandT:
    """Let a command say who acts where only a policy wants to know."""
    option = click.option(
        "--as",
        metavar="ACTOR",
        expose_value=False,
        callback=_store_option("actor"),
        help="Who acts.",
    )
    return option(command)


def policy_option(command: _CommandT) -> _CommandT:
    """Let a command say which policy decides."""
    option = click.option(
        "--policy",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_store_option("policy"),
        help="Policy (YAML) that decides what the actor may do.",
    )
    return option(command)


def _store_option(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keep what an option says for whoever opens the graph; said nearer to the command, it wins."""

    def note(context: click.Context, _: click.Parameter, value: Any) -> None:  # noqa: ANN401
        if value is not None:
            context.meta[f"omnigraph.{name}"] = value

    return note


class ActorPolicy(NamedTuple):
    """Who acts, and the policy that decides about it."""

    policy: Path | None
    actor: str | None


def actor_and_policy(actor: str | None = None) -> ActorPolicy:
    """Return who acts, and the policy that decides about it."""
    meta = click.get_current_context().meta
    return ActorPolicy(meta.get("omnigraph.policy"), actor or meta.get("omnigraph.actor"))


def engine_option(command: _CommandT) -> _CommandT:
    """Let a command say who does the work."""
    choice = click.Choice(ENGINES)
    about = "Who does the work: this process, or Spark."
    return click.option("--engine", type=choice, default=LOCAL_ENGINE, help=about)(command)


def read_duration(text: str | None) -> timedelta | None:
    """Read `90s`, `15m`, `12h`, `30d`, `2w`; a number alone means seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})\s*([smhdw]?)", text.strip())
    if match is None:
        message = f"'{text}' is no duration; write e.g. 90s, 15m, 12h, 30d or 2w"
        raise InvalidInput(message, code="duration_invalid")
    return timedelta(**{_UNITS[match[2] or "s"]: int(match[1])})


# ----------------------------------------------------------------------
# This module knows what commands were once called, and says what they are called now.


_DEPRECATED_NAMES = {
    ("read",): "query",
    ("change",): "mutate",
    ("check",): "lint",
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
}
"""Words a command line may begin with, and the command that takes their place."""


def replace_deprecated_name(words: Sequence[str]) -> list[str]:
    """Return a command line with the name a command has now, and warn of the older one."""
    for older, name in _DEPRECATED_NAMES.items():
        if tuple(words[: len(older)]) == older:
            warn_deprecated(" ".join(older), name)
            return [name, *words[len(older) :]]
    return list(words)


def warn_deprecated(older: str, newer: str) -> None:
    """Say that something has another name now; it still works."""
    click.echo(f"warning: `{older}` is deprecated; use `{newer}`", err=True)
