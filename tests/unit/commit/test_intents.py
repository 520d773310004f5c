"""The durable record of long operations: written, kept fresh, read back equal, removed."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.model import Counts
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, StagedSchema
from omnigraph.errors import FormatUnsupported, GraphCorrupt
from omnigraph.storage import ObjectStore, locate
from tests.support.intents import age

U64 = (1 << 64) - 1
texts = st.text(max_size=12)
ids = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
numbers = st.integers(1, U64)
datasets = st.builds(
    StagedDataset,
    texts,
    numbers,
    numbers,
    expected=numbers,
    physical=st.none() | numbers,
    rows=st.integers(0, U64),
    location=st.none() | texts,
) | st.builds(
    StagedDataset, texts, numbers, numbers, st.none(), numbers, st.integers(0, 9), location=texts
)
staged_commits = st.builds(
    StagedCommit,
    id=ids,
    operation=texts,
    datasets=st.lists(datasets, max_size=3, unique_by=lambda dataset: dataset.key).map(tuple),
    read_schema=st.none() | texts,
    reads=st.dictionaries(texts, st.tuples(st.tuples(numbers, numbers), numbers), max_size=2),
    schema=st.none()
    | st.builds(StagedSchema, texts, texts, st.dictionaries(texts, st.integers() | texts)),
    actor=st.none() | texts,
    message=st.none() | texts,
    counts=st.dictionaries(texts, st.builds(Counts, *[st.integers(0, U64)] * 3), max_size=2),
    if_commit=st.none() | ids,
    merged_parents=st.lists(ids, max_size=2).map(tuple),
    known_id=st.booleans(),
)
STAGED = StagedCommit(id="01ARZ3NDEKTSV4RRFFQ69G5FAV", operation="load")


@pytest.fixture
def objects(tmp_path):
    return ObjectStore(locate(tmp_path))


@pytest.fixture
def intents(objects):
    return IntentLog(objects)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(staged_commits, texts, st.none() | ids)
def test_intent_is_read_as_it_was_written(intents, staged, branch, lineage_id):
    made = intents.begin(branch, lineage_id, staged)
    assert made.staged == replace(staged, known_id=True)
    (found,) = intents.list()
    assert found == made
    intents.end(made)
    assert intents.list() == []


def test_progress_replaces_the_record_and_beats_the_heart(intents):
    begun = intents.begin("main", None, STAGED)
    assert begun.complete is False
    grown = replace(STAGED, datasets=(StagedDataset("node:T", 1, 2, 3, 4, 5),))
    updated = intents.update(begun, grown, complete=True)
    assert intents.list() == [updated]
    assert (updated.id, updated.started_at) == (begun.id, begun.started_at)
    assert updated.heartbeat >= begun.heartbeat
    assert updated.complete is True
    assert updated.staged == replace(grown, known_id=True)


def test_intents_are_listed_oldest_first(intents):
    made = [intents.begin("main", None, STAGED) for _ in range(5)]
    assert intents.list() == made


def test_record_stands_in_the_recovery_folder(intents, tmp_path):
    made = intents.begin("main", None, STAGED)
    assert made.path == f"__recovery/{made.id}.json"
    assert json.loads((tmp_path / made.path).read_text())["version"] == 1


def test_ending_twice_is_fine(intents):
    made = intents.begin("main", None, STAGED)
    intents.end(made)
    intents.end(made)
    assert intents.list() == []


def test_record_that_vanishes_while_listing_is_fine(intents, objects):
    kept, gone = (intents.begin("main", None, STAGED) for _ in range(2))
    read = objects.get

    def vanishing(path):
        objects.delete([gone.path])
        return read(path)

    objects.get = vanishing
    assert intents.list() == [kept]


def test_other_files_are_no_intents(intents, objects):
    objects.put("__recovery/readme.txt", b"not an intent")
    assert intents.list() == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"{}", b'{"version": 1}', b"\xff"])
def test_record_that_cannot_be_read_is_corruption(intents, objects, content):
    objects.put("__recovery/X.json", content)
    with pytest.raises(GraphCorrupt, match=r"intent __recovery/X\.json cannot be read"):
        intents.list()


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_record_of_another_version_is_refused(intents, objects, version):
    objects.put("__recovery/X.json", json.dumps({"version": version}).encode())
    with pytest.raises(FormatUnsupported, match="upgrade omnigraph first") as caught:
        intents.list()
    assert caught.value.details == {"found": str(version)}


def test_recovery_waits_for_what_somebody_may_go_on_with(tmp_path):
    graph = og.init(tmp_path / "graph", "node A { name: String @key }")
    objects = graph._manifest.objects
    patient = IntentLog(objects).begin("main", None, STAGED, resume_window=timedelta(days=1))
    other = replace(STAGED, id="01ARZ3NDEKTSV4RRFFQ69G5FAW")
    impatient = IntentLog(objects).begin("main", None, other)
    for minutes, left in ((23 * 60, [patient.id]), (25 * 60, [])):
        for intent in (patient, impatient):
            if objects.exists(intent.path):
                age(graph, intent, timedelta(minutes=minutes))
        og.open(graph.uri)
        assert [intent.id for intent in IntentLog(objects).list()] == left
