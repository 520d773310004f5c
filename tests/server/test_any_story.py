"""Requests that go on from each other's answers, as our OpenAPI document links them.

`EXAMPLES=500` tells that many stories, and longer ones.
"""

import os
import random
from collections import Counter
from itertools import count

import pytest
import requests
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import ensure_resource_availability, use_after_free

from tests.support.openapi_requests import CHECKS, LONG, described, make_meaningful
from tests.support.serving import PATIENCE

STORIES = int(os.environ.get("EXAMPLES", "5"))
STEPS = 40 if LONG else 12
FOLLOWED = [*CHECKS, use_after_free, ensure_resource_availability]
"""What holds where the path names what was made; a name in a body is not followed by them."""


@pytest.fixture
def reported(open_server):
    """Return a machine that tells stories, the statuses it was answered with, and what is wrong."""
    statuses, wrong = Counter(), []
    with requests.Session() as session:
        schema = described()
        schema.config.generation.modes = [GenerationMode.POSITIVE]

        class Story(schema.as_state_machine()):
            def step(self, input):
                linked = [name for _, name in input.applied_parameters]
                make_meaningful(input.case, "stories", linked)
                return super().step(input)

            def get_call_kwargs(self, case):
                return {"base_url": open_server.url, "session": session, "timeout": PATIENCE}

            def after_call(self, response, case):
                super().after_call(response, case)
                statuses[case.operation.label, response.status_code] += 1

            def validate_response(self, response, case, **_):
                checks = FOLLOWED if len(case.path_parameters or {}) > 1 else CHECKS
                try:
                    case.validate_response(response, checks=checks, recorder=self.recorder)
                except BaseException as error:
                    wrong.append(error)
                    raise

        yield Story, statuses, wrong


def test_any_story_is_answered_as_described(reported):
    story, statuses, wrong = reported
    how = settings(
        max_examples=STORIES,
        stateful_step_count=STEPS,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    first = random.randrange(1 << 32) if LONG else 1
    for number in count(first):
        print(f"seed {number}")
        try:
            run_state_machine_as_test(seed(number)(story), settings=how)
            break
        except FlakyStrategyDefinition:
            # The server remembers earlier stories: what began alike may go on otherwise.
            assert not wrong
            assert number < first + STORIES
    print(sorted(statuses.items()))
