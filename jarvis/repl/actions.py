"""What the slash commands do: one function a command, by the names in ``commands.COMMANDS``.

Each takes the chat and the argument. It prints what it found, changes the chat, and may leave a
message to send (``chat.queued``) or to edit (``chat.draft``). Problems are ``JarvisError``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jarvis.cli import output
from jarvis.cli.output import Column
from jarvis.errors import UsageError
from jarvis.repl import knowledge, sharing, talk
from jarvis.repl.commands import ALIASES, BY_NAME, COMMANDS, KEYS, Call
from jarvis.repl.figures import stats as figures_of

if TYPE_CHECKING:
    from jarvis.repl.chat import Chat
    from jarvis.repl.terminal import Surface

Action = Callable[["Chat", "Surface", str], None]


class Leave(Exception):
    """The chat is over."""


def run(chat: Chat, terminal: Surface, call: Call) -> None:
    """Runs a command.

    Raises:
        UsageError: it cannot run in this state of the chat.
        Leave: the chat is over.
        JarvisError: as the command.
    """
    reason = chat.missing(call.command.needs)
    if reason:
        raise UsageError(f"/{call.command.name}: {reason}")
    ACTIONS[call.command.name](chat, terminal, call.argument)


def help_(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/help``"""
    name = argument.removeprefix("/").lower()
    if name:
        command = BY_NAME.get(ALIASES.get(name, name))
        if command is None:
            raise UsageError(f"there is no command /{name}", "/help lists them")
        output.emit_text(f"/{command.name} {command.arguments}".rstrip() + f"\n  {command.help}")
        return
    rows = [{"usage": f"/{c.name} {c.arguments}".rstrip(), "does": c.help} for c in COMMANDS]
    keys = [{"usage": key, "does": meaning} for key, meaning in KEYS]
    columns = [Column("usage", "command"), Column("does", "does", flexible=True)]
    output.emit_records(rows, json=False, columns=columns)
    output.emit_text("")
    output.emit_records(keys, json=False, columns=[Column("usage", "key"), columns[1]])


def model(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/model``"""
    if not argument:
        output.emit_text(chat.app.chat_model(chat.model).name)
        return
    before = chat.model
    chat.model = argument
    try:
        chat.model_name = chat.app.chat_model(argument).name
    except BaseException:
        chat.model = before
        raise
    output.note(f"{chat.model_name} answers from here on")


def system(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/system``"""
    personas = chat.app.config.chat.personas
    if not argument:
        current = chat.persona() or chat.app.config.chat.system
        output.emit_text(personas.get(current, current) or "the built-in persona")
        if personas:
            output.note("names: " + ", ".join(sorted(personas)))
    elif argument == "-":
        chat.set_persona("")
        output.note("the usual persona answers from here on")
    else:
        chat.set_persona(argument)
        output.note(f"persona: {personas.get(argument, argument)}")


def stats(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/stats``"""
    if chat.last is None:
        output.note("the last answer was interrupted: there are no figures")
        return
    output.emit_object(figures_of(chat.last), json=False)


def exit_(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/exit``"""
    raise Leave


ACTIONS: dict[str, Action] = {
    "help": help_,
    "new": talk.new,
    "sessions": talk.sessions,
    "resume": talk.resume,
    "rename": talk.rename,
    "search": knowledge.search,
    "model": model,
    "system": system,
    "memory": knowledge.memory,
    "remember": knowledge.remember,
    "forget": knowledge.forget,
    "doc": knowledge.doc,
    "file": sharing.file,
    "edit": sharing.edit,
    "retry": talk.retry,
    "undo": talk.undo,
    "copy": sharing.copy,
    "export": sharing.export,
    "stats": stats,
    "explain": knowledge.explain,
    "private": talk.private,
    "exit": exit_,
}
