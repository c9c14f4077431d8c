"""The command tree. Only the module of the command that was asked for is imported."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import typer

from jarvis.cli.help import Command, Group


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group of commands, and the module that holds it.

    A module offers ``app`` (a ``typer.Typer``), or for a single command a function of the
    entry's name.
    """

    module: str
    help: str
    panel: str
    group: bool = True


TALK, KNOW, MODELS, PARTS, SELF = "Talk", "What Jarvis knows", "Models", "Parts", "Jarvis itself"

ENTRIES: dict[str, Entry] = {
    "chat": Entry("chat", "Talk; a scripted chat when stdin is piped.", TALK, group=False),
    "ask": Entry("ask", "One question, one answer.", TALK, group=False),
    "session": Entry("session", "Conversations: list, show, search, export.", TALK),
    "memory": Entry("memory", "What is remembered about you.", KNOW),
    "doc": Entry("doc", "Documents to answer from.", KNOW),
    "search": Entry("search", "Memories, conversations and documents.", KNOW, group=False),
    "export": Entry("transfer", "Everything you own, as NDJSON.", KNOW, group=False),
    "import": Entry("transfer", "Bring back an export.", KNOW, group=False),
    "model": Entry("model", "Chat and embedding models.", MODELS),
    "reindex": Entry("reindex", "Embed everything again after a switch.", MODELS, group=False),
    "tool": Entry("tool", "What the model may call.", MODELS),
    "mcp": Entry("mcp", "Memory and documents as an MCP server.", MODELS, group=False),
    "engine": Entry("engine", "The embedded model server.", PARTS),
    "db": Entry("db", "The database: start, stop, backup.", PARTS),
    "worker": Entry("worker", "The background worker.", PARTS),
    "config": Entry("config", "Settings.", SELF),
    "setup": Entry("setup", "A short wizard.", SELF, group=False),
    "doctor": Entry("doctor", "What works, and what to do about the rest.", SELF, group=False),
    "completion": Entry("completion", "Shell completion for bash, zsh, fish.", SELF, group=False),
    "privacy": Entry("privacy", "What is stored where.", SELF, group=False),
    "erase": Entry("privacy", "Remove everything.", SELF, group=False),
    "bench": Entry("bench", "Measure.", SELF),
}


def build(command: str | None) -> typer.Typer:
    """The tree with ``command`` in full; the others by name only, or all when it is None."""
    root = typer.Typer(
        name="jarvis",
        cls=Group,
        help="A personal assistant that remembers, on your own machine.",
        no_args_is_help=False,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback(invoke_without_command=True)(_root)
    for name, entry in ENTRIES.items():
        if command is not None and name != command:
            continue
        _add(root, name, entry, stub=command is None)
    return root


def _add(root: typer.Typer, name: str, entry: Entry, *, stub: bool) -> None:
    if stub:
        # The overview needs names and one line each, not the commands themselves.
        root.command(name, help=entry.help, rich_help_panel=entry.panel)(_nothing)
        return
    module = importlib.import_module(f"jarvis.cli.{entry.module}")
    if entry.group:
        root.add_typer(
            module.app, name=name, cls=Group, help=entry.help, rich_help_panel=entry.panel
        )
        return
    function: Any = getattr(module, f"{name}_", None) or getattr(module, name)
    root.command(name, cls=Command, rich_help_panel=entry.panel)(function)


def _root(
    user: str = typer.Option("", "--user", metavar="NAME", help="Whose rows are used."),
    config: str = typer.Option("", "--config", metavar="FILE", help="Another configuration."),
    debug: bool = typer.Option(False, "--debug", help="Tracebacks, and more in the log."),
    version: bool = typer.Option(False, "--version", "-V", help="Show the version and exit."),
) -> None:
    """A personal assistant that remembers, on your own machine."""


def _nothing() -> None:
    """Stands for a command in the overview."""
