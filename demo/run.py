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
TOO_DEEP = """query register() {
  insert Ship { imo: 1, label: "Leviathan", kind: "tanker", draught: 99.0 }
  insert CallsAt { from: "1", to: "XYZ" }
}"""


def main() -> None:
    """Run every step; a step that does not end as it should stops the demo."""
    say("A schema declares node and edge types; everything in it is resolved and checked.")
    omnigraph("schema", "show", f"{HARBOUR}/schema.pg")
    say("Queries are typed against the schema before anything runs; mistakes are told at once.")
    omnigraph("lint", "--schema", f"{HARBOUR}/schema.pg", "--query", f"{HARBOUR}/queries.gq")
    mistakes = f"{HARBOUR}/mistakes.gq"
    omnigraph("lint", "--schema", f"{HARBOUR}/schema.pg", "--query", mistakes, code=1)
    say("A schema changes by a plan: renames keep their data, and what is unsafe is refused.")
    next_schema = f"{HARBOUR}/schema-next.pg"
    omnigraph("schema", "plan", "--from", f"{HARBOUR}/schema.pg", "--to", next_schema)
    with tempfile.TemporaryDirectory() as folder:
        data(f"{folder}/harbour")
        history(f"{folder}/harbour")
        search(f"{folder}/library")
        review(f"{folder}/library", Path(folder))
        pipeline(f"{folder}/library")
        serve(f"{folder}/library")
    print("\nThat is all. README.md has the tour, docs/ the reference.")


def data(uri: str) -> None:
    """Show how data gets into a graph, how it does not, and how it is asked for."""
    say("A folder is a graph. A load is one commit: all of it, or nothing.")
    omnigraph("init", uri, "--schema", f"{HARBOUR}/schema.pg")
    omnigraph("load", uri, "--data", f"{HARBOUR}/data.ndjson", "--mode", "merge")
    say("Whatever is wrong with data is told at once, with its place, and nothing changes.")
    broken = f"{HARBOUR}/broken.ndjson"
    omnigraph("load", uri, "--data", broken, "--mode", "merge", code=1)
    say("A pattern finds ships, ports and the calls between them.")
    omnigraph("query", "--store", uri, "-e", WHO_CALLS)
    say("Ports within three legs of Aarhus at which no ship calls.")
    omnigraph("query", "--store", uri, "-e", WAYS, "--params", '{"from": "AAR"}')
    say("One validator stands before every change, also before a mutation.")
    omnigraph("mutate", "--store", uri, "-e", TOO_DEEP, code=1)


def history(uri: str) -> None:
    """Show a branch, time travel and the proof that all is well."""
    say("A branch costs nothing until it is written; main does not see what happens there.")
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
    say("Every commit is there to be read, with who made it.")
    omnigraph("commit", "list", uri, "--branch", "agent/42")
    say("And a graph can prove that it is whole.")
    omnigraph("verify", uri)


def search(uri: str) -> None:
    """Show one question to the graph, to words and to meanings, and how it is answered."""
    say("Vectors are made from texts on this machine; nothing is sent anywhere.")
    omnigraph("init", uri, "--schema", f"{LIBRARY}/schema.pg")
    omnigraph("load", uri, "--data", f"{LIBRARY}/data.ndjson", "--mode", "merge")
    say("One query follows edges, compares meanings and looks for words, then fuses both ranks.")
    asked = '{"topics": ["sea", "animals"], "question": "ships waiting for high water"}'
    omnigraph("query", "--store", uri, "-e", HYBRID, "--params", asked)
    omnigraph("explain", "--store", uri, "-e", HYBRID, "--params", asked, "--analyze")


def review(uri: str, folder: Path) -> None:
    """Show two agents at work on branches, a conflict, and a person who decides."""
    say("Two agents work side by side, each on a branch.")
    for agent, title in (("wind", "Reading the wind"), ("tide", "Tides for captains")):
        omnigraph("branch", "create", "--uri", uri, f"agent/{agent}")
        words = ("--params", f'{{"slug": "tides", "title": "{title}"}}', "--as", agent)
        omnigraph("mutate", "--store", uri, "--branch", f"agent/{agent}", "-e", SAY, *words)
    say("The first merge moves main forward; the second disagrees, and nothing changes.")
    omnigraph("merge", "--uri", uri, "agent/wind", "--as", "ada", "--delete-branch")
    omnigraph("merge", "--uri", uri, "agent/tide", "--as", "ada", code=1)
    say("A person decides, and the decision is part of the merge.")
    decisions = folder / "decisions.json"
    decisions.write_text(DECISIONS, encoding="utf-8")
    print(f"\n$ cat {decisions.name}\n{DECISIONS}", flush=True)
    words = ("--resolve", str(decisions), "--as", "ada", "--message", "both are right")
    omnigraph("merge", "--uri", uri, "agent/tide", *words, "--delete-branch")
    omnigraph("commit", "log", uri, "--draw")


def pipeline(uri: str) -> None:
    """Show how data comes in on Spark: by a file, past bad rows, over a branch, into main."""
    say("A pipeline file says what is loaded on Spark and how; it is checked before Spark starts.")
    file, branch = f"{LIBRARY}/pipeline.yaml", "incoming/week-31"
    omnigraph("pipeline", "validate", file, "--uri", uri)
    say("It loads into a branch of its own; bad rows are set aside, vectors are made.")
    page = Path(tempfile.gettempdir()) / "omnigraph-report.html"
    omnigraph("pipeline", "run", file, "--uri", uri, "--as", "publisher", "--html", str(page))
    say("Somebody looks at what it would bring, and merges it.")
    omnigraph("diff", uri, "main", branch, "--stat")
    omnigraph("merge", "--uri", uri, branch, "--as", "ada")
    print(f"\nThe report of the run, with charts: {page.as_uri()}", flush=True)


def serve(uri: str) -> None:
    """Show a server that answers a stored query to one actor and refuses another."""
    say("A server asks a policy who may do what; tokens say who asks.")
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
        say("Ada may ask the stored query; for Eve there is none.")
        omnigraph(*ask, token=tokens["act-ada"])
        omnigraph(*ask, token=tokens["act-eve"], code=1)
    finally:
        server.terminate()
        server.wait()


def say(what: str) -> None:
    """Print what is shown next."""
    print(f"\n# {what}", flush=True)


def omnigraph(*arguments: str, code: int = 0, token: str | None = None) -> None:
    """Run one command and show it with its output."""
    shown = (f"'{a}'" if " " in a or "{" in a else a for a in arguments)
    said = "" if token is None else f"OMNIGRAPH_BEARER_TOKEN={token} "
    print(f"\n$ {said}omnigraph {' '.join(shown)}", flush=True)
    program = [sys.executable, "-m", "omnigraph.cli", *arguments]
    environment = {**os.environ, "OMNIGRAPH_BEARER_TOKEN": token or ""}
    done = subprocess.run(program, cwd=ROOT, check=False, env=environment)
    if done.returncode != code:
        sys.exit(f"unexpected exit code {done.returncode}")


if __name__ == "__main__":
    main()
