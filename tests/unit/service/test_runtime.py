"""The state a server runs in, for everything it may be given."""

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.service.auth import AuthMode, choose_auth_mode


@pytest.mark.parametrize(
    ("tokens", "policies", "unauthenticated", "expected"),
    [
        (False, False, False, "server_unprotected"),
        (False, False, True, AuthMode.OPEN),
        (True, False, False, AuthMode.DEFAULT_DENY),
        (True, False, True, AuthMode.DEFAULT_DENY),
        (False, True, False, "tokens_missing"),
        (False, True, True, "tokens_missing"),
        (True, True, False, AuthMode.POLICY_ENABLED),
        (True, True, True, AuthMode.POLICY_ENABLED),
    ],
)
def test_tokens_policies_and_the_wish_to_be_open(tokens, policies, unauthenticated, expected):
    given = {"tokens": tokens, "policies": policies, "unauthenticated": unauthenticated}
    if isinstance(expected, AuthMode):
        assert choose_auth_mode(**given) is expected
        return
    with pytest.raises(InvalidInput) as caught:
        choose_auth_mode(**given)
    assert caught.value.code == expected
