"""Changes of one branch wait for each other in the order they came; others do not."""

import threading

import pytest

from omnigraph.service.write_queue import WriteQueue

LONG = 120.0


def test_turns_are_taken_in_order():
    queue, order = WriteQueue(LONG), []

    def change(number):
        with queue.turn_for("main"):
            order.append(number)

    threads = []
    with queue.turn_for("main"):
        for number in range(8):
            thread = threading.Thread(target=change, args=(number,))
            thread.start()
            threads.append(thread)
            # The next one comes behind this one.
            while len(queue._waiting["main"]) < number + 2:
                threading.Event().wait(0.001)
        assert order == []
    for thread in threads:
        thread.join(LONG)
    assert order == list(range(8))
    assert queue._waiting == {}


def test_branches_do_not_wait_for_each_other():
    queue = WriteQueue(LONG)
    with queue.turn_for("main"), queue.turn_for("other"):
        assert set(queue._waiting) == {"main", "other"}
    assert queue._waiting == {}


def test_whoever_waited_long_enough_goes_ahead():
    queue = WriteQueue(0.01)
    with queue.turn_for("main"), queue.turn_for("main"), queue.turn_for("main"):
        assert len(queue._waiting["main"]) == 3
    assert queue._waiting == {}


def test_a_change_that_fails_gives_its_turn_away():
    queue = WriteQueue(LONG)
    with pytest.raises(KeyError), queue.turn_for("main"):
        raise KeyError
    with queue.turn_for("main"):
        pass
    assert queue._waiting == {}


def test_processes_take_turns_one_after_the_other(tmp_path):
    """Two that share a folder are two processes: each has a line of its own."""
    one, other = WriteQueue(LONG, tmp_path), WriteQueue(LONG, tmp_path)
    order, begun = [], threading.Event()

    def change():
        begun.set()
        with other.turn_for("main"):
            order.append("other")

    thread = threading.Thread(target=change)
    with one.turn_for("main"):
        thread.start()
        assert begun.wait(LONG)
        with other.turn_for("another branch"):
            order.append("one")
    thread.join(LONG)
    assert order == ["one", "other"]


def test_a_busy_process_does_not_give_every_turn_to_itself(tmp_path):
    one, other = WriteQueue(LONG, tmp_path), WriteQueue(LONG, tmp_path)
    waiting, done = threading.Event(), threading.Event()

    def change():
        waiting.set()
        with other.turn_for("main"):
            done.set()

    with one.turn_for("main"):
        thread = threading.Thread(target=change)
        thread.start()
        assert waiting.wait(LONG)
    turns = 0
    while not done.is_set():
        with one.turn_for("main"):
            turns += 1
    thread.join(LONG)
    assert done.is_set()


def test_a_process_that_holds_its_turn_for_ever_is_not_waited_for(tmp_path):
    one, other = WriteQueue(LONG, tmp_path), WriteQueue(0.01, tmp_path)
    with one.turn_for("main"), other.turn_for("main"):
        assert set(other._waiting) == {"main"}
