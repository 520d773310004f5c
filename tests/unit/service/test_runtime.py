"""The state a server runs in, for everything it may be given."""

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.service.runtime import RuntimeState, classify


@pytest.mark.parametrize(
    ("tokens", "policies", "unauthenticated", "expected"),
    [
        (False, False, False, "server_unprotected"),
        (False, False, True, RuntimeState.OPEN),
        (True, False, False, RuntimeState.DEFAULT_DENY),
        (True, False, True, RuntimeState.DEFAULT_DENY),
        (False, True, False, "tokens_missing"),
        (False, True, True, "tokens_missing"),
        (True, True, False, RuntimeState.POLICY_ENABLED),
        (True, True, True, RuntimeState.POLICY_ENABLED),
    ],
)
def test_tokens_policies_and_the_wish_to_be_open(tokens, policies, unauthenticated, expected):
    given = {"tokens": tokens, "policies": policies, "unauthenticated": unauthenticated}
    if isinstance(expected, RuntimeState):
        assert classify(**given) is expected
        return
    with pytest.raises(InvalidInput) as caught:
        classify(**given)
    assert caught.value.code == expected
