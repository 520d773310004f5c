"""Show what omnigraph does, on the sample graph in samples/harbour."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HARBOUR = "samples/harbour"

STEPS = (
    (
        "A schema declares node and edge types; everything in it is resolved and checked.",
        ["schema", "show", f"{HARBOUR}/schema.pg"],
        0,
    ),
    (
        "Queries are typed against the schema before anything runs.",
        ["lint", "--schema", f"{HARBOUR}/schema.pg", "--query", f"{HARBOUR}/queries.gq"],
        0,
    ),
    (
        "Mistakes are all told at once, with their place and the way out.",
        ["lint", "--schema", f"{HARBOUR}/schema.pg", "--query", f"{HARBOUR}/mistakes.gq"],
        1,
    ),
    (
        "A schema changes by a plan: renames keep their data, and what is unsafe is refused.",
        [
            *("schema", "plan"),
            *("--from", f"{HARBOUR}/schema.pg"),
            *("--to", f"{HARBOUR}/schema-next.pg"),
        ],
        0,
    ),
)


def main() -> int:
    """Run every step; return 1 when one did not end as it should."""
    program = [sys.executable, "-m", "omnigraph.cli"]
    for number, (what, arguments, expected) in enumerate(STEPS, start=1):
        print(f"\n{number}. {what}\n\n$ omnigraph {' '.join(arguments)}", flush=True)
        done = subprocess.run([*program, *arguments], cwd=ROOT, check=False)
        if done.returncode != expected:
            print(f"unexpected exit code {done.returncode}", file=sys.stderr)
            return 1
    print("\nThat is all. README.md has the tour, docs/ the reference.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
