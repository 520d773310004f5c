"""Show what omnigraph does, on the sample graph in samples/harbour."""

import subprocess
import sys
import tempfile
from pathlib import Path

from history import add_ports, city_of

ROOT = Path(__file__).resolve().parents[1]
HARBOUR = "samples/harbour"


def main() -> None:
    """Run every step; a step that does not end as it should stops the demo."""
    say("A schema declares node and edge types; everything in it is resolved and checked.")
    omnigraph("schema", "show", f"{HARBOUR}/schema.pg")
    say("Queries are typed against the schema before anything runs.")
    omnigraph("lint", "--schema", f"{HARBOUR}/schema.pg", "--query", f"{HARBOUR}/queries.gq")
    say("Mistakes are all told at once, with their place and the way out.")
    mistakes = f"{HARBOUR}/mistakes.gq"
    omnigraph("lint", "--schema", f"{HARBOUR}/schema.pg", "--query", mistakes, code=1)
    say("A schema changes by a plan: renames keep their data, and what is unsafe is refused.")
    next_schema = f"{HARBOUR}/schema-next.pg"
    omnigraph("schema", "plan", "--from", f"{HARBOUR}/schema.pg", "--to", next_schema)
    with tempfile.TemporaryDirectory() as folder:
        history(f"{folder}/harbour")
    print("\nThat is all. README.md has the tour, docs/ the reference.")


def history(uri: str) -> None:
    """Show commits, a branch and time travel on a graph of its own."""
    say("A folder is a graph.")
    omnigraph("init", uri, "--schema", f"{HARBOUR}/schema.pg")
    say("Writers stage invisible versions and publish once; each commit is atomic over all types.")
    first = add_ports(uri, "main", [("AAA", "Aarhus"), ("BBB", "Bergen")])
    omnigraph("commit", "list", uri)
    say("A branch costs nothing until it is written; main does not see what happens there.")
    omnigraph("branch", "create", "--uri", uri, "agent/42")
    add_ports(uri, "agent/42", [("BBB", "Bergen Havn"), ("CCC", "Cuxhaven")])
    for branch in ("main", "agent/42"):
        print(f"BBB on {branch}: {city_of(uri, 'BBB', branch)}")
    say("Every state stays readable: by branch, tag, commit or time.")
    omnigraph("tag", "create", "--uri", uri, "first-ports", "--at", first.id)
    add_ports(uri, "main", [("BBB", "Bergen (closed)")])
    for at in ("main", "first-ports"):
        print(f"BBB at {at}: {city_of(uri, 'BBB', at)}")
    say("And it can prove that it is whole.")
    omnigraph("verify", uri)


def say(what: str) -> None:
    """Print what is shown next."""
    print(f"\n# {what}", flush=True)


def omnigraph(*arguments: str, code: int = 0) -> None:
    """Run one command and show it with its output."""
    print(f"\n$ omnigraph {' '.join(arguments)}", flush=True)
    program = [sys.executable, "-m", "omnigraph.cli", *arguments]
    done = subprocess.run(program, cwd=ROOT, check=False)
    if done.returncode != code:
        sys.exit(f"unexpected exit code {done.returncode}")


if __name__ == "__main__":
    main()
