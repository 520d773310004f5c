"""Benchmarks of reading: one social graph, the same questions to us and to ladybug.

Each side answers in a process of its own, from files made once. The scale 1 is a million people,
ten million acquaintances with power-law degrees, half a million posts. Both sides must give the
same answers, and give them as Arrow tables.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PEOPLE, KNOWS, POSTS = 1_000_000, 10_000_000, 500_000
SMALL = 0.02
STARTS = 15
PATIENCE = 3.0
"""Seconds to spend on one question, however slow."""
ROUNDS, COLD_RUNS = 3, 5
SCHEMA = """
node Person {
    name: String @key
    city: String
    age: I32
}
node Post {
    slug: String @key
    likes: I32
}
edge Knows: Person -> Person
edge Wrote: Person -> Post
"""


@dataclass(frozen=True)
class Question:
    """One question in both languages; `$start` is a person, another one each time."""

    ours: str
    theirs: str
    budget: float | None = 2.0

    @property
    def has_start(self) -> bool:
        """Return whether the query starts at a person."""
        return "$start" in self.theirs


def _hops(most: int) -> Question:
    bounds = "" if most == 1 else f"{{1,{most}}}"
    star = "" if most == 1 else f"* SHORTEST 1..{most}"
    return Question(
        f"$p: Person {{ name: $start }}  $p knows{bounds} $f }} return {{ $f.name as name }}",
        f"MATCH (p:Person {{name: $start}})-[:Knows{star}]->(f:Person)"
        " WHERE f.name <> $start RETURN f.name AS name",
    )


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "point lookup by key": Question(
            "$p: Person { name: $start } } return { $p.city as city, $p.age as age }",
            "MATCH (p:Person {name: $start}) RETURN p.city AS city, p.age AS age",
        ),
        "1-hop neighbourhood": _hops(1),
        "2-hop neighbourhood": _hops(2),
        "3-hop neighbourhood": _hops(3),
        "10 best posts of acquaintances": Question(
            "$p: Person { name: $start }  $p knows $f  $f wrote $post }"
            " return { $post.slug as slug, $post.likes as likes }"
            " order { $post.likes desc, $post.slug } limit 10",
            "MATCH (p:Person {name: $start})-[:Knows]->(:Person)-[:Wrote]->(post:Post)"
            " RETURN post.slug AS slug, post.likes AS likes"
            " ORDER BY post.likes DESC, post.slug LIMIT 10",
        ),
        "2-hop count, whole graph": Question(
            "$a: Person  $a knows $b  $b knows $c } return { count($a) as paths }",
            "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) RETURN count(*) AS paths",
        ),
        "triangle count": Question(
            "$a: Person  $a knows $b  $b knows $c  $a knows $c } return { count($a) as found }",
            "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person), (a)-[:Knows]->(c)"
            " RETURN count(*) AS found",
        ),
        "filtered aggregate by city": Question(
            "$p: Person  $p.age >= 30 }"
            " return { $p.city as city, count($p) as people, avg($p.age) as age }",
            "MATCH (p:Person) WHERE p.age >= 30"
            " RETURN p.city AS city, count(*) AS people, avg(p.age) AS age",
        ),
        "top 10 by property": Question(
            "$p: Person } return { $p.name as name, $p.age as age } order { $p.age desc } limit 10",
            "MATCH (p:Person) RETURN p.name AS name, p.age AS age"
            " ORDER BY p.age DESC, p.name LIMIT 10",
        ),
    }
)


def reads_beside_ladybug(
    scale: float = SMALL, folder: Path | None = None
) -> list[dict[str, object]]:
    """Return per question our time, ladybug's and their ratio; then the cold start.

    A time is a median; a ratio is taken per round, so that a busy machine slows both sides of it. A
    folder that is given is kept and used again.
    """
    with _workplace(folder) as place:
        make_files(place, scale)
        rounds = [{side: _run(place, side) for side in SIDES} for _ in range(ROUNDS)]
        rows: list[dict[str, object]] = []
        for name, question in QUESTIONS.items():
            answers = [run[side][name]["answer"] for run in rounds for side in SIDES]
            if answers.count(answers[0]) != len(answers):
                raise SystemExit(f"{name}: the answers differ: {answers}")
            ours, theirs = (
                [run[side][name]["median"] * 1000 for run in rounds]
                for side in ("omnigraph", "ladybug")
            )
            ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
            rows += [
                _row(f"{name} / the same in ladybug", ratios, "times", question.budget),
                _row(f"{name}, ours", ours, "ms", None),
                _row(f"{name}, ladybug's", theirs, "ms", None),
            ]
        rows += _cold_start(place)
    return [{**row, "name": f"{row['name']}, scale {scale:g}"} for row in rows]


def _cold_start(place: Path) -> list[dict[str, object]]:
    """Return what the first 2-hop query of a process takes beside a lookup in bare Lance."""
    found = [{task: _run(place, task) for task in COLD} for _ in range(COLD_RUNS)]
    runs = {task: [run[task] for run in found] for task in COLD}

    def times(task: str, what: str) -> list[float]:
        return [run[what] * 1000 for run in runs[task]]

    first, bare = times("cold query", "seconds"), times("cold lance", "seconds")
    ratios = [one / other for one, other in zip(first, bare, strict=True)]
    return [
        _row("first 2-hop query of a process / bare Lance open + lookup", ratios, "times", 3),
        _row("first 2-hop query of a process", first, "ms", None),
        _row("bare Lance open + lookup", bare, "ms", None),
        _row("imports before the first query", times("cold query", "imports"), "ms", None),
        _row("imports before bare Lance", times("cold lance", "imports"), "ms", None),
    ]


def _row(name: str, numbers: Sequence[float], unit: str, budget: float | None) -> dict[str, object]:
    best, median = round(min(numbers), 3), round(statistics.median(numbers), 3)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}


@contextmanager
def _workplace(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# --- the graph ---------------------------------------------------------------------------------


def make_files(folder: Path, scale: float) -> None:
    """Write the Parquet files of the graph, unless they are there."""
    if (folder / "wrote.parquet").exists():
        return
    random = np.random.default_rng(7)
    people, posts = int(PEOPLE * scale), int(POSTS * scale)
    cities = pa.array([f"City {number}" for number in range(500)])
    tables = {
        "people": {
            "name": _names("person-", np.arange(people)),
            "city": cities.take(pa.array(random.integers(0, 500, people))),
            "age": pa.array(random.integers(0, 100, people), pa.int32()),
        },
        "posts": {
            "slug": _names("post-", np.arange(posts)),
            "likes": pa.array(random.integers(0, 10_000, posts), pa.int32()),
        },
        "knows": _ends(*_acquaintances(people, int(KNOWS * scale), random)),
        "wrote": {
            "from": _names("person-", random.integers(0, people, posts)),
            "to": _names("post-", np.arange(posts)),
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def _acquaintances(
    people: int, edges: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs, each once: half of them far, by popularity, half of them in the vicinity."""
    count = edges + edges // 8
    popular = random.permutation(people)
    src = random.permutation(people)[_skewed(people, count, random, 1.5)]
    far = popular[_skewed(people, count, random, 2.0)]
    near = (src + random.integers(1, 30, count)) % people
    dst = np.where(random.random(count) < 0.5, far, near)
    keys = np.unique(src * people + dst)
    keys = random.permutation(keys[keys // people != keys % people])[:edges]
    return keys // people, keys % people


def _skewed(people: int, count: int, random: np.random.Generator, power: float) -> np.ndarray:
    """Return numbers of which small ones are far more frequent: a power law with a long tail."""
    return (people * random.random(count) ** power).astype(np.int64)


def _ends(src: np.ndarray, dst: np.ndarray) -> dict[str, pa.Array]:
    return {"from": _names("person-", src), "to": _names("person-", dst)}


def _names(prefix: str, numbers: np.ndarray) -> pa.Array:
    text = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 8, "0")
    return pc.binary_join_element_wise(prefix, text, "")


def _starts(folder: Path) -> list[str]:
    """Return people to start at, some without incoming edges."""
    people: int = pq.read_metadata(folder / "people.parquet").num_rows
    chosen = np.random.default_rng(11).integers(0, people, STARTS)
    names: list[str] = _names("person-", chosen).to_pylist()
    return names


# --- the two sides -----------------------------------------------------------------------------


Ask = Callable[[str, Mapping[str, str]], pa.Table]


def _omnigraph(folder: Path) -> dict[str, object]:
    import omnigraph.graph as og  # noqa: PLC0415 - a process that measures the other side is without
    from omnigraph.storage.layout import dataset_path  # noqa: PLC0415

    if not (folder / "graph").exists():
        graph = og.init(folder / "graph", SCHEMA)
        files = {"Person": "people", "Post": "posts", "Knows": "knows", "Wrote": "wrote"}
        graph.load({t: folder / f"{f}.parquet" for t, f in files.items()}, mode="append")
        graph.optimize()
    graph = og.open(folder / "graph")
    entry = graph.snapshot().entry("node:Person")
    path = folder / "graph" / dataset_path("node", entry.type_id, entry.incarnation)
    (folder / "people.json").write_text(json.dumps([str(path), entry.physical]))

    def ask(question: str, parameters: Mapping[str, str]) -> pa.Table:
        return graph.query(question, parameters).to_arrow()

    return _answers(folder, ask, {name: _our_text(q) for name, q in QUESTIONS.items()})


def _our_text(question: Question) -> str:
    parameters = "$start: String" if question.has_start else ""
    return f"query q({parameters}) {{ match {{ {question.ours} }}"


def _ladybug(folder: Path) -> dict[str, object]:
    import ladybug  # noqa: PLC0415 - only this one side needs it

    is_new = not (folder / "bug").exists()
    connection = ladybug.Connection(ladybug.Database(str(folder / "bug")))
    if is_new:
        for statement in (
            "CREATE NODE TABLE Person(name STRING, city STRING, age INT32, PRIMARY KEY(name))",
            "CREATE NODE TABLE Post(slug STRING, likes INT32, PRIMARY KEY(slug))",
            "CREATE REL TABLE Knows(FROM Person TO Person)",
            "CREATE REL TABLE Wrote(FROM Person TO Post)",
            *(
                f"COPY {table} FROM '{folder / file}.parquet'"
                for table, file in (
                    ("Person", "people"),
                    ("Post", "posts"),
                    ("Knows", "knows"),
                    ("Wrote", "wrote"),
                )
            ),
        ):
            connection.execute(statement)

    def ask(question: str, parameters: Mapping[str, str]) -> pa.Table:
        return connection.execute(question, dict(parameters)).get_as_arrow()

    return _answers(folder, ask, {name: q.theirs for name, q in QUESTIONS.items()})


def _answers(folder: Path, ask: Ask, texts: Mapping[str, str]) -> dict[str, object]:
    """Ask everything once to compare, then each for a while to warm up, then again for time."""
    starts = [{"start": name} for name in _starts(folder)]
    given = {name: starts if QUESTIONS[name].has_start else [{}] for name in texts}
    answers = {name: [_digest(ask(texts[name], p)) for p in given[name]] for name in texts}
    found: dict[str, object] = {}
    for name, text in texts.items():
        _times(ask, text, given[name])
        median = statistics.median(_times(ask, text, given[name]))
        found[name] = {"median": median, "answer": answers[name]}
        print(f"{name}: {median * 1000:.2f} ms", file=sys.stderr)
    return found


def _times(ask: Ask, text: str, given: Sequence[Mapping[str, str]]) -> list[float]:
    begun, times = time.perf_counter(), []
    while len(times) < 3 * STARTS and time.perf_counter() - begun < PATIENCE:
        before = time.perf_counter()
        ask(text, given[len(times) % len(given)])
        times.append(time.perf_counter() - before)
    return times


def _digest(table: pa.Table) -> list[object]:
    """Return what must be the same on both sides, whatever order rows are in."""
    rows = sorted(
        [round(v, 6) if isinstance(v, float) else v for v in row.values()]
        for row in table.to_pylist()
    )
    return [len(rows), *rows[:3], *rows[-3:]]


# --- cold start --------------------------------------------------------------------------------


def _cold_query(folder: Path) -> dict[str, float]:
    """Open the graph and ask for a neighbourhood, as the first thing of a process."""
    begun = time.perf_counter()
    import omnigraph.graph as og  # noqa: PLC0415 - importing is part of what is measured

    imported = time.perf_counter()
    graph = og.open(folder / "graph", mode="ro")
    graph.query(_our_text(_hops(2)), {"start": "person-00000007"}).to_arrow()
    return {"seconds": time.perf_counter() - imported, "imports": imported - begun}


def _cold_lance(folder: Path) -> dict[str, float]:
    """Open the dataset of people and look up one of them."""
    path, version = json.loads((folder / "people.json").read_text())
    begun = time.perf_counter()
    import lance  # noqa: PLC0415 - as above

    imported = time.perf_counter()
    found = lance.dataset(path, version=version).to_table(filter="id = 'person-00000007'")
    assert found.num_rows == 1
    return {"seconds": time.perf_counter() - imported, "imports": imported - begun}


SIDES: Mapping[str, Callable[[Path], object]] = MappingProxyType(
    {"ladybug": _ladybug, "omnigraph": _omnigraph}
)
COLD: Mapping[str, Callable[[Path], object]] = MappingProxyType(
    {"cold query": _cold_query, "cold lance": _cold_lance}
)


def _run(folder: Path, task: str) -> dict[str, dict[str, float]]:
    """Run one task in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--task", task, "--folder", str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run one task and print its result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True, choices=[*SIDES, *COLD])
    parser.add_argument("--folder", required=True, type=Path)
    given = parser.parse_args()
    print(json.dumps({**SIDES, **COLD}[given.task](given.folder)))


if __name__ == "__main__":
    main()
