"""What a query returns, reads and writes, known without running it."""

import pytest

from omnigraph.plan import describe_operation
from tests.support.plans import catalog, plan_of


def described(query, schema="harbour"):
    return describe_operation(plan_of(query, schema), catalog(schema))


def accesses(words):
    kinds = [word.split(" ") for word in words]
    return [{"kind": kind, "type_name": name} for kind, name in kinds]


READS = {
    "$s: Ship": ["node Ship"],
    "$s: Ship $t: Ship $n: Note": ["node Note", "node Ship"],
    "$s: Ship $s callsAt $p": ["node Port", "node Ship", "edge CallsAt"],
    "$a route $b": ["node Port", "edge Route"],
    "$a: Port $a route{1,3} $b $b route $a": ["node Port", "edge Route"],
    "$n: Note not { $n.text = $n.id $s: Ship not { $s callsAt $_ } }": [
        "node Note",
        "node Port",
        "node Ship",
        "edge CallsAt",
    ],
}


@pytest.mark.parametrize(("match", "reads"), READS.items())
def test_a_read_reads_bindings_and_edges_with_both_their_ends(match, reads):
    found = described(f"query q() {{ match {{ {match} }} return {{ 1 as one }} }}")
    assert found == {
        "result": [{"name": "one", "kind": "bigint", "nullable": False}],
        "reads": accesses(reads),
        "writes": [],
    }


MUTATIONS = {
    "insert Note { text: $t }": (["node Note"], ["node Note"]),
    "insert CallsAt { from: $t, to: $t }": (
        ["node Port", "node Ship", "edge CallsAt"],
        ["edge CallsAt"],
    ),
    "update Ship set { label: $t } where imo = 1": (["node Ship"], ["node Ship"]),
    "delete Note where text = $t": (["node Note"], ["node Note"]),
    "delete Ship where label = $t": (
        ["node Ship", "edge CallsAt"],
        ["node Ship", "edge CallsAt"],
    ),
    "delete Port where code = $t": (
        ["node Port", "edge CallsAt", "edge Route"],
        ["node Port", "edge CallsAt", "edge Route"],
    ),
    "delete Route where from = $t": (["edge Route"], ["edge Route"]),
    "insert Route { from: $t, to: $t } insert Note { text: $t } insert Note { text: $t }": (
        ["node Note", "node Port", "edge Route"],
        ["node Note", "edge Route"],
    ),
}


@pytest.mark.parametrize(
    ("statements", "reads", "writes"),
    [(statements, *touched) for statements, touched in MUTATIONS.items()],
)
def test_a_mutation_reads_and_writes_its_targets_and_returns_nothing(statements, reads, writes):
    found = described(f"query m($t: String) {{ {statements} }}")
    assert found == {"result": [], "reads": accesses(reads), "writes": accesses(writes)}


COLUMNS = {
    "$d.title": {"kind": "string", "nullable": False},
    "$d.body": {"kind": "string", "nullable": True},
    "$d.public": {"kind": "bool", "nullable": True},
    "$d.stars": {"kind": "int", "nullable": True},
    "$d.views": {"kind": "bigint", "nullable": True},
    "$d.price": {"kind": "float", "nullable": True},
    "$a.born": {"kind": "date", "nullable": True},
    "$d.added": {"kind": "datetime", "nullable": True},
    "$d.tags": {"kind": "list", "item_kind": "string", "nullable": True},
    "$d.marks": {"kind": "list", "item_kind": "int", "nullable": True},
    "$d.embedding": {"kind": "vector", "vector_dim": 3, "nullable": False},
    "$d.picture": {"kind": "vector", "vector_dim": 2, "nullable": True},
    "$d": {"kind": "string", "nullable": False},
    "$p": {"kind": "list", "item_kind": "float", "nullable": True},
    "now()": {"kind": "datetime", "nullable": False},
    'bm25($d.title, "x")': {"kind": "float", "nullable": True},
    'search($d.title, "x")': {"kind": "bool", "nullable": False},
    "true": {"kind": "bool", "nullable": False},
    '["a"]': {"kind": "list", "item_kind": "string", "nullable": False},
    "count($d.tags)": {"kind": "bigint", "nullable": False},
    "sum($d.stars)": {"kind": "float", "nullable": True},
    "min($d.title)": {"kind": "string", "nullable": True},
}


@pytest.mark.parametrize(("expression", "facts"), COLUMNS.items())
def test_a_column_is_described_by_its_type(expression, facts):
    match = "match { $d: Doc  $d writtenBy $a }"
    query = f"query q($p: [F32]?) {{ {match} return {{ {expression} as x }} }}"
    assert described(query, "archive")["result"] == [{"name": "x", **facts}]
