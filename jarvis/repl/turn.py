"""One message: sent, shown while it is answered, stopped by Ctrl-C."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jarvis.cli import output
from jarvis.errors import JarvisError
from jarvis.repl.chat import Chat, keep_draft, keep_typed
from jarvis.repl.interrupts import Interrupts
from jarvis.repl.keyboard import Watch
from jarvis.repl.terminal import PlainTerminal, Terminal, write
from jarvis.repl.view import AnswerView

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_processor import KeyPress

    from jarvis.services.turns import TurnEvent, TurnResult

STAGES = {
    "context": "looking things up",
    "prompt": "reading",
    "answer": "answering",
    "tool": "running the tool",
}
"""What is shown while a stage lasts, by its name in the turn's events."""


def send(chat: Chat, terminal: Terminal, text: str, keys: Sequence[KeyPress] = ()) -> None:
    """Runs a turn and shows it. Errors are shown too; nothing is raised.

    Args:
        keys: what was typed behind the message and is read already.
    """
    chat.asks(text)
    watch = Watch(terminal.descriptor, terminal.interrupts)
    view = terminal.view(lambda: watch.typed.text)
    watch.tick = view.tick
    view.status(STAGES["context"])
    runner = _Turn(chat, view, watch.ask)
    error: JarvisError | None = None
    previous, chat.changed = chat.changed, lambda: view.status(chat.notice)
    try:
        with watch.during(write, keys):
            chat.begin()
            for note in chat.take_notes():
                view.line(note)
            runner.run(chat.app.assistant.turn(runner.request(text)), terminal.interrupts)
    except KeyboardInterrupt:
        runner.interrupted = True
    except JarvisError as raised:
        error = raised
    finally:
        chat.changed = previous
        view.end(runner.closing())
    if error is not None:
        output.print_error(error)
        keep_draft(chat, text, error)
    runner.settle(failed=error is not None)
    keep_typed(chat, watch.typed.take(), send_now=error is None and not runner.interrupted)


class _Turn:
    def __init__(self, chat: Chat, view: AnswerView, ask: Callable[[], str]) -> None:
        self.chat = chat
        self.view = view
        self.ask = ask
        self.result: TurnResult | None = None
        self.interrupted = False
        self.pieces: list[str] = []

    def request(self, text: str) -> Any:
        return dataclasses.replace(self.chat.request(text), confirm=self.confirm)

    def run(self, events: Iterator[TurnEvent], interrupts: Interrupts) -> None:
        """Shows the events until the last one, or until Ctrl-C."""
        close: Callable[[], None] = getattr(events, "close", lambda: None)
        for event in events:
            self.show(event)
            if interrupts.stopped and self.result is None:
                self.interrupted = True
                interrupts.stopping(time.monotonic())
                close()
                return

    def show(self, event: TurnEvent) -> None:
        from jarvis.services import turns

        view = self.view
        match event:
            case turns.Stage(name):
                view.status(STAGES.get(name, name) if name != "answer" else "")
            case turns.Delta(text):
                self.pieces.append(text)
                view.answer(text)
            case turns.Thinking(text):
                view.thinking(text)
            case turns.ToolStarted(name, arguments):
                shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
                view.line(f"> {name}({shown[:200]})")
            case turns.ToolFinished(name, _, problem) if problem:
                view.line(f"> {name}: {problem}", "33")
            case turns.Warning_(text):
                view.line(f"warning: {text}", "33")
            case turns.Finished(result):
                self.result = result
            case _:
                pass

    def confirm(self, question: Any) -> Any:
        """Asks about a tool call with one key; anything but y and a is no."""
        from jarvis.tools.policy import Reply

        shown = ", ".join(f"{key}={value!r}" for key, value in question.arguments.items())
        choices = "[y]es, [a]lways, [N]o" if question.may_always else "[y]es, [N]o"
        self.view.line(f"{question.tool.name}({shown[:500]}): {question.reason}", "33")
        self.view.status(f"run it? {choices}")
        key = self.ask().lower()
        self.view.status("")
        if key == "a" and question.may_always:
            return Reply.ALWAYS
        return Reply.YES if key == "y" else Reply.NO

    def closing(self) -> list[str]:
        """The dim lines below the answer."""
        if self.interrupted:
            return ["(interrupted)"]
        return self.chat.closing(self.result) if self.result is not None else []

    def settle(self, *, failed: bool) -> None:
        """What the chat keeps of the turn."""
        self.chat.partial = "".join(self.pieces)
        if self.result is not None:
            self.chat.finished(self.result)
        elif not failed:
            self.chat.keep(self.chat.asked, self.chat.partial)
        if not failed:
            self.chat.files.clear()


def send_plainly(chat: Chat, terminal: PlainTerminal, text: str) -> None:
    """Runs a turn and prints the answer as it comes; SIGINT stops it."""
    from jarvis.security.terminal import TerminalFilter
    from jarvis.services import turns

    chat.asks(text)
    safe, failed = TerminalFilter(), False
    result: TurnResult | None = None
    pieces: list[str] = []
    try:
        chat.begin()
        for note in chat.take_notes():
            output.note(note)
        for event in chat.app.assistant.turn(chat.request(text)):
            match event:
                case turns.Delta(piece):
                    pieces.append(piece)
                    terminal.out.write(safe.feed(piece))
                case turns.Warning_(warning):
                    output.warn(warning)
                case turns.ToolStarted(name, _):
                    output.note(f"tool: {name}")
                case turns.Finished(finished):
                    result = finished
                    chat.finished(finished)
                case _:
                    pass
    except KeyboardInterrupt:
        output.note("(interrupted)")
        chat.keep(text, "".join(pieces))
    except JarvisError as error:
        failed = True
        output.print_error(error)
    chat.partial = "".join(pieces)
    if not failed:
        chat.files.clear()
    terminal.out.write(safe.flush() + "\n")
    for line in chat.closing(result) if result is not None else ():
        output.note(line)
