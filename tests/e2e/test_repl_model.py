"""The true REPL with a real model and a real database: said, stopped, gone on with."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.e2e.driver import Person

LONG = " ".join(f"word{n} of a long text about ferries" for n in range(250))


@pytest.mark.model
def test_a_talk_is_stopped_and_gone_on_with(cli: Cli, engine: Path) -> None:
    """Ctrl-C while the model still reads, then the same session in another process."""
    person = Person("-m", "jarvis", "chat", "--no-tools", env=cli.environment)
    try:
        person.until(lambda: person.at_prompt)
        person.type(f"\x1b[200~{LONG}\x1b[201~ summarise")
        person.type("\r")
        person.until("reading")
        started = time.monotonic()
        person.type("\x03")
        person.until("(interrupted)")
        assert time.monotonic() - started < 15  # reading it would take a minute
        person.until(lambda: person.at_prompt)
        person.send("/remember I live in Bergen")
        person.until("remembered as memory 1")
        person.until(lambda: person.at_prompt)
        assert person.leave() == 0
    finally:
        person.kill()
    again = Person("-m", "jarvis", "chat", "--no-tools", "-c", env=cli.environment)
    try:
        again.until("going on with session 1")
        again.until(lambda: again.at_prompt)
        assert "word0 of a long text" in again.text
        again.send("/undo")
        again.until("taken back")
        again.until(lambda: again.at_prompt)
        assert again.leave() == 0
    finally:
        again.kill()
    assert "Bergen" in cli("memory", "list").stdout
