"""Completion in the chat: commands and their arguments, from lists that are at hand.

Nothing here asks the database or a model: a list that is not loaded yet completes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from jarvis.paths import expand
from jarvis.repl.commands import ALIASES, BY_NAME, COMMANDS
from jarvis.security.terminal import escape_controls, sanitise

Values = Iterable[tuple[str, str]]
"""What can be completed, each with a word about it."""

MAX_FILES = 200


class ChatCompleter(Completer):
    """Completes slash commands.

    Args:
        sources: the values of each kind, by the name that the table of commands uses.
    """

    def __init__(self, sources: dict[str, Callable[[], Values]]) -> None:
        self._sources = sources

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What may stand at the cursor."""
        text = document.text_before_cursor
        if not text.startswith("/") or text.startswith("//") or "\n" in document.text:
            return
        name, blank, argument = text[1:].partition(" ")
        if not blank:
            for command in COMMANDS:
                if command.name.startswith(name.lower()):
                    yield Completion(
                        command.name + (" " if command.arguments else ""),
                        start_position=-len(name),
                        display=f"/{command.name}",
                        display_meta=command.help,
                    )
            return
        found = BY_NAME.get(ALIASES.get(name.lower(), name.lower()))
        if found is None or not found.completes:
            return
        if found.completes == "file":
            yield from _files(argument)
        elif found.completes == "doc":
            yield from self._documents(argument)
        else:
            yield from self._values(found.completes, argument)

    def _documents(self, argument: str) -> Iterator[Completion]:
        """Files to read in; behind ``forget`` the documents that are there."""
        verb, blank, rest = argument.partition(" ")
        if verb == "forget" and blank:
            yield from self._values("document", rest)
            return
        for word, about in (("forget ", "forget documents"), ("list", "the documents")):
            if not blank and word.startswith(verb):
                yield Completion(word, start_position=-len(verb), display_meta=about)
        whole = list(_files(argument))  # a name may hold blanks
        yield from whole or _files(argument.split(" ")[-1])

    def _values(self, kind: str, argument: str) -> Iterator[Completion]:
        word = argument.split(" ")[-1] if kind in {"memory", "document"} else argument
        wanted = word.casefold()
        for value, about in self._sources.get(kind, list)():
            if value.casefold().startswith(wanted) or (wanted and wanted in about.casefold()):
                yield Completion(
                    sanitise(value),
                    start_position=-len(word),
                    display_meta=escape_controls(about),
                )


def _files(word: str) -> Iterator[Completion]:
    folder, _, begun = word.rpartition("/")
    base = expand(f"{folder}/" if "/" in word else ".")
    try:
        entries = sorted(base.iterdir(), key=lambda entry: entry.name.casefold())
    except OSError:
        return
    count = 0
    for entry in entries:
        hidden = entry.name.startswith(".") and not begun.startswith(".")
        if hidden or not entry.name.casefold().startswith(begun.casefold()):
            continue
        is_folder = entry.is_dir()
        yield Completion(
            entry.name + ("/" if is_folder else ""),
            start_position=-len(begun),
            display=escape_controls(entry.name) + ("/" if is_folder else ""),
            display_meta="folder" if is_folder else "",
        )
        count += 1
        if count == MAX_FILES:
            return
