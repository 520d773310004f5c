"""Whatever a graph holds is shown as text: no elements, no hidden signs, no megabytes."""

import pytest

import omnigraph as og
from omnigraph.notebook.changes import changes_html, conflict_blocks
from omnigraph.notebook.diagram import graph_drawing, schema_diagram
from omnigraph.notebook.elements import Html, cut, element, public_uri, visible
from omnigraph.notebook.graphs import graph_html, schema_html
from omnigraph.notebook.history import branches_html, commits_html
from omnigraph.notebook.problems import error_html
from omnigraph.notebook.results import explanation_html, records_html, report_html, result_html
from omnigraph.notebook.reviews import proposal_html
from omnigraph.notebook.style import document
from tests.support.notebook_objects import Outline

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '"><img src=x onerror=alert(1)>',
    "style": "</style><style>*{display:none}</style>",
    "svg": "</text></svg><svg onload=alert(1)>",
    "entity": "&lt;b&gt;&#x3c;i&#x3e;",
    "bidi": "photo\u202egnp.exe\u2066\u2069",
    "terminal": "\x1b[31mred\x1b[0m\x07\x08",
    "null": "a\x00b\ufeff\u200b",
    "surrogate": "half \ud83d",
    "url": "javascript:alert(1)",
}
HIDDEN = set("\x00\x07\x08\x1b\u200b\u202e\u2066\u2069\ufeff\ud83d")
each_text = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
COMMIT = {
    "graph_commit_id": "",
    "graph_branch": None,
    "parent_commit_id": None,
    "merged_parent_commit_id": None,
    "actor_id": None,
    "created_at": 0,
    "message": None,
    "operation": "mutation",
    "counts": {},
}


def outputs(text):
    """Yield outputs that hold a text wherever a graph may supply one."""
    image = {"properties": {text: text, "other": [text], "third": {text: text}}}
    change = {"type": text, "id": text, "op": "insert", "after": image}
    yield "change", changes_html([change], total=None, more=False)
    nodes = [{"type": text, "id": text, "label": text}, {"type": "T", "id": "x", "label": None}]
    edge = {"type": text, "src_type": text, "src": text, "dst_type": "T", "dst": "x"}
    yield "drawing", document(graph_drawing(nodes, [edge, edge]))
    property_ = {"name": text, "type": text, "rules": text}
    types = [
        {"kind": "node", "name": text, "rows": 1, "properties": [property_]},
        {"kind": "edge", "name": text, "src": text, "dst": text, "rows": 1, "properties": []},
    ]
    yield "diagram", document(schema_diagram(types))
    yield "schema", schema_html(types)
    commit = {**COMMIT, "message": text, "actor_id": text, "graph_branch": text}
    commit["counts"] = {f"node:{text}": {"inserted": 1, "updated": 0, "deleted": 0}}
    yield "commits", commits_html([commit])
    graph = {"uri": text, "branch": text, "actor": text, "mode": "rw"}
    yield "graph", graph_html({**graph, "types": types, "commit": commit})
    yield "unreadable graph", graph_html({**graph, "problem": text})
    yield "branches", branches_html([text])
    conflict = {"kind": text, "type_name": text, "entity_id": text, "message": text}
    yield "conflict", document(*conflict_blocks([{**conflict, "source": image}]))
    details = {"violations": [{text: text}], "merge_conflicts": [conflict]}
    error = {"code": text, "category": text, "message": text, "details": details}
    yield "error", error_html(text, error)
    yield "report", report_html(text, {text: text, "list": [{text: text}], "map": {text: {"a": 1}}})
    yield "records", records_html(text, [{text: text}])
    step = {"operator": text, "depth": 1, "estimated_rows": 1}
    yield "plan", explanation_html({"query_name": text, "steps": [step]})
    rows = {"columns": [text], "rows": [{text: text}], "row_count": 1, "query_name": text}
    yield "result", result_html({**rows, "graph_commit_id": text})
    yield "proposal", proposal_html(proposal(text))


def proposal(text):
    said = {"actor_id": text, "body": text, "created_at": 0, "verdict": text, "stale": True}
    on = {"type": text, "id": text, "property": text, "outdated": True}
    check = {"name": text, "status": text, "severity": text, "count": 1, "message": text}
    return {
        "number": 1,
        "title": text,
        "state": "open",
        "mergeable": True,
        "source": text,
        "target": text,
        "author_id": text,
        "reviewers": [text],
        "created_at": 0,
        "closed_at": None,
        "merge_commit_id": None,
        "description": text,
        "summary": None,
        "requirements": [{"satisfied": False, "message": text}],
        "checks": [check],
        "reviews": [said],
        "comments": [{**said, "on": on, "resolved": False}],
    }


@each_text
def test_every_output_shows_hostile_text_as_text(text):
    for name, html in outputs(text):
        outline = Outline(html)
        assert (name, outline.foreign, outline.open) == (name, [], [])
        assert not HIDDEN & set(html), name
        shown = visible(text)
        # Drawings have room for the first characters of a name.
        assert shown in outline.text or shown[:20] in outline.text, name


def test_a_megabyte_is_cut_everywhere():
    text = "x" * 1_000_000
    sizes = {name: len(html) for name, html in outputs(text)}
    assert {name: size for name, size in sizes.items() if size > 40_000} == {}


def test_hostile_values_of_a_graph_are_shown_as_text(tmp_path):
    graph = og.init(tmp_path / "g", "node N { name: String @key  about: String? }")
    texts = [text for name, text in HOSTILE.items() if name != "surrogate"]
    graph.insert("N", [{"name": text.replace("\x00", ""), "about": "y" * 10**6} for text in texts])
    result = graph.query("query q() { match { $n: N } return { $n.name, $n.about } }")
    for html in (result._repr_html_(), result.graph()._repr_html_()):
        outline = Outline(html)
        assert (outline.foreign, outline.open) == ([], [])
        assert not HIDDEN & set(html)
        assert "<script>alert(1)</script>"[:20] in outline.text
        assert len(html) < 60_000


def test_elements_escape_texts_and_attributes():
    written = element("b", "<i>", Html("<i>1</i>"), None, title='"<')
    assert written == '<b title="&quot;&lt;">&lt;i&gt;<i>1</i></b>'


def test_a_cut_text_says_how_much_is_missing():
    assert cut("a" * 401) == "a" * 400 + "… (1 more character)"
    assert cut("a" * 400) == "a" * 400


def test_an_address_is_shown_without_its_password():
    assert public_uri("https://ada:secret@host/x?token=1") == "https://host/x"
    assert public_uri("s3://bucket/graph") == "s3://bucket/graph"
    assert public_uri("/data/harbour") == "/data/harbour"
