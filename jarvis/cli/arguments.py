"""Arguments before Typer sees them: global options anywhere, free text that begins with a dash.

``jarvis ask "- is this a list?" --json`` and ``jarvis memory list --user ada`` both work: global
options are taken out wherever they stand, and what cannot be an option moves behind ``--``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_OPTION_LIKE = re.compile(r"-[A-Za-z]|--[A-Za-z][A-Za-z0-9-]*(=.*)?", re.DOTALL)
_GLOBAL_VALUES = {"--user": "user", "--config": "config_file"}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The command line, taken apart. ``command`` is the first word, None where there is none."""

    rest: list[str]
    command: str | None
    user: str = ""
    config_file: str = ""
    debug: bool = False
    version: bool = False
    missing_value: str = ""
    globals_seen: list[str] = field(default_factory=list)


def split_globals(argv: Sequence[str]) -> Arguments:
    """Takes the global options out. Behind ``--`` nothing is an option.

    A value of another option is never mistaken for one: ``--system --debug`` is settled later by
    Typer, which then misses the value; text that merely holds such a word stays text.
    """
    rest: list[str] = []
    taken: dict[str, Any] = {}
    seen: list[str] = []
    missing = ""
    position = 0
    while position < len(argv):
        word = argv[position]
        name, equals, value = word.partition("=")
        if word == "--":
            rest += argv[position:]
            break
        if name in _GLOBAL_VALUES:
            if not equals:
                position += 1
                value = argv[position] if position < len(argv) else ""
                missing = missing or ("" if position < len(argv) else name)
            taken[_GLOBAL_VALUES[name]] = value
            seen.append(name)
        elif word == "--debug":
            taken["debug"] = True
            seen.append(word)
        elif word in {"--version", "-V"} and not rest:
            taken["version"] = True
        else:
            rest.append(word)
        position += 1
    first = rest[0] if rest and not rest[0].startswith("-") else None
    return Arguments(rest, first, missing_value=missing, globals_seen=seen, **taken)


def protect_free_text(root: Any, argv: Sequence[str]) -> list[str]:
    """Moves positional arguments that begin with a dash behind ``--``.

    Args:
        root: the tree (a click group) with the command in it.
        argv: the arguments without the global options.
    """
    command, position = root, 0
    while position < len(argv) and hasattr(command, "commands"):
        child = command.commands.get(argv[position])
        if child is None:
            return list(argv)
        command, position = child, position + 1
    settings = getattr(command, "context_settings", None) or {}
    if hasattr(command, "commands") or "--" in argv or settings.get("ignore_unknown_options"):
        return list(argv)
    with_value: set[str] = set()
    flags: set[str] = {"-h", "--help"}
    for parameter in command.params:
        names = {*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ())}
        is_flag = getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)
        (flags if is_flag else with_value).update(n for n in names if n.startswith("-"))
    options: list[str] = []
    texts: list[str] = []
    moved = False
    words = iter(argv[position:])
    for word in words:
        name = word.partition("=")[0]
        if word in with_value or _ends_with_value(word, flags, with_value):
            options += [word, *[value for value in [next(words, None)] if value is not None]]
        elif not word.startswith("-") or word == "-":
            texts.append(word)
        elif word in flags or name in with_value or _cluster(word, flags, with_value):
            options.append(word)
        elif _OPTION_LIKE.fullmatch(word) and not re.search(r"\s", name):
            options.append(word)  # a misspelt option: Typer says so and names the nearest
        else:
            texts.append(word)
            moved = True
    if not moved:
        return list(argv)
    return [*argv[:position], *options, "--", *texts]


def _ends_with_value(word: str, flags: set[str], with_value: set[str]) -> bool:
    """Whether ``word`` is short options in one whose last takes the next word, like ``-cf``."""
    letters = word[1:]
    return (
        len(letters) > 1
        and letters.isalpha()
        and f"-{letters[-1]}" in with_value
        and all(f"-{letter}" in flags for letter in letters[:-1])
    )


def _cluster(word: str, flags: set[str], with_value: set[str]) -> bool:
    """Whether ``word`` is short options in one, like ``-cj``, or one with its value, ``-k5``."""
    if word.startswith("--") or re.search(r"\s", word):
        return False
    if word[:2] in with_value:
        return True
    return all(f"-{letter}" in flags for letter in word[1:])
