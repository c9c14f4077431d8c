"""Who goes first: a chat somebody waits for, before work in the background.

Foreground requests run side by side, as many as the model has slots. Background work begins
only while there are none, one at a time, and is cancelled when one comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jarvis.engine.request import Request


class Schedule:
    """The order of work in one server."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._foreground = 0
        self._background: Request | None = None

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """A request that somebody waits for: background work gives way."""
        with self._changed:
            self._foreground += 1
            if self._background is not None:
                self._background.cancelled.set()
        try:
            yield
        finally:
            with self._changed:
                self._foreground -= 1
                self._changed.notify_all()

    @contextmanager
    def background(self, request: Request) -> Iterator[None]:
        """Work that nobody waits for: waits for its turn, and may be cancelled then."""
        self._wait(request.check, lambda: self._foreground or self._background is not None)
        # Between the two a chat may come: it then cancels this at once, which is right.
        with self._changed:
            self._background = request
            if self._foreground:
                request.cancelled.set()
        try:
            yield
        finally:
            with self._changed:
                self._background = None
                self._changed.notify_all()

    def give_way(self, check: Callable[[], None]) -> None:
        """Waits while foreground requests run: for work that can pause."""
        self._wait(check, lambda: bool(self._foreground))

    def _wait(self, check: Callable[[], None], busy: Callable[[], object]) -> None:
        while True:
            check()
            with self._changed:
                if not busy():
                    return
                self._changed.wait(0.2)
