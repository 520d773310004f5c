"""Queries that bind interfaces have the answers of the reference, in every execution mode.

INTERFACES says how many random graphs to ask; INTERFACES_FROM is the seed of the first.
"""

import os
import re
from random import Random

import pytest

from omnigraph.catalog import load_catalog
from omnigraph.errors import OmniError
from omnigraph.plan import compile_query
from tests.support.effort import examples
from tests.support.generated_graphs import pools_of, sample_with_interface, seldom
from tests.support.generated_reads import Read, Reads, random_read
from tests.support.read_checks import differences

FIRST = int(os.environ.get("INTERFACES_FROM", "0"))
COUNT = int(os.environ.get("INTERFACES") or examples(4))
DRAWN, ASKED = 60, 8
BINDING = re.compile(r"(?m)^(    \$\w+): [ABC]\b")
"""A binding outside of blocks, as queries are printed."""


def reads_of_an_interface(random):
    """Return a graph and queries in which variables of one type were bound to its interface."""
    sample = sample_with_interface(random)
    catalog = load_catalog(sample.schema)
    pools, queries = pools_of(sample, catalog), []
    for _ in range(DRAWN):
        try:
            read = random_read(random, catalog, pools, search=seldom(random, 0.4))
        except RuntimeError:  # there are no more names for variables
            continue
        text = BINDING.sub(
            lambda found: found[0] if seldom(random, 0.3) else f"{found[1]}: I", read.text
        )
        if text != read.text and compiles(catalog, text):
            queries.append(Read(text, read.params))
    return Reads(sample, tuple(queries[:ASKED]))


def compiles(catalog, text):
    """Return whether the edges of a query fit types that implement the interface."""
    try:
        compile_query(catalog, text, None)
    except OmniError:
        return False
    return True


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_engine_and_reference_agree_on_interfaces(seed):
    drawn = reads_of_an_interface(Random(seed))
    assert drawn.queries
    reported = list(differences(drawn))
    assert not reported, f"{len(reported)} differences, the first: {reported[0]}"
