"""Who goes first, shown by states: chats side by side, background work alone and after them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from jarvis.engine.llama import Cancelled
from jarvis.engine.request import Request
from jarvis.engine.schedule import Schedule


@pytest.fixture
def request_() -> Iterator[Callable[[], Request]]:
    """Makes requests whose clients stay."""
    with ExitStack() as open_:

        def make() -> Request:
            ours, theirs = socket.socketpair()
            open_.enter_context(ours)
            open_.enter_context(theirs)
            return Request("POST", "/api/chat", {}, b"", ours.fileno(), tcp=False)

        yield make


class Worker(threading.Thread):
    """Does a piece of background work; ``state`` says how far it is."""

    def __init__(self, schedule: Schedule, request: Request) -> None:
        super().__init__(daemon=True)
        self.schedule, self.asked, self.state = schedule, request, "waiting"
        self.may_end = threading.Event()
        self.start()

    def run(self) -> None:
        with self.schedule.background(self.asked):
            self.state = "working"
            self.may_end.wait(30)
        self.state = "done"

    def until(self, state: str) -> None:
        end = time.monotonic() + 30
        while self.state != state:
            assert time.monotonic() < end, f"still {self.state}"
            time.sleep(0.01)


def test_background_work_waits_for_every_chat(request_: Callable[[], Request]) -> None:
    schedule = Schedule()
    with schedule.foreground():
        with schedule.foreground():  # chats do not wait for each other
            worker = Worker(schedule, request_())
        time.sleep(0.3)
        assert worker.state == "waiting"
    worker.until("working")
    worker.may_end.set()
    worker.until("done")


def test_background_work_is_done_one_at_a_time(request_: Callable[[], Request]) -> None:
    schedule = Schedule()
    first = Worker(schedule, request_())
    first.until("working")
    second = Worker(schedule, request_())
    time.sleep(0.3)
    assert second.state == "waiting"
    first.may_end.set()
    second.until("working")
    second.may_end.set()
    second.until("done")


def test_a_chat_cancels_the_background_work_that_runs(request_: Callable[[], Request]) -> None:
    schedule = Schedule()
    worker = Worker(schedule, request_())
    worker.until("working")
    with schedule.foreground():
        with pytest.raises(Cancelled, match="preempted"):
            worker.asked.check()
        worker.may_end.set()
        worker.until("done")


def test_work_that_can_pause_pauses(request_: Callable[[], Request]) -> None:
    schedule, went_on = Schedule(), threading.Event()
    request = request_()

    def embed() -> None:
        schedule.give_way(request.check)
        went_on.set()

    with schedule.foreground():
        threading.Thread(target=embed, daemon=True).start()
        assert not went_on.wait(0.5)
    assert went_on.wait(30)


def test_who_waits_and_goes_does_not_hold_anybody_up(request_: Callable[[], Request]) -> None:
    schedule = Schedule()
    ours, theirs = socket.socketpair()
    left = Request("POST", "/api/chat", {}, b"", ours.fileno(), tcp=False)
    with ours, schedule.foreground():
        theirs.close()
        with pytest.raises(Cancelled, match="gone"), schedule.background(left):
            raise AssertionError("it began")
    worker = Worker(schedule, request_())
    worker.until("working")
    worker.may_end.set()
    worker.until("done")
