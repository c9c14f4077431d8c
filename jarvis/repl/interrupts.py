"""What Ctrl-C means, as a small state machine.

::

    IDLE ──begin──▶ RUNNING ──press──▶ STOPPING ──event, or GRACE without one──▶ BREAKING
      ▲                │                  │                                        │
      └──────end───────┴───────end────────┴──────────────────end───────────────────┘

The first press asks the work to stop at its next event, where it cleans up and what came of it
is stored in order. Work that gives no event (a model that reads a long prompt) is broken out of
by a signal. Every further press is swallowed, so that the cleaning-up is left alone; only when
that hangs too, a press after ``PATIENCE`` breaks again. In IDLE a press clears the line; it
never exits.
"""

from __future__ import annotations

from enum import Enum, auto

GRACE = 0.2
"""Seconds that the work has to come to its next event by itself."""
PATIENCE = 3.0
"""Seconds after which a further press breaks the cleaning-up as well."""


class State(Enum):
    """Where the work is."""

    IDLE = auto()
    RUNNING = auto()
    STOPPING = auto()
    BREAKING = auto()


class Interrupts:
    """The state of one chat. Times are seconds of any clock that does not go back."""

    def __init__(self) -> None:
        self.state = State.IDLE
        self._since = 0.0
        self._again = False

    @property
    def stopped(self) -> bool:
        """Whether the work was asked to stop."""
        return self.state in {State.STOPPING, State.BREAKING}

    def begin(self) -> None:
        """Work begins that Ctrl-C stops."""
        self.state, self._again = State.RUNNING, False

    def end(self) -> None:
        """The work is over, one way or another."""
        self.state, self._again = State.IDLE, False

    def stopping(self, now: float) -> None:
        """The work was told to stop and cleans up: from here on only patience breaks it."""
        self.state, self._since = State.BREAKING, now

    def press(self, now: float) -> None:
        """Ctrl-C was pressed."""
        if self.state is State.RUNNING:
            self.state, self._since = State.STOPPING, now
        elif self.state is State.BREAKING and now - self._since >= PATIENCE:
            self._again = True

    def due(self, now: float) -> bool:
        """Whether the work must be broken out of now; says so once for each break."""
        if self.state is State.STOPPING and now - self._since >= GRACE:
            self.state, self._since = State.BREAKING, now
            return True
        if self._again:
            self._again, self._since = False, now
            return True
        return False
