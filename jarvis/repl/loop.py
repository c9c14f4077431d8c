"""The loop: ask, dispatch, answer, until the user leaves."""

from __future__ import annotations

from collections.abc import Callable

from jarvis.cli import output
from jarvis.cli.table import fold
from jarvis.errors import JarvisError
from jarvis.repl import actions, commands
from jarvis.repl.chat import Background, Chat, keep_typed
from jarvis.repl.commands import Call
from jarvis.repl.completer import ChatCompleter, Values
from jarvis.repl.history import ChatHistory, HistoryFile
from jarvis.repl.keyboard import raw
from jarvis.repl.prompt import InputLine
from jarvis.repl.terminal import PlainTerminal, Surface, Terminal
from jarvis.repl.turn import send, send_plainly

Opening = Callable[[Surface], None]


def converse(chat: Chat, opening: Opening | None = None) -> None:
    """Runs a chat on a terminal until the user leaves it.

    Args:
        opening: called in the chat's terminal before the first prompt.
    """
    terminal = Terminal(chat.app.config.terminal.code_theme)
    background = Background(chat)
    with raw(terminal.descriptor):
        _greet(unicode=terminal.out.unicode)
        line = _input_line(chat, terminal, background)
        chat.changed = line.refresh

        def ask(draft: str) -> str:
            line.keep_history(not chat.private)
            return line.ask(draft)

        def answer(text: str) -> None:
            send(chat, terminal, text, line.leftover())
            background.start()

        try:
            _run(chat, terminal, ask, answer, opening)
        finally:
            chat.changed = lambda: None


def converse_plainly(chat: Chat, opening: Opening | None = None) -> None:
    """The chat where the cursor cannot be moved (``TERM=dumb``): lines in, raw text out."""
    terminal = PlainTerminal()

    def ask(draft: str) -> str:
        if draft:
            output.note(f"not sent: {draft}")
        return terminal.ask()

    _run(chat, terminal, ask, lambda text: send_plainly(chat, terminal, text), opening)


def _run(
    chat: Chat,
    terminal: Surface,
    ask: Callable[[str], str],
    answer: Callable[[str], None],
    opening: Opening | None,
) -> None:
    try:
        if opening is not None:
            _guarded(lambda: opening(terminal))
        while True:
            text = _next(chat, terminal, ask)
            done = _guarded(lambda text=text: _handle(chat, terminal, text, answer))  # type: ignore[misc]
            keep_typed(chat, terminal.take_typed(), send_now=done)
            output.stdout().write("" if chat.queued else "\n")
    except (actions.Leave, EOFError):
        pass
    finally:
        chat.finish()


def _next(chat: Chat, terminal: Surface, ask: Callable[[str], str]) -> str:
    if chat.queued:
        text, chat.queued = chat.queued, ""
        terminal.echo(text)
        return text
    while True:
        draft, chat.draft = chat.draft, ""
        try:
            text = ask(draft)
        except KeyboardInterrupt:
            output.stdout().write("\n")
            continue
        if text.strip():
            return text


def _handle(chat: Chat, terminal: Surface, text: str, answer: Callable[[str], None]) -> None:
    call = commands.parse(text)
    if isinstance(call, Call):
        actions.run(chat, terminal, call)
    else:
        answer(call)


def _guarded(work: Callable[[], None]) -> bool:
    """Errors and Ctrl-C are shown, and False is returned; only leaving ends the chat."""
    try:
        work()
    except JarvisError as error:
        output.print_error(error)
        return False
    except KeyboardInterrupt:
        output.note("(interrupted)")
        return False
    return True


def _greet(*, unicode: bool) -> None:
    from jarvis import __version__

    out = output.stdout()
    dash = "–" if unicode else "-"
    for line in fold(f"Jarvis {__version__} {dash} /help, Ctrl-D leaves", out.width or 80):
        out.write(out.style(line, "dim") + "\n")
    out.write("\n")


def _input_line(chat: Chat, terminal: Terminal, background: Background) -> InputLine:
    settings = chat.app.config.terminal
    return InputLine(
        history=ChatHistory(HistoryFile(chat.app.paths.history, settings.history_entries)),
        completer=ChatCompleter(sources(chat)),
        toolbar=lambda: chat.toolbar(terminal.size().columns - 2),
        editing=settings.editing,
        colour=terminal.out.colour,
        unicode=terminal.out.unicode,
        on_ready=background.start,
    )


def sources(chat: Chat) -> dict[str, Callable[[], Values]]:
    """What the arguments of the slash commands are completed with, by the names in their table."""
    return {
        "command": lambda: [(c.name, c.help) for c in commands.COMMANDS],
        "session": lambda: chat.values("session"),
        "title": lambda: [(title, f"session {i}") for i, title in chat.values("session")],
        "own title": lambda: [(chat.title, "as it is now")] if chat.title else [],
        "memory": lambda: chat.values("memory"),
        "document": lambda: chat.values("document"),
        "model": lambda: chat.values("model"),
        "persona": lambda: [
            *((name, text[:60]) for name, text in chat.app.config.chat.personas.items()),
            ("-", "the usual persona"),
        ],
        "switch": lambda: [("on", "store nothing"), ("off", "store again")],
        "copy": lambda: [("code", "the last block of code")],
    }
