"""Search over a type that is large enough to have its vectors indexed.

What an index is asked for is approximate; everything else must not depend on what is indexed.
"""

import shutil

import numpy as np
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.query.engine import QuerySettings

COUNT, SIZE, TOP = 100_000, 32, 10
SCHEMA = f"""
node Post {{
  slug: String @key
  kind: I32
  look: Vector({SIZE})? @index
  shape: Vector({SIZE})? @index(metric="l2")
  text: String? @index
}}
"""
NEAREST = f"""query q($v: Vector({SIZE})) {{
  match {{ $p: Post }}
  return {{ $p.slug as slug, nearest($p.look, $v) as far }}
  order {{ nearest($p.look, $v) }} limit {TOP}
}}"""
NEAREST_SHAPE = NEAREST.replace("look", "shape")
NARROW = NEAREST.replace("$p: Post", "$p: Post  $p.kind = 3")
HALF = NEAREST.replace("$p: Post", "$p: Post  $p.kind > 49")
WORDS = ("ship", "sailing", "port", "tanker", "café", "日本", "abc", "of", "the")
RELEVANT = f"""query q($w: String) {{
  match {{ $p: Post }}
  return {{ $p.slug as slug, bm25($p.text, $w) as score }}
  order {{ bm25($p.text, $w) }} limit {TOP}
}}"""
FUSED = f"""query q($w: String, $v: Vector({SIZE})) {{
  match {{ $p: Post  $p.kind = 3 }}
  return {{ $p.slug as slug, rrf(nearest($p.look, $v), bm25($p.text, $w)) as score }}
  order {{ rrf(nearest($p.look, $v), bm25($p.text, $w)) }} limit {TOP}
}}"""


def clustered(random, count):
    centres = np.random.default_rng(9).normal(size=(1000, SIZE)).astype(np.float32)
    found = centres[random.integers(0, len(centres), count)]
    return found + 0.6 * random.standard_normal(found.shape, dtype=np.float32)


def posts_of(vectors, first=0):
    random = np.random.default_rng(first)
    numbers = range(first, first + len(vectors))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), SIZE)
    return pa.table(
        {
            "slug": [f"p{number:06}" for number in numbers],
            "kind": pa.array([number % 100 for number in numbers], pa.int32()),
            "look": column,
            "shape": column,
            "text": [" ".join(random.choice(WORDS, 4)) for _ in numbers],
        }
    )


@pytest.fixture(scope="module")
def vectors():
    return clustered(np.random.default_rng(1), COUNT)


@pytest.fixture(scope="module")
def queries(vectors):
    random = np.random.default_rng(2)
    chosen = vectors[random.integers(0, COUNT, 40)]
    return chosen + 0.3 * random.standard_normal(chosen.shape, dtype=np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory, vectors):
    """A graph with indexes, and the same without."""
    folder = tmp_path_factory.mktemp("large")
    plain = og.init(folder / "plain", SCHEMA)
    plain.load({"Post": posts_of(vectors)})
    shutil.copytree(folder / "plain", folder / "indexed")
    og.open(folder / "indexed").optimize()
    return folder


@pytest.fixture(scope="module")
def plain(made):
    return og.open(made / "plain")


@pytest.fixture(scope="module")
def indexed(made):
    return og.open(made / "indexed")


def cosine(vectors, query):
    vectors, query = vectors.astype(np.float64), query.astype(np.float64)
    return 1 - vectors @ query / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))


def square(vectors, query):
    return ((vectors.astype(np.float64) - query.astype(np.float64)) ** 2).sum(axis=1)


def asked(graph, query, vector, words=None):
    params = {"v": vector.tolist()} if words is None else {"v": vector.tolist(), "w": words}
    return graph.query(query, params).rows


def slugs(rows):
    return [row["slug"] for row in rows]


def truth(distances, kept=None):
    order = np.argsort(distances, kind="stable")
    chosen = order if kept is None else order[kept[order]]
    return [f"p{number:06}" for number in chosen[:TOP]]


def test_without_an_index_the_answer_is_that_of_brute_force(plain, vectors, queries):
    for query in queries[:10]:
        for text, measure in ((NEAREST, cosine), (NEAREST_SHAPE, square)):
            expected = measure(vectors, query)
            rows = asked(plain, text, query)
            assert slugs(rows) == truth(expected)
            assert [row["far"] for row in rows] == pytest.approx(np.sort(expected)[:TOP].tolist())


def test_an_index_finds_almost_all_of_the_nearest(indexed, vectors, queries):
    for text, measure in ((NEAREST, cosine), (NEAREST_SHAPE, square)):
        hits = 0
        for query in queries:
            rows = asked(indexed, text, query)
            expected = measure(vectors, query)
            hits += len(set(slugs(rows)) & set(truth(expected)))
            far = [row["far"] for row in rows]
            assert far == sorted(far)
            assert far == pytest.approx([float(expected[int(slug[1:])]) for slug in slugs(rows)])
        assert hits / (TOP * len(queries)) >= 0.95


def test_an_explanation_tells_which_index_is_asked(indexed, plain):
    fused = FUSED.replace("$p.kind = 3", "")
    for text, index in (
        (NEAREST, "Post.look"),
        (NEAREST_SHAPE, "Post.shape"),
        (fused, "Post.look"),
    ):
        reported = indexed.explain(text)
        assert [step.index for step in reported.steps if step.index] == [index]
        assert f"by the index of {index}" in str(reported)
        assert index in [step.get("index") for step in reported.to_json()["steps"]]
        assert not any(step.index for step in plain.explain(text).steps)
    assert not any(step.index for step in indexed.explain(RELEVANT).steps)


def test_few_candidates_are_ranked_exactly(indexed, vectors, queries):
    kept = np.arange(COUNT) % 100 == 3
    for query in queries[:10]:
        assert slugs(asked(indexed, NARROW, query)) == truth(cosine(vectors, query), kept)


def test_a_limit_is_never_starved_by_a_filter(indexed, vectors, queries):
    kept = np.arange(COUNT) % 100 > 49
    hits = 0
    for query in queries[:20]:
        rows = slugs(asked(indexed, HALF, query))
        assert len(rows) == TOP
        assert all(kept[int(slug[1:])] for slug in rows)
        hits += len(set(rows) & set(truth(cosine(vectors, query), kept)))
    assert hits / (TOP * 20) >= 0.95


def test_text_and_fusion_do_not_depend_on_indexes(plain, indexed, queries):
    for words in ("ship", "sail port", "日本 cafe", "unknown", "the"):
        assert (
            plain.query(RELEVANT, {"w": words}).rows == indexed.query(RELEVANT, {"w": words}).rows
        )
        for query in queries[:3]:
            assert asked(plain, FUSED, query, words) == asked(indexed, FUSED, query, words)


def test_ranking_only_what_may_be_shown_changes_nothing(plain, queries):
    fused = FUSED.replace("$p.kind = 3", "")
    turned = f"""query q($w: String, $v: Vector({SIZE})) {{
      match {{ $p: Post }}
      return {{ $p.slug as slug, rrf(bm25($p.text, $w), nearest($p.shape, $v), 3) as score }}
      order {{ rrf(bm25($p.text, $w), nearest($p.shape, $v), 3), $p.kind }} limit 7 offset 2
    }}"""
    run = plain._engine.run
    for words in ("ship", "sail port abc", "日本 cafe", "unknown", "ship ship the"):
        for text in (fused, turned, NEAREST, RELEVANT):
            given = {"w": words, "v": queries[0].tolist()}
            params = {name: value for name, value in given.items() if f"${name}:" in text}
            few, every = (
                run(plain.snapshot(), text, params, None, QuerySettings(few=rows)).rows
                for rows in (0, COUNT)
            )
            assert few == every


def test_rows_written_after_the_index_are_found_and_deleted_ones_are_not(made, queries):
    folder = made / "changed"
    shutil.copytree(made / "indexed", folder)
    graph = og.open(folder)
    query = queries[0]
    best, *others = slugs(asked(graph, NEAREST, query))
    graph.mutate("query q($s: String) { delete Post where slug = $s }", {"s": best})
    assert slugs(asked(graph, NEAREST, query))[: TOP - 1] == others
    graph.load({"Post": posts_of(query[None], first=COUNT)})
    found = asked(graph, NEAREST, query)
    assert slugs(found) == [f"p{COUNT:06}", *others]
    assert found[0]["far"] == pytest.approx(0)
    graph.optimize()
    assert slugs(asked(graph, NEAREST, query)) == [f"p{COUNT:06}", *others]


def test_indexes_that_are_gone_cost_only_time(made, vectors, queries):
    folder = made / "gone"
    shutil.copytree(made / "indexed", folder)
    graph = og.open(folder)
    before = asked(graph, NEAREST, queries[0])
    for indices in folder.rglob("_indices"):
        shutil.rmtree(indices)
    for query in queries[:5]:
        rows = asked(og.open(folder), NEAREST, query)
        assert slugs(rows) == truth(cosine(vectors, query))
    assert len(asked(graph, NEAREST, queries[0])) == len(before)
