"""Benchmarks of the planner and of first queries: ratios of times of one process.

The written order of a query must not matter, and neither must it whether a process has answered
before. A first query begins after imports, with the files that `optimize` stores beside the data.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import search
import social

SMALL = 0.05
ORDERS, GENERATED, WARM_UPS, REPEATS = 5, 50, 3, 5
FIRST_RUNS = 5
FIRST = {"query from one node": 3, "query of the whole graph": 3, "search": 5}
"""First queries, and how many times as long as later ones they may take."""
THREE = ("$p: Person { code: $start }", "$p knows $f", "$f livesIn $c")
"""Three bindings that are found from one of them in no time, and from the others by a scan."""
STEPS = {
    "Person": ("$a knows $b:Person", "$a livesIn $b:City", "$a wrote $b:Message"),
    "Message": ("$a replies $b:Message", "$a about $b:Tag", "$a postedIn $b:Forum"),
    "Forum": ("$a member $b:Person",),
}
FILTERS = {
    "Person": ('{v}.code = "p00000007"', '{v}.first = "First00000003"', "{v}.joined > 1690000000"),
    "Message": ("{v}.length < 20", '{v}.code = "m00000011"'),
    "Forum": ('{v}.code = "f00000001"',),
    "City": ('{v}.name = "c00000002"',),
    "Tag": ('{v}.name = "t00000000"',),
}


def planner_ratios(scale: float = SMALL, folder: Path | None = None) -> list[dict[str, object]]:
    """Return how much orders of clauses and first queries cost."""
    with TemporaryDirectory() as scratch:
        place = folder or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        social.make_files(place, scale)
        _graphs(place)
        orders = _child(place, "orders")
        rows = [
            _row("slowest / fastest of six orders of three bindings", orders[:1], 3),
            _row(f"the same of {ORDERS} orders of generated queries, worst", [max(orders[1:])], 3),
            _row(f"the same of {ORDERS} orders of generated queries, median", orders[1:], None),
        ]
        for name, budget in FIRST.items():
            found = [_child(place, name) for _ in range(FIRST_RUNS)]
            ratios = [first / later for first, later in found]
            rows.append(_row(f"first {name} / the tenth", ratios, budget))
            firsts = [first * 1000 for first, _ in found]
            rows.append({**_row(f"first {name} of a process", firsts, None), "unit": "ms"})
        return rows


def _row(name: str, numbers: Sequence[float], budget: float | None) -> dict[str, object]:
    best, median = round(min(numbers), 2), round(statistics.median(numbers), 2)
    return {"name": name, "best": best, "median": median, "unit": "times", "budget": budget}


def _graphs(place: Path) -> None:
    import omnigraph.graph as og  # noqa: PLC0415 - children import it before they measure

    if not (place / "graph").exists():
        graph = og.init(place / "graph", social.SCHEMA)
        names = (*social.NODES, *social.EDGES)
        graph.load({name: place / f"{name}.parquet" for name in names}, mode="append")
        graph.optimize()
    if not (place / "posts").exists():
        graph = og.init(place / "posts", "node Post { slug: String @key  text: String @index }")
        graph.load({"Post": search.make_posts(200_000).drop(["look"])})
        graph.optimize()


# --- in a process of its own -------------------------------------------------------------------


def _orders(place: Path) -> list[float]:
    """Return slowest / fastest of the orders of each query."""
    import omnigraph.graph as og  # noqa: PLC0415 - see above

    graph, random = og.open(place / "graph", mode="ro"), Random(19)  # noqa: S311
    ratios = []
    six = [" ".join(order) for order in permutations(THREE)]
    for texts in [six, *(_orders_of(_clauses(random), random) for _ in range(GENERATED))]:
        times = [float("inf")] * len(texts)
        for repeat in range(WARM_UPS + REPEATS):
            for number, text in enumerate(texts):
                query = (
                    f"query q($start: String) {{ match {{ {text} }} return {{ count($p) as n }} }}"
                )
                begun = time.process_time()
                graph.query(query, {"start": "p00000007"})
                if repeat >= WARM_UPS:
                    times[number] = min(times[number], time.process_time() - begun)
        ratios.append(max(times) / min(times))
        if ratios[-1] > 3:
            print(f"{ratios[-1]:.1f}: {texts[times.index(max(times))]}", file=sys.stderr)
    return ratios


def _clauses(random: Random) -> list[str]:
    """Return the clauses of a connected pattern with a test or two."""
    bound, clauses = {"$p": "Person"}, ["$p: Person"]
    while len(clauses) < random.randint(3, 5):
        name = random.choice([v for v, t in bound.items() if t in STEPS])
        step, _, type_name = random.choice(STEPS[bound[name]]).partition(":")
        new = f"$v{len(bound)}"
        clauses.append(step.replace("$a", name).replace("$b", new))
        bound[new] = type_name
    tested = random.sample(list(bound), random.randint(1, 2))
    return clauses + [random.choice(FILTERS[bound[v]]).format(v=v) for v in tested]


def _orders_of(clauses: list[str], random: Random) -> list[str]:
    """Return the clauses in several orders; types come from `$p: Person` and the edges."""
    bindings, tests = [c for c in clauses if "." not in c], [c for c in clauses if "." in c]
    return [" ".join([*random.sample(bindings, len(bindings)), *tests]) for _ in range(ORDERS)]


def _first(place: Path, text: str, values: Iterator[str]) -> tuple[float, float]:
    """Return the time of the first query and the median of the tenth and those around it."""
    import omnigraph.graph as og  # noqa: PLC0415 - see above

    with TemporaryDirectory() as other:
        warm = og.init(Path(other) / "g", "node A { k: String @key  text: String }")
        warm.load({"A": [{"k": "a", "text": "b"}]})
        warm.query('match { $a: A  search($a.text, "b") } return { count($a) as n }')  # imports
    graph = og.open(place, mode="ro")
    times = []
    for _ in range(12):
        value = next(values)
        begun = time.perf_counter()
        graph.query(text, {"x": value})
        times.append(time.perf_counter() - begun)
    return times[0], statistics.median(times[7:])


def _query(place: Path) -> tuple[float, float]:
    """Return the time of the first and of the tenth query from one node."""
    text = "query q($x: String) { match { $p: Person { code: $x }  $p knows $f  $f wrote $m } "
    text += "return { $m.code, $m.created } order { $m.created desc, $m.code } limit 10 }"
    return _first(place / "graph", text, (f"p{number:08}" for number in range(3, 99, 7)))


def _aggregate(place: Path) -> tuple[float, float]:
    """Return the time of the first and of the tenth query of a whole graph."""
    text = "query q($x: String) { match { $p: Person  $p knows $f  $f wrote $m  $p.first != $x } "
    text += (
        "return { $f.first, count($m) as n, max($m.created) as last } order { n desc } limit 5 }"
    )
    return _first(place / "graph", text, (f"First{number:08}" for number in range(12)))


def _search(place: Path) -> tuple[float, float]:
    """Return the time of the first and of the tenth search of 200,000 texts."""
    posts = search.make_posts(2_000)["text"].to_pylist()
    text = f"query q($x: String) {{ match {{ $p: Post  search($p.text, $x) }} return {{ $p.slug }} \
limit {search.TOP} }}"
    return _first(place / "posts", text, (post.split()[0] for post in posts))


CHILDREN = {
    "orders": _orders,
    "query from one node": _query,
    "query of the whole graph": _aggregate,
    "search": _search,
}


def _child(place: Path, name: str) -> list[float]:
    """Return what a process of its own measured."""
    command = [sys.executable, __file__, "--task", name, "--folder", str(place)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run one task, and print what it measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True, choices=CHILDREN)
    parser.add_argument("--folder", required=True, type=Path)
    given = parser.parse_args()
    print(json.dumps(CHILDREN[given.task](given.folder)))


if __name__ == "__main__":
    main()
