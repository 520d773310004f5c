"""What is left of a schema: its types, their rules, and its text."""

import pytest

from omnigraph.catalog import load_catalog
from omnigraph.catalog.fingerprint import schema_shape
from omnigraph.policy.permissions import ALL_TYPES, NO_TYPES, TypeGrant, TypeScope
from omnigraph.policy.schema_view import reduce_schema
from tests.support.catalogs import first

SCHEMA = """
// Nobody needs to see this.
interface Named { name: String @key }
interface Paid { wage: I64? @index  bonus: I64? }
node Person @description("somebody") implements Named, Paid {
  age: I32?
  city: String?
  bio: String?
  vec: Vector(2)? @embed(bio)
  @unique(city, age)
  @range(age, 0..150)
  @range(wage, 0..)
}
node Firm implements Paid { code: String @key }
edge Knows: Person -> Person { since: Date? @index  why: String?  @unique(src, dst) }
edge WorksAt: Person -> Firm @card(0..1)
"""


def scope(*grants):
    return TypeScope.of(
        TypeGrant(
            frozenset(types),
            frozenset((name, hidden) for name, names in mask.items() for hidden in names),
        )
        for types, mask in grants
    )


def reduced(shown):
    return reduce_schema(first(SCHEMA), SCHEMA, shown)


CASES = {
    "a type with all its interfaces": (
        scope((["Person"], {})),
        """\
interface Named {
  name: String @key
}

interface Paid {
  wage: I64? @index
  bonus: I64?
}

node Person @description("somebody") implements Named, Paid {
  age: I32?
  city: String?
  bio: String?
  vec: Vector(2)? @embed(bio)
  @unique(city, age)
  @range(age, 0..150)
  @range(wage, 0..)
}
""",
    ),
    "an interface of which something is masked": (
        scope((["Person", "Knows"], {"Person": ["bonus", "bio", "age"], "Knows": ["why"]})),
        """\
interface Named {
  name: String @key
}

node Person @description("somebody") implements Named {
  wage: I64? @index
  city: String?
  @range(wage, 0..)
}

edge Knows: Person -> Person {
  since: Date? @index
  @unique(src, dst)
}
""",
    ),
    "an edge without one of its ends": (
        scope((["Firm", "WorksAt", "Knows"], {"Firm": ["wage", "bonus"]})),
        "node Firm {\n  code: String @key\n}\n",
    ),
    "a mask of a key from an interface": (scope((["Person", "Knows"], {"Person": ["name"]})), ""),
    "a mask of nothing there": (scope((["Person", "Knows"], {"Knows": ["whyy"]})), None),
    "nothing": (NO_TYPES, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_text_of_what_is_left_means_what_is_left(name):
    shown, text = CASES[name]
    view = reduced(shown)
    assert schema_shape(load_catalog(view.source)) == schema_shape(view.schema.catalog)
    if text is not None:
        assert view.source == text
    else:
        assert list(view.schema.catalog.edges) == []


def test_identities_are_those_of_the_whole_schema():
    whole = first(SCHEMA)
    shown = scope((["Person", "Knows"], {"Person": ["age"]}))
    view = reduce_schema(whole, SCHEMA, shown)
    for type_ in view.schema.types:
        known = whole.find(type_.kind, type_.name)
        assert (type_.id, type_.incarnation) == (known.id, known.incarnation)
        assert dict(type_.property_ids).items() <= dict(known.property_ids).items()


def test_rules_add_up_property_by_property():
    one = scope(
        (["Person"], {"Person": ["age", "wage", "bonus", "bio"]}),
        (["Person"], {"Person": ["age", "city"]}),
        (["Person"], {"Person": ["not there"]}),
    )
    person = reduced(one).schema.catalog.nodes["Person"]
    assert sorted(person.properties) == ["bio", "bonus", "city", "name", "vec", "wage"]
    assert schema_shape(reduced(ALL_TYPES).schema.catalog) == schema_shape(load_catalog(SCHEMA))
