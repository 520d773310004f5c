"""Records of a file: which are embedded, from which text, and what the output holds."""

import json
import os

import pytest

from omnigraph import OmniError
from omnigraph.embed import file_embedding as module
from omnigraph.embed.embed_spec import (
    EmbedFileJob,
    EmbedFileMode,
    EmbedSpec,
    EmbedTarget,
    RecordSelector,
    read_manifest,
    read_selector,
    read_spec,
)
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.file_embedding import embed_file, record_text
from tests.support.embedding import MOCK, mock_vector

SPEC = EmbedSpec(
    3, {"Doc": EmbedTarget("v", ("title", "tags")), "Port": EmbedTarget("w", ("name",))}
)
LINES = [
    '{"type": "Doc",  "data": {"k": "a", "title": "Ship", "tags": ["x", "y"]}}',
    '{"type":"Doc","data":{"k":"b","title":"Port","v":[1,0,0]}}',
    '{"edge": "About", "from": "a", "to": "b"}',
    "",
    '{"type":"Port","data":{"name":"Ærø","depth":14.1,"w":null}}',
    '{"type":"Other","data":{"name":"x"}}',
    '{"type":"Doc","data":{"k":"c","title":null,"v":[]}}',
]
TEXTS = {
    "a": "type: Doc\ntitle: Ship\ntags: x, y",
    "b": "type: Doc\ntitle: Port",
    "c": "type: Doc",
    "Ærø": "type: Port\nname: Ærø",
}


@pytest.fixture
def run(tmp_path):
    def embed(mode=EmbedFileMode.FILL, lines=LINES, types=(), selectors=()):
        (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
        job = EmbedFileJob(
            input=tmp_path / "in.jsonl",
            output=tmp_path / "out" / "out.jsonl",
            spec=SPEC,
            mode=mode,
            types=frozenset(types),
            selectors=tuple(selectors),
        )
        report = embed_file(job, Embedder(MOCK)).to_json()
        assert os.listdir(tmp_path / "out") == ["out.jsonl"]
        made = (tmp_path / "out" / "out.jsonl").read_text(encoding="utf-8")
        return report, made.splitlines()

    return embed


def made_for(name):
    return [pytest.approx(number) for number in mock_vector(TEXTS[name], 3)]


def counts(report):
    return [report[f"{word}records"] for word in ("", "selected_", "embedded_", "cleaned_")]


def test_missing_vectors_are_filled_and_other_lines_stay_as_they_are(run):
    report, made = run()
    assert [made[n] for n in (1, 2, 4)] == [LINES[1], LINES[2], LINES[5]]
    records = [json.loads(line) for line in made]
    assert records[0] == {
        "type": "Doc",
        "data": {"k": "a", "title": "Ship", "tags": ["x", "y"], "v": made_for("a")},
    }
    assert records[3]["data"] == {"name": "Ærø", "depth": 14.1, "w": made_for("Ærø")}
    assert records[5]["data"]["v"] == made_for("c")
    assert counts(report) == [6, 4, 3, 0]
    facts = (report["mode"], report["dimension"], report["model"])
    assert facts == ("fill_missing", 3, "")
    assert (os.path.basename(report["input"]), os.path.basename(report["output"])) == (
        "in.jsonl",
        "out.jsonl",
    )


def test_filling_again_changes_nothing(run):
    _, made = run()
    report, again = run(lines=made)
    assert again == made
    assert counts(report) == [6, 4, 0, 0]


def test_all_vectors_are_made_again(run):
    report, made = run(EmbedFileMode.ALL)
    assert json.loads(made[1])["data"]["v"] == made_for("b")
    assert counts(report) == [6, 4, 4, 0]


def test_clean_takes_vectors_away_and_needs_no_provider(run):
    report, made = run(EmbedFileMode.CLEAN)
    assert [json.loads(made[n])["data"] for n in (1, 3, 5)] == [
        {"k": "b", "title": "Port"},
        {"name": "Ærø", "depth": 14.1},
        {"k": "c", "title": None},
    ]
    assert made[0] == LINES[0]
    assert counts(report) == [6, 4, 0, 3]
    assert report["model"] is None


@pytest.mark.parametrize(
    ("types", "selectors", "ids"),
    [
        (["Port"], [], ["Ærø"]),
        (["Port", "Doc"], [], ["a", "b", "Ærø", "c"]),
        ([], ["k=b"], ["b"]),
        ([], ["k=b", "k=c"], ["b", "c"]),
        ([], ["tags=y"], ["a"]),
        ([], ["depth=14.1"], ["Ærø"]),
        ([], ["Doc:name=Ærø"], []),
        ([], ["Port:name=Ærø", "k=a"], ["a", "Ærø"]),
        (["Doc"], ["name=Ærø"], []),
        ([], ["title="], []),
    ],
)
def test_only_selected_records_are_embedded(run, types, selectors, ids):
    report, made = run(EmbedFileMode.SELECTED, LINES, types, map(read_selector, selectors))
    assert counts(report) == [6, len(ids), len(ids), 0]
    before = [line for line in LINES if line]
    changed = [json.loads(new)["data"] for old, new in zip(before, made, strict=True) if old != new]
    assert [data.get("k", data.get("name")) for data in changed] == ids
    for data in changed:
        assert (data.get("v") or data.get("w")) == made_for(data.get("k", data.get("name")))


def test_large_file_goes_through_in_parts(run, monkeypatch):
    monkeypatch.setattr(module, "BATCH_LINES", 7)
    report, made = run(lines=LINES * 20)
    assert counts(report) == [120, 80, 60, 0]
    assert json.loads(made[-6])["data"]["v"] == made_for("a")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: invalid JSON"),
        ("[]", "line 2: a record must be a JSON object"),
        ('{"type": "Doc"}', "line 2: a record with a type needs an object `data`"),
        ('{"type": "Other", "data": []}', "line 2: a record with a type needs an object `data`"),
        ("\xff", "line 2: invalid JSON"),
    ],
)
def test_bad_line_is_reported_and_leaves_no_file(tmp_path, run, line, said):
    (tmp_path / "out").mkdir()
    with pytest.raises(OmniError) as caught:
        run(lines=[LINES[0], line])
    assert caught.value.code == "embed_input_invalid"
    assert said in caught.value.message
    assert os.listdir(tmp_path / "out") == []


def test_interrupt_leaves_the_older_output(tmp_path, monkeypatch):
    class Interrupted:
        model = "m"

        def embed(self, texts, dimension, role):
            raise KeyboardInterrupt

    (tmp_path / "in").write_text(LINES[0], encoding="utf-8")
    (tmp_path / "out").write_text("older", encoding="utf-8")
    job = EmbedFileJob(
        input=tmp_path / "in", output=tmp_path / "out", spec=SPEC, mode=EmbedFileMode.FILL
    )
    with pytest.raises(KeyboardInterrupt):
        embed_file(job, Embedder(Interrupted()))
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]
    assert (tmp_path / "out").read_text(encoding="utf-8") == "older"


def test_file_may_be_embedded_in_its_place(tmp_path):
    path = tmp_path / "f"
    path.write_text(LINES[0], encoding="utf-8")
    embed_file(
        EmbedFileJob(input=path, output=path, spec=SPEC, mode=EmbedFileMode.FILL), Embedder(MOCK)
    )
    assert json.loads(path.read_text(encoding="utf-8"))["data"]["v"] == made_for("a")


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(OmniError) as caught:
        embed_file(
            EmbedFileJob(
                input=tmp_path / "no", output=tmp_path / "out", spec=SPEC, mode=EmbedFileMode.FILL
            ),
            Embedder(MOCK),
        )
    assert caught.value.code == "file_not_found"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x", "f: x"),
        (" x ", "f:  x "),
        ("", None),
        (" ", None),
        (None, None),
        ([], None),
        (["a", 1, None, True], "f: a, 1, true"),
        (0, "f: 0"),
        (False, "f: false"),
        (1.5, "f: 1.5"),
        ({"a": "é"}, 'f: {"a": "é"}'),
    ],
)
def test_text_has_a_line_for_each_property_that_is_not_empty(value, shown):
    text = record_text("T", {"f": value}, EmbedTarget("v", ("f", "absent")))
    assert text == ("type: T" if shown is None else f"type: T\n{shown}")


# --- what a command reports ------------------------------------------------------------------


def test_spec_is_read(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(
        '{"dimension": 3, "types": {"Doc": {"target": "v", "fields": ["title", "tags"]},'
        '"Port": {"target": "w", "fields": ["name"]}}}',
        encoding="utf-8",
    )
    assert read_spec(path) == SPEC


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", "has no `dimension` and `types`"),
        ('{"dimension": 0, "types": {}}', "`dimension` must be a whole number"),
        ('{"dimension": true, "types": {}}', "`dimension` must be a whole number"),
        ('{"dimension": 3}', "`types` must map each type"),
        ('{"dimension": 3, "types": {}, "x": 1}', "unknown key `x`"),
        ('{"dimension": 3, "types": {"T": 1}}', "type T has no `target` and `fields`"),
        ('{"dimension": 3, "types": {"T": {"fields": ["a"]}}}', "`target` must be the name"),
        ('{"dimension": 3, "types": {"T": {"target": "v", "fields": []}}}', "`fields` must list"),
        ('{"dimension": 3, "types": {"T": {"target": "v", "fields": [1]}}}', "`fields` must list"),
    ],
)
def test_invalid_spec_is_reported(tmp_path, text, said):
    (tmp_path / "spec.json").write_text(text, encoding="utf-8")
    with pytest.raises(OmniError) as caught:
        read_spec(tmp_path / "spec.json")
    assert caught.value.code == "embed_spec_invalid"
    assert said in caught.value.message


EMBEDDINGS = "embeddings: {dimension: 3, types: {Doc: {target: v, fields: [title]}}}\n"


@pytest.mark.parametrize(
    ("text", "source", "output"),
    [
        ("sources: {raw_seed: ./a.jsonl}\n", "a.jsonl", "build/seed.embedded.jsonl"),
        ("seed: {data: a.jsonl}\n", "a.jsonl", "build/seed.embedded.jsonl"),
        ("sources: {raw_seed: a}\nseed: {data: b}\n", "a", "build/seed.embedded.jsonl"),
        ("sources: {raw_seed: a}\nartifacts: {embedded_seed: o}\nmore: 1\n", "a", "o"),
    ],
)
def test_manifest_is_read_with_paths_of_its_folder(tmp_path, text, source, output):
    (tmp_path / "m.yaml").write_text(text + EMBEDDINGS, encoding="utf-8")
    found = read_manifest(tmp_path / "m.yaml")
    assert found == (
        tmp_path / source,
        tmp_path / output,
        EmbedSpec(3, {"Doc": EmbedTarget("v", ("title",))}),
    )


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("a: [", "embed_manifest_invalid", "is not valid YAML"),
        ("- a", "embed_manifest_invalid", "has no `sources`"),
        (EMBEDDINGS, "embed_manifest_invalid", "set `sources.raw_seed`"),
        (
            "sources: {raw_seed: 1}\n" + EMBEDDINGS,
            "embed_manifest_invalid",
            "set `sources.raw_seed`",
        ),
        ("sources: {raw_seed: a}", "embed_manifest_invalid", "set `embeddings`"),
        ("sources: {raw_seed: a}\nembeddings: {}", "embed_spec_invalid", "`dimension`"),
    ],
)
def test_invalid_manifest_is_reported(tmp_path, text, code, said):
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(OmniError) as caught:
        read_manifest(tmp_path / "m.yaml")
    assert caught.value.code == code
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("a=b", RecordSelector(None, "a", "b")),
        ("T:a=b=c", RecordSelector("T", "a", "b=c")),
        ("a=x:y", RecordSelector(None, "a", "x:y")),
        ("a=", RecordSelector(None, "a", "")),
    ],
)
def test_selector_is_read(text, selector):
    assert read_selector(text) == selector


@pytest.mark.parametrize("text", ["a", "=b", "T:=b", ":a=b", ""])
def test_invalid_selector_is_reported(text):
    with pytest.raises(OmniError) as caught:
        read_selector(text)
    assert caught.value.code == "embed_selector_invalid"


@pytest.mark.parametrize(
    "more", [{"types": frozenset({"No"})}, {"selectors": (RecordSelector("No", "a", "b"),)}]
)
def test_type_missing_from_the_spec_is_reported(tmp_path, more):
    with pytest.raises(OmniError) as caught:
        EmbedFileJob(
            input=tmp_path, output=tmp_path, spec=SPEC, mode=EmbedFileMode.SELECTED, **more
        )
    assert caught.value.code == "embed_type_unknown"
    assert "which has Doc, Port" in caught.value.message
