"""What every row of the function table has in common."""

import pytest

from omnigraph.lang import Code
from omnigraph.plan import FUNCTIONS, FunctionKind
from omnigraph.plan.functions import FunctionArgumentKind
from omnigraph.plan.result_types import ResultRule
from omnigraph.types import PropertyType, Scalar

every_function = pytest.mark.parametrize("spec", FUNCTIONS.values(), ids=FUNCTIONS)


@every_function
def test_a_function_is_known_by_its_name_and_a_word_of_the_language(spec):
    assert FUNCTIONS[spec.name] is spec
    assert spec.name.isidentifier()
    assert spec.name == spec.name.lower()
    assert spec.name not in ("date", "datetime", "true", "false", "not")


@every_function
def test_optional_arguments_come_last(spec):
    optional = [argument.optional for argument in spec.arguments]
    assert optional == sorted(optional)


@every_function
def test_a_function_says_what_it_is_about(spec):
    assert spec.about
    assert spec.about == spec.about.strip()
    assert spec.mismatch_code.about


@every_function
def test_the_kind_decides_what_a_function_gives(spec):
    match spec.kind:
        case FunctionKind.PREDICATE:
            assert spec.result == PropertyType(Scalar.BOOL)
        case FunctionKind.RANK:
            assert spec.result == PropertyType(Scalar.F64, nullable=True)
        case FunctionKind.AGGREGATE:
            assert len(spec.arguments) == 1
        case FunctionKind.CONSTANT:
            assert isinstance(spec.result, PropertyType)
        case FunctionKind.SCALAR:
            assert isinstance(spec.result, ResultRule)


@every_function
def test_only_rankings_need_a_limit_or_have_a_best(spec):
    if spec.kind is not FunctionKind.RANK:
        assert spec.needs_limit is None
        assert not spec.best_is_highest


@every_function
def test_search_functions_look_into_a_property_first(spec):
    if spec.kind is FunctionKind.PREDICATE or spec.name in ("bm25", "nearest"):
        assert spec.arguments[0].kind in (
            FunctionArgumentKind.TEXT_PROPERTY,
            FunctionArgumentKind.VECTOR_PROPERTY,
        )


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("now", "now()"),
        ("count", "count(value)"),
        ("fuzzy", "fuzzy(property, query, [max_edits])"),
        ("rrf", "rrf(first, second, [k])"),
        ("coalesce", "coalesce(value, …)"),
    ],
)
def test_a_signature_is_the_call_as_written(name, signature):
    assert FUNCTIONS[name].signature == signature


def test_only_count_and_collect_may_be_distinct():
    assert [spec.name for spec in FUNCTIONS.values() if spec.allows_distinct] == [
        "count",
        "collect",
    ]


def test_rankings_that_need_a_limit_say_so_with_their_own_code():
    needs = {spec.name: spec.needs_limit for spec in FUNCTIONS.values() if spec.needs_limit}
    assert needs == {"nearest": Code.NEAREST_NEEDS_LIMIT, "rrf": Code.RRF_MISFIT}


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        FUNCTIONS["nope"] = FUNCTIONS["now"]
