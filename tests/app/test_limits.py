import threading

import pytest

from app.services.limits import Slots, check_budget
from model.errors import Busy, OverBudget


def test_the_budget_itself_is_allowed():
    check_budget(100, 100, 1)
    with pytest.raises(OverBudget, match="A trace of 7 tokens needs 3 MB, more than the 2 MB") as caught:
        check_budget(3_000_000, 2_000_000, 7)
    assert caught.value.extra == {"needed": 3_000_000, "budget": 2_000_000}


def test_more_than_the_line_holds_is_refused_at_once():
    slots = Slots(running=1, waiting=2)
    entered, go = threading.Event(), threading.Event()
    done = []

    def work():
        with slots.take():
            entered.set()
            go.wait(30)
            done.append(None)

    threads = [threading.Thread(target=work) for _ in range(3)]
    threads[0].start()
    assert entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    # The two take their places in line before they wait; no more than that has to be waited for.
    while slots._admitted._value:
        pass
    with pytest.raises(Busy, match="try again in a few seconds"), slots.take():
        pass
    go.set()
    for thread in threads:
        thread.join(30)
    assert len(done) == 3
    with slots.take():
        pass


def test_a_run_that_fails_gives_its_place_back():
    slots = Slots(running=1, waiting=0)
    for _ in range(3):
        with pytest.raises(ValueError, match="mistake"), slots.take():
            raise ValueError("mistake")
    with slots.take():
        pass


def test_no_more_run_at_once_than_there_are_places():
    slots = Slots(running=2, waiting=20)
    lock, running, most = threading.Lock(), 0, 0

    def work():
        nonlocal running, most
        with slots.take():
            with lock:
                running += 1
                most = max(most, running)
            with lock:
                running -= 1

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert 1 <= most <= 2
