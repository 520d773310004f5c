"""Changes of one branch wait for each other in the order they came; others do not."""

import threading

import pytest

from omnigraph.service.write_queue import WriteQueue

LONG = 120.0


def test_turns_are_taken_in_order():
    turns, order = WriteQueue(LONG), []

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
    turns = WriteQueue(LONG)
    with turns.take("main"), turns.take("other"):
        assert set(turns._waiting) == {"main", "other"}
    assert turns._waiting == {}


def test_whoever_waited_long_enough_goes_ahead():
    turns = WriteQueue(0.01)
    with turns.take("main"), turns.take("main"), turns.take("main"):
        assert len(turns._waiting["main"]) == 3
    assert turns._waiting == {}


def test_a_change_that_fails_gives_its_turn_away():
    turns = WriteQueue(LONG)
    with pytest.raises(KeyError), turns.take("main"):
        raise KeyError
    with turns.take("main"):
        pass
    assert turns._waiting == {}


def test_processes_take_turns_one_after_the_other(tmp_path):
    """Two that share a folder are two processes: each has a line of its own."""
    one, other = WriteQueue(LONG, tmp_path), WriteQueue(LONG, tmp_path)
    order, begun = [], threading.Event()

    def change():
        begun.set()
        with other.take("main"):
            order.append("other")

    thread = threading.Thread(target=change)
    with one.take("main"):
        thread.start()
        assert begun.wait(LONG)
        with other.take("another branch"):
            order.append("one")
    thread.join(LONG)
    assert order == ["one", "other"]


def test_a_busy_process_does_not_give_every_turn_to_itself(tmp_path):
    one, other = WriteQueue(LONG, tmp_path), WriteQueue(LONG, tmp_path)
    waiting, done = threading.Event(), threading.Event()

    def change():
        waiting.set()
        with other.take("main"):
            done.set()

    with one.take("main"):
        thread = threading.Thread(target=change)
        thread.start()
        assert waiting.wait(LONG)
    turns = 0
    while not done.is_set():
        with one.take("main"):
            turns += 1
    thread.join(LONG)
    assert done.is_set()


def test_a_process_that_holds_its_turn_for_ever_is_not_waited_for(tmp_path):
    one, other = WriteQueue(LONG, tmp_path), WriteQueue(0.01, tmp_path)
    with one.take("main"), other.take("main"):
        assert set(other._waiting) == {"main"}
