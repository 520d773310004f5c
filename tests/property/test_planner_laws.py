"""Laws of shapes, identities and migration plans, over generated schemas and edits."""

import json

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from omnigraph.catalog import (
    AcceptedSchema,
    SequentialAllocator,
    plan_migration,
    schema_shape,
    shape_hash,
)
from tests.support.catalogs import after, first, lines, sound
from tests.support.edits import GENTLE, ROUGH, edited
from tests.support.effort import examples
from tests.support.migrate import migrate
from tests.support.schemas import sketches, text_of

schemas = sketches()
gentle = schemas.flatmap(lambda s: st.tuples(st.just(s), edited(s, GENTLE)))
rough = schemas.flatmap(lambda s: st.tuples(st.just(s), edited(s, (*GENTLE, *ROUGH))))
randoms = st.randoms(use_true_random=False)
laws = settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])


def pair(sketch, other):
    """Accept a sketch and resolve an edit of it on top."""
    accepted = first(text_of(sketch))
    return accepted, after(accepted, text_of(other))


@laws
@given(schemas, randoms)
def test_shape_survives_any_rewriting_of_the_text(sketch, random):
    one, other = sound(text_of(sketch)), sound(text_of(sketch, random))
    assert schema_shape(one) == schema_shape(other)
    assert shape_hash(one) == shape_hash(other)


@laws
@given(schemas, randoms)
def test_identities_do_not_depend_on_the_order_of_the_text(sketch, random):
    assert first(text_of(sketch)) == first(text_of(sketch, random))


@laws
@given(rough)
def test_documents_read_back(sketches_):
    for accepted in pair(*sketches_):
        document = json.loads(json.dumps(accepted.to_json()))
        assert AcceptedSchema.from_json(document) == accepted
        assert schema_shape(AcceptedSchema.from_json(document).catalog) == schema_shape(
            accepted.catalog
        )


@laws
@given(schemas, randoms)
def test_a_schema_needs_no_steps_to_become_itself(sketch, random):
    accepted = first(text_of(sketch))
    again = after(accepted, text_of(sketch, random))
    assert again == accepted
    assert plan_migration(accepted, again).steps == ()


@laws
@given(rough)
def test_resolution_keeps_the_identity_of_what_stays_and_of_nothing_else(sketches_):
    sketch, other = sketches_
    accepted, desired = pair(*sketches_)
    old = {thing: identity for identity, thing in accepted.identities()}
    new = {thing: identity for identity, thing in desired.identities()}
    gone = {(decl.kind, decl.name) for decl in sketch}
    for decl in other:
        before, now = f"{decl.kind}:{decl.origin}", f"{decl.kind}:{decl.name}"
        gone.discard((decl.kind, decl.origin))
        assert (new[now] in old.values()) == (decl.origin is not None)
        if decl.origin is None:
            continue
        assert new[now] == old[before]
        assert new.get(f"incarnation of {now}") == old.get(f"incarnation of {before}")
        for prop in decl.props:
            if f"{before}.{prop.origin}" in old:
                assert new[f"{now}.{prop.name}"] == old[f"{before}.{prop.origin}"]
            else:
                assert new[f"{now}.{prop.name}"] not in old.values()
    for kind, name in gone:
        assert old[f"{kind}:{name}"] not in new.values()


@laws
@given(rough)
def test_new_identities_follow_one_another(sketches_):
    sketch, other = sketches_
    accepted = first(text_of(sketch))
    desired = after(accepted, text_of(other), SequentialAllocator(1000))
    fresh = sorted(identity for identity, _ in desired.identities() if identity >= 1000)
    assert fresh == list(range(1000, 1000 + len(fresh)))


@laws
@given(gentle)
def test_gentle_edits_are_supported_and_their_steps_lead_to_the_new_shape(sketches_):
    accepted, desired = pair(*sketches_)
    plan = plan_migration(accepted, desired)
    assert plan.supported, lines(plan)
    reach(accepted, desired, plan)


@laws
@given(rough)
def test_steps_of_a_supported_plan_lead_to_the_new_shape(sketches_):
    accepted, desired = pair(*sketches_)
    plan = plan_migration(accepted, desired)
    event(f"supported: {plan.supported}")
    if plan.supported:
        reach(accepted, desired, plan)
    else:
        assert accepted != desired


def reach(accepted, desired, plan):
    source, target = schema_shape(accepted.catalog), schema_shape(desired.catalog)
    assert migrate(source, plan.to_json()["steps"], target) == target


@laws
@given(rough, randoms)
def test_plans_do_not_depend_on_the_order_of_the_text(sketches_, random):
    sketch, other = sketches_
    accepted = first(text_of(sketch))
    plans = [
        plan_migration(accepted, after(accepted, text))
        for text in (text_of(other), text_of(other, random))
    ]
    assert plans[0] == plans[1]


@laws
@given(rough)
def test_a_plan_is_empty_exactly_when_the_shapes_and_identities_agree(sketches_):
    accepted, desired = pair(*sketches_)
    plan = plan_migration(accepted, desired)
    assert (not plan.steps) == (accepted == desired)
    assert "schema" not in [refusal.entity for refusal in plan.refusals]


@laws
@given(rough)
def test_data_loss_changes_nothing_but_the_mode_of_drops(sketches_):
    plan = plan_migration(*pair(*sketches_))
    text = json.dumps(plan.to_json())
    assert json.dumps(plan.with_data_loss().to_json()) == text.replace('"soft"', '"hard"')
