"""The slash commands: one table that drives dispatch, help, completion and the documentation."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Flag, auto

from jarvis.errors import UsageError


class Needs(Flag):
    """What must be true before a command can run."""

    NOTHING = 0
    SESSION = auto()
    """Something was said in this conversation."""
    ANSWER = auto()
    """There is a last answer."""
    STORED = auto()
    """The chat is not private."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    Attributes:
        name: without the slash; also the name of its function in ``jarvis.repl.actions``.
        arguments: as the help shows them.
        help: one line.
        completes: what its argument may be completed with, a name of
            ``jarvis.repl.completer``; "" for nothing.
        needs: states in which it is valid.
        required: whether it cannot do without an argument.
    """

    name: str
    arguments: str
    help: str
    completes: str = ""
    needs: Needs = Needs.NOTHING
    required: bool = False


COMMANDS: tuple[Command, ...] = (
    Command("help", "[COMMAND]", "what can be typed here", "command"),
    Command("new", "[TITLE]", "start a new session"),
    Command("sessions", "[WORDS]", "list sessions, or those whose title has the words", "title"),
    Command("resume", "[ID or TITLE]", "go on with a session; without one, pick it", "session"),
    Command("rename", "TITLE", "give this session a title", "own title", Needs.SESSION,
            required=True),
    Command("search", "WORDS", "search memories, past talk and documents", required=True),
    Command("model", "[NAME]", "show the model, or switch to another", "model"),
    Command("system", "[NAME or TEXT]", "show or set who Jarvis is; - resets it", "persona"),
    Command("memory", "[WORDS]", "what is remembered about you, or the part that fits"),
    Command("remember", "FACT", "remember a fact", needs=Needs.STORED, required=True),
    Command("forget", "ID…", "forget memories", "memory", Needs.STORED, required=True),
    Command("doc", "[PATH… | forget ID…]", "list documents, read files in, forget them", "doc"),
    Command("file", "[PATH]", "attach a file to the next message; - takes them off", "file"),
    Command("edit", "[TEXT]", "write the next message in your editor"),
    Command("retry", "[MODEL]", "ask the last question again", "model", Needs.SESSION),
    Command("undo", "", "take back the last question and its answer", needs=Needs.SESSION),
    Command("copy", "[code]", "copy the last answer, or its last block of code", "copy",
            Needs.ANSWER),
    Command("export", "[FILE.md | FILE.json]", "write this session to a file", "file",
            Needs.SESSION | Needs.STORED),
    Command("stats", "", "tokens and times of the last answer", needs=Needs.ANSWER),
    Command("explain", "", "what the last answer was given, and why", needs=Needs.ANSWER),
    Command("private", "[on | off]", "store nothing from here on", "switch"),
    Command("exit", "", "leave; so does Ctrl-D"),
)  # fmt: skip

BY_NAME = {command.name: command for command in COMMANDS}
ALIASES = {"quit": "exit", "q": "exit", "bye": "exit", "?": "help", "docs": "doc"}

_CALL = re.compile(r"/([a-z?]+)(?:[ \t]+(.*))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A command with its argument."""

    command: Command
    argument: str


def parse(text: str) -> Call | str:
    """Reads what was typed: a call, or the message to send.

    A command is one line of ``/name`` and words. ``//`` sends a line that begins with a slash;
    several lines, and a path such as ``/usr/bin``, are text.

    Raises:
        UsageError: it looks like a command and is none, or lacks its argument.
    """
    stripped = text.strip()
    if not stripped.startswith("/"):
        return text
    if stripped.startswith("//"):
        return text.replace("//", "/", 1)
    match = _CALL.fullmatch(stripped)
    if match is None or "\n" in stripped:
        return text
    name = match.group(1).lower()
    command = BY_NAME.get(ALIASES.get(name, name))
    if command is None:
        near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise UsageError(f"there is no command /{name}", f"{hint} (// sends it as text)")
    argument = (match.group(2) or "").strip()
    if command.required and not argument:
        raise UsageError(f"/{name} needs {command.arguments}", f"/help {command.name}")
    return Call(command, argument)


def help_lines() -> list[tuple[str, str]]:
    """The table as pairs of usage and meaning."""
    return [(f"/{c.name} {c.arguments}".rstrip(), c.help) for c in COMMANDS]


KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Ctrl-C", "stop the answer; clear the line"),
    ("Ctrl-D", "leave, on an empty line"),
    ("Ctrl-R", "search what was typed before"),
    ("Ctrl-X Ctrl-E", "write in your editor"),
    ("Tab", "complete commands, sessions, files"),
)
"""The keys, for the help and the documentation."""


def as_markdown(rows: Sequence[tuple[str, str]], what: str) -> str:
    """A table for the documentation."""
    lines = [f"| {what} | does |", "|---|---|"]
    lines += [f"| `{usage.replace('|', chr(92) + '|')}` | {meaning} |" for usage, meaning in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_markdown(KEYS, "key") + "\n" + as_markdown(help_lines(), "command"))
