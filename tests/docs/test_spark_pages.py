"""The Python of pages that use Spark runs, in the session that all tests of a process share."""

import pytest

from tests.support.docs import page_name, pages, run_python, uses_spark


@pytest.mark.parametrize("page", [p for p in pages() if uses_spark(p)], ids=page_name)
def test_python_blocks_of_a_page_run_one_after_the_other(spark, page):
    run_python(page)
