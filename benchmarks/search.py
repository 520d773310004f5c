"""Benchmarks of search: vector, full-text and hybrid top-10 through `graph.query`, beside LanceDB.

Both hold the same generated posts and have their indexes built by their own maintenance with
default settings. A measurement is a whole warm query: text in, rows out. Vector searches report
their recall against brute force.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lancedb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lancedb.rerankers import RRFReranker

import omnigraph.graph as og

SMALL = 0.2
POSTS = 1_000_000
DIMENSION = 128
TOP = 10
QUERIES = 30
SCHEMA = f"""
node Post {{
    slug: String @key
    text: String @index
    look: Vector({DIMENSION}) @index
}}
"""
NEAREST = f"""query q($v: Vector({DIMENSION})) {{
    match {{ $p: Post }}
    return {{ $p.slug as slug, nearest($p.look, $v) as far }}
    order {{ nearest($p.look, $v) }} limit {TOP}
}}"""
RELEVANT = f"""query q($words: String) {{
    match {{ $p: Post }}
    return {{ $p.slug as slug, bm25($p.text, $words) as score }}
    order {{ bm25($p.text, $words) }} limit {TOP}
}}"""
HYBRID = f"""query q($words: String, $v: Vector({DIMENSION})) {{
    match {{ $p: Post }}
    return {{ $p.slug as slug, rrf(nearest($p.look, $v), bm25($p.text, $words)) as score }}
    order {{ rrf(nearest($p.look, $v), bm25($p.text, $words)) }} limit {TOP}
}}"""
PHRASE = f"""query q($words: String) {{
    match {{ $p: Post  match_text($p.text, $words) }}
    return {{ $p.slug as slug }} order {{ $p.slug }} limit {TOP}
}}"""


@dataclass(frozen=True)
class Question:
    """What is asked: words, a vector, and the posts that are really nearest to it."""

    words: str
    vector: npt.NDArray[np.float32]
    nearest: frozenset[str]


def searches(scale: float = SMALL) -> list[dict[str, object]]:
    """Return the time of every kind of search here, and how many times LanceDB's that is."""
    folder = Path(tempfile.mkdtemp())
    try:
        posts = make_posts(int(POSTS * scale))
        asked = questions(posts)
        ours, theirs = _ours(folder / "ours", posts), _theirs(folder / "theirs", posts)
        return _measured(ours, theirs, asked, len(posts))
    finally:
        shutil.rmtree(folder)


def make_posts(count: int) -> pa.Table:
    """Return posts of about twelve words, and vectors in clusters of about a hundred."""
    random = np.random.default_rng(1)
    vocabulary = _vocabulary(random)
    # As in speech, the word at rank r comes about once in r words.
    ranks = np.exp(random.random(count * 12) * np.log(len(vocabulary))).astype(np.int64) - 1
    lengths = random.integers(6, 19, count)
    ends = np.cumsum(lengths) % (len(ranks) - 20)
    texts = [
        " ".join(vocabulary[ranks[end : end + length]])
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]
    centres = random.normal(size=(max(1, count // 100), DIMENSION)).astype(np.float32)
    vectors = centres[random.integers(0, len(centres), count)]
    vectors += 0.6 * random.standard_normal(vectors.shape, dtype=np.float32)
    look = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIMENSION)
    slugs = [f"p{number:07}" for number in range(count)]
    return pa.table({"slug": slugs, "text": texts, "look": look})


def _vocabulary(random: np.random.Generator) -> npt.NDArray[np.object_]:
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    sizes = random.integers(3, 11, 60_000)
    found = {"".join(random.choice(letters, size)) for size in sizes}
    return random.permutation(np.array(sorted(found), object))


def questions(posts: pa.Table) -> list[Question]:
    """Return questions with their true answers."""
    random = np.random.default_rng(2)
    items = posts["look"].combine_chunks().values.to_numpy().reshape(-1, DIMENSION)
    unit = items / np.linalg.norm(items, axis=1, keepdims=True)
    slugs, texts = posts["slug"], posts["text"]
    found = []
    for place in random.integers(0, len(posts), QUERIES).tolist():
        vector = items[place] + 0.3 * random.standard_normal(DIMENSION, dtype=np.float32)
        best = np.argpartition(-(unit @ vector), TOP)[:TOP]
        words = " ".join(random.choice(texts[place].as_py().split(), 2))
        nearest = frozenset(slugs[int(one)].as_py() for one in best)
        found.append(Question(words, vector, nearest))
    return found


def _ours(path: Path, posts: pa.Table) -> og.Graph:
    graph = og.init(path, SCHEMA)
    graph.load({"Post": posts})
    graph.optimize()
    return graph


def _theirs(path: Path, posts: pa.Table) -> lancedb.table.Table:
    table = lancedb.connect(path).create_table("posts", posts)
    table.create_index("cosine", vector_column_name="look")
    table.create_fts_index("text", use_tantivy=False, with_position=True)
    return table


def _measured(
    ours: og.Graph, theirs: lancedb.table.Table, asked: list[Question], posts: int
) -> list[dict[str, object]]:
    def fused(q: Question) -> list[str]:
        found = theirs.search(query_type="hybrid", vector_column_name="look")
        return _slugs(found.vector(q.vector).text(q.words).rerank(RRFReranker()))

    def near(q: Question, refine: int | None = None) -> list[str]:
        found = theirs.search(q.vector, vector_column_name="look").distance_type("cosine")
        return _slugs(found if refine is None else found.refine_factor(refine))

    def ask(query: str) -> Callable[[Question], list[str]]:
        wants = {"v": "$v:" in query, "words": "$words:" in query}

        def run(q: Question) -> list[str]:
            values = {"v": q.vector.tolist(), "words": q.words}
            params = {name: value for name, value in values.items() if wants[name]}
            return [row["slug"] for row in ours.query(query, params).rows]

        return run

    def words(q: Question) -> list[str]:
        return _slugs(theirs.search(q.words, query_type="fts"))

    size = f"{posts:,} posts"
    rows = []
    for name, here, there in (
        (f"nearest 10 of {size}", ask(NEAREST), near),
        (f"nearest 10 of {size}, theirs refined", ask(NEAREST), lambda q: near(q, 10)),
        (f"bm25 10 of {size}", ask(RELEVANT), words),
        (f"rrf 10 of {size}", ask(HYBRID), fused),
    ):
        one, other = _times(here, asked), _times(there, asked)
        row = {
            "name": name,
            "best": round(min(one) * 1000, 2),
            "median": round(statistics.median(one) * 1000, 2),
            "unit": f"ms; LanceDB {statistics.median(other) * 1000:.2f} ms",
            "budget": round(2 * statistics.median(other) * 1000, 2),
        }
        if "nearest" in name:
            recalls = [_recall(ask, asked) for ask in (here, there)]
            row["unit"] += "; recall {:.3f}, LanceDB {:.3f}".format(*recalls)
        rows.append(row)
    return rows


def _slugs(query: lancedb.query.LanceQueryBuilder) -> list[str]:
    return [row["slug"] for row in query.limit(TOP).select(["slug"]).to_list()]


def _times(ask: Callable[[Question], list[str]], asked: list[Question]) -> list[float]:
    for question in asked:
        ask(question)
    times = []
    for question in asked:
        before = time.perf_counter()
        ask(question)
        times.append(time.perf_counter() - before)
    return times


def _recall(ask: Callable[[Question], list[str]], asked: list[Question]) -> float:
    return statistics.mean(len(q.nearest & set(ask(q))) / TOP for q in asked)
