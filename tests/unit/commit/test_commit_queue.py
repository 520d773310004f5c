"""The queue of a branch: groups, turns, deadlines and failing leaders."""

import threading
import time

import pytest

from omnigraph.commit.commit_queue import MAX_GROUP, CommitQueue, QueuedChange, TurnLocks
from omnigraph.errors import Contention

SOON = 10.0


class Change(QueuedChange):
    """A change with a name."""

    __slots__ = ("name",)

    def __init__(self, name, *, alone=False, timeout=SOON):
        super().__init__(time.monotonic() + timeout, alone=alone)
        self.name = name


class Recorder:
    """Publishes groups, records them, and can be held in the middle of one."""

    def __init__(self):
        self.groups = []
        self.hold = threading.Event()
        self.hold.set()
        self.started = threading.Event()
        self.fail = {}
        self.leave = set()

    def __call__(self, group, turn):
        turn.wait()
        self.groups.append([member.name for member in group])
        self.started.set()
        assert self.hold.wait(SOON)
        for member in group:
            if member.name in self.fail:
                raise self.fail.pop(member.name)
            if member.name in self.leave:
                self.leave.remove(member.name)
            else:
                member.succeed(member.name.upper())


@pytest.fixture
def queue():
    return CommitQueue()


@pytest.fixture
def recorder():
    return Recorder()


class Caller(threading.Thread):
    """Runs a change in a thread and keeps its outcome."""

    def __init__(self, queue, recorder, change):
        super().__init__(daemon=True)
        self.queue, self.recorder, self.change = queue, recorder, change
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.queue.run(self.change, self.recorder)
            self.result = self.change.outcome()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def finish(self):
        self.join(SOON)
        assert not self.is_alive()
        return self.result if self.error is None else self.error


def wait_until(condition):
    until = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def hold_with(queue, recorder, name="first"):
    """Start a change whose leader is held until the recorder lets it go on."""
    recorder.hold.clear()
    caller = Caller(queue, recorder, Change(name))
    assert recorder.started.wait(SOON)
    return caller


def line_up(queue, recorder, *changes):
    """Start changes that queue up in this order."""
    callers = []
    for number, change in enumerate(changes, len(queue._waiting) + 1):
        callers.append(Caller(queue, recorder, change))
        wait_until(lambda number=number: len(queue._waiting) == number)
    return callers


def test_a_lone_change_is_published_at_once(queue, recorder):
    change = Change("a")
    queue.run(change, recorder)
    assert change.outcome() == "A"
    assert recorder.groups == [["a"]]


def test_changes_that_wait_are_one_group_in_order(queue, recorder):
    first = hold_with(queue, recorder)
    others = line_up(queue, recorder, *(Change(name) for name in "bcd"))
    recorder.hold.set()
    assert [caller.finish() for caller in (first, *others)] == ["FIRST", "B", "C", "D"]
    assert recorder.groups == [["first"], ["b", "c", "d"]]


def test_a_group_has_a_limit(queue, recorder):
    first = hold_with(queue, recorder)
    others = line_up(queue, recorder, *(Change(f"c{n}") for n in range(MAX_GROUP + 3)))
    recorder.hold.set()
    assert [c.finish() for c in (first, *others)][1:] == [f"C{n}" for n in range(MAX_GROUP + 3)]
    assert [len(group) for group in recorder.groups] == [1, MAX_GROUP, 3]


def test_a_change_left_undone_is_first_in_the_next_group(queue, recorder):
    first = hold_with(queue, recorder)
    others = line_up(queue, recorder, *(Change(name) for name in "bcd"))
    recorder.leave = {"c"}
    recorder.hold.set()
    assert [caller.finish() for caller in (first, *others)] == ["FIRST", "B", "C", "D"]
    assert recorder.groups == [["first"], ["b", "c", "d"], ["c"]]


def test_an_error_of_a_leader_reaches_no_other_change(queue, recorder):
    first = hold_with(queue, recorder)
    others = line_up(queue, recorder, *(Change(name) for name in "bcd"))
    recorder.fail = {"c": KeyboardInterrupt()}
    recorder.hold.set()
    outcomes = [caller.finish() for caller in (first, *others)]
    assert outcomes[0] == "FIRST"
    # "b" led the group; it had succeeded before the interrupt, which is raised in its thread.
    assert isinstance(outcomes[1], KeyboardInterrupt)
    assert outcomes[2:] == ["C", "D"]
    assert recorder.groups == [["first"], ["b", "c", "d"], ["c", "d"]]
    assert [caller.change.in_doubt for caller in others[1:]] == [True, True]


class Interrupted(threading.Event):
    """Where a caller waits who presses Ctrl-C after something has happened."""

    def __init__(self, happen):
        super().__init__()
        self.happen = happen

    def wait(self, timeout=None):
        self.happen()
        raise KeyboardInterrupt


def interrupt(queue, recorder, change, happen):
    change.wake = Interrupted(happen)
    if change.alone:
        with pytest.raises(KeyboardInterrupt), queue.turn(change):
            pass
    else:
        with pytest.raises(KeyboardInterrupt):
            queue.run(change, recorder)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("leads", [False, True])
def test_a_caller_interrupted_while_it_waits_keeps_no_other_waiting(queue, recorder, alone, leads):
    first = hold_with(queue, recorder)

    def finish_first():
        recorder.hold.set()
        first.finish()

    interrupt(queue, recorder, Change("b", alone=alone), finish_first if leads else lambda: None)
    finish_first()
    assert Caller(queue, recorder, Change("c")).finish() == "C"
    assert recorder.groups == [["first"], ["c"]]
    assert (list(queue._waiting), queue._busy) == ([], False)


def test_a_change_left_undone_whose_caller_was_interrupted_leads_no_group(queue, recorder):
    first, callers = hold_with(queue, recorder), []

    def be_taken():
        callers.extend(line_up(queue, recorder, Change("c")))
        recorder.started.clear()
        held = threading.Event()
        recorder.hold, hold = held, recorder.hold
        hold.set()
        assert recorder.started.wait(SOON)

    recorder.leave = {"c", "b"}
    [leader] = line_up(queue, recorder, Change("a"))
    interrupt(queue, recorder, Change("b"), be_taken)
    recorder.hold.set()
    outcomes = [caller.finish() for caller in (first, leader, *callers)]
    assert outcomes == ["FIRST", "A", "C"]
    assert recorder.groups == [["first"], ["a", "b", "c"], ["c"]]


def test_a_turn_alone_waits_for_the_group_before_it(queue, recorder):
    first = hold_with(queue, recorder)
    events = []
    alone = Change("alone", alone=True)

    def hold_turn():
        with queue.turn(alone):
            events.append(list(recorder.groups))

    [second] = line_up(queue, recorder, Change("b"))
    thread = threading.Thread(target=hold_turn, daemon=True)
    thread.start()
    wait_until(lambda: len(queue._waiting) == 2)
    last = line_up(queue, recorder, Change("c"))
    recorder.hold.set()
    thread.join(SOON)
    assert [caller.finish() for caller in (first, second, *last)] == ["FIRST", "B", "C"]
    assert events == [[["first"], ["b"]]]
    assert recorder.groups == [["first"], ["b"], ["c"]]


def test_an_error_during_a_turn_passes_the_turn_on(queue, recorder):
    with pytest.raises(ZeroDivisionError), queue.turn(Change("a", alone=True)):
        _ = 1 / 0
    change = Change("b")
    queue.run(change, recorder)
    assert change.outcome() == "B"


def test_waiting_ends_at_the_deadline(queue, recorder):
    first = hold_with(queue, recorder)
    late = Change("late", timeout=0.05)
    with pytest.raises(Contention) as failure:
        queue.run(late, recorder)
    assert failure.value.code == "commit_timeout"
    recorder.hold.set()
    assert first.finish() == "FIRST"
    assert recorder.groups == [["first"]]


def test_a_change_that_is_being_published_has_no_deadline(queue, recorder):
    first = hold_with(queue, recorder)
    second, third = line_up(queue, recorder, Change("b"), Change("c", timeout=0.3))
    recorder.started.clear()
    recorder.hold.set()
    recorder.hold.clear()
    assert recorder.started.wait(SOON)
    if recorder.groups[-1] == ["b", "c"]:
        time.sleep(0.4)
    recorder.hold.set()
    assert [caller.finish() for caller in (first, second)] == ["FIRST", "B"]
    assert third.finish() == "C"


def test_no_change_is_lost_among_many_threads(queue, recorder):
    outcomes = []

    def work(worker):
        for number in range(50):
            change = Change(f"{worker}-{number}")
            queue.run(change, recorder)
            outcomes.append(change.outcome())

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = sorted(f"{worker}-{number}" for worker in range(8) for number in range(50))
    assert sorted(outcomes) == expected
    assert sorted(name for group in recorder.groups for name in group) == expected
    assert (list(queue._waiting), queue._busy) == ([], False)


# --- turns among processes ----------------------------------------------------------------------


def test_one_holder_has_the_turn_at_a_time(tmp_path):
    locks = [TurnLocks(tmp_path / "_locks", "main") for _ in range(4)]
    active, most = [], []

    def work(lock):
        for _ in range(20):
            with lock.turn(time.monotonic() + SOON):
                active.append(1)
                most.append(len(active))
                time.sleep(0.001)
                active.pop()

    threads = [threading.Thread(target=work, args=(lock,), daemon=True) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 80
    assert max(most) == 1


def test_a_writer_goes_without_a_turn_after_its_deadline(tmp_path):
    holder, other = (TurnLocks(tmp_path / "_locks", "main") for _ in range(2))
    with holder.turn(time.monotonic() + SOON), other.turn(time.monotonic() + 0.05):
        pass
    with other.turn(time.monotonic() + SOON):
        pass


def test_a_writer_goes_without_a_turn_where_no_file_can_be_made(tmp_path):
    (tmp_path / "_locks").write_text("a file in the place of the folder")
    with TurnLocks(tmp_path / "_locks", "main").turn(time.monotonic() + SOON):
        pass
