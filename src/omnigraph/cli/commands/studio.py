"""`omnigraph studio`."""

from __future__ import annotations

import os
import secrets
import webbrowser
from collections.abc import Callable
from typing import Any

import click

from omnigraph.cli.commands.mcp import DEFAULT_GRAPH_ID
from omnigraph.cli.commands.serve import import_server_module
from omnigraph.cli.open_graph import stored_address
from omnigraph.cli.options import actor_option, graph_argument, store_option

_LOCAL_ACTOR = "local"
"""The actor where neither `--as` nor the system names the person."""
_LOG_LEVEL = "OMNIGRAPH_LOG"


@click.command()
@graph_argument
@store_option
@actor_option
@click.option("--policy", metavar="FILE", help="Policy file of the graph.")
@click.option("--queries", metavar="DIR", help="Folder of stored queries.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 chooses a free one."
)
@click.option("--open/--no-open", "opens", default=True, help="Open the browser, or not.")
def studio(**options: Any) -> None:  # noqa: ANN401 - one of each option
    """Show a graph in the browser, until Ctrl-C."""
    address = stored_address(options["uri"], options["store"])
    serving = import_server_module()
    one_time_token = secrets.token_urlsafe(32)
    named = {name: options[name] for name in ("policy", "queries") if options[name] is not None}
    settings = serving.ServerSettings(
        graphs={DEFAULT_GRAPH_ID: address},
        policies={serving.ALL_GRAPHS: named["policy"]} if "policy" in named else {},
        queries={serving.ALL_GRAPHS: named["queries"]} if "queries" in named else {},
        require_all=True,
        port=options["port"],
        studio=serving.StudioOptions(
            one_time_token=one_time_token,
            token=secrets.token_urlsafe(32),
            actor=options["actor"] or os.environ.get("USER") or _LOCAL_ACTOR,
        ),
    )
    environment = {_LOG_LEVEL: "warning", **os.environ}
    serving.serve(settings, environment, _announce(one_time_token, opens=options["opens"]))


def _announce(token: str, *, opens: bool) -> Callable[[str], None]:
    """Return a function that opens the page, or prints its address where there is no browser."""

    def announce(address: str) -> None:
        url = f"http://{address}/#token={token}"
        if opens and webbrowser.open(url):
            click.echo(f"Studio runs at http://{address}; press Ctrl-C to stop it.")
        else:
            click.echo(f"Open {url} within a minute; press Ctrl-C to stop.")

    return announce
