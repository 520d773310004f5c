"""Good and bad changes, each written once, with the verdict every surface must give.

`after` lists every entity there is afterwards; properties left out are null, an id left out was
generated. `wrong` lists every violation: rule, type, id, property, and a part of the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.changes import Put, Step, change, delete, put, where
from tests.support.embedding import mock_vector

EVERY = ("mutation", "change set", "ndjson", "columns")
LOADS = EVERY[1:]
MUTATION = EVERY[:1]
TEXTS = ("mutation", "ndjson", "columns")
"""The surfaces that are given values of any kind; a change set has typed ones."""


@dataclass(frozen=True)
class Case:
    """One change and its verdict; `on` are the surfaces that can say it, by name."""

    name: str
    schema: str
    before: tuple[Put, ...]
    steps: tuple[Step, ...]
    mode: str = "merge"
    partial: bool = False
    after: tuple[Put, ...] | None = None
    wrong: tuple[tuple[str, str, str | None, str | None, str], ...] = ()
    affected: tuple[int, int] | None = None
    on: tuple[str, ...] = EVERY
    s3: bool = False


CASES: list[Case] = []


def case(name: str, schema: str, *steps: Step, **facts: Any) -> None:
    """Add a case."""
    before = tuple(facts.pop("before", ()))
    if "after" in facts:
        facts["after"] = tuple(facts["after"])
    CASES.append(Case(name, schema, before, steps, **facts))


def but(entities: list[Put], *ids: str) -> list[Put]:
    """Return entities without some, named by id or key."""
    names = ("id", "name", "code")
    return [e for e in entities if not any(e.values.get(n) in ids for n in names)]


# --- values ------------------------------------------------------------------------------------

PEOPLE = """
node Person {
  name: String @key
  age: I32?
  mood: enum(calm, glad)?
  email: String? @unique
  @range(age, 0..150)
  @check(name, "^[a-zäé' ]+$")
}
node Note { text: String  rank: I32? }
edge Knows: Person -> Person { since: Date?  how: enum(work, kin)? }
edge Wrote: Person -> Note
"""
ANN = put("Person", name="ann", age=30, email="ann@x")
BO = put("Person", name="bo", mood="calm")
KNOWS = put("Knows", id="k1", src="ann", dst="bo", since="2020-01-01")
NOTE = put("Note", id="n1", text="hello", rank=1)
WROTE = put("Wrote", id="w1", src="ann", dst="n1")
FIRST = [ANN, BO, NOTE, KNOWS, WROTE]


def person(name: str, **values: Any) -> Put:
    """Return a person."""
    return put("Person", name=name, **values)


case(
    "a new entity joins the others",
    PEOPLE,
    person("cy", age=1),
    before=FIRST,
    after=[*FIRST, person("cy", age=1)],
    s3=True,
)
case(
    "a keyed entity is replaced whole",
    PEOPLE,
    person("ann", mood="glad"),
    before=FIRST,
    after=[*but(FIRST, "ann"), person("ann", mood="glad")],
)
case(
    "the bounds of a range are inside",
    PEOPLE,
    person("cy", age=0),
    person("di", age=150),
    after=[person("cy", age=0), person("di", age=150)],
)
case(
    "null is in every range, enum and pattern",
    PEOPLE,
    person("cy", age=None, mood=None),
    after=[person("cy")],
)
case(
    "a number below the range is refused",
    PEOPLE,
    person("cy", age=-1),
    before=FIRST,
    wrong=(("range", "Person", "cy", "age", "@range violation on Person.age: value -1 < min 0"),),
)
case(
    "a number above the range is refused",
    PEOPLE,
    person("cy", age=151),
    before=FIRST,
    s3=True,
    wrong=(("range", "Person", "cy", "age", "value 151 > max 150"),),
)
case(
    "all that is wrong is reported at once",
    PEOPLE,
    person("cy", age=-1, mood="sad"),
    person("UP"),
    put("Note", rank=2),
    put("Knows", src="cy", dst="nobody", how="luck"),
    before=FIRST,
    wrong=(
        ("range", "Person", "cy", "age", "< min 0"),
        ("enum", "Person", "cy", "mood", "invalid enum value 'sad' for Person.mood"),
        ("check", "Person", "UP", "name", "'UP' does not match pattern"),
        ("required", "Note", None, "text", "Note.text is required"),
        ("enum", "Knows", None, "how", "(expected: kin, work)"),
        ("endpoint", "Knows", None, None, "dst 'nobody' not found in Person"),
    ),
)
case(
    "an update out of range is refused",
    PEOPLE,
    change("Person", {"age": 200}, where("name", "=", "ann")),
    before=FIRST,
    on=MUTATION,
    wrong=(("range", "Person", "ann", "age", "value 200 > max 150"),),
)
case(
    "text that matches the pattern somewhere passes",
    PEOPLE,
    person("o'neil é"),
    after=[person("o'neil é")],
)
case(
    "text that does not match the pattern is refused",
    PEOPLE,
    person("Ann"),
    wrong=(
        (
            "check",
            "Person",
            "Ann",
            "name",
            "@check violation on Person.name: value 'Ann' does not match pattern '^[a-zäé' ]+$'",
        ),
    ),
)
case(
    "an unknown enum value is refused on a node",
    PEOPLE,
    person("cy", mood="sad"),
    before=FIRST,
    wrong=(
        (
            "enum",
            "Person",
            "cy",
            "mood",
            "invalid enum value 'sad' for Person.mood (expected: calm, glad)",
        ),
    ),
)
case(
    "an unknown enum value is refused on an edge",
    PEOPLE,
    put("Knows", src="bo", dst="ann", how="luck"),
    before=FIRST,
    wrong=(("enum", "Knows", None, "how", "invalid enum value 'luck' for Knows.how"),),
)
case(
    "an enum value differs by case",
    PEOPLE,
    person("cy", mood="Calm"),
    wrong=(("enum", "Person", "cy", "mood", "'Calm'"),),
)
case(
    "a required property that is null is refused",
    PEOPLE,
    put("Note", text=None, rank=3),
    wrong=(("required", "Note", None, "text", "Note.text is required, but null or missing"),),
)
case(
    "a required property that is missing is refused",
    PEOPLE,
    put("Note", rank=3),
    before=FIRST,
    wrong=(("required", "Note", None, "text", "Note.text is required"),),
)
case(
    "an update may not empty a required property",
    PEOPLE,
    change("Note", {"text": None}, where("rank", "=", 1)),
    before=FIRST,
    on=MUTATION,
    wrong=(("required", "Note", "n1", "text", "is required"),),
)
case(
    "a key that is null is refused",
    PEOPLE,
    put("Person", age=3),
    before=FIRST,
    on=("mutation", "ndjson", "columns"),
    wrong=(("required", "Person", None, "name", "Person.name is required"),),
)
case(
    "a statement that is overruled is still checked",
    PEOPLE,
    person("cy", age=-1),
    person("cy", age=1),
    on=MUTATION,
    wrong=(("range", "Person", "cy", "age", "value -1"),),
)

VALUES = """
node Item {
  code: String @key
  tags: [String]?
  days: [Date]?
  times: [DateTime]?
  spot: Vector(3)?
  file: Blob?
  at: DateTime?
  big: F64?
  small: F32?
  whole: I64?
  count: U64?
  sure: Bool?
  on: Date?
  @range(small, 0..0.5)
  @range(big, -1.5..)
  @range(count, ..9223372036854775806)
}
"""


def item(**values: Any) -> Put:
    """Return an item."""
    return put("Item", code="i", **values)


case(
    "every kind of value comes back as it went in",
    VALUES,
    item(
        tags=["a", "", "ü"],
        days=["2024-02-29"],
        times=["2024-05-01T12:00:00.123Z"],
        spot=[1.0, 0.5, -2.0],
        file="base64:aGk=",
        at="1969-12-31T23:59:59.999Z",
        big=1e300,
        small=0.25,
        whole=-(2**63),
        count=2**53 + 1,
        sure=False,
        on="0001-01-01",
    ),
    after=[
        item(
            tags=["a", "", "ü"],
            days=["2024-02-29"],
            times=["2024-05-01T12:00:00.123Z"],
            spot=[1.0, 0.5, -2.0],
            file="base64:aGk=",
            at="1969-12-31T23:59:59.999Z",
            big=1e300,
            small=0.25,
            whole=-(2**63),
            count=2**53 + 1,
            sure=False,
            on="0001-01-01",
        )
    ],
    s3=True,
)
case("an empty list is not null", VALUES, item(tags=[]), after=[item(tags=[])])
case("an empty blob is not null", VALUES, item(file="base64:"), after=[item(file="base64:")])
case(
    "a replaced entity loses its blob and lists",
    VALUES,
    item(big=1.0),
    before=[item(file="base64:aGk=", tags=["a"], spot=[1.0, 2.0, 3.0])],
    after=[item(big=1.0)],
)
case(
    "an update keeps the values it does not name",
    VALUES,
    change("Item", {"whole": 2}, where("code", "=", "i")),
    on=MUTATION,
    affected=(1, 0),
    before=[
        item(
            file="base64:aGk=",
            tags=["a"],
            days=[],
            spot=[1.0, 2.0, 3.0],
            whole=1,
            times=["2024-05-01T12:00:00.123Z"],
        )
    ],
    after=[
        item(
            file="base64:aGk=",
            tags=["a"],
            days=[],
            spot=[1.0, 2.0, 3.0],
            whole=2,
            times=["2024-05-01T12:00:00.123Z"],
        )
    ],
)
case(
    "an update keeps an empty blob empty and a null blob null",
    VALUES,
    change("Item", {"whole": 2}, where("whole", "=", 1)),
    on=MUTATION,
    affected=(2, 0),
    before=[put("Item", code="e", file="base64:", whole=1), put("Item", code="n", whole=1)],
    after=[put("Item", code="e", file="base64:", whole=2), put("Item", code="n", whole=2)],
)
case(
    "an update of what the same query inserted keeps every kind of value",
    VALUES,
    item(file="base64:aGk=", tags=["a"], spot=[1.0, 2.0, 3.0], on="2020-01-01"),
    change("Item", {"sure": True}, where("code", "!=", "z")),
    on=MUTATION,
    affected=(3, 0),
    before=[put("Item", code="j", file="base64:", tags=[], days=["2020-01-02"])],
    after=[
        item(file="base64:aGk=", tags=["a"], spot=[1.0, 2.0, 3.0], on="2020-01-01", sure=True),
        put("Item", code="j", file="base64:", tags=[], days=["2020-01-02"], sure=True),
    ],
)
case(
    "an integer is a good value of a float",
    VALUES,
    item(big=12, small=0),
    after=[item(big=12.0, small=0.0)],
)
case("a 32-bit float is rounded", VALUES, item(small=0.1), after=[item(small=0.10000000149011612)])
case(
    "a DateTime is cut to milliseconds",
    VALUES,
    item(at="2024-05-01T12:30:00.123999Z"),
    after=[item(at="2024-05-01T12:30:00.123Z")],
)
case(
    "an offset is turned into UTC",
    VALUES,
    item(at="2024-05-01T00:30:00+02:00"),
    after=[item(at="2024-04-30T22:30:00.000Z")],
)
case(
    "the first bound of a float is inside",
    VALUES,
    item(big=-1.5, small=0.5),
    after=[item(big=-1.5, small=0.5)],
)
case(
    "a float below the range is refused",
    VALUES,
    item(big=-1.5000001),
    wrong=(("range", "Item", "i", "big", "@range violation on Item.big: value -1.5000001 < min"),),
)
case(
    "a rounded float above the range is refused",
    VALUES,
    item(small=0.50001),
    wrong=(("range", "Item", "i", "small", "> max 0.5"),),
)
case(
    "a large bound is exact",
    VALUES,
    item(count=2**63 - 1),
    wrong=(("range", "Item", "i", "count", "value 9223372036854775807 > max"),),
)
case(
    "the largest number inside a bound passes",
    VALUES,
    item(count=2**63 - 2),
    after=[item(count=2**63 - 2)],
)
case(
    "text is no number",
    VALUES,
    item(whole="many"),
    on=TEXTS,
    wrong=(("value", "Item", None, "whole", ""),),
)
case(
    "a fraction is no integer",
    VALUES,
    item(whole=1.5),
    on=TEXTS,
    wrong=(("value", "Item", None, "whole", ""),),
)
case(
    "a number beyond 32 bits is no 32-bit float",
    VALUES,
    item(small=1e300),
    on=TEXTS,
    wrong=(("value", "Item", None, "small", "F32"),),
)
case(
    "a negative number is not unsigned",
    VALUES,
    item(count=-1),
    on=TEXTS,
    wrong=(("value", "Item", None, "count", "U64"),),
)
case(
    "a number is no boolean",
    VALUES,
    item(sure=1),
    on=TEXTS,
    wrong=(("value", "Item", None, "sure", ""),),
)
case(
    "a day that does not exist is refused",
    VALUES,
    item(on="2023-02-29"),
    on=TEXTS,
    wrong=(("value", "Item", None, "on", "2023-02-29"),),
)
case(
    "an hour that does not exist is refused",
    VALUES,
    item(at="2024-05-01T25:00:00Z"),
    on=TEXTS,
    wrong=(("value", "Item", None, "at", "25:00"),),
)
case(
    "a vector has its length",
    VALUES,
    item(spot=[1.0, 2.0]),
    on=TEXTS,
    wrong=(("value", "Item", None, "spot", "expected 3 values, got 2"),),
)
case(
    "a list has no nulls",
    VALUES,
    item(tags=["a", None]),
    on=TEXTS,
    wrong=(("value", "Item", None, "tags", "element 1"),),
)

EMBED = """
node Doc { code: String @key  title: String?  v: Vector(2) @embed(title) }
"""
case(
    "a required vector is made from its source",
    EMBED,
    put("Doc", code="d", title="t"),
    after=[put("Doc", code="d", title="t", v=mock_vector("t", 2))],
    s3=True,
)
case(
    "a required vector is made where none is given",
    EMBED.replace("@embed(title)", '@embed(title, model="mock")'),
    put("Doc", code="d", title="Ærø 日本"),
    put("Doc", code="e", title="t", v=[1.0, 2.0]),
    put("Doc", code="f", v=[1.0, 2.0]),
    after=[
        put("Doc", code="d", title="Ærø 日本", v=mock_vector("Ærø 日本", 2)),
        put("Doc", code="e", title="t", v=[1.0, 2.0]),
        put("Doc", code="f", v=[1.0, 2.0]),
    ],
)
case(
    "a vector that may be null is not made",
    "node Doc { code: String @key  title: String?  v: Vector(2)? @embed(title) }",
    put("Doc", code="d", title="t"),
    after=[put("Doc", code="d", title="t")],
)
case(
    "a vector is not made from an empty source",
    EMBED,
    put("Doc", code="d", title=" "),
    wrong=(("required", "Doc", "d", "v", "no text in `title` to make it from"),),
)
case(
    "a new source makes a required vector again",
    EMBED,
    change("Doc", {"title": "u"}, where("code", "=", "d")),
    before=[put("Doc", code="d", title="t"), put("Doc", code="e", title="t")],
    after=[
        put("Doc", code="d", title="u", v=mock_vector("u", 2)),
        put("Doc", code="e", title="t", v=mock_vector("t", 2)),
    ],
    on=MUTATION,
)
case(
    "a new source clears a vector that may be null",
    "node Doc { code: String @key  title: String?  v: Vector(2)? @embed(title) }",
    change("Doc", {"title": "u"}, where("code", "=", "d")),
    before=[put("Doc", code="d", title="t", v=[1.0, 2.0])],
    after=[put("Doc", code="d", title="u")],
    on=MUTATION,
)
case(
    "a required vector without a source is refused",
    EMBED,
    put("Doc", code="d", title=None),
    wrong=(("required", "Doc", "d", "v", "Doc.v is required"),),
)
case(
    "a required vector may be given",
    EMBED,
    put("Doc", code="d", v=[1.0, 2.0]),
    after=[put("Doc", code="d", v=[1.0, 2.0])],
)

# --- uniqueness --------------------------------------------------------------------------------

case(
    "a unique value is held by one entity",
    PEOPLE,
    person("cy", email="ann@x"),
    before=FIRST,
    wrong=(
        (
            "unique",
            "Person",
            "cy",
            "email",
            "@unique violation on Person.email: value 'ann@x' held by 'ann' and 'cy'",
        ),
    ),
    s3=True,
)
case(
    "a unique value stays with its entity",
    PEOPLE,
    person("ann", email="ann@x", age=2),
    before=FIRST,
    after=[*but(FIRST, "ann"), person("ann", email="ann@x", age=2)],
)
case(
    "null is held by as many as want it",
    PEOPLE,
    person("cy"),
    person("di"),
    before=FIRST,
    after=[*FIRST, person("cy"), person("di")],
)
case(
    "two new entities may not share a unique value",
    PEOPLE,
    person("cy", email="e"),
    person("di", email="e"),
    before=FIRST,
    wrong=(("unique", "Person", "di", "email", "value 'e' held by 'cy' and 'di'"),),
)
case(
    "of three that share a value two are wrong",
    PEOPLE,
    person("cy", email="e"),
    person("di", email="e"),
    person("ed", email="e"),
    wrong=(
        ("unique", "Person", "di", "email", "held by 'cy' and 'di'"),
        ("unique", "Person", "ed", "email", "held by 'cy' and 'ed'"),
    ),
)
case(
    "a unique value its entity gives up is free",
    PEOPLE,
    person("ann", email="new"),
    person("cy", email="ann@x"),
    before=FIRST,
    after=[*but(FIRST, "ann"), person("ann", email="new"), person("cy", email="ann@x")],
)
case(
    "a unique value is free whoever is named first",
    PEOPLE,
    person("cy", email="ann@x"),
    person("ann", email="new"),
    before=FIRST,
    after=[*but(FIRST, "ann"), person("ann", email="new"), person("cy", email="ann@x")],
)
case(
    "a value given up for null is free",
    PEOPLE,
    person("cy", email="ann@x"),
    person("ann"),
    before=FIRST,
    after=[*but(FIRST, "ann"), person("ann"), person("cy", email="ann@x")],
)
case(
    "two entities may swap their unique values",
    PEOPLE,
    person("ann", email="bo@x"),
    person("bo", email="ann@x"),
    before=[person("ann", email="ann@x"), person("bo", email="bo@x")],
    after=[person("ann", email="bo@x"), person("bo", email="ann@x")],
)
case(
    "a value held for a while in a query is free at its end",
    PEOPLE,
    change("Person", {"email": "temp"}, where("name", "=", "ann")),
    change("Person", {"email": "last"}, where("name", "=", "ann")),
    person("cy", email="temp"),
    before=FIRST,
    on=MUTATION,
    affected=(3, 0),
    after=[*but(FIRST, "ann"), person("ann", age=30, email="last"), person("cy", email="temp")],
)
case(
    "an update may not give two entities one value",
    PEOPLE,
    change("Person", {"email": "both"}, where("name", "!=", "z")),
    before=FIRST,
    on=MUTATION,
    wrong=(("unique", "Person", "bo", "email", "held by 'ann' and 'bo'"),),
)
case(
    "two updates may not give two entities one value",
    PEOPLE,
    change("Person", {"email": "both"}, where("name", "=", "ann")),
    change("Person", {"email": "both"}, where("name", "=", "bo")),
    before=FIRST,
    on=MUTATION,
    wrong=(("unique", "Person", "bo", "email", "held by 'ann' and 'bo'"),),
)
case(
    "an update may not take a value others hold",
    PEOPLE,
    change("Person", {"email": "ann@x"}, where("name", "=", "bo")),
    before=FIRST,
    on=MUTATION,
    wrong=(("unique", "Person", "bo", "email", "held by 'ann' and 'bo'"),),
)
case(
    "text that only looks alike is another value",
    PEOPLE,
    person("cy", email="ANN@x"),
    person("di", email="ann@x "),
    before=FIRST,
    after=[*FIRST, person("cy", email="ANN@x"), person("di", email="ann@x ")],
)
case(
    "quotes and percents are no wildcards",
    PEOPLE,
    person("cy", email="a%"),
    person("di", email="it's"),
    before=[person("ann", email="ab"), person("bo", email="its")],
    after=[
        person("ann", email="ab"),
        person("bo", email="its"),
        person("cy", email="a%"),
        person("di", email="it's"),
    ],
)
case(
    "an odd value is found again",
    PEOPLE,
    person("cy", email='it\'s 100% \\ "é"'),
    before=[person("ann", email='it\'s 100% \\ "é"')],
    wrong=(("unique", "Person", "cy", "email", "held by 'ann' and 'cy'"),),
)

TYPED = """
node Thing {
  code: String @key
  on: Date? @unique
  flag: Bool? @unique
  small: F32? @unique
  big: F64? @unique
  at: DateTime? @unique
  whole: I64? @unique
  count: U64? @unique
  word: enum(a, b)? @unique
}
"""
for column, same, other, shown in (
    ("on", "2026-06-29", "2026-06-30", "2026-06-29"),
    ("flag", True, False, "true"),
    ("small", 0.1, 0.2, "0.1"),
    ("big", 0.1, 0.30000000000000004, "0.1"),
    ("at", "2024-05-01T12:00:00.123Z", "2024-05-01T12:00:00.124Z", "2024-05-01T12:00:00.123Z"),
    ("whole", -(2**63), -(2**63) + 1, "-9223372036854775808"),
    ("count", 2**64 - 1, 2**64 - 2, "18446744073709551615"),
    ("word", "a", "b", "a"),
):
    there, same_again = put("Thing", code="t", **{column: same}), {column: same}
    case(
        f"a unique {column} that is taken is refused",
        TYPED,
        put("Thing", code="u", **same_again),
        before=[there],
        wrong=(("unique", "Thing", "u", column, f"value '{shown}"),),
    )
    case(
        f"another unique {column} is welcome",
        TYPED,
        put("Thing", code="u", **{column: other}),
        before=[there],
        after=[there, put("Thing", code="u", **{column: other})],
    )
    case(
        f"a unique {column} given twice is refused",
        TYPED,
        put("Thing", code="u", **same_again),
        put("Thing", code="v", **same_again),
        wrong=(("unique", "Thing", "v", column, "held by 'u' and 'v'"),),
    )
case(
    "both zeros are one value",
    TYPED,
    put("Thing", code="u", big=-0.0),
    before=[put("Thing", code="t", big=0.0)],
    wrong=(("unique", "Thing", "u", "big", "held by 't' and 'u'"),),
)
case(
    "both zeros are one value inside a change too",
    TYPED,
    put("Thing", code="u", small=0.0),
    put("Thing", code="v", small=-0.0),
    wrong=(("unique", "Thing", "v", "small", ""),),
)
case(
    "the same instant in two zones is one value",
    TYPED,
    put("Thing", code="u", at="2024-05-01T14:00:00+02:00"),
    before=[put("Thing", code="t", at="2024-05-01T12:00:00Z")],
    wrong=(("unique", "Thing", "u", "at", "2024-05-01T12:00:00.000Z"),),
)

TUPLES = """
node Seat { code: String @key  hall: String?  no: I32?  @unique(hall, no) }
"""
SEAT = put("Seat", code="s", hall="a", no=1)
case(
    "a tuple that is taken is refused",
    TUPLES,
    put("Seat", code="t", hall="a", no=1),
    before=[SEAT],
    wrong=(("unique", "Seat", "t", "hall", "Seat.(hall, no): value '(a, 1)' held by 's' and 't'"),),
)
case(
    "a tuple that shares one member is another",
    TUPLES,
    put("Seat", code="t", hall="a", no=2),
    put("Seat", code="u", hall="b", no=1),
    before=[SEAT],
    after=[SEAT, put("Seat", code="t", hall="a", no=2), put("Seat", code="u", hall="b", no=1)],
)
case(
    "a tuple with a null is no tuple",
    TUPLES,
    put("Seat", code="t", hall="a"),
    put("Seat", code="u", hall="a"),
    put("Seat", code="v", no=1),
    put("Seat", code="w", no=1),
    before=[SEAT],
    after=[
        SEAT,
        put("Seat", code="t", hall="a"),
        put("Seat", code="u", hall="a"),
        put("Seat", code="v", no=1),
        put("Seat", code="w", no=1),
    ],
)
case(
    "tuples are not joined to compare them",
    TUPLES,
    put("Seat", code="t", hall="a, 1", no=1),
    put("Seat", code="u", hall="a", no=11),
    before=[SEAT],
    after=[SEAT, put("Seat", code="t", hall="a, 1", no=1), put("Seat", code="u", hall="a", no=11)],
)
case(
    "a tuple given twice is refused",
    TUPLES,
    put("Seat", code="t", hall="b", no=1),
    put("Seat", code="u", hall="b", no=1),
    before=[SEAT],
    wrong=(("unique", "Seat", "u", "hall", "held by 't' and 'u'"),),
)

PAIRS = """
node Person { name: String @key }
edge Likes: Person -> Person { why: String?  @unique(src, dst) }
edge Owes: Person -> Person { bill: I32? @unique }
"""
PAIR = [
    person("ann"),
    person("bo"),
    put("Likes", id="l1", src="ann", dst="bo"),
    put("Owes", id="o1", src="ann", dst="bo", bill=1),
]
case(
    "a pair of nodes that is taken is refused",
    PAIRS,
    put("Likes", src="ann", dst="bo"),
    before=PAIR,
    wrong=(
        ("unique", "Likes", None, None, "Likes.(dst, src): value '(bo, ann)' held by 'l1' and"),
    ),
)
case(
    "the other direction is another pair",
    PAIRS,
    put("Likes", src="bo", dst="ann", why="x"),
    before=PAIR,
    after=[*PAIR, put("Likes", src="bo", dst="ann", why="x")],
)
case(
    "an edge keeps its own pair",
    PAIRS,
    put("Likes", id="l1", src="ann", dst="bo", why="x"),
    before=PAIR,
    after=[*but(PAIR, "l1"), put("Likes", id="l1", src="ann", dst="bo", why="x")],
)
case(
    "a unique value of edges is held by one",
    PAIRS,
    put("Owes", src="bo", dst="ann", bill=1),
    before=PAIR,
    wrong=(("unique", "Owes", None, "bill", "value '1' held by 'o1' and"),),
)
case(
    "parallel edges are fine without a rule",
    PAIRS,
    put("Owes", src="ann", dst="bo"),
    put("Owes", src="ann", dst="bo"),
    before=PAIR,
    after=[*PAIR, put("Owes", src="ann", dst="bo"), put("Owes", src="ann", dst="bo")],
)

# --- keys and ids ------------------------------------------------------------------------------

case(
    "a key given twice in one load is refused",
    PEOPLE,
    person("cy", age=1),
    person("cy", age=2),
    on=LOADS,
    wrong=(
        (
            "unique",
            "Person",
            "cy",
            None,
            "@unique violation on Person.name: value 'cy' held by 'cy' and 'cy'",
        ),
    ),
)
case(
    "a key given twice is refused when appended",
    PEOPLE,
    person("cy"),
    person("cy"),
    mode="append",
    on=LOADS,
    wrong=(("unique", "Person", "cy", None, "value 'cy'"),),
)
case(
    "a key given twice is refused when overwriting",
    PEOPLE,
    person("cy"),
    person("cy"),
    mode="overwrite",
    on=LOADS,
    wrong=(("unique", "Person", "cy", None, "value 'cy'"),),
)
case(
    "a later statement replaces an earlier one",
    PEOPLE,
    person("cy", age=1),
    person("cy", mood="glad"),
    before=FIRST,
    on=MUTATION,
    affected=(2, 0),
    after=[*FIRST, person("cy", mood="glad")],
)
case(
    "an entity that exists cannot be appended",
    PEOPLE,
    person("ann"),
    person("cy"),
    before=FIRST,
    mode="append",
    on=LOADS,
    s3=True,
    wrong=(("key_conflict", "Person", "ann", None, "node Person 'ann' exists already"),),
)
case(
    "new entities can be appended",
    PEOPLE,
    person("cy"),
    put("Note", text="t"),
    before=FIRST,
    mode="append",
    on=LOADS,
    after=[*FIRST, person("cy"), put("Note", text="t")],
)
case(
    "generated ids can always be appended",
    PEOPLE,
    put("Note", text="hello", rank=1),
    put("Knows", src="ann", dst="bo", since="2020-01-01"),
    before=FIRST,
    mode="append",
    after=[
        *FIRST,
        put("Note", text="hello", rank=1),
        put("Knows", src="ann", dst="bo", since="2020-01-01"),
    ],
)
case(
    "an edge that exists cannot be appended",
    PEOPLE,
    put("Knows", id="k1", src="bo", dst="ann"),
    before=FIRST,
    mode="append",
    on=LOADS,
    wrong=(("key_conflict", "Knows", "k1", None, "edge Knows 'k1' exists already"),),
)
case(
    "an id given twice cannot be appended",
    PEOPLE,
    put("Note", id="n2", text="a"),
    put("Note", id="n2", text="b"),
    mode="append",
    on=LOADS,
    wrong=(("key_conflict", "Note", "n2", None, "node Note 'n2' is given more than once"),),
)
case(
    "an id given twice cannot overwrite",
    PEOPLE,
    put("Note", id="n2", text="a"),
    put("Note", id="n2", text="b"),
    mode="overwrite",
    on=LOADS,
    wrong=(("key_conflict", "Note", "n2", None, "given more than once"),),
)
case(
    "the last of a repeated id wins",
    PEOPLE,
    put("Note", id="n2", text="a", rank=1),
    put("Note", id="n2", text="b"),
    before=FIRST,
    on=LOADS,
    after=[*FIRST, put("Note", id="n2", text="b")],
)
case(
    "an id that exists is replaced whole",
    PEOPLE,
    put("Note", id="n1", text="new"),
    before=FIRST,
    after=[*but(FIRST, "n1"), put("Note", id="n1", text="new")],
)
case(
    "a new id may be given",
    PEOPLE,
    put("Note", id="n2", text="b"),
    put("Wrote", id="w2", src="bo", dst="n2"),
    before=FIRST,
    on=LOADS,
    after=[*FIRST, put("Note", id="n2", text="b"), put("Wrote", id="w2", src="bo", dst="n2")],
)

KEYS = """
node Berth { port: String  no: I32  depth: F64?  @key(port, no) }
node Day { on: Date @key  text: String? }
node Instant { at: DateTime @key }
node Weight { kg: F32 @key }
node Share { part: F64 @key }
node Flag { up: Bool @key }
node Count { n: U64 @key }
node Name { name: String @key }
edge BerthedOn: Berth -> Day
edge Called: Day -> Name
"""
case(
    "a composite key makes one id",
    KEYS,
    put("Berth", port='a"b', no=7, depth=2.5),
    put("Day", on="1970-01-02"),
    put("BerthedOn", src='["7","a\\"b"]', dst="1"),
    after=[
        put("Berth", id='["7","a\\"b"]', port='a"b', no=7, depth=2.5),
        put("Day", id="1", on="1970-01-02"),
        put("BerthedOn", src='["7","a\\"b"]', dst="1"),
    ],
)
case(
    "half of a composite key is another entity",
    KEYS,
    put("Berth", port="a", no=2),
    before=[put("Berth", port="a", no=1)],
    after=[
        put("Berth", id='["1","a"]', port="a", no=1),
        put("Berth", id='["2","a"]', port="a", no=2),
    ],
)
case(
    "the same composite key replaces",
    KEYS,
    put("Berth", port="a", no=1),
    before=[put("Berth", port="a", no=1, depth=2.0)],
    after=[put("Berth", id='["1","a"]', port="a", no=1)],
)
case(
    "a composite key given twice in one load is refused",
    KEYS,
    put("Berth", port="a", no=1),
    put("Berth", port="a", no=1),
    on=LOADS,
    wrong=(("unique", "Berth", '["1","a"]', None, "Berth.(no, port): value '(1, a)'"),),
)
case(
    "every kind of key has its text",
    KEYS,
    put("Day", on="1969-12-31"),
    put("Instant", at="1970-01-01T00:00:01.5Z"),
    put("Weight", kg=0.1),
    put("Share", part=-0.0),
    put("Flag", up=True),
    put("Count", n=2**64 - 1),
    put("Name", name="é漢\N{GRINNING FACE}"),
    after=[
        put("Day", id="-1", on="1969-12-31"),
        put("Instant", id="1500", at="1970-01-01T00:00:01.500Z"),
        put("Weight", id="0.1", kg=0.10000000149011612),
        put("Share", id="0", part=0.0),
        put("Flag", id="true", up=True),
        put("Count", id="18446744073709551615", n=2**64 - 1),
        put("Name", id="é漢\N{GRINNING FACE}", name="é漢\N{GRINNING FACE}"),
    ],
)
case(
    "an entity with a date for a key is found again",
    KEYS,
    put("Day", on="2024-05-01", text="b"),
    before=[put("Day", on="2024-05-01", text="a")],
    after=[put("Day", id="19844", on="2024-05-01", text="b")],
)
case(
    "an edge names its nodes by their ids",
    KEYS,
    put("Called", src="2024-05-01", dst="x"),
    before=[put("Day", on="2024-05-01"), put("Name", name="x")],
    wrong=(("endpoint", "Called", None, None, "src '2024-05-01' not found in Day"),),
)
case(
    "an edge finds names that are not plain",
    KEYS,
    put("Called", src="19844", dst="it's \\ é"),
    before=[put("Day", on="2024-05-01"), put("Name", name="it's \\ é")],
    after=[
        put("Day", id="19844", on="2024-05-01"),
        put("Name", id="it's \\ é", name="it's \\ é"),
        put("Called", src="19844", dst="it's \\ é"),
    ],
)

# --- endpoints ---------------------------------------------------------------------------------

case(
    "an edge needs both its nodes",
    PEOPLE,
    put("Knows", src="cy", dst="di"),
    before=FIRST,
    s3=True,
    wrong=(
        ("endpoint", "Knows", None, None, "src 'cy' not found in Person"),
        ("endpoint", "Knows", None, None, "dst 'di' not found in Person"),
    ),
)
case(
    "an edge needs nodes of the right type",
    PEOPLE,
    put("Wrote", src="ann", dst="bo"),
    before=FIRST,
    wrong=(("endpoint", "Wrote", None, None, "dst 'bo' not found in Note"),),
)
case(
    "an edge and its nodes may come together",
    PEOPLE,
    person("cy"),
    person("di"),
    put("Knows", src="cy", dst="di"),
    before=FIRST,
    s3=True,
    after=[*FIRST, person("cy"), person("di"), put("Knows", src="cy", dst="di")],
)
case(
    "an edge may come before its nodes",
    PEOPLE,
    put("Knows", src="cy", dst="ann"),
    person("cy"),
    before=FIRST,
    after=[*FIRST, person("cy"), put("Knows", src="cy", dst="ann")],
)
case(
    "an edge may leave and reach one node",
    PEOPLE,
    put("Knows", src="ann", dst="ann"),
    before=FIRST,
    after=[*FIRST, put("Knows", src="ann", dst="ann")],
)
case(
    "no node is invented",
    PEOPLE,
    put("Knows", src="ann", dst=""),
    before=FIRST,
    wrong=(("endpoint", "Knows", None, None, "dst '' not found in Person"),),
)
case(
    "a deleted node takes its edges along",
    PEOPLE,
    delete("Person", where("name", "=", "ann")),
    before=FIRST,
    on=MUTATION,
    affected=(1, 2),
    after=[BO, NOTE],
    s3=True,
)
case(
    "a deleted destination takes its edges along",
    PEOPLE,
    delete("Person", where("name", "=", "bo")),
    before=FIRST,
    on=MUTATION,
    affected=(1, 1),
    after=[ANN, NOTE, WROTE],
)
case(
    "a node that was deleted can be named no more",
    PEOPLE,
    put("Knows", src="ann", dst="gone"),
    before=FIRST,
    wrong=(("endpoint", "Knows", None, None, "dst 'gone' not found"),),
)
case(
    "an edge that loops is deleted once",
    PEOPLE,
    delete("Person", where("name", "=", "ann")),
    before=[ANN, put("Knows", id="k1", src="ann", dst="ann")],
    on=MUTATION,
    affected=(1, 1),
    after=[],
)
case(
    "an edge two deletes reach is deleted once",
    PEOPLE,
    delete("Knows", where("src", "=", "ann")),
    delete("Person", where("name", "=", "ann")),
    delete("Person", where("name", "=", "bo")),
    before=FIRST,
    on=MUTATION,
    affected=(2, 2),
    after=[NOTE],
)
case(
    "a delete that finds nothing changes nothing",
    PEOPLE,
    delete("Person", where("name", "=", "cy")),
    before=FIRST,
    on=MUTATION,
    affected=(0, 0),
    after=FIRST,
)
case(
    "null is neither more nor less",
    PEOPLE,
    delete("Note", where("rank", "<", 5)),
    delete("Note", where("rank", ">=", 5)),
    on=MUTATION,
    affected=(2, 0),
    before=[NOTE, put("Note", id="n2", text="t"), put("Note", id="n3", text="u", rank=9)],
    after=[put("Note", id="n2", text="t")],
)
case(
    "a test with null finds nothing",
    PEOPLE,
    delete("Note", where("rank", "!=", None)),
    before=FIRST,
    on=MUTATION,
    affected=(0, 0),
    after=FIRST,
)
case(
    "replacing a node keeps its edges",
    PEOPLE,
    person("ann", age=1),
    before=FIRST,
    after=[*but(FIRST, "ann"), person("ann", age=1)],
)
case(
    "overwriting may not leave edges without nodes",
    PEOPLE,
    person("ann"),
    before=FIRST,
    mode="overwrite",
    on=LOADS,
    s3=True,
    wrong=(("endpoint", "Knows", "k1", None, "dst 'bo' not found in Person"),),
)
case(
    "overwriting a node type may keep what edges need",
    PEOPLE,
    person("ann"),
    person("bo"),
    person("cy"),
    before=[*FIRST, person("di")],
    mode="overwrite",
    on=LOADS,
    after=[person("ann"), person("bo"), person("cy"), NOTE, KNOWS, WROTE],
)
case(
    "overwriting nodes and edges together may drop both",
    PEOPLE,
    person("ann"),
    put("Knows", id="k2", src="ann", dst="ann"),
    before=FIRST,
    mode="overwrite",
    on=LOADS,
    after=[person("ann"), NOTE, WROTE, put("Knows", id="k2", src="ann", dst="ann")],
)
case(
    "overwritten edges may not name nodes that go",
    PEOPLE,
    person("ann"),
    put("Knows", id="k2", src="ann", dst="bo"),
    before=FIRST,
    mode="overwrite",
    on=LOADS,
    wrong=(("endpoint", "Knows", "k2", None, "dst 'bo' not found in Person"),),
)
case(
    "overwritten edges find nodes that stay",
    PEOPLE,
    put("Knows", id="k2", src="bo", dst="ann"),
    before=FIRST,
    mode="overwrite",
    on=LOADS,
    after=[*but(FIRST, "k1"), put("Knows", id="k2", src="bo", dst="ann")],
)
case(
    "overwriting leaves other types alone",
    PEOPLE,
    put("Note", id="n1", text="new"),
    before=FIRST,
    mode="overwrite",
    on=LOADS,
    after=[*but(FIRST, "n1"), put("Note", id="n1", text="new")],
)
case(
    "an overwritten type forgets its unique values",
    PEOPLE,
    person("bo", email="ann@x"),
    person("ann"),
    before=FIRST,
    mode="overwrite",
    on=LOADS,
    after=[NOTE, KNOWS, WROTE, person("bo", email="ann@x"), person("ann")],
)
case(
    "an edge may be moved",
    PEOPLE,
    put("Knows", id="k1", src="bo", dst="ann"),
    before=FIRST,
    on=LOADS,
    after=[*but(FIRST, "k1"), put("Knows", id="k1", src="bo", dst="ann")],
)
case(
    "an edge may not be moved to nowhere",
    PEOPLE,
    put("Knows", id="k1", src="bo", dst="cy"),
    before=FIRST,
    on=LOADS,
    wrong=(("endpoint", "Knows", "k1", None, "dst 'cy' not found"),),
)
case(
    "only the last place of an edge counts",
    PEOPLE,
    put("Knows", id="k1", src="bo", dst="cy"),
    put("Knows", id="k1", src="bo", dst="ann"),
    before=FIRST,
    on=LOADS,
    after=[*but(FIRST, "k1"), put("Knows", id="k1", src="bo", dst="ann")],
)
case(
    "an edge can be updated",
    PEOPLE,
    change("Knows", {"since": "2021-01-01", "how": "kin"}, where("src", "=", "ann")),
    before=FIRST,
    on=MUTATION,
    affected=(0, 1),
    after=[
        *but(FIRST, "k1"),
        put("Knows", id="k1", src="ann", dst="bo", since="2021-01-01", how="kin"),
    ],
)

# --- cardinality -------------------------------------------------------------------------------

CARDS = """
node Person { name: String @key }
node Firm { name: String @key }
edge Works: Person -> Firm @card(1..2) { since: I32? }
edge Leads: Person -> Firm @card(0..1)
edge Pairs: Person -> Person @card(2..)
"""
STAFF = [
    person("ann"),
    person("bo"),
    put("Firm", name="f"),
    put("Firm", name="g"),
    put("Works", id="w1", src="ann", dst="f"),
]


def works(src: str, dst: str, **values: Any) -> Put:
    """Return an edge of work."""
    return put("Works", src=src, dst=dst, **values)


case(
    "as many edges as allowed may leave a node",
    CARDS,
    works("ann", "g"),
    before=STAFF,
    after=[*STAFF, works("ann", "g")],
)
case(
    "one edge too many is refused",
    CARDS,
    works("ann", "g"),
    works("ann", "f"),
    before=STAFF,
    s3=True,
    wrong=(
        (
            "cardinality",
            "Works",
            "ann",
            None,
            "@card violation on edge Works: source 'ann' has 3 edges (max 2)",
        ),
    ),
)
case(
    "edges are counted for each source",
    CARDS,
    works("bo", "f"),
    works("bo", "g"),
    works("ann", "g"),
    before=STAFF,
    after=[*STAFF, works("bo", "f"), works("bo", "g"), works("ann", "g")],
)
case(
    "edges are not counted for destinations",
    CARDS,
    works("bo", "f"),
    before=STAFF,
    after=[*STAFF, works("bo", "f")],
)
case(
    "a node may be made without the edges it needs",
    CARDS,
    person("cy"),
    before=STAFF,
    after=[*STAFF, person("cy")],
)
case(
    "the first of two needed edges is refused",
    CARDS,
    put("Pairs", src="ann", dst="bo"),
    before=STAFF,
    wrong=(("cardinality", "Pairs", "ann", None, "has 1 edges (min 2)"),),
)
case(
    "two needed edges may come together",
    CARDS,
    put("Pairs", src="ann", dst="bo"),
    put("Pairs", src="ann", dst="ann"),
    before=STAFF,
    after=[*STAFF, put("Pairs", src="ann", dst="bo"), put("Pairs", src="ann", dst="ann")],
)
case(
    "a needed edge may not be deleted",
    CARDS,
    delete("Works", where("src", "=", "ann")),
    before=STAFF,
    on=MUTATION,
    s3=True,
    wrong=(("cardinality", "Works", "ann", None, "source 'ann' has 0 edges (min 1)"),),
)
case(
    "an edge that is not needed may be deleted",
    CARDS,
    delete("Works", where("dst", "=", "g")),
    before=[*STAFF, put("Works", id="w2", src="ann", dst="g")],
    on=MUTATION,
    affected=(0, 1),
    after=STAFF,
)
case(
    "a destination may not be deleted under a needed edge",
    CARDS,
    delete("Firm", where("name", "=", "f")),
    before=STAFF,
    on=MUTATION,
    wrong=(("cardinality", "Works", "ann", None, "has 0 edges (min 1)"),),
)
case(
    "a source may go with the edges it needs",
    CARDS,
    delete("Person", where("name", "=", "ann")),
    before=STAFF,
    on=MUTATION,
    affected=(1, 1),
    after=but(STAFF, "ann", "w1"),
)
case(
    "a destination may go when its sources go too",
    CARDS,
    delete("Firm", where("name", "=", "f")),
    delete("Person", where("name", "=", "ann")),
    before=STAFF,
    on=MUTATION,
    affected=(2, 1),
    after=but(STAFF, "ann", "w1", "f"),
)
case(
    "a moved edge leaves its old source short",
    CARDS,
    works("bo", "f", id="w1"),
    before=STAFF,
    on=LOADS,
    wrong=(("cardinality", "Works", "ann", None, "source 'ann' has 0 edges (min 1)"),),
)
case(
    "a moved edge may make its new source full",
    CARDS,
    put("Leads", id="l1", src="bo", dst="f"),
    before=[
        *STAFF,
        put("Leads", id="l1", src="ann", dst="f"),
        put("Leads", id="l2", src="bo", dst="g"),
    ],
    on=LOADS,
    wrong=(("cardinality", "Leads", "bo", None, "source 'bo' has 2 edges (max 1)"),),
)
case(
    "an edge given twice counts where it is last",
    CARDS,
    put("Leads", id="l1", src="ann", dst="f"),
    put("Leads", id="l2", src="ann", dst="g"),
    put("Leads", id="l1", src="bo", dst="f"),
    before=STAFF,
    on=LOADS,
    after=[
        *STAFF,
        put("Leads", id="l2", src="ann", dst="g"),
        put("Leads", id="l1", src="bo", dst="f"),
    ],
)
case(
    "two edges may change places",
    CARDS,
    put("Leads", id="l1", src="bo", dst="f"),
    put("Leads", id="l2", src="ann", dst="f"),
    before=[
        *STAFF,
        put("Leads", id="l1", src="ann", dst="f"),
        put("Leads", id="l2", src="bo", dst="f"),
    ],
    on=LOADS,
    after=[
        *STAFF,
        put("Leads", id="l1", src="bo", dst="f"),
        put("Leads", id="l2", src="ann", dst="f"),
    ],
)
case(
    "replacing an edge does not count it twice",
    CARDS,
    put("Works", id="w2", src="ann", dst="f", since=9),
    before=[*STAFF, put("Works", id="w2", src="ann", dst="f")],
    after=[*STAFF, put("Works", id="w2", src="ann", dst="f", since=9)],
)
case(
    "overwriting edges may not leave a source short",
    CARDS,
    works("bo", "f", id="w9"),
    before=STAFF,
    mode="overwrite",
    on=LOADS,
    wrong=(("cardinality", "Works", "ann", None, "source 'ann' has 0 edges (min 1)"),),
)
case(
    "overwriting edges counts only the new ones",
    CARDS,
    works("ann", "f", id="w8"),
    works("ann", "g", id="w9"),
    before=STAFF,
    mode="overwrite",
    on=LOADS,
    after=[*but(STAFF, "w1"), works("ann", "f", id="w8"), works("ann", "g", id="w9")],
)
case(
    "overwriting may drop a source and its needed edges",
    CARDS,
    person("bo"),
    works("bo", "f", id="w9"),
    before=STAFF,
    mode="overwrite",
    on=LOADS,
    after=[*but(STAFF, "ann", "w1"), works("bo", "f", id="w9")],
)
case(
    "too many edges of a node that does not exist are both wrong",
    CARDS,
    put("Leads", src="cy", dst="f"),
    put("Leads", src="cy", dst="g"),
    before=STAFF,
    wrong=(
        ("endpoint", "Leads", None, None, "src 'cy' not found in Person"),
        ("endpoint", "Leads", None, None, "src 'cy' not found in Person"),
        ("cardinality", "Leads", "cy", None, "source 'cy' has 2 edges (max 1)"),
    ),
)

# --- statements --------------------------------------------------------------------------------

case(
    "a statement sees what came before it",
    PEOPLE,
    change("Person", {"mood": "glad"}, where("name", "=", "ann")),
    change("Person", {"age": 7}, where("mood", "=", "glad")),
    before=FIRST,
    on=MUTATION,
    affected=(2, 0),
    after=[*but(FIRST, "ann"), person("ann", age=7, mood="glad", email="ann@x")],
)
case(
    "a statement no longer sees what was changed away",
    PEOPLE,
    change("Person", {"mood": "glad"}, where("mood", "=", "calm")),
    change("Person", {"age": 7}, where("mood", "=", "calm")),
    before=FIRST,
    on=MUTATION,
    affected=(1, 0),
    after=[*but(FIRST, "bo"), person("bo", mood="glad")],
)
case(
    "an update reaches what the query inserted",
    PEOPLE,
    person("cy", age=1),
    change("Person", {"age": 7}, where("age", "<", 31)),
    before=FIRST,
    on=MUTATION,
    affected=(3, 0),
    after=[*but(FIRST, "ann"), person("ann", age=7, email="ann@x"), person("cy", age=7)],
)
case(
    "several tests must all pass",
    PEOPLE,
    change("Person", {"age": 7}, where("age", "=", 30), where("name", "=", "bo")),
    before=FIRST,
    on=MUTATION,
    affected=(0, 0),
    after=FIRST,
)
case(
    "a fraction is between two integers",
    PEOPLE,
    delete("Note", where("rank", ">", 0.5)),
    delete("Note", where("rank", "=", 2.5)),
    on=MUTATION,
    affected=(1, 0),
    before=[NOTE, put("Note", id="n2", text="t", rank=0)],
    after=[put("Note", id="n2", text="t", rank=0)],
)
case(
    "an edge is found by its ends and values",
    PEOPLE,
    delete("Knows", where("src", "=", "ann"), where("since", ">=", "2020-01-01")),
    before=FIRST,
    on=MUTATION,
    affected=(0, 1),
    after=but(FIRST, "k1"),
)

# --- partial loads -----------------------------------------------------------------------------

PARTIAL = ("ndjson", "columns")
case(
    "a partial load keeps what it does not give",
    PEOPLE,
    person("ann", mood="glad"),
    before=FIRST,
    partial=True,
    on=PARTIAL,
    after=[*but(FIRST, "ann"), person("ann", age=30, email="ann@x", mood="glad")],
)
case(
    "a partial load may empty a property by name",
    PEOPLE,
    person("ann", email=None),
    before=FIRST,
    partial=True,
    on=PARTIAL,
    after=[*but(FIRST, "ann"), person("ann", age=30)],
)
case(
    "a partial load needs everything of a new entity",
    PEOPLE,
    put("Note", id="n2", rank=3),
    before=FIRST,
    partial=True,
    on=PARTIAL,
    wrong=(("required", "Note", "n2", "text", "Note.text is required"),),
)
case(
    "a partial load need not repeat what is required",
    PEOPLE,
    put("Note", id="n1", rank=3),
    before=FIRST,
    partial=True,
    on=PARTIAL,
    after=[*but(FIRST, "n1"), put("Note", id="n1", text="hello", rank=3)],
)
case(
    "a partial load keeps every kind of value",
    VALUES,
    item(whole=2),
    partial=True,
    on=PARTIAL,
    before=[item(file="base64:aGk=", tags=["a"], days=[], spot=[1.0, 2.0, 3.0], whole=1)],
    after=[item(file="base64:aGk=", tags=["a"], days=[], spot=[1.0, 2.0, 3.0], whole=2)],
)
case(
    "a value a partial load keeps is still unique",
    PEOPLE,
    person("ann", age=2),
    person("cy", email="ann@x"),
    before=FIRST,
    partial=True,
    on=("ndjson",),
    wrong=(("unique", "Person", "cy", "email", "held by 'ann' and 'cy'"),),
)


# --- names -------------------------------------------------------------------------------------

NAMES = """
node Word {
  code: String @key
  _at: String? @unique
  _given: I32?
  _row: I32?
  _holder: I32?
  count: I32?
  values: I32?
  @unique(_row, _holder)
  @range(count, 0..)
}
"""
WORD = put("Word", code="w", _at="a", _row=1, _holder=1, _given=1, count=1, values=1)
case(
    "no name of a property is special",
    NAMES,
    put("Word", code="x", _at="b", _row=1, _holder=2, _given=2, count=3, values=4),
    before=[WORD],
    after=[WORD, put("Word", code="x", _at="b", _row=1, _holder=2, _given=2, count=3, values=4)],
)
case(
    "rules hold for properties of any name",
    NAMES,
    put("Word", code="x", _at="a", _row=1, _holder=1, count=-1),
    before=[WORD],
    wrong=(
        ("range", "Word", "x", "count", "value -1 < min 0"),
        ("unique", "Word", "x", "_at", "value 'a' held by 'w' and 'x'"),
        ("unique", "Word", "x", "_holder", "value '(1, 1)'"),
    ),
)
case(
    "a partial load keeps properties of any name",
    NAMES,
    put("Word", code="w", values=5),
    before=[WORD],
    partial=True,
    on=PARTIAL,
    after=[put("Word", code="w", _at="a", _row=1, _holder=1, _given=1, count=1, values=5)],
)

# --- edges with values of every kind -----------------------------------------------------------

TIES = """
node Person { name: String @key }
edge Tie: Person -> Person {
  kind: enum(weak, strong)
  notes: [String]?
  spot: Vector(2)?
  file: Blob?
  at: DateTime? @unique
}
"""
TIE = put(
    "Tie",
    id="t1",
    src="ann",
    dst="bo",
    kind="weak",
    notes=["a", "b"],
    spot=[1.0, -1.0],
    file="base64:aGk=",
    at="2024-05-01T12:00:00.001Z",
)
TIED = [person("ann"), person("bo"), TIE]
case(
    "an edge keeps every kind of value through an update",
    TIES,
    change("Tie", {"kind": "strong"}, where("at", "<", "2024-05-01T12:00:00.002Z")),
    before=TIED,
    on=MUTATION,
    affected=(0, 1),
    after=[person("ann"), person("bo"), put("Tie", **{**TIE.values, "kind": "strong"})],
)
case(
    "an edge keeps every kind of value through a partial load",
    TIES,
    put("Tie", id="t1", src="bo", dst="ann", kind="strong"),
    before=TIED,
    partial=True,
    on=PARTIAL,
    after=[
        person("ann"),
        person("bo"),
        put("Tie", **{**TIE.values, "src": "bo", "dst": "ann", "kind": "strong"}),
    ],
)
case(
    "an edge lacks nothing that is required",
    TIES,
    put("Tie", src="ann", dst="bo", at="2024-05-01T12:00:00.001Z"),
    before=TIED,
    wrong=(
        ("required", "Tie", None, "kind", "Tie.kind is required"),
        ("unique", "Tie", None, "at", "value '2024-05-01T12:00:00.001Z' held by 't1' and"),
    ),
)

# --- small print -------------------------------------------------------------------------------

case(
    "a statement no longer sees what the query itself changed away",
    PEOPLE,
    person("cy", age=1),
    change("Person", {"age": 2}, where("age", "=", 1)),
    change("Person", {"mood": "glad"}, where("age", "=", 1)),
    change("Person", {"email": "c"}, where("age", "=", 2)),
    on=MUTATION,
    affected=(3, 0),
    after=[person("cy", age=2, email="c")],
)

SMALL = """
node Word { code: String @key  n: I32?  @unique(code)  @range(n, 0.5..2.5) }
"""
case(
    "whole numbers lie between fractions",
    SMALL,
    put("Word", code="a", n=1),
    put("Word", code="b", n=2),
    after=[put("Word", code="a", n=1), put("Word", code="b", n=2)],
)
case(
    "whole numbers beyond fractions are refused",
    SMALL,
    put("Word", code="a", n=0),
    put("Word", code="b", n=3),
    wrong=(
        ("range", "Word", "a", "n", "value 0 < min 0.5"),
        ("range", "Word", "b", "n", "value 3 > max 2.5"),
    ),
)
case(
    "a unique key is reported once",
    SMALL,
    put("Word", code="a"),
    put("Word", code="a"),
    on=LOADS,
    wrong=(("unique", "Word", "a", None, "Word.code: value 'a' held by 'a' and 'a'"),),
)


# --- defaults ----------------------------------------------------------------------------------

BERTHS = """
node Berth {
  name: String @key
  depth: F32 @default(7.5)
  state: enum(free, taken) @default(free)
  number: I32 @default(-1)
  since: Date @default("2020-02-29")
  lit: Bool @default(true)
  note: String?
}
edge Next: Berth -> Berth { metres: U32 @default(0) }
"""
FILLED = {"depth": 7.5, "state": "free", "number": -1, "since": "2020-02-29", "lit": True}

case(
    "what is not given has its default",
    BERTHS,
    put("Berth", name="a"),
    put("Berth", name="b", depth=1.5, state="taken", number=3, since="2021-01-01", lit=False),
    put("Next", src="a", dst="b"),
    after=[
        put("Berth", name="a", **FILLED),
        put("Berth", name="b", depth=1.5, state="taken", number=3, since="2021-01-01", lit=False),
        put("Next", src="a", dst="b", metres=0),
    ],
    on=TEXTS,
    s3=True,
)
case(
    "null is not given either",
    BERTHS,
    put("Berth", name="a", depth=None, lit=None),
    after=[put("Berth", name="a", **FILLED)],
    on=TEXTS,
)
case(
    "an entity that exists keeps its value in a partial load, a new one has the default",
    BERTHS,
    put("Berth", name="a", note="x"),
    put("Berth", name="b", note="y"),
    before=[put("Berth", name="a", **{**FILLED, "depth": 1.5, "number": 9})],
    partial=True,
    after=[
        put("Berth", name="a", note="x", **{**FILLED, "depth": 1.5, "number": 9}),
        put("Berth", name="b", note="y", **FILLED),
    ],
    on=("ndjson", "columns"),
)
case(
    "a required property does not become null by an update, default or not",
    BERTHS,
    change("Berth", {"depth": None}, where("name", "=", "a")),
    before=[put("Berth", name="a", **FILLED)],
    wrong=(("required", "Berth", "a", "depth", "required"),),
    on=MUTATION,
)


# --- edges with a key --------------------------------------------------------------------------

KEYED = """
node Stop { name: String @key }
edge Link: Stop -> Stop @key(src, dst) { metres: I32?  note: String? }
edge Trip: Stop -> Stop @card(0..2) @key(src, dst, on, fare) {
  on: Date
  fare: F64
  seats: I32?
  code: String?
  @unique(code)
}
"""
STOPS = [put("Stop", name=name) for name in ("a", "b", "c")]
LINK = put("Link", src="a", dst="b", metres=5, note="old")
TRIP = put("Trip", src="a", dst="b", on="2024-05-01", fare=2.0, seats=3, code="x")
LINKED = [*STOPS, LINK, TRIP]

case(
    "the id of a keyed edge is made from its ends and key properties",
    KEYED,
    put("Link", src="b", dst="a"),
    put("Trip", src="b", dst="a", on="1970-01-02", fare=-0.0),
    before=LINKED,
    after=[
        *LINKED,
        put("Link", id='["b","a"]', src="b", dst="a"),
        put("Trip", id='["b","a","0","1"]', src="b", dst="a", on="1970-01-02", fare=0.0),
    ],
    s3=True,
)
case(
    "a keyed edge is replaced whole",
    KEYED,
    put("Link", src="a", dst="b", note="new"),
    before=LINKED,
    after=[*STOPS, TRIP, put("Link", src="a", dst="b", note="new")],
)
case(
    "an edge with another value in its key is another edge",
    KEYED,
    put("Trip", src="a", dst="b", on="2024-05-02", fare=2.0),
    put("Link", src="b", dst="a"),
    before=LINKED,
    after=[
        *LINKED,
        put("Trip", src="a", dst="b", on="2024-05-02", fare=2.0),
        put("Link", src="b", dst="a"),
    ],
)
case(
    "a keyed edge that exists is not appended",
    KEYED,
    put("Link", src="a", dst="b"),
    put("Trip", src="a", dst="b", on="2024-05-01", fare=2.0),
    put("Link", src="b", dst="c"),
    before=LINKED,
    mode="append",
    on=LOADS,
    wrong=(
        ("key_conflict", "Link", '["a","b"]', None, 'edge Link \'["a","b"]\' exists already'),
        ("key_conflict", "Trip", '["a","b","2","19844"]', None, "exists already"),
    ),
)
case(
    "a keyed edge is given once in a load",
    KEYED,
    put("Link", src="b", dst="c", metres=1),
    put("Link", src="b", dst="c", metres=2),
    before=LINKED,
    on=LOADS,
    wrong=(("unique", "Link", '["b","c"]', None, "Link.(src, dst): value '(b, c)' held by"),),
)
case(
    "a later statement replaces the keyed edge of an earlier one",
    KEYED,
    put("Link", src="b", dst="c", metres=1),
    put("Link", src="b", dst="c", note="x"),
    before=LINKED,
    on=MUTATION,
    affected=(0, 2),
    after=[*LINKED, put("Link", src="b", dst="c", note="x")],
)
case(
    "keyed edges that are loaded again change nothing",
    KEYED,
    LINK,
    TRIP,
    before=LINKED,
    after=LINKED,
    s3=True,
)
case(
    "an overwrite leaves the keyed edges it gives",
    KEYED,
    put("Link", src="a", dst="b", metres=6),
    put("Link", src="c", dst="a"),
    before=LINKED,
    mode="overwrite",
    on=LOADS,
    after=[
        *STOPS,
        TRIP,
        put("Link", src="a", dst="b", metres=6),
        put("Link", src="c", dst="a"),
    ],
)
case(
    "a partial load finds a keyed edge by its key",
    KEYED,
    put("Link", src="a", dst="b", metres=7),
    put("Trip", src="a", dst="b", on="2024-05-01", fare=2.0, seats=4),
    before=LINKED,
    partial=True,
    on=PARTIAL,
    after=[
        *STOPS,
        put("Link", src="a", dst="b", metres=7, note="old"),
        put("Trip", **{**TRIP.values, "seats": 4}),
    ],
)
case(
    "the ends of a keyed edge must exist",
    KEYED,
    put("Link", src="a", dst="z"),
    before=LINKED,
    wrong=(("endpoint", "Link", '["a","z"]', None, "dst 'z' not found in Stop"),),
)
case(
    "a key property of an edge is required",
    KEYED,
    put("Trip", src="a", dst="b", fare=1.0),
    before=LINKED,
    on=TEXTS,
    wrong=(("required", "Trip", None, "on", "Trip.on is required"),),
)
case(
    "cardinality counts keyed edges, replaced ones once",
    KEYED,
    put("Trip", src="a", dst="b", on="2024-05-01", fare=2.0),
    put("Trip", src="a", dst="c", on="2024-05-01", fare=2.0),
    before=LINKED,
    after=[
        *STOPS,
        LINK,
        put("Trip", src="a", dst="b", on="2024-05-01", fare=2.0),
        put("Trip", src="a", dst="c", on="2024-05-01", fare=2.0),
    ],
)
case(
    "a key does not loosen cardinality or unique values",
    KEYED,
    put("Trip", src="a", dst="c", on="2024-05-01", fare=2.0),
    put("Trip", src="a", dst="c", on="2024-05-02", fare=2.0, code="x"),
    before=LINKED,
    wrong=(
        ("cardinality", "Trip", "a", None, "3"),
        ("unique", "Trip", '["a","c","2","19845"]', "code", "held by"),
    ),
)
case(
    "keyed edges are updated and deleted by their ends",
    KEYED,
    change("Link", {"metres": 9}, where("from", "=", "a"), where("to", "=", "b")),
    before=LINKED,
    on=MUTATION,
    affected=(0, 1),
    after=[*STOPS, TRIP, put("Link", **{**LINK.values, "metres": 9})],
)
case(
    "a whole key finds one edge to delete",
    KEYED,
    delete(
        "Trip",
        where("from", "=", "a"),
        where("to", "=", "b"),
        where("on", "=", "2024-05-01"),
        where("fare", "=", 2.0),
    ),
    before=LINKED,
    on=MUTATION,
    affected=(0, 1),
    after=[*STOPS, LINK],
)
case(
    "keyed edges go with their node, and come again with the same ids",
    KEYED,
    delete("Stop", where("name", "=", "a")),
    before=LINKED,
    on=MUTATION,
    affected=(1, 2),
    after=[*STOPS[1:]],
)
