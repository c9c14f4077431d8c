"""The true REPL over a scripted assistant: for what a real model cannot be made to do on order.

Run as a program inside a pty: ``python -m tests.e2e.scripted``. The answer is chosen by the
question's first word; everything besides the services is the real thing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jarvis import config
from jarvis.errors import DatabaseUnavailable, ModelUnavailable
from jarvis.paths import Paths
from jarvis.services.turns import (
    Delta,
    Finished,
    Stage,
    Thinking,
    TurnEvent,
    TurnRequest,
    TurnResult,
)
from jarvis.types import Session

LOG = os.environ.get("SCRIPT_LOG", "")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def log(line: str) -> None:
    """Tells the test what the services were asked to do."""
    if LOG:
        with Path(LOG).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class Assistant:
    """Answers by rule."""

    def __init__(self) -> None:
        self.stored: list[str] = []

    def turn(self, request: TurnRequest) -> Iterator[TurnEvent]:
        log(f"turn {request.text!r}")
        yield Stage("context")
        word, _, rest = request.text.partition(" ")
        pieces: list[str] = []
        finished = False
        try:
            yield Stage("prompt")
            for event in self._events(word, rest):
                if isinstance(event, Delta):
                    pieces.append(event.text)
                yield event
            finished = True
        finally:
            if not finished:
                time.sleep(float(os.environ.get("SCRIPT_CLEANUP", "0")))
                log(f"kept {''.join(pieces)!r}")
        yield Finished(
            TurnResult(
                answer="".join(pieces),
                session_id=request.session_id,
                message_id=1,
                model="scripted",
                memories=(),
                turns=(),
                documents=(),
                tools=(),
                timings={"first_token_ms": 120.0, "total_ms": 1120.0, "context_ms": 0.0},
                tokens={"prompt": 50, "evaluated": 20, "answer": 30},
                warnings=(),
            )
        )

    def _events(self, word: str, rest: str) -> Iterator[TurnEvent]:
        if word == "file":
            text = Path(rest.strip()).read_text(encoding="utf-8")
            size = int(os.environ.get("SCRIPT_PIECE", "7"))
            pause = float(os.environ.get("SCRIPT_PAUSE", "0.002"))
            for start in range(0, len(text), size):
                time.sleep(pause)
                yield Delta(text[start : start + size])
        elif word == "slow":
            for number in range(200):
                time.sleep(0.05)
                yield Delta(f"word{number} ")
        elif word == "hang":
            time.sleep(60)
            yield Delta("never")
        elif word == "think":
            yield Thinking("let me see\nyes")
            yield Delta("The answer.")
        elif word == "broken":
            raise ModelUnavailable("the model went away", "try again")
        elif word == "down":
            raise DatabaseUnavailable("the database is down", "jarvis db start")
        elif word == "escape":
            for piece in ("a\x1b]0;ti", "tle\x07b\x1b", "[31mc\x9b2J", "d\u202ee \U000e0041f"):
                yield Delta(piece)
        else:
            yield Delta(f"You said: {word} {rest}".strip())


@dataclass
class Sessions:
    """Conversations in memory."""

    known: list[Session] = field(default_factory=list)

    def start(self, *, title: str = "", system: str = "") -> Session:
        made = Session(len(self.known) + 1, title, "", NOW, NOW)
        self.known.append(made)
        log(f"session {made.id}")
        return made

    def recent(self, *, limit: int | None = None) -> list[Session]:
        return self.known[:limit]

    def messages_since(self, session_id: int, message_id: int) -> list[Any]:
        return []

    def take_back(self, session_id: int) -> str | None:
        log("take back")
        return "echo again"


class User:
    id = 1
    name = "tester"


class App:
    """Stands for the services."""

    def __init__(self) -> None:
        self.paths = Paths.from_environment()
        self.config = config.load(self.paths.config_file)
        self.assistant = Assistant()
        self.sessions = Sessions()
        self.user = User()
        self.notes: list[str] = []

    def progress(self, text: str) -> None:
        """Replaced by the chat."""

    def download(self, name: str) -> None:
        """Replaced by the chat."""

    @property
    def database(self) -> Any:
        raise DatabaseUnavailable("there is no database here")

    def chat_model(self, name: str = "") -> Any:
        class Model:
            name = "scripted"

            def preload(self) -> None:
                """Nothing to load."""

        return Model()


class State:
    app = App()


def main() -> None:
    from jarvis import repl
    from jarvis.cli import output
    from jarvis.services import overview

    output.prepare_streams()

    overview.models_of = lambda app: [("scripted", "answers by rule")]
    overview.of = lambda app: overview.Overview(3, {"session": [("7", "trip to Oslo")]})
    with contextlib.suppress(KeyboardInterrupt):
        repl.run(State(), private=False)  # type: ignore[arg-type]
    sys.stdout.write("left\n")


if __name__ == "__main__":
    main()
