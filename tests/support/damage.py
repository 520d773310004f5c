"""Damages files of a graph at random, and reports what verify and every command make of it.

The child is this module run as a program: it prints what became of each call as JSON lines, so that
what it did before it died is known.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmniError
from omnigraph.maintain import verify_subprocess
from omnigraph.maintain.last_good import LastGoodSearch
from omnigraph.maintain.last_good_model import LastGoodReport
from omnigraph.maintain.retention import SETTINGS
from omnigraph.maintain.return_to_last_good import return_to_last_good
from omnigraph.storage import locate
from omnigraph.storage.checksums import clear_checked_files
from tests.support.groups import publish_together

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? @index  photo: Blob?  tags: [String]? }
node Place { city: String @key  size: F64? }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> Place @key(src, dst)
"""
KINDS = ("flip", "flips", "truncate", "zero", "remove", "append", "swap")
PEAK_BYTES = 2 * 1024**3
_ROOT = Path(__file__).resolve().parents[2]
_OLDER = ": an older state is used"
_QUERIES = (
    "query a() { match { $p: Person $p knows $q } return { $p.name as p, $q.age as a } }",
    'query b() { match { $p: Person search($p.bio, "harbour") } return { $p.name as p } }',
    'query c() { match { $p: Person { name: "p7" } $p livesIn $c } return { $c.city as c } }',
    "query d() { match { $p: Person } return { count($p) as n, sum($p.age) as s } }",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one damage: `faults` must be empty."""

    what: str
    reported: bool
    identical: bool
    repaired: bool
    peak: int
    faults: tuple[str, ...]
    problems: tuple[str, ...]


def make_graph(folder: Path) -> None:
    """Create a graph with branches, tags, blobs of every size, indexes, deletions and a group.

    It has an open and a merged proposal, a protected branch and a retention, too.
    """
    g = og.init(folder, schema=SCHEMA)
    g.load(io.StringIO("\n".join([*_people(0, 60), *_places(), *_knows(0, 60)])))
    g.tags.create("first")
    for name, size in (("p1", 300), ("p2", 70_000), ("p3", 90_000)):
        g.put_blob("Person", name, "photo", random.Random(size).randbytes(size))
    g.optimize()
    g.branches.create("side")
    g.load(io.StringIO("\n".join(_people(60, 70))), branch="side")
    g.mutate('query m() { delete Person where name = "p9" }')
    g.mutate('query m() { update Person set { age: 99 } where name = "p11" }')
    g.branches.create("gone")
    g.branches.delete("gone")
    g.load(io.StringIO("\n".join([*_people(70, 80), *_knows(70, 80)])))
    g.mutate('query m() { delete Person where name = "p62" }', branch="side")
    g.tags.create("last")
    cities = ("Bonn", "Bern", "Jena")
    publish_together(g, *(partial(g.insert, "Place", [{"city": city}]) for city in cities))
    g.branches.create("agent")
    g.insert("Place", [{"city": "Graz"}], branch="agent")
    g.protection.set({"branches": ["agent", "release/*"], "tags": ["v*"]})
    g.proposals.create("agent", into="main", title="Graz").merge()
    proposal = g.proposals.create("side", into="main", title="Side", description="of an agent")
    proposal.comment("Why?", on=("Person", "p62"))
    g.as_actor("reviewer").proposals.get(proposal.number).review("approve")
    g.maintenance.set_retention(keep=1_000)


def _people(start: int, stop: int) -> list[str]:
    bios = ("the harbour at night", "a quiet library", "harbour and hills")
    rows = [
        {
            "name": f"p{n}",
            "age": n * 3 % 80,
            "bio": f"{bios[n % 3]} {n}",
            "tags": [f"t{n % 5}", "x"],
        }
        for n in range(start, stop)
    ]
    return [json.dumps({"type": "Person", "data": row}) for row in rows]


def _places() -> list[str]:
    nodes = [{"type": "Place", "data": {"city": c, "size": 1.5}} for c in ("Kiel", "Ulm", "Rom")]
    lives = [
        {"edge": "LivesIn", "from": f"p{n}", "to": ("Kiel", "Ulm", "Rom")[n % 3]} for n in range(60)
    ]
    return [json.dumps(line) for line in (*nodes, *lives)]


def _knows(start: int, stop: int) -> list[str]:
    lines = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{start + n * 7 % (stop - start)}"}
        for n in range(start, stop)
    ]
    return [json.dumps({**line, "data": {"since": 2000 + n}}) for n, line in enumerate(lines)]


# --- damage --------------------------------------------------------------------------------------


def damage(root: Path, seed: int) -> str:
    """Damage one file, chosen by a seed, and describe it."""
    chance = random.Random(seed)
    files = sorted(file for file in root.rglob("*") if file.is_file())
    if chance.random() < 0.5:  # as often any file as one of any folder
        folders = sorted({file.parent for file in files})
        folder = chance.choice(folders)
        files = [file for file in files if file.parent == folder]
    file = chance.choice(files)
    kind = chance.choice(KINDS)
    data = bytearray(file.read_bytes())
    where = chance.randrange(len(data)) if data else 0
    if kind == "swap":
        others = sorted(f for f in file.parent.iterdir() if f.is_file() and f != file)
        if not others:
            kind = "remove"
        else:
            other = chance.choice(others)
            held = other.read_bytes()
            other.write_bytes(bytes(data))
            file.write_bytes(held)
            return f"{seed} swap {file.relative_to(root)} {other.name}"
    if kind == "remove":
        file.unlink()
    else:
        file.write_bytes(bytes(_changed(data, kind, where, chance)))
    return f"{seed} {kind} {file.relative_to(root)} at {where} of {len(data)}"


def _changed(data: bytearray, kind: str, where: int, chance: random.Random) -> bytearray:
    match kind:
        case "flip" if data:
            data[where] ^= 1 << chance.randrange(8)
        case "flips" if data:
            for _ in range(8):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "truncate":
            del data[where:]
        case "zero":
            stop = min(len(data), where + chance.choice((1, 16, 512, 4096)))
            data[where:stop] = bytes(stop - where)
        case _:
            data += chance.randbytes(chance.choice((1, 100, 5000)))
    return data


def examine(whole: Path, seeds: Sequence[int], timeout: int = 120) -> list[Outcome]:
    """Damage copies of a graph and run everything on each; seed -1 stands for no damage.

    One process imports everything and forks for each damage, before it has any thread.
    """
    listed = [-1, *seeds]
    command = [sys.executable, "-m", "tests.support.damage", str(whole), str(timeout)]
    done = subprocess.run(
        [*command, *map(str, listed)], capture_output=True, text=True, check=True, cwd=_ROOT
    )
    sound, *found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sound["verified"]["ok"], sound
    assert not sound["faults"], sound
    return [_judged(one, sound["answers"]) for one in found]


def _judged(found: dict[str, Any], expected: dict[str, Any]) -> Outcome:
    faults = [f"{name}: {text}" for name, text in found["faults"].items()]
    verified, ending = found.get("verified"), found["ending"]
    if verified is None:
        faults.append(f"verify did not return ({found['verify_ending']})")
    if found["peak"] > PEAK_BYTES:
        faults.append(f"verify used {found['peak']} bytes")
    reported = verified is not None and not verified["ok"]
    answers = found.get("answers", {})
    changed = [name for name in expected if answers.get(name) != expected[name]]
    if answers.get("retention") == repr(None):  # without its file, nothing is removed
        changed = [name for name in changed if name != "retention"]
    identical = not changed
    if not reported and not identical:
        faults.append(f"unnoticed: {changed} {ending}")
    # A damaged index is not used, and its status says so.
    served = [n for n in changed if n != "indexes" and not _is_error(answers.get(n))]
    if verified is not None and any(_OLDER in p["message"] for p in verified["problems"]):
        # What cuts the newest version of a lineage looks like a power failure.
        states = set(expected["history"].values())
        served = [n for n in served if n.startswith("export ") and answers[n] not in states]
    if served and found.get("done") is not None:
        faults.append(f"served: {served}")
    repaired = _judge_repair(found, expected, faults)
    if found.get("done") is None and ending != f"signal {signal.SIGABRT}":
        faults.append(f"the commands did not end: {ending} in {found.get('at')}")
    problems = tuple(f"{p['where']}: {p['message']}" for p in (verified or {}).get("problems", ()))
    return Outcome(
        found["what"], reported, identical, repaired, found["peak"], tuple(faults), problems
    )


def _is_error(answer: Any) -> bool:
    return answer is None or (isinstance(answer, dict) and "error" in answer)


def _judge_repair(found: dict[str, Any], expected: dict[str, Any], faults: list[str]) -> bool:
    """Compare what a return to the last good versions says with what it does."""
    repair = found.get("repair")
    if repair is None or "error" in repair:
        faults.append(f"repair: {found['repair_ending']} {repair}")
        return False
    damaged = [plan for plan in repair["plans"] if not plan["whole"]]
    if not repair["plans"][0]["possible"]:
        if repair["confirmed"]["error"] != "graph_corrupt":
            faults.append(f"repair without a whole version: {repair}")
        return False
    done = repair["confirmed"]
    if "error" in done or not done.get("committed"):
        faults.append(f"repair: {done}")
        return False
    lost = {commit for plan in repair["plans"] for commit in plan["lost"]}
    for plan in repair["plans"]:
        faults += _judge_branch(plan, lost, done, expected)
    # A tag may need a version that no branch needs: it is not lost, but cannot be read. Settings
    # are set again.
    faults += [
        f"after repair: {text}"
        for text in done["problems"]
        if "tag " not in text and not text.startswith(SETTINGS)
    ]
    return bool(damaged)


def _judge_branch(
    plan: dict[str, Any], lost: set[str], done: dict[str, Any], expected: dict[str, Any]
) -> Iterator[str]:
    """Yield where the commits and the content of a branch are not what a plan says.

    `lost` are the commits that all plans say are lost: a merged commit is on its own branch.
    """
    branch = plan["branch"]
    if branch not in expected["commits"]:
        return
    before, after = expected["commits"][branch], done["commits"].get(branch, [])
    left = set(chain(*done["commits"].values()))  # a lost branch shares commits with others
    missing = [commit for commit in before if commit not in left]
    unread = [commit for commit in missing if commit not in lost]
    known = set(chain(*expected["commits"].values()))
    if set(after) - set(before) or set(plan["lost"]) & set(after) or set(plan["lost"]) - known:
        yield f"repair of {branch}: {plan['lost']} lost, but {missing} is missing"
    if set(plan["merged"]) != set(plan["lost"]) & left:
        yield f"repair of {branch}: {plan['merged']} merged of {plan['lost']}, but {left} are left"
    versions = {expected["versions"][commit] for commit in unread}  # a group shares one
    if len(versions) > plan["unreadable"]:
        yield f"repair of {branch}: {unread} lost, {plan['unreadable']} unreadable versions"
    if after and done["exports"][branch] != expected["history"][after[0]]:
        yield f"repair of {branch}: its content is not that of commit {after[0]}"


# --- the child -----------------------------------------------------------------------------------


def _main(whole: str, timeout: int, seeds: Sequence[int]) -> None:
    for seed in seeds:
        with tempfile.TemporaryDirectory() as held:
            copy = Path(held, "graph")
            shutil.copytree(whole, copy)
            what = damage(copy, seed) if seed >= 0 else "nothing"
            repairable = Path(held, "repaired")
            shutil.copytree(copy, repairable)
            lines, verify_ending, peak = _forked(held, timeout, partial(_verify, copy))
            found: dict[str, Any] = {
                "what": what,
                "verify_ending": verify_ending,
                "peak": peak,
                "faults": {},
            }
            report = next((line["report"] for line in lines if "report" in line), None)
            if report is not None:
                found["verified"] = report
            elif verify_ending == f"signal {signal.SIGABRT}":  # the caller of the child reports it
                problem = {"where": lines[-1].get("place", ""), "message": "ended the process"}
                found["verified"] = {"ok": False, "problems": [problem]}
            is_ok = report is not None and report["ok"]
            lines, ending, _ = _forked(held, timeout, partial(_commands, copy, writing=not is_ok))
            for line in lines:
                found |= line
            lines, repair_ending, _ = _forked(held, timeout, partial(_repair, repairable))
            found["repair_ending"] = repair_ending
            for line in lines:
                found |= line
            print(json.dumps({**found, "ending": ending}), flush=True)


def _forked(held: str, timeout: int, call: Callable[[], None]) -> tuple[list[Any], str, int]:
    """Run a call in a fork; return the JSON lines it wrote, how it ended and its peak memory."""
    written = Path(held, "written")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(written, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(timeout)
        try:
            call()
        finally:
            sys.stdout.flush()
            os._exit(0)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    ending = f"signal {-code}" if code < 0 else f"exit {code}"
    lines = []
    for line in written.read_text().splitlines():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines, ending, usage.ru_maxrss * 1024


def _verify(root: Path) -> None:
    """Do what the child of `verify --deep` does."""
    verify_subprocess.run_child_verify({"uri": str(root), "options": {}, "plain": True})


def _repair(root: Path) -> None:
    """Return a graph to its last good versions, in this process, and write what became of it."""
    location = locate(root)
    resource.setrlimit(resource.RLIMIT_DATA, (PEAK_BYTES, PEAK_BYTES))
    search = LastGoodSearch(Manifest(location), lambda _: None, lambda *_: None)
    repair: dict[str, Any] = {}
    try:
        report = LastGoodReport(lineages=tuple(search.run()))
        repair["plans"] = [
            {
                "branch": plan.branch,
                "whole": plan.is_whole,
                "possible": plan.last_good is not None,
                "lost": [commit.id for commit in plan.lost_commits],
                "merged": list(plan.merged_commits),
                "unreadable": plan.unreadable_versions,
            }
            for plan in report.lineages
        ]
        repair["confirmed"] = _confirm(root, report)
    except BaseException as error:  # noqa: BLE001 - whatever a user would see as a traceback
        repair["error"] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps({"repair": repair}), flush=True)


def _confirm(root: Path, report: LastGoodReport) -> dict[str, Any]:
    try:
        return_to_last_good(Manifest(locate(root)), report)
    except OmniError as error:
        return {"error": error.code, "message": error.message}
    clear_checked_files()
    g = og.open(root)
    commits = _commits(g)
    exports = {branch: _digest(g.export(branch)) for branch in commits}
    verified = g.verify()
    g.mutate('query m() { insert Place { city: "Oslo" } }')
    cities = g.query("query q() { match { $p: Place } return { $p.city as c } }").rows
    committed = {"c": "Oslo"} in cities
    problems = [f"{p.where}: {p.message}" for p in verified.problems if not p.harmless]
    return {"commits": commits, "exports": exports, "problems": problems, "committed": committed}


def _commits(graph: og.Graph) -> dict[str, list[str]]:
    """Return the commits of every branch, newest first."""
    return {
        name: [commit.id for commit in graph.branch(name).commits.list()]
        for name in graph.branches.list()
    }


def _commands(root: Path, *, writing: bool) -> None:
    faults: dict[str, str] = {}

    def attempt(name: str, call: Callable[[], Any]) -> Any:
        print(json.dumps({"at": name}), flush=True)
        try:
            return call()
        except OmniError as error:
            return {"error": error.code, "message": error.message}
        except BaseException as error:  # noqa: BLE001 - whatever a user would see as a traceback
            faults[name] = f"{type(error).__name__}: {error}"[:300]
            return {"error": faults[name]}
        finally:
            print(json.dumps({"faults": faults}), flush=True)

    resource.setrlimit(resource.RLIMIT_DATA, (PEAK_BYTES, PEAK_BYTES))
    answers = {name: attempt(name, call) for name, call in _reads(root).items()}
    print(json.dumps({"answers": answers}), flush=True)
    if writing:
        attempt("verify plain", lambda: og.open(root, mode="ro").verify().to_json())
        for name, call in _writes(root).items():
            attempt(name, call)
    print(json.dumps({"done": True}), flush=True)


def _reads(root: Path) -> dict[str, Callable[[], Any]]:
    calls: dict[str, Callable[[], Any]] = {}
    held: list[og.Graph] = []

    def opened() -> og.Graph:
        held[:] = held or [og.open(root, mode="ro")]
        return held[0]

    def export(at: str) -> str:
        return _digest(opened().export(at))

    def query(text: str, at: str) -> list[str]:
        return sorted(map(repr, opened().query(text, at=at).rows))

    for at in ("main", "side", "first", "last"):
        calls[f"export {at}"] = partial(export, at)
        for number, text in enumerate(_QUERIES):
            calls[f"query {number} {at}"] = partial(query, text, at)
    calls["log"] = lambda: [commit.to_json() for commit in opened().commits.list()]
    calls["names"] = lambda: [repr(opened().branches.list()), repr(opened().tags.list())]
    calls["diff"] = lambda: repr(list(opened().diff("first", "main")))[:20_000]
    calls["commits"] = lambda: _commits(opened())
    calls["versions"] = lambda: {
        commit.id: commit.manifest_version
        for name in opened().branches.list()
        for commit in opened().branch(name).commits.list()
    }
    calls["history"] = lambda: {
        id_: export(id_) for id_ in dict.fromkeys(chain(*_commits(opened()).values()))
    }
    calls["indexes"] = lambda: repr(opened().indexes.status())
    calls["proposals"] = lambda: [
        opened().proposals.get(one.number).to_json() for one in opened().proposals.list("all")
    ]
    calls["events"] = lambda: [one.to_json() for one in opened().proposals.events().events]
    calls["protection"] = lambda: opened().protection.to_json()
    calls["retention"] = lambda: repr(opened().maintenance.retention())
    return calls


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _writes(root: Path) -> dict[str, Callable[[], Any]]:
    def opened() -> og.Graph:
        return og.open(root)

    return {
        "cleanup": lambda: opened().cleanup(keep=1),
        "repair": lambda: opened().repair(),
        "recover": lambda: opened().recover(),
        "recoveries": lambda: opened().recoveries(),
        "write": lambda: opened().mutate('query m() { insert Place { city: "Oslo" } }'),
        "merge": lambda: opened().merge("side"),
        "optimize": lambda: opened().optimize(),
        "confirmed cleanup": lambda: opened().cleanup(older_than=timedelta(0), confirm=True),
    }


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), [int(seed) for seed in sys.argv[3:]])
