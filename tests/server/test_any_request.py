"""Whatever our OpenAPI document allows is asked: nothing breaks, every answer is as described.

`EXAMPLES=500` asks more of each route; `make fuzz-server` does that.
"""

import os

import pytest
import requests
from hypothesis import HealthCheck, settings

from tests.support.openapi_requests import CHECKS, LONG, described, make_usual
from tests.support.serving import PATIENCE

EXAMPLES = int(os.environ.get("EXAMPLES", "4"))

schema = described()


@pytest.fixture(scope="module")
def session():
    with requests.Session() as found:
        yield found


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=not LONG,
)
def test_any_request_is_answered_as_described(case, open_server, session):
    make_usual(case, "any")
    options = {"base_url": open_server.url, "session": session, "timeout": PATIENCE}
    case.call_and_validate(**options, checks=CHECKS)
