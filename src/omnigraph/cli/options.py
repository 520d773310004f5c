"""Options that commands share: graph address, actor, policy, engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from omnigraph.errors import InvalidInput

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


class InvalidUsage(click.UsageError):
    """A command line that parses but is invalid; exits with code 1."""

    exit_code = 1


def graph_options(*, positional: bool = True) -> Callable[[_CommandT], _CommandT]:
    """Add the address of a graph: as the first argument, as `--store`, or by its location.

    A command whose own arguments are of a variable number reads GRAPH from them: it is not
    `positional`. Others have the argument before theirs, so this decorator is the outer one.
    """

    def decorate(command: _CommandT) -> _CommandT:
        if positional:
            command = graph_argument(command)
        command = store_option(command)
        names = {parameter.name for parameter in getattr(command, "__click_params__", ())}
        command = location_options(command)
        return policy_option(command if "actor" in names else policy_actor_option(command))

    return decorate


def graph_argument(command: _CommandT) -> _CommandT:
    """Add the argument `[GRAPH]`, passed as `uri`; None if only the other arguments are given."""
    # With any number of values, it gets what the arguments behind it leave over.
    return click.argument("uri", nargs=-1, metavar="[GRAPH]", callback=_only_graph)(command)


_FILE_HINTS = {
    "init": "; files are given with --from FILE",
    "load": "; files are given with --data FILE or --node TYPE=FILE",
}
"""How a command takes files that were written as arguments."""


def _only_graph(context: click.Context, _: click.Parameter, words: tuple[str, ...]) -> str | None:
    if len(words) > 1:
        hint = _FILE_HINTS.get(context.command.name or "", "")
        raise click.UsageError(f"too many arguments: '{words[0]}' is the graph{hint}")
    return words[0] if words else None


def store_option(command: _CommandT) -> _CommandT:
    """Add `--store`, an alternative to the argument GRAPH."""
    return click.option("--store", "--uri", "store", help=_STORE_HELP)(command)


_STORE_HELP = "Address of the graph, instead of the argument GRAPH."
_LOCATION_HELP = (
    ("server", "NAME|URL", "Server that serves the graph."),
    ("graph", "ID", "ID of the graph on the server or cluster."),
    ("cluster", "DIR|URI", "Cluster that contains the graph."),
    ("profile", "NAME", "Profile with the address of the graph."),
)
_FLAGS = (
    ("yes", "Do not ask for confirmation before remote data is deleted."),
    ("quiet", "Do not print the graph address and progress."),
)


def location_options(command: _CommandT) -> _CommandT:
    """Add the options that locate a graph by server, cluster or profile."""
    parameters = getattr(command, "__click_params__", getattr(command, "params", ()))
    taken = {option for parameter in parameters for option in parameter.opts}
    for name, about in reversed(_FLAGS):
        command = _stored_option(name, is_flag=True, default=None, help=about)(command)
    for name, metavar, about in reversed(_LOCATION_HELP):
        if f"--{name}" not in taken:
            command = _stored_option(name, metavar=metavar, help=about)(command)
    return command


def global_options(command: _CommandT) -> _CommandT:
    """Add the options that may precede a command."""
    store = _stored_option("store", "--store", "--uri", metavar="URI", help="Address of the graph.")
    return store(policy_actor_option(location_options(command)))


def accept_global_options(command: click.Command) -> click.Command:
    """Make a command and its subcommands accept the global options.

    Options that do not apply to a command are hidden and refused with a specific message.
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
            ["--store", "--uri"] if name == "store" else [f"--{name}"],
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
    """Return the value of an option given before or after the command."""
    return click.get_current_context().meta.get(f"omnigraph.{name}")


_LOCATION_OPTIONS = ("server", "graph", "cluster", "profile", "store")
_ADDRESS_OPTIONS = (*_LOCATION_OPTIONS, "actor")
_OPTION_FIELDS = {**{name: name for name in _LOCATION_OPTIONS}, "as": "actor"}
_UNUSED_OPTIONS = {
    "init": ("direct", ("server", "graph", "cluster")),
    "import": ("direct", ("server", "graph", "cluster")),
    "studio": ("direct", ("server", "graph", "cluster")),
    "lint": ("direct", ("actor",)),
    "embed": ("local", ("server", "graph", "cluster")),
    "mcp": ("local", ("server", "cluster")),
    "serve": ("local", ("server", "graph", "cluster", "profile")),
    **dict.fromkeys(
        ("login", "logout", "version", "completion", "fmt", "alias", "quickstart"),
        ("local", _ADDRESS_OPTIONS),
    ),
    "profile": ("local", ("server", "graph", "cluster", "store", "actor")),
    "graphs": ("served", ("graph", "store", "cluster", "actor")),
    "cluster": ("control", _LOCATION_OPTIONS),
    **{
        f"cluster {name}": ("control", _ADDRESS_OPTIONS)
        for name in ("validate", "plan", "status", "refresh", "import", "force-unlock")
    },
    "policy": ("control", ("server", "store", "actor")),
    "queries": ("control", ("server", "store", "actor")),
}
"""Commands to which some options do not apply, with the kind of each command."""


def refuse_unused_options(command: str) -> None:
    """Raise InvalidUsage if options were given that do not apply to a command."""
    sort, unused = _UNUSED_OPTIONS.get(command) or _UNUSED_OPTIONS.get(
        command.split(" ")[0], ("", ())
    )
    given = (name for name in unused if option_value(name) is not None)
    names = ["--as" if name == "actor" else f"--{name}" for name in given]
    if names:
        do = "does" if len(names) == 1 else "do"
        raise InvalidUsage(f"`{command}` is a {sort} command: {', '.join(names)} {do} not apply")


def has_location() -> bool:
    """Return whether options locate the graph, so that no argument is needed."""
    return any(option_value(name) is not None for name in ("server", "cluster", "profile", "store"))


def command_words() -> str:
    """Return the words of the running command, without the name of the program."""
    return click.get_current_context().command_path.partition(" ")[2]


def actor_option(command: _CommandT) -> _CommandT:
    """Add `--as`, passed to the command."""
    return click.option(
        "--as", "actor", metavar="ACTOR", help="Actor that performs the operation."
    )(command)


def policy_actor_option(command: _CommandT) -> _CommandT:
    """Add `--as` to a command that uses the actor only for policy checks."""
    about = "Actor that performs the operation."
    return _stored_option("actor", "--as", metavar="ACTOR", help=about)(command)


def policy_option(command: _CommandT) -> _CommandT:
    """Add `--policy`."""
    path, about = click.Path(path_type=Path), "Policy file (YAML) to enforce."
    return _stored_option("policy", type=path, help=about)(command)


def _stored_option(name: str, *words: str, **attributes: Any) -> Callable[[_CommandT], _CommandT]:  # noqa: ANN401
    """Return an option that is stored in the context instead of being passed to the command."""
    callback = _store_option(name)
    return click.option(
        *(words or (f"--{name}",)), expose_value=False, callback=callback, **attributes
    )


def _store_option(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback that stores an option in the context; the innermost value wins."""

    def note(context: click.Context, _: click.Parameter, value: Any) -> None:  # noqa: ANN401
        if value is not None:
            context.meta[f"omnigraph.{name}"] = value

    return note


class ActorPolicy(NamedTuple):
    """The actor of a command and the policy to enforce."""

    policy: Path | None
    actor: str | None


def actor_and_policy(actor: str | None = None) -> ActorPolicy:
    """Return the actor of a command and the policy to enforce."""
    meta = click.get_current_context().meta
    return ActorPolicy(meta.get("omnigraph.policy"), actor or meta.get("omnigraph.actor"))


def json_option(command: _CommandT, about: str = "Print JSON.") -> _CommandT:
    """Add `--json`, which `print_result` follows."""
    return _stored_option("json", is_flag=True, help=about)(command)


def engine_option(command: _CommandT) -> _CommandT:
    """Add `--engine`."""
    choice = click.Choice(["local", "spark"])  # queries are not imported to print help
    about = "Execute in this process (local) or on Spark."
    return click.option("--engine", type=choice, default="local", help=about)(command)


def durability_option(command: _CommandT) -> _CommandT:
    """Add `--durability`."""
    choice = click.Choice(["full", "relaxed"])  # storage is not imported to print help
    about = "Sync commits to a local disk (full), or let the system do it (relaxed)."
    return click.option("--durability", type=choice, help=f"{about}  [default: full]")(command)


def collect_options(
    target: str, names: Sequence[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that passes several options as one argument, a dictionary."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - of any command
            collected = {name: options.pop(name) for name in names}
            command(*arguments, **options, **{target: collected})

        return run

    return decorate


def read_duration(text: str | None) -> timedelta | None:
    """Read `90s`, `15m`, `12h`, `30d`, `2w`; a number alone means seconds."""
    if text is None:
        return None
    try:
        duration: timedelta = import_module("omnigraph.types.duration").parse_duration(text)
    except ValueError as error:
        raise InvalidInput(str(error), code="duration_invalid") from error
    return duration
