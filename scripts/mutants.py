"""Measure what the tests catch: change the source in many small ways and run the covering tests.

Each subject of ``SUBJECTS`` gets a sample of mutants, drawn with a fixed seed from the syntax tree,
so the same source always gives the same mutants, whatever the tests are. A mutant is killed when
the tests of its subject fail or use more CPU time than the limit; it survives when they pass. CPU
time does not depend on what else the machine does.
Run it before and after a change of the tests, and compare the records:

    python scripts/mutants.py --out before.json
    python scripts/mutants.py --out after.json --compare before.json
"""

from __future__ import annotations

import argparse
import ast
import compileall
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/omnigraph"


@dataclass(frozen=True)
class Subject:
    """Modules to change, and the tests that cover them; the quick ones first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


SUBJECTS = {
    "publish": Subject(
        ("commit/publish.py",),
        (
            "tests/unit/commit/test_publish.py",
            "tests/unit/commit/test_publish_faults.py",
            "tests/unit/commit/test_recovery.py",
            "tests/unit/commit/test_manifest.py",
            "tests/unit/commit/test_read_only.py",
        ),
    ),
    "conflicts": Subject(
        ("merge/conflict_rules.py", "merge/conflicts.py", "merge/conflict_decisions.py"),
        ("tests/unit/merge", "tests/behaviour/test_merge.py"),
    ),
    "unique": Subject(
        ("write/checks/unique.py",),
        (
            "tests/unit/write/test_validate.py",
            "tests/unit/write/test_load.py",
            "tests/unit/write/test_mutate.py",
            "tests/unit/write/test_sets.py",
        ),
    ),
    "differences": Subject(
        ("storage/version_diff.py",),
        ("tests/unit/storage", "tests/unit/changes"),
    ),
    "types": Subject(
        (
            "plan/type_checker.py",
            "plan/check_expressions.py",
            "plan/check_read.py",
            "plan/check_values.py",
        ),
        ("tests/unit/plan", "tests/cases/test_cases.py"),
    ),
}

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
REMOVABLE = (ast.AugAssign, ast.Break, ast.Continue, ast.Delete, ast.Raise)

LIMITED_PYTEST = """
import resource, runpy, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
runpy.run_module("pytest", run_name="__main__", alter_sys=True)
"""
"""Program that runs pytest with a limit of CPU seconds, which every process it starts inherits."""

WALL_SECONDS = 20
"""Seconds of wall time per CPU second of the limit, after which tests that only wait are killed."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module: which it is, and the text before and after."""

    subject: str
    module: str
    line: int
    kind: str
    before: str
    after: str
    number: int
    """The place of the change among all changes the module allows."""


@dataclass(frozen=True)
class Outcome:
    """How the covering tests ended for a mutant: killed, timeout or survived."""

    mutant: Mutant
    result: str
    seconds: float
    failed: str
    """The first test that failed."""


# ------------------------------------------------------------------ changes of a syntax tree


@dataclass(frozen=True)
class Change:
    """A change that has not been applied yet; `apply` changes the tree it was found in."""

    kind: str
    node: ast.AST
    apply: Callable[[], ast.AST]
    """Makes the change and returns the node that stands there then."""


def changes(tree: ast.Module) -> list[Change]:
    """Return every change a module allows, in the order of its text."""
    found = [change for node in _code(tree) for change in _changes_of(node)]
    return sorted(found, key=lambda change: _position(change.node))


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: no annotations, docstrings, imports, decorators or f-strings."""
    yield node
    skipped = {"annotation", "returns", "decorator_list", "type_params"}
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield from _code(child)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom)


def _changes_of(node: ast.AST) -> Iterator[Change]:
    yield from _changes_of_expression(node)
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            if not _has_an_opposite(node.test):
                yield Change("negation", node.test, partial(_set, node, "test", _not(node.test)))
        case ast.comprehension(ifs=ifs):
            for place, test in enumerate(ifs):
                if not _has_an_opposite(test):
                    yield Change("negation", test, partial(_put, ifs, place, _not(test)))
    for name in ("body", "orelse", "finalbody"):
        block: Any = getattr(node, name, None)
        for place, statement in enumerate(block if isinstance(block, list) else []):
            if _is_removable(statement):
                yield Change("removed", statement, partial(_put, block, place, ast.Pass()))


def _changes_of_expression(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=ops):
            for place, operator in enumerate(ops):
                others = [*ops[:place], COMPARISONS[type(operator)](), *ops[place + 1 :]]
                yield Change("comparison", node, partial(_set, node, "ops", others))
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield Change("and/or", node, partial(_set, node, "op", other))
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OPERATORS:
            swapped = OPERATORS[type(operator)]()
            yield Change("arithmetic", node, partial(_set, node, "op", swapped))
        case ast.Constant(value=value) if (changed := _other(value)) is not None:
            yield Change("constant", node, partial(_set, node, "value", changed))
        case ast.UnaryOp(op=ast.Not()):
            yield Change("negation", node, partial(_set, node, "operand", _not(node.operand)))


def _is_removable(statement: ast.AST) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Expr():
            return True
    return isinstance(statement, REMOVABLE)


def _other(value: object) -> object:
    """Return another constant of the kind, or None for one that is left alone."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str() if value and " " not in value:
            return f"{value}_"
    return None


def _set(node: ast.AST, name: str, value: object) -> ast.AST:
    setattr(node, name, value)
    return value if isinstance(value, ast.expr) and name == "test" else node


def _put(block: list[Any], place: int, node: ast.AST) -> ast.AST:
    block[place] = node
    return node


def _not(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _has_an_opposite(test: ast.expr) -> bool:
    """Return whether negating a test is a change of the test itself, which is found there."""
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot()]):
            return True
        case ast.Compare(ops=[ast.In() | ast.NotIn()]) | ast.UnaryOp(op=ast.Not()):
            return True
    return False


def mutate(text: str, number: int) -> tuple[str, str, str]:
    """Return the text of a module with one change, and what it changed from and to."""
    tree = ast.parse(text)
    change = changes(tree)[number]
    before = ast.unparse(change.node)
    after = ast.unparse(ast.fix_missing_locations(change.apply()))
    return ast.unparse(ast.fix_missing_locations(tree)), before, after


def sample(subject: str, count: int, seed: int) -> list[Mutant]:
    """Draw mutants of the modules of a subject."""
    texts = {m: read_module(m) for m in SUBJECTS[subject].modules}
    places = [
        (module, number, change)
        for module, text in texts.items()
        for number, change in enumerate(changes(ast.parse(text)))
    ]
    chance = random.Random(f"{seed}:{subject}")  # noqa: S311 - the sample is the same each time
    drawn = chance.sample(range(len(places)), min(count, len(places)))
    mutants = []
    for place in sorted(drawn):
        module, number, change = places[place]
        _, before, after = mutate(texts[module], number)
        line, _ = _position(change.node)
        mutants.append(Mutant(subject, module, line, change.kind, before, after, number))
    return mutants


def read_module(module: str) -> str:
    """Return the text of a module of the package."""
    return (ROOT / PACKAGE / module).read_text(encoding="utf-8")


# ------------------------------------------------------------------ runs


@contextmanager
def source_copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """Make compiled copies of the source, of which each run changes one."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            copy = Path(folder) / str(number)
            shutil.copytree(
                ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__")
            )
            compileall.compile_dir(copy / "src", quiet=2)
            copies.put(copy)
        yield copies


def run_tests(copy: Path, tests: Sequence[str], limit: int) -> tuple[str, float, str]:
    """Run tests on a copy; return passed, failed or timeout, the CPU seconds and which failed."""
    (copy / "tmp").mkdir(exist_ok=True)
    options = ["-x", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-c", LIMITED_PYTEST, str(limit), *options, *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "TMPDIR": str(copy / "tmp")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            seconds = _wait(process, WALL_SECONDS * limit)
        finally:
            with suppress(ProcessLookupError):  # children that outlive a stopped process
                os.killpg(process.pid, signal.SIGKILL)
            shutil.rmtree(copy / "tmp", ignore_errors=True)
        output.seek(0)
        lines = output.read().splitlines()
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timeout", seconds, ""
    failed = next((line for line in lines if line.startswith(("FAILED ", "ERROR "))), "")
    failed = failed.partition(" - ")[0]  # the reason follows only on some terminals
    result = "passed" if process.returncode == 0 else "failed"
    return result, seconds, failed or "\n".join(lines[-3:] if lines else [])


def _wait(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Wait for a process, kill it after some seconds, and return the CPU time of its tree."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def run_mutant(copy: Path, mutant: Mutant, limit: int) -> Outcome:
    """Run the covering tests of a mutant, and restore the copy."""
    path = copy / PACKAGE / mutant.module
    text = path.read_text(encoding="utf-8")
    compiled = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
    compiled.unlink(missing_ok=True)  # its size and time stamp might be those of the mutant
    path.write_text(mutate(text, mutant.number)[0], encoding="utf-8")
    try:
        result, seconds, failed = run_tests(copy, SUBJECTS[mutant.subject].tests, limit)
    finally:
        path.write_text(text, encoding="utf-8")
        compiled.unlink(missing_ok=True)
    names = {"passed": "survived", "failed": "killed", "timeout": "timeout"}
    return Outcome(mutant, names[result], round(seconds, 1), failed if result == "failed" else "")


def baseline(copies: SimpleQueue[Path], subjects: Sequence[str], limit: int) -> None:
    """Exit unless the tests of each subject pass unchanged, within the limit."""
    copy = copies.get()
    for subject in subjects:
        result, seconds, failed = run_tests(copy, SUBJECTS[subject].tests, 2 * limit)
        print(f"{subject}: unchanged source {result} in {seconds:.1f} CPU s", flush=True)
        if result == "failed":
            sys.exit(f"the tests of {subject} do not pass without a change: {failed}")
        if seconds > limit:
            sys.exit(f"the tests of {subject} use more CPU time than the limit of {limit} s")
    copies.put(copy)


def run_all(
    mutants: Sequence[Mutant], copies: SimpleQueue[Path], jobs: int, limit: int
) -> Iterator[Outcome]:
    """Yield the outcome of each mutant, in order."""

    def run(mutant: Mutant) -> Outcome:
        copy = copies.get()
        try:
            return run_mutant(copy, mutant, limit)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(run, mutants)


# ------------------------------------------------------------------ records


def record(outcomes: Sequence[Outcome], seed: int) -> dict[str, Any]:
    """Return what a later run is compared with."""
    modules = sorted({outcome.mutant.module for outcome in outcomes})
    subjects = list(dict.fromkeys(outcome.mutant.subject for outcome in outcomes))
    return {
        "seed": seed,
        "source": {
            module: sha256(ast.dump(ast.parse(read_module(module))).encode()).hexdigest()
            for module in modules
        },
        "summary": {
            subject: dict(Counter(o.result for o in outcomes if o.mutant.subject == subject))
            for subject in subjects
        },
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def lost(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Name the mutants that were killed before and survive now, and modules not comparable."""
    for module in sorted(set(before["source"]) & set(after["source"])):
        if before["source"][module] != after["source"][module]:
            yield f"{module} has changed since: its mutants cannot be compared"
    results = {_key(outcome): outcome["result"] for outcome in after["outcomes"]}
    for outcome in before["outcomes"]:
        if outcome["result"] != "survived" and results.get(_key(outcome)) == "survived":
            module, kind, old, new, _ = _key(outcome)
            yield f"{module} {kind}: {_short(old)} -> {_short(new)} was killed and survives now"


def _key(outcome: dict[str, Any]) -> tuple[str, ...]:
    """Return what a mutant is known by, also when comments have moved its line."""
    mutant = outcome["mutant"]
    return tuple(str(mutant[name]) for name in ("module", "kind", "before", "after", "number"))


def main() -> int:
    """Run the sample and print each outcome."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "subjects", nargs="*", help=f"some of {', '.join(SUBJECTS)}; all by default"
    )
    parser.add_argument("--count", type=int, default=40, help="mutants per subject")
    parser.add_argument("--seed", type=int, default=15, help="seed of the sample")
    parser.add_argument(
        "--limit", type=int, default=60, help="CPU seconds for the tests of a mutant"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants tested at the same time")
    parser.add_argument("--out", type=Path, help="JSON record to write")
    parser.add_argument("--compare", type=Path, help="JSON record of an earlier run")
    parser.add_argument("--list", action="store_true", help="print the sample and stop")
    options = parser.parse_args()
    subjects = options.subjects or list(SUBJECTS)
    if unknown := [subject for subject in subjects if subject not in SUBJECTS]:
        parser.error(f"unknown subjects: {', '.join(unknown)}")
    mutants = [m for subject in subjects for m in sample(subject, options.count, options.seed)]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.module}:{mutant.line} {mutant.kind}: {mutant.before} -> {mutant.after}")
        return 0
    outcomes = []
    with source_copies(options.jobs) as copies:
        baseline(copies, subjects, options.limit)
        for outcome in run_all(mutants, copies, options.jobs, options.limit):
            outcomes.append(outcome)
            m = outcome.mutant
            print(
                f"{outcome.result:8} {outcome.seconds:5.1f} s  {m.module}:{m.line} {m.kind}: "
                f"{_short(m.before)} -> {_short(m.after)}",
                flush=True,
            )
    found = record(outcomes, options.seed)
    for subject, counts in found["summary"].items():
        print(f"{subject}: {', '.join(f'{n} {result}' for result, n in sorted(counts.items()))}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.compare:
        earlier = json.loads(options.compare.read_text(encoding="utf-8"))
        problems = list(lost(earlier, found))
        print(*problems, sep="\n")
        return 1 if problems else 0
    return 0


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 50 else f"{line[:49]}…"


if __name__ == "__main__":
    sys.exit(main())
