"""The same changes through every surface that writes have one verdict and leave one state."""

import shutil
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import omnigraph.graph as og
from tests.behaviour.change_cases import CASES, MUTATION
from tests.support.changes import definition, is_generated, key_of, property_type, read_state
from tests.support.embedding import MOCK
from tests.support.model import Model, entity_id, stored
from tests.support.surfaces import SURFACES, Changes, Inexpressible, Wanted

BY_NAME = {case.name: case for case in CASES}


def test_every_case_has_a_name_of_its_own_and_one_verdict():
    assert len(BY_NAME) == len(CASES)
    assert not [case.name for case in CASES if (case.after is None) == (not case.wrong)]


@dataclass(frozen=True)
class Template:
    """A graph that tests copy to change it, a copy that no test changes, and what both contain."""

    path: Path
    unchanged: Path
    state: dict
    head: str


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Return a function that makes graphs of a schema and first entities once, on disk."""
    folder = tmp_path_factory.mktemp("templates")
    templates = []

    @cache
    def make(schema, before):
        path = folder / str(len(templates))
        graph = og.init(path, schema, embedding=MOCK)
        populate(graph, before)
        unchanged = path.with_suffix(".unchanged")
        shutil.copytree(path, unchanged)
        template = Template(path, unchanged, read_state(graph), graph.snapshot().commit_id)
        templates.append(template)
        return template

    yield make
    assert [t.unchanged for t in templates if not og.open(t.unchanged).verify().ok] == []


def populate(graph, before):
    if before:
        verdict = Changes().run(graph, Wanted(before))
        assert not verdict.reported, verdict


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.name)
@pytest.mark.parametrize("name", BY_NAME)
def test_change_has_the_same_verdict_on_every_surface(template, tmp_path, name, surface):
    case = BY_NAME[name]
    first = template(case.schema, Hashed(case.before))
    path = first.unchanged
    if surface.name in case.on and not case.wrong:
        path = shutil.copytree(first.path, tmp_path / "graph")
    check(og.open(path, embedding=MOCK), case, surface, first.state, first.head)
    if path != first.unchanged:
        assert og.open(path).verify().ok


@pytest.mark.parametrize("graph_root", ["s3"], indirect=True)
@pytest.mark.parametrize("name", [case.name for case in CASES if case.s3])
def test_change_has_the_same_verdict_in_a_bucket(graph_root, name):
    case = BY_NAME[name]
    surface = [s for s in SURFACES if s.name in case.on][-1]
    graph = og.init(graph_root.uri, case.schema, storage_options=graph_root.options, embedding=MOCK)
    populate(graph, case.before)
    check(graph, case, surface, read_state(graph), graph.snapshot().commit_id)
    assert og.open(graph_root.uri, storage_options=graph_root.options).verify().ok


@pytest.mark.parametrize("name", BY_NAME)
def test_the_model_of_the_property_tests_gives_the_same_verdict(template, name):
    case = BY_NAME[name]
    if any(rule == "value" for rule, *_ in case.wrong):
        return  # the model is only given values of the right kind
    catalog = og.open(template(case.schema, Hashed(case.before)).path).snapshot().catalog
    for is_mutation in {on in MUTATION for on in case.on}:
        model = Model(catalog)
        assert not model.load(case.before)
        if is_mutation:
            violations, *affected = model.mutate(case.steps)
            assert case.affected in (None, tuple(affected))
        else:
            violations = model.load(case.steps, case.mode, partial=case.partial)
        assert violations == Counter((r, t, i, p) for r, t, i, p, _ in case.wrong)
        after = case.before if case.wrong else case.after
        assert without_new_ids(model.state) == without_new_ids(expected(catalog, after))


def check(graph, case, surface, before, head):
    """Make the change of a case on a graph whose state and head are known."""
    wanted = Wanted(
        case.steps,
        case.mode,
        case.partial,
        before,
        in_order=case.on == MUTATION,
        together="mutation" not in case.on,
    )
    if surface.name not in case.on:
        with pytest.raises(Inexpressible):
            surface.run(graph, wanted)
        return
    verdict = surface.run(graph, wanted)
    assert verdict.reported == Counter((r, t, i, p) for r, t, i, p, _ in case.wrong), (
        verdict.messages
    )
    for *_, part in case.wrong:
        assert any(part in message for message in verdict.messages), verdict.messages
    fresh = og.open(graph.uri, storage_options=graph._manifest.location.options or None)
    if case.wrong:
        assert read_state(fresh) == before
        assert fresh.snapshot().commit_id == head
    else:
        catalog = graph.snapshot().catalog
        assert without_new_ids(read_state(fresh)) == without_new_ids(expected(catalog, case.after))
        if case.affected is not None:
            assert verdict.affected == case.affected


class Hashed(tuple):
    """Entities by their looks, so that a template can be looked up by them."""

    __slots__ = ()

    def __hash__(self):
        return hash(repr(tuple(self)))


def expected(catalog, entities):
    """Return the state that consists of these entities; properties without a value are null."""
    state = {name: {} for name in (*catalog.nodes, *catalog.edges)}
    for number, entity in enumerate(entities):
        columns = ["src", "dst"] if entity.type in catalog.edges else []
        columns += definition(catalog, entity.type).properties
        types = {name: property_type(catalog, entity.type, name) for name in columns}
        row = {name: stored(entity.values.get(name), type_) for name, type_ in types.items()}
        key = key_of(catalog, entity.type)
        made = entity_id([(row[k], types[k]) for k in key]) if key else fresh_id(number)
        state[entity.type][entity.values.get("id", made)] = row
    return state


def fresh_id(number):
    """Return what looks like a generated id."""
    return f"{number:026d}".replace("0", "A")


def without_new_ids(state):
    """Return entities in an order in which generated ids play no part."""
    return {
        name: sorted(
            ((None if is_generated(id_) else id_, row) for id_, row in rows.items()), key=repr
        )
        for name, rows in state.items()
    }
