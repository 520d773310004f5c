"""Settings every suite shares. Builders belong in ``tests/support``."""

import os

from hypothesis import settings

pytest_plugins = ["tests.support.roots"]

# A busy machine is no failure: time is measured by `make bench`, not by property tests.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# The suites of the storage core start servers and processes; `make storage` runs them.
STORAGE = ("behaviour", "commit", "concurrency", "cost", "substrate", "unit/storage", "unit/commit")
STORAGE += ("unit/maintain", "unit/test_graph.py", "unit/test_bad_storage.py")
collect_ignore = [] if os.environ.get("OMNIGRAPH_TEST_STORAGE") else list(STORAGE)
