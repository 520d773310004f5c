"""The registry of error codes is complete, and statuses follow from it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import omnigraph
from omnigraph.error_codes import ERROR_CODES, http_status
from omnigraph.errors import Category, OmniError
from omnigraph.lang import Code
from omnigraph.service.errors import describe_error, status_of

SOURCE = Path(omnigraph.__file__).parent
CODE = re.compile(r"[a-z]+(_[a-z0-9]+)*")
OF_CLIENTS = "http_.+"
"""A client makes this code of an answer that has none, with the status behind it."""


@cache
def trees() -> list[ast.Module]:
    """Return the parsed modules of the source, all but the registry."""
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "error_codes.py"]
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def literals(value: ast.expr | None) -> Iterator[str]:
    """Yield patterns of the codes an expression can be."""
    match value:
        case ast.Constant(value=str() as text):
            yield re.escape(text)
        case ast.IfExp(body=body, orelse=other):
            yield from literals(body)
            yield from literals(other)
        case ast.JoinedStr(values=parts):
            texts = (re.escape(p.value) if isinstance(p, ast.Constant) else ".+" for p in parts)
            yield "".join(map(str, texts))
        case ast.BoolOp(values=values):
            for one in values:
                yield from literals(one)


def parameters_named_code() -> dict[str, set[int]]:
    """Return at which positions functions and classes of the source take a code as text."""
    positions: dict[str, set[int]] = {}
    for tree in trees():
        methods = {
            method: owner.name
            for owner in ast.walk(tree)
            if isinstance(owner, ast.ClassDef)
            for method in owner.body
            if isinstance(method, ast.FunctionDef)
        }
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            for number, argument in enumerate(function.args.args):
                text = isinstance(argument.annotation, ast.Name) and argument.annotation.id == "str"
                if argument.arg == "code" and text:
                    owner = methods.get(function)
                    name = owner if owner and function.name == "__init__" else function.name
                    positions.setdefault(name, set()).add(number - bool(owner))
    return positions


def codes_of_the_source() -> Iterator[str]:
    positions = parameters_named_code()
    for node in (node for tree in trees() for node in ast.walk(tree)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                yield from (c for k in node.keywords if k.arg == "code" for c in literals(k.value))
                for number in positions.get(name, ()):
                    texts = literals(node.args[number]) if number < len(node.args) else ()
                    yield from (text for text in texts if CODE.fullmatch(text))
            case ast.FunctionDef(args=arguments):
                pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
                yield from (c for a, value in pairs if a.arg == "code" for c in literals(value))
            case ast.Assign(targets=[ast.Name(id="code" | "code_text")], value=value):
                yield from (text for text in literals(value) if CODE.fullmatch(text))


def test_every_code_of_the_source_has_a_row():
    used = set(codes_of_the_source()) - {OF_CLIENTS}
    known = {*ERROR_CODES, *Code}
    missing = {p for p in used if not any(re.fullmatch(p, code) for code in known)}
    assert len(used) > 250
    assert missing == set()


def test_every_row_is_used_by_the_source():
    texts = {
        node.value
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    patterns = {p for p in codes_of_the_source() if ".+" in p}
    unused = {
        code
        for code in ERROR_CODES
        if code not in texts and not any(re.fullmatch(p, code) for p in patterns)
    }
    assert unused == set()


def test_a_row_states_its_meaning_in_a_sentence():
    for row in ERROR_CODES.values():
        assert CODE.fullmatch(row.code)
        assert row.about.endswith(".")
        assert row.about[0].isupper() or row.about[0] == "`"
        assert row.group
        assert row.categories
        assert len(set(row.categories)) == len(row.categories)


# Statuses are part of the wire contract: this is the table they had before the registry.
STATUSES = {
    "unauthorized": 401,
    "method_not_allowed": 405,
    "body_slow": 408,
    "change_feed_gap": 410,
    "precondition_failed": 412,
    "blob_changed": 412,
    "content_type_unsupported": 415,
    "blob_range_not_satisfiable": 416,
    "body_invalid": 422,
    "external_blob_source": 424,
    "too_many_requests": 429,
    "query_memory_busy": 429,
    "deadline": 503,
    "not_ready": 503,
    "query_cancelled": 503,
    "spill_failed": 500,
}
BY_CATEGORY = {
    Category.INVALID: 400,
    Category.NOT_FOUND: 404,
    Category.DENIED: 403,
    Category.CONFLICT: 409,
    Category.CONTENTION: 409,
    Category.LIMIT: 413,
    Category.UNAVAILABLE: 500,
    Category.OUTCOME_UNKNOWN: 503,
    Category.INTERNAL: 500,
}


def contract_status(code: str, category: Category) -> int:
    if code.startswith("storage_"):
        return 500
    if code.startswith("embedding_") and category is not Category.INVALID:
        return 409 if category is Category.CONFLICT else 503
    return STATUSES.get(code, BY_CATEGORY[category])


@pytest.mark.parametrize("category", Category)
def test_a_status_is_that_of_the_contract(category):
    rows = [row for row in ERROR_CODES.values() if category in row.categories]
    statuses = {
        row.code: status_of(OmniError("x", code=row.code, category=category)) for row in rows
    }
    assert statuses == {row.code: contract_status(row.code, category) for row in rows}


@pytest.mark.parametrize("category", Category)
def test_a_code_without_a_row_has_the_status_of_its_category(category):
    assert http_status("toy", category) == BY_CATEGORY[category]
    assert http_status(Code.UNKNOWN_PROPERTY, category) == BY_CATEGORY[category]


def test_an_error_that_is_not_ours_is_internal():
    assert describe_error(ValueError("x")).status == ERROR_CODES["internal"].status(
        Category.INTERNAL
    )
