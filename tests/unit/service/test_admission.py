"""What an actor has under way is counted, per actor, and let go again."""

import pytest

from omnigraph.service.admission import AdmissionControl, TooManyRequests


def test_actors_do_not_take_from_each_other():
    admission = AdmissionControl(inflight_max=1)
    with admission.admit("a", 1):
        with pytest.raises(TooManyRequests), admission.admit("a", 1):
            pass
        with admission.admit("b", 1), admission.admit(None, 1):
            pass
    with admission.admit("a", 1):
        pass


def test_nobody_known_is_one_actor():
    admission = AdmissionControl(inflight_max=1)
    with (
        admission.admit(None, 1),
        pytest.raises(TooManyRequests, match="anonymous"),
        admission.admit(None, 1),
    ):
        pass


def test_what_failed_is_let_go_too():
    admission = AdmissionControl(inflight_max=1, bytes_max=10)
    with pytest.raises(KeyError), admission.admit("a", 10):
        raise KeyError
    with admission.admit("a", 10), pytest.raises(TooManyRequests), admission.admit("a", 1):
        pass


@pytest.mark.parametrize(
    ("text", "expected"), [("3", 3), (" 7 ", 7), ("0", 16), ("-1", 16), ("many", 16), ("", 16)]
)
def test_limits_come_from_the_environment_or_stay(text, expected):
    found = AdmissionControl.from_environment({"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": text})
    assert found.inflight_max == expected
    assert found.bytes_max == 4294967296
