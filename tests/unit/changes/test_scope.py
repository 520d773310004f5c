"""Which changes are asked for: mistakes are reported with what was probably meant."""

import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.changes.model import ChangeFilter, ChangeOp, check_filter_types, parse_change_filter
from omnigraph.errors import InvalidInput, NotFound
from tests.support.graphs import SCHEMA


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    return og.init(tmp_path_factory.mktemp("scope") / "graph", SCHEMA).snapshot().schema


def test_words_become_a_scope():
    assert parse_change_filter(["edge"], ["Ship"], ["update"]) == ChangeFilter(
        frozenset({TypeKind.EDGE}), frozenset({"Ship"}), frozenset({ChangeOp.UPDATE})
    )


def test_one_word_may_stand_alone():
    assert parse_change_filter("edge", "Ship", "update") == parse_change_filter(
        ["edge"], ["Ship"], ["update"]
    )


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"kinds": ["nodes"]}, "unknown_kind", "unknown kind 'nodes': did you mean `node`?"),
        ({"kinds": ["interface"]}, "unknown_kind", "unknown kind 'interface': known names: "),
        ({"ops": ["updated"]}, "unknown_op", "unknown op 'updated': did you mean `update`?"),
        ({"ops": [""]}, "unknown_op", "unknown op '': known names: `delete`, `insert`, `update`"),
    ],
)
def test_word_nobody_knows_is_refused(given, code, message):
    with pytest.raises(InvalidInput) as caught:
        parse_change_filter(**given)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)


def test_type_nobody_knows_is_refused(schema):
    check_filter_types(parse_change_filter(types=["Ship", "CallsAt"]), [schema])
    with pytest.raises(NotFound) as caught:
        check_filter_types(parse_change_filter(types=["Shp"]), [schema])
    assert caught.value.code == "unknown_type"
    assert caught.value.message == "unknown type 'Shp': did you mean `Ship`?"
    assert caught.value.details == {"type": "Shp"}
