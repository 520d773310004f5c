"""Changes of one branch wait for each other in the order they came; others do not."""

import threading

import pytest

from omnigraph.service.turns import Turns

LONG = 120.0


def test_turns_are_taken_in_order():
    turns, order = Turns(LONG), []

    def change(number):
        with turns.take("main"):
            order.append(number)

    threads = []
    with turns.take("main"):
        for number in range(8):
            thread = threading.Thread(target=change, args=(number,))
            thread.start()
            threads.append(thread)
            # The next one comes behind this one.
            while len(turns._waiting["main"]) < number + 2:
                threading.Event().wait(0.001)
        assert order == []
    for thread in threads:
        thread.join(LONG)
    assert order == list(range(8))
    assert turns._waiting == {}


def test_branches_do_not_wait_for_each_other():
    turns = Turns(LONG)
    with turns.take("main"), turns.take("other"):
        assert set(turns._waiting) == {"main", "other"}
    assert turns._waiting == {}


def test_whoever_waited_long_enough_goes_ahead():
    turns = Turns(0.01)
    with turns.take("main"), turns.take("main"), turns.take("main"):
        assert len(turns._waiting["main"]) == 3
    assert turns._waiting == {}


def test_a_change_that_fails_gives_its_turn_away():
    turns = Turns(LONG)
    with pytest.raises(KeyError), turns.take("main"):
        raise KeyError
    with turns.take("main"):
        pass
    assert turns._waiting == {}
