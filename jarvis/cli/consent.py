"""Asks on the terminal whether a tool may run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jarvis.cli import output
from jarvis.security.terminal import escape_controls

if TYPE_CHECKING:
    from jarvis.tools.policy import Asker, Question, Reply

MAX_VALUE = 300
"""Characters of one argument that are shown."""


def asker() -> Asker | None:
    """Asks on this terminal; None where nobody can answer."""
    if not (output.is_terminal(sys.stdin) and output.is_terminal(sys.stderr)):
        return None
    return ask


def ask(question: Question) -> Reply:
    """Shows what the model wants and waits for y, a or n; no answer is no."""
    from jarvis.tools.policy import Reply

    out = output.stderr()
    with output.quiet_line():
        for line in describe(question):
            out.write(line + "\n")
        choices = "[y]es, [a]lways, [N]o" if question.may_always else "[y]es, [N]o"
        out.write(f"run it? {choices}: ")
        answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        out.write("\n")
    word = answer.strip().lower()
    if question.may_always and word in {"a", "always"}:
        return Reply.ALWAYS
    return Reply.YES if word in {"y", "yes"} else Reply.NO


def describe(question: Question) -> list[str]:
    """The call in plain lines, safe for a terminal."""
    lines = [f"the model wants to run {question.tool.name} ({question.tool.effect}):"]
    for name, value in question.arguments.items():
        text = escape_controls(str(value))
        lines.append(f"  {name}: {text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + '…'}")
    return [*lines, f"  ({escape_controls(question.reason)})"]
