"""Differences, the change feed and baselines are the same on every kind of storage."""

import omnigraph.graph as og
from omnigraph.changes import Limits
from tests.support.differences import apply, read_lines

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob? }
edge Knows: Person -> Person
"""


def test_reader_follows_a_branch_from_a_baseline(graph_root):
    graph = og.init(graph_root.uri, SCHEMA, storage_options=graph_root.options)
    graph.insert("Person", [{"name": name, "photo": "base64:aGk="} for name in "abc"])
    reader = og.open(graph_root.uri, "ro", storage_options=graph_root.options)
    catalog = reader.snapshot().catalog
    baseline = reader.changes.baseline()
    state, cursor = read_lines(baseline.lines, catalog), baseline.resume_cursor
    graph.load({"Knows": [{"id": "e", "from": "a", "to": "b"}]})
    graph.put_blob("Person", "a", "photo", b"ho")
    graph.optimize()
    graph.mutate('query forget() { delete Person where name = "b" }')
    page = reader.changes.poll(cursor=cursor, limits=Limits(changes=1))
    while True:
        for block in page.blocks:
            apply(state, block.changes)
        if page.caught_up:
            break
        page = reader.changes.poll(
            cursor=page.cursor, page_token=page.next_page_token, limits=Limits(changes=1)
        )
    assert state == read_lines(graph.export(), catalog)
    changes = [(c.type, c.id, str(c.op)) for c in reader.diff(baseline.snapshot_commit_id, "main")]
    assert changes == [("Person", "a", "update"), ("Person", "b", "delete")]
