"""Every way on which rows reach a graph through Spark, compared with a load in one process.

`python -m tests.pipeline.ways MASTER FOLDER CASE…` does it in a session of its own, and prints a
line for each way and case.
"""

import shutil
import sys
from functools import cache
from pathlib import Path

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.write.violations import ValidationFailed
from tests.behaviour.change_cases import CASES
from tests.behaviour.test_changes import Hashed, populate, without_new_ids
from tests.support.changes import read_state
from tests.support.embedding import MOCK
from tests.support.small_spark_session import SETTINGS
from tests.support.spark_surfaces import WAYS, LoadedRows, violations
from tests.support.surfaces import Inexpressible, columns_of


def compare_way(spark, case, way, folder, template):
    """Load the rows of a case in one process and on a way; verdicts and states must be equal."""
    graphs = {}
    for engine in ("local", "spark"):
        shutil.copytree(template(case.schema, Hashed(case.before)), folder / engine)
        graphs[engine] = og.open(folder / engine, embedding=MOCK)
    catalog, [type_name] = graphs["local"].snapshot().catalog, {step.type for step in case.steps}
    try:
        table = columns_of(catalog, type_name, case.steps, partial=case.partial)
    except Inexpressible:
        return
    how = (case.mode, case.partial, type_name in catalog.edges)
    rows = LoadedRows(spark, folder / "rows", type_name, *how)
    rows.write(table)
    expected = []
    try:
        graphs["local"].load({type_name: rows.table()}, mode=case.mode, partial=case.partial)
    except ValidationFailed as error:
        expected = sorted(violation.message for violation in error.violations)
    try:
        found = violations(way, rows, graphs["spark"])
    except Inexpressible:
        return
    if isinstance(found, str):
        assert expected, found
        assert [part for part in ("ValidationFailed", *expected) if part not in found] == []
    else:
        assert found == expected
    states = {engine: without_new_ids(read_state(graph)) for engine, graph in graphs.items()}
    assert states["spark"] == states["local"]
    assert graphs["spark"].verify().ok


def make_templates(folder):
    """Return a function that makes graphs of a schema and first entities once, on disk."""

    @cache
    def make(schema, before):
        path = folder / str(make.cache_info().currsize)
        populate(og.init(path, schema, embedding=MOCK), before)
        return path

    return make


def main(master, folder, *names):
    """Compare; the first difference ends the program."""
    cases = {case.name: case for case in CASES}
    templates = Path(folder, "templates")
    templates.mkdir()
    template = make_templates(templates)
    spark = pipeline.session(master, memory="512m", config=SETTINGS)
    for name in names:
        for number, way in enumerate(WAYS):
            place = Path(folder, f"{name} {number}")
            place.mkdir()
            compare_way(spark, cases[name], way, place, template)
            print(f"{way}: {name}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
