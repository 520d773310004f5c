"""Vectors of texts behave alike on every storage: filled, noted, asked, and whole after a crash."""

import pytest

import omnigraph as og
from tests.support.embedding import mock_vector

SCHEMA = """
node Doc { k: String @key  text: String?  v: Vector(3)? @embed(text)  w: Vector(2) @embed(k) }
"""
ROWS = [{"k": "a", "text": "ship"}, {"k": "b", "text": "port"}, {"k": "c"}]
NEAREST = 'query q() { match { $d: Doc } return { $d } order { nearest($d.v, "port") } limit 1 }'


class Killed(BaseException):
    """What nobody catches."""


@pytest.fixture
def opened(graph_root):
    def open_as(model="m1", create=False):
        profile = {"kind": "mock", "model": model}
        options = {"storage_options": graph_root.options, "embedding": profile}
        if create:
            return og.init(graph_root.uri, SCHEMA, **options)
        return og.open(graph_root.uri, **options)

    return open_as


def vectors(graph, name, at=None):
    found = {row["k"]: graph.entity_at("Doc", row["k"], at)[name] for row in ROWS}
    return {id_: None if v is None else pytest.approx(v) for id_, v in found.items()}


MADE = {"a": mock_vector("ship", 3), "b": mock_vector("port", 3), "c": None}


def test_vectors_are_filled_noted_and_asked_for(opened):
    graph = opened(create=True)
    loaded = graph.insert("Doc", ROWS).commit
    assert vectors(graph, "w") == {k: mock_vector(k, 2) for k in "abc"}
    graph.branches.create("side")
    assert graph.embed("Doc", branch="side").embedded == {"v": 2, "w": 0}
    fresh = opened()
    assert vectors(fresh, "v", "side") == MADE
    assert vectors(fresh, "v") == vectors(fresh, "v", loaded.id) == dict.fromkeys("abc")
    assert fresh.query(NEAREST, at="side").rows == [{"d": "b"}]
    assert fresh.query(NEAREST).rows == []
    with pytest.raises(og.OmniError) as caught:
        opened("m2").query(NEAREST, at="side")
    assert caught.value.code == "embedding_model_mismatch"
    assert opened("m2").query(NEAREST).rows == []
    assert fresh.verify().ok


def test_killed_at_any_step_leaves_the_old_or_the_new_state(opened):
    graph = opened(create=True)
    graph.insert("Doc", ROWS)
    for step in range(60):
        graph = opened()
        graph.mutate('query m($v: Vector(3)?) { update Doc set { v: $v } where k != "" }')
        before = graph.snapshot().commit_id
        passed = []

        def observe(name, passed=passed, step=step):
            passed.append(name)
            if len(passed) > step:
                raise Killed(name)

        graph._manifest.datasets.observe = observe
        try:
            done = graph.embed("Doc", "v")
        except Killed:
            done = None
        found = opened()
        assert vectors(found, "v") in (MADE, dict.fromkeys("abc")), passed
        is_new = found.snapshot().commit_id != before
        assert is_new == (vectors(found, "v") == MADE), passed
        assert found.verify().ok, passed
        if done is not None:
            break
    assert done is not None, "the last run was not killed, so there are no more steps"
    assert step >= 2, "too few steps to mean something"
