"""Show what omnigraph does, on the sample graphs in samples/."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HARBOUR = "samples/harbour"
WHO_CALLS = """query who_calls() {
  match { $s: Ship  $s $c:callsAt $p }
  return { $s.label, $p.city, $c.on, $c.fee }
  order { $s.label, $c.on }
}"""
WAYS = """query ways($from: String) {
  match { $a: Port { code: $from }  $a route{1,3} $b  not { $_ callsAt $b } }
  return { $b.code, $b.city }
  order { $b.code }
}"""
REFIT = """query refit($ship: I64, $draught: F32) {
  update Ship set { draught: $draught } where imo = $ship
}"""
LIBRARY = "samples/library"
HYBRID = """query hybrid($topics: [String], $question: String) {
  match { $a: Article  $a about $t  $t.name in $topics }
  return { $a.title, $t.name as topic, nearest($a.embedding, $question) as distance }
  order { rrf(nearest($a.embedding, $question), bm25($a.text, $question)) }
  limit 3
}"""
SAY = """query say($slug: String, $title: String) {
  update Article set { title: $title } where slug = $slug
}"""
DECISIONS = """{"entities": [
  {"type": "Article", "id": "tides", "set": {"title": "Reading wind and tide"}}
]}"""
OTTERS = """query otters() {
  insert Article { slug: "otters", title: "Otters", text: "Otters return to the harbour." }
}"""
ABOUT = """query about() { insert About { from: "otters", to: "animals" } }"""
TOO_DEEP = """query register() {
  insert Ship { imo: 1, label: "Leviathan", kind: "tanker", draught: 99.0 }
  insert CallsAt { from: "1", to: "XYZ" }
}"""

STUDIO = """
To see a graph like this one in the browser, with its branches, proposals and pipeline runs:

  make ui
  .venv/bin/omnigraph init ./my-harbour --schema samples/harbour/schema.pg
  .venv/bin/omnigraph load ./my-harbour --data samples/harbour/data.ndjson --mode merge
  .venv/bin/omnigraph studio ./my-harbour
"""


def main() -> None:
    """Run every step; stop if a step has an unexpected exit code."""
    say("A schema declares node and edge types; all of it is resolved and checked.")
    omnigraph("schema", "show", f"{HARBOUR}/schema.pg")
    say("Queries are type-checked against the schema before they run; all errors are reported.")
    omnigraph("lint", "--schema", f"{HARBOUR}/schema.pg", "--query", f"{HARBOUR}/queries.gq")
    mistakes = f"{HARBOUR}/mistakes.gq"
    omnigraph("lint", "--schema", f"{HARBOUR}/schema.pg", "--query", mistakes, code=1)
    say("Schema changes are planned: renames keep their data, unsafe changes are refused.")
    next_schema = f"{HARBOUR}/schema-next.pg"
    omnigraph("schema", "plan", "--from", f"{HARBOUR}/schema.pg", "--to", next_schema)
    with tempfile.TemporaryDirectory() as folder:
        data(f"{folder}/harbour")
        history(f"{folder}/harbour")
        search(f"{folder}/library")
        review(f"{folder}/library", Path(folder))
        proposals(f"{folder}/library")
        pipeline(f"{folder}/library")
        serve(f"{folder}/library")
    print("\nEnd of the demo. See README.md for a tour and docs/ for the reference.")
    print(STUDIO)


def data(uri: str) -> None:
    """Show a load, a load with violations, and queries."""
    say("A graph is a folder. A load is one atomic commit.")
    omnigraph("init", uri, "--schema", f"{HARBOUR}/schema.pg")
    omnigraph("load", uri, "--data", f"{HARBOUR}/data.ndjson", "--mode", "merge")
    say("All violations of the data are reported at once, with positions; nothing is changed.")
    broken = f"{HARBOUR}/broken.ndjson"
    omnigraph("load", uri, "--data", broken, "--mode", "merge", code=1)
    say("A pattern finds ships, ports and the calls between them.")
    omnigraph("query", "--store", uri, "-e", WHO_CALLS)
    say("Ports within three legs of Aarhus at which no ship calls.")
    omnigraph("query", "--store", uri, "-e", WAYS, "--params", '{"from": "AAR"}')
    say("Mutations are validated by the same rules.")
    omnigraph("mutate", "--store", uri, "-e", TOO_DEEP, code=1)


def history(uri: str) -> None:
    """Show a branch, time travel and verification."""
    say("A branch copies no data; its changes are not visible on main.")
    omnigraph("branch", "create", "--uri", uri, "agent/42")
    omnigraph("tag", "create", "--uri", uri, "before-refit")
    refit = ("--params", '{"ship": 9074729, "draught": 7.5}', "--as", "act-ada")
    omnigraph("mutate", "--store", uri, "--branch", "agent/42", "-e", REFIT, *refit)
    draught = """query draught() {
  match { $s: Ship { label: "Aurora" } }
  return { $s.draught }
}"""
    for at in ("--branch", "main"), ("--branch", "agent/42"), ("--snapshot", "before-refit"):
        omnigraph("query", "--store", uri, "-e", draught, *at, "--format", "csv")
    say("Every commit is kept, with its actor.")
    omnigraph("commit", "list", uri, "--branch", "agent/42")
    say("Check the integrity of the graph.")
    omnigraph("verify", uri)


def search(uri: str) -> None:
    """Show a hybrid query over edges, words and vectors, and its plan."""
    say("Vectors are computed from texts on this machine; no service is called.")
    omnigraph("init", uri, "--schema", f"{LIBRARY}/schema.pg")
    omnigraph("load", uri, "--data", f"{LIBRARY}/data.ndjson", "--mode", "merge")
    say("One query follows edges, ranks by vectors and by words, and fuses both ranks.")
    parameters = '{"topics": ["sea", "animals"], "question": "ships waiting for high water"}'
    omnigraph("query", "--store", uri, "-e", HYBRID, "--params", parameters)
    omnigraph("explain", "--store", uri, "-e", HYBRID, "--params", parameters, "--analyze")


def review(uri: str, folder: Path) -> None:
    """Show two agents on branches, a conflict, and its resolution by a reviewer."""
    say("Two agents work concurrently, each on a branch.")
    for agent, title in (("wind", "Reading the wind"), ("tide", "Tides for captains")):
        omnigraph("branch", "create", "--uri", uri, f"agent/{agent}")
        words = ("--params", f'{{"slug": "tides", "title": "{title}"}}', "--as", agent)
        omnigraph("mutate", "--store", uri, "--branch", f"agent/{agent}", "-e", SAY, *words)
    say("The first merge is a fast-forward; the second has a conflict and changes nothing.")
    omnigraph("merge", "--uri", uri, "agent/wind", "--as", "ada", "--delete-branch")
    omnigraph("merge", "--uri", uri, "agent/tide", "--as", "ada", code=1)
    say("A reviewer decides, and the decision is part of the merge.")
    decisions = folder / "decisions.json"
    decisions.write_text(DECISIONS, encoding="utf-8")
    print(f"\n$ cat {decisions.name}\n{DECISIONS}", flush=True)
    words = ("--resolve", str(decisions), "--as", "ada", "--message", "both are right")
    omnigraph("merge", "--uri", uri, "agent/tide", *words, "--delete-branch")
    omnigraph("commit", "log", uri, "--draw")


def proposals(uri: str) -> None:
    """Show two agents that propose, a check that fails, a fix, an approval and the merges."""
    checks, on = ("--checks", f"{LIBRARY}/checks"), ("--store", uri)
    say("A protected branch accepts only proposals that another actor has approved.")
    omnigraph("protection", "set", *on, "--branch", "main", "--approvals", "1")
    omnigraph("mutate", *on, "-e", OTTERS, "--as", "agent-otter", code=1)
    say("Two agents propose changes, each on a branch.")
    title = ("--params", '{"slug": "tides", "title": "Tide and wind"}')
    for agent, change in (("otter", (OTTERS,)), ("heron", (SAY, *title))):
        branch, who = f"agent/{agent}", ("--as", f"agent-{agent}")
        omnigraph("branch", "create", uri, branch)
        omnigraph("mutate", *on, "--branch", branch, "-e", *change, *who)
        omnigraph("proposal", "create", *on, branch, "-t", f"Work of {agent}", *who)
    omnigraph("proposal", "list", *on)
    say("Checks are queries that must return no rows, on the state that merging would make.")
    print(f"\n$ cat {LIBRARY}/checks/articles.gq", flush=True)
    print((ROOT / LIBRARY / "checks" / "articles.gq").read_text(), end="", flush=True)
    omnigraph("proposal", "check", *on, "1", *checks, code=1)
    reviewer = ("--as", "ada")
    place = ("--on", "Article", "--on", "otters")
    omnigraph("proposal", "comment", *on, "1", *place, "--body", "About which topic?", *reviewer)
    say(
        "The agent fixes it; the reviewer looks at the change and approves; the merge is published."
    )
    fix = ("--branch", "agent/otter", "-e", ABOUT, "--as", "agent-otter")
    omnigraph("mutate", *on, *fix)
    omnigraph("proposal", "diff", *on, "1")
    omnigraph("proposal", "merge", *on, "1", *checks, *reviewer, code=1)
    for number in ("1", "2"):
        omnigraph("proposal", "review", *on, number, "approve", *reviewer)
        omnigraph("proposal", "merge", *on, number, *checks, *reviewer, "--delete-branch")
    omnigraph("proposal", "show", *on, "1")
    say("Blame names the agent that wrote each value, not the reviewer who merged it.")
    omnigraph("blame", *on, "Article", "otters")
    omnigraph("protection", "clear", *on)


def pipeline(uri: str) -> None:
    """Show a pipeline on Spark: rejected rows, a branch, a report, a merge into main."""
    say("A pipeline file declares a load on Spark; it is checked before Spark starts.")
    file, branch = f"{LIBRARY}/pipeline.yaml", "incoming/week-31"
    omnigraph("pipeline", "validate", file, "--uri", uri)
    say("It loads into its own branch; invalid rows are rejected, vectors are computed.")
    page = Path(tempfile.gettempdir()) / "omnigraph-report.html"
    omnigraph("pipeline", "run", file, "--uri", uri, "--as", "publisher", "--html", str(page))
    say("A reviewer checks the changes, and merges them.")
    omnigraph("diff", uri, "main", branch, "--stat")
    omnigraph("merge", "--uri", uri, branch, "--as", "ada")
    print(f"\nThe report of the run, with charts: {page.as_uri()}", flush=True)


def serve(uri: str) -> None:
    """Show a server that runs a stored query for one actor and not for another."""
    say("A server enforces a policy; tokens identify the actor.")
    print(f"\n$ cat {LIBRARY}/policy.yaml\n{(ROOT / LIBRARY / 'policy.yaml').read_text()}", end="")
    words = ("--graph", f"library={uri}", "--bind", "127.0.0.1:0")
    rules = ("--queries", f"{LIBRARY}/queries", "--policy", f"{LIBRARY}/policy.yaml")
    print(f"\n$ omnigraph serve {' '.join((*words, *rules))} &", flush=True)
    tokens = {"act-ada": "secret-of-ada", "act-eve": "secret-of-eve"}
    server = subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli", "serve", *words, *rules],
        cwd=ROOT,
        env={**os.environ, "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(tokens)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None, "it has a pipe"
        line = server.stdout.readline().strip()
        print(line, flush=True)
        ask = (
            *("query", "about", "--graph", "library"),
            *("--server", f"http://{line.removeprefix('OMNIGRAPH_LISTEN_ADDR=')}"),
            *("--params", '{"topic": "sea", "question": "how do harbours fill?"}'),
        )
        say("Ada may run the stored query; for Eve it does not exist.")
        omnigraph(*ask, token=tokens["act-ada"])
        omnigraph(*ask, token=tokens["act-eve"], code=1)
    finally:
        server.terminate()
        server.wait()


def say(what: str) -> None:
    """Print the title of the next step."""
    print(f"\n# {what}", flush=True)


def omnigraph(*arguments: str, code: int = 0, token: str | None = None) -> None:
    """Run one command and show it with its output."""
    shown = (f"'{a}'" if " " in a or "{" in a else a for a in arguments)
    variable = "" if token is None else f"OMNIGRAPH_BEARER_TOKEN={token} "
    print(f"\n$ {variable}omnigraph {' '.join(shown)}", flush=True)
    program = [sys.executable, "-m", "omnigraph.cli", *arguments]
    environment = {**os.environ, "OMNIGRAPH_BEARER_TOKEN": token or ""}
    done = subprocess.run(program, cwd=ROOT, check=False, env=environment)
    if done.returncode != code:
        sys.exit(f"unexpected exit code {done.returncode}")


if __name__ == "__main__":
    main()
