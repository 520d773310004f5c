"""Indexes follow what the schema declares."""

import omnigraph.graph as og


def test_an_index_of_another_metric_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("omnigraph.maintain.indexes.VECTOR_ROWS", 10)
    first = 'node D { k: String @key  v: Vector(2) @index(metric="l2") }'
    graph = og.init(tmp_path / "graph", first)
    graph.insert("D", [{"k": f"d{n:04d}", "v": [n, 1]} for n in range(300)])
    graph.optimize()
    assert {s.covered for s in graph.indexes.status() if s.column == "v"} == {300}
    graph.schema.apply('node D { k: String @key  v: Vector(2) @index(metric="dot") }')
    assert {s.covered for s in graph.indexes.status() if s.column == "v"} == {0}
    graph.optimize()
    [status] = [s for s in graph.indexes.status() if s.column == "v"]
    assert (status.covered, status.segments) == (300, 1)
    entry = graph.snapshot().entry("node:D")
    with graph._manifest.reading("node:D", entry) as handle:
        assert [i.name for i in handle.describe_indices() if i.name.startswith("v_")] == [
            "v_vector_dot"
        ]


def test_ends_an_edge_type_declares_are_indexed_like_all_ends(tmp_path):
    schema = """
    node D { k: String @key  src: String? @index }
    edge Next: D -> D { w: I32?  @unique(src)  @index(dst)  @unique(src, dst, w) }
    """
    graph = og.init(tmp_path / "graph", schema)
    graph.insert("D", [{"k": "a", "src": "x"}, {"k": "b"}])
    graph.insert("Next", [{"from": "a", "to": "b"}])
    graph.optimize()
    covered = {(s.type_key, s.column, str(s.kind)): s.covered for s in graph.indexes.status()}
    assert covered == {
        ("edge:Next", "dst", "btree"): 1,
        ("edge:Next", "id", "btree"): 1,
        ("edge:Next", "src", "btree"): 1,
        ("edge:Next", "w", "btree"): 1,
        ("node:D", "id", "btree"): 2,
        ("node:D", "src", "btree"): 2,
    }
