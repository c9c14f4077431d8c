"""The input line: keys, several lines, pastes, history, completion, toolbar."""

from __future__ import annotations

import functools
import select
import time
from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from jarvis.repl.completer import ChatCompleter
from jarvis.repl.history import ChatHistory
from jarvis.repl.pastes import Pastes
from jarvis.repl.spans import IN_ASCII
from jarvis.security.terminal import sanitise

BURST = 0.015
"""Seconds within which more input shows that a line end was pasted, not typed."""
READ_BYTES = 65536
_SAME_LINE_END = 0.05
"""Seconds in which a line feed belongs to the return before it."""

_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "continuation": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
        "bottom-toolbar.hint": "noreverse ansiyellow",
        "completion-menu.completion": "bg:default noreverse",
        "completion-menu.completion.current": "reverse bg:default",
        "completion-menu.meta.completion": "bg:default noreverse ansibrightblack",
        "completion-menu.meta.completion.current": "reverse bg:default ansibrightblack",
    }
)


class InputLine:
    """Asks for messages.

    Args:
        history: what was typed before; told of pastes so that it keeps what was sent.
        completer: of slash commands.
        toolbar: the line below, made anew for each drawing; and a hint in it, or "".
        editing: ``emacs`` or ``vi``.
        colour: whether styles are shown.
        unicode: whether the prompt's mark may be other than ASCII.
        on_ready: called once, when the first prompt is visible.
    """

    def __init__(
        self,
        *,
        history: ChatHistory,
        completer: ChatCompleter,
        toolbar: Callable[[], str],
        editing: str = "emacs",
        colour: bool = True,
        unicode: bool = True,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.pastes = Pastes()
        self._history = history
        history.expand = self.pastes.expand
        self._toolbar = toolbar
        self._hint = ""
        self._returned_at = 0.0
        self._on_ready: Callable[[], None] | None = on_ready
        self._unicode = unicode
        self._mark = "› " if unicode else "> "
        self._more = "· " if unicode else ". "
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", self._mark)],
            history=history,
            completer=completer,
            complete_while_typing=False,
            multiline=True,
            prompt_continuation=self._continuation,
            key_bindings=self._bindings(),
            bottom_toolbar=self._bottom,
            editing_mode=EditingMode.VI if editing == "vi" else EditingMode.EMACS,
            enable_open_in_editor=True,
            enable_suspend=True,
            reserve_space_for_menu=6,
            style=_STYLE if colour else Style([]),
            include_default_pygments_style=False,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            tempfile_suffix=".md",
        )
        self._session.app.after_render += self._after_render
        self._session.default_buffer.on_text_changed += lambda _: self.hint("")
        reader = getattr(self._session.app.input, "stdin_reader", None)
        if reader is not None:
            # By default 1 KiB at a time, and each piece of a paste costs a search through it all.
            reader.read = functools.partial(reader.read, READ_BYTES)
        # An escape sequence arrives in one piece; Escape alone need not wait long.
        self._session.app.ttimeoutlen = 0.05

    def ask(self, draft: str = "") -> str:
        """The next message, pastes expanded; ``draft`` stands in the line already.

        Raises:
            EOFError: Ctrl-D on an empty line, or the terminal went away.
        """
        return self.pastes.expand(self._session.prompt(default=draft))

    def leftover(self) -> list[KeyPress]:
        """Keys that came behind the Enter and were read already: the answer's first keys."""
        return get_typeahead(self._session.app.input)

    def keep_history(self, keep: bool) -> None:
        """Whether what is typed from here on is stored in the history file."""
        self._history.store = keep

    def refresh(self) -> None:
        """Draws the toolbar again; any thread may call it."""
        if self._session.app.is_running:
            self._session.app.invalidate()

    def hint(self, text: str) -> None:
        """Shows something in the toolbar until the next key."""
        self._hint = text

    def _continuation(self, width: int, line_number: int, wraps: int) -> StyleAndTextTuples:
        """What stands before a further row: a mark before a line of its own, else blanks."""
        return [("class:continuation", " " * width if wraps else self._more)]

    def _after_render(self, _: object) -> None:
        ready, self._on_ready = self._on_ready, None
        if ready is not None:
            ready()

    def _bottom(self) -> StyleAndTextTuples:
        name, text = ("bottom-toolbar", self._toolbar())
        if self._hint:
            name, text = ("bottom-toolbar.hint", self._hint)
        text = sanitise(text)
        return [(f"class:{name}", " " + (text if self._unicode else text.translate(IN_ASCII)))]

    def _more_comes(self) -> bool:
        """Whether input waits already: a return inside a paste without markers."""
        app = self._session.app
        if any(press.key != Keys.CPRResponse for press in app.key_processor.input_queue):
            return True
        descriptor = app.input.fileno()
        ready, _, _ = select.select([descriptor], [], [], BURST)
        return bool(ready)

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        typing = ~is_searching
        at_menu = Condition(
            lambda: bool(
                (state := self._session.default_buffer.complete_state) and state.current_completion
            )
        )

        @keys.add("enter", filter=typing & ~(has_completions & at_menu))
        def send(event: KeyPressEvent) -> None:
            self._hint = ""
            if self._more_comes():
                event.current_buffer.insert_text("\n")
                self._returned_at = time.monotonic()
                return
            buffer = event.current_buffer
            if buffer.text.strip():
                buffer.validate_and_handle()
            elif buffer.text:
                buffer.reset()

        @keys.add("enter", filter=has_completions & at_menu)
        def take(event: KeyPressEvent) -> None:
            event.current_buffer.complete_state = None

        @keys.add("escape", "enter", filter=typing)
        def newline(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-j", filter=typing)
        def line_feed(event: KeyPressEvent) -> None:
            returned, self._returned_at = self._returned_at, 0.0
            if time.monotonic() - returned > _SAME_LINE_END:
                event.current_buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(self.pastes.mark(event.data))

        @keys.add("backspace", filter=typing & Condition(self._behind_mark))
        def unpaste(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            mark = self.pastes.mark_before(buffer.document.text_before_cursor)
            buffer.delete_before_cursor(len(mark))

        @keys.add("c-c", filter=typing)
        def clear(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state:
                buffer.cancel_completion()
            elif buffer.text:
                buffer.reset()
            else:
                self._hint = "Ctrl-D or /exit leaves"

        return keys

    def _behind_mark(self) -> bool:
        document = self._session.default_buffer.document
        return bool(self.pastes.mark_before(document.text_before_cursor))
