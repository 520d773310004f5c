"""Settings every suite shares. Builders belong in ``tests/support``."""

import os

from hypothesis import settings

from tests.support.java_runtime import use_short_lived_jvms

pytest_plugins = [
    "tests.support.garbage",
    "tests.support.time_report",
    "tests.support.distribution",
    "tests.support.graph_locations",
    "tests.support.notebook_kernel",
    "tests.support.small_spark_session",
    "tests.support.spark",
    "tests.support.spark_cluster",
]

# Commands that are slow on a busy machine print what they print on an idle one.
os.environ.setdefault("OMNIGRAPH_PROGRESS_SECONDS", "0")
# Syncing makes commits slower and changes no result; tests of durability set it themselves.
os.environ.setdefault("OMNIGRAPH_DURABILITY", "relaxed")
# The key of a service would choose that service: no text of a test leaves the machine.
for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
    os.environ.pop(name, None)

use_short_lived_jvms()

# A busy machine is no failure: time is measured by `make bench`, not by property tests.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")
