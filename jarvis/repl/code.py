"""Colours for code, a line at a time, while it arrives.

Pygments cannot go on where it stopped, so each new line is read together with the lines before
it, back to a line that began outside strings and comments: a dozen lines, not the whole block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jarvis.repl.spans import Line, Span

if TYPE_CHECKING:
    from pygments.lexer import Lexer

WINDOW = 10
"""Lines read again for each new one, when none of them ends inside a string or a comment."""
MAX_WINDOW = 200
"""Lines of one string or comment that are read again; a longer one is no longer coloured right."""

_ANSI = {
    "Keyword": "35",
    "Keyword.Constant": "36",
    "Name.Function": "34",
    "Name.Class": "34;1",
    "Name.Decorator": "33",
    "Name.Builtin": "36",
    "Name.Tag": "34",
    "Name.Attribute": "33",
    "Name.Exception": "31",
    "Literal.String": "32",
    "Literal.Number": "36",
    "Operator.Word": "35",
    "Comment": "2",
    "Generic.Deleted": "31",
    "Generic.Inserted": "32",
    "Generic.Heading": "1",
    "Error": "31",
}


class Highlighter:
    """Colours the lines of one block of code.

    Args:
        language: what stands behind the fence; unknown or empty: no colours.
        theme: ``ansi_dark``, ``ansi_light`` (the terminal's own colours) or a Pygments style.
    """

    def __init__(self, language: str, theme: str = "ansi_dark") -> None:
        self._lexer = _lexer(language)
        self._style = _styler(theme) if self._lexer else None
        self._window: list[str] = []

    def line(self, text: str) -> Line:
        """The next line of the block, coloured; ``text`` is without its end."""
        if self._lexer is None or self._style is None:
            return [Span(text)]
        self._window.append(text)
        pieces = list(self._lexer.get_tokens("\n".join(self._window) + "\n"))
        lines: list[Line] = [[]]
        kinds: list[str] = []
        for token, value in pieces:
            kind = str(token).removeprefix("Token.")
            first, *others = value.split("\n")
            style = self._style(token)
            lines[-1].append(Span(first, style))
            for other in others:
                kinds.append(kind)
                lines.append([Span(other, style)])
        wanted = len(self._window) - 1
        if wanted >= len(lines) or "".join(s.text for s in lines[wanted]) != text:
            return [Span(text)]  # the lexer changed the text: show what was written
        ending = kinds[wanted] if wanted < len(kinds) else ""
        open_text = ending == "Comment" or ending.startswith(("Literal.String", "Comment.Multi"))
        if (len(self._window) >= WINDOW and not open_text) or len(self._window) > MAX_WINDOW:
            self._window.clear()
        return [span for span in lines[wanted] if span.text]


def _lexer(language: str) -> Lexer | None:
    name = language.strip().split(maxsplit=1)[0].strip("{}.").lower() if language.strip() else ""
    if not name or name in {"text", "txt", "plain", "plaintext", "output"}:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _styler(theme: str) -> Callable[[Any], str]:
    if not theme.startswith("ansi"):
        from pygments.styles import get_style_by_name
        from pygments.util import ClassNotFound

        try:
            return _pygments_styler(get_style_by_name(theme))
        except ClassNotFound:
            pass
    cache: dict[Any, str] = {}

    def style(token: Any) -> str:
        if token not in cache:
            name = str(token).removeprefix("Token.")
            while name and name not in _ANSI:
                name = name.rpartition(".")[0]
            cache[token] = _ANSI.get(name, "")
        return cache[token]

    return style


def _pygments_styler(theme: Any) -> Callable[[Any], str]:
    def style(token: Any) -> str:
        wanted = theme.style_for_token(token)
        parts = [code for name, code in (("bold", "1"), ("italic", "3")) if wanted[name]]
        if wanted["color"]:
            red, green, blue = (int(wanted["color"][i : i + 2], 16) for i in (0, 2, 4))
            parts.append(f"38;2;{red};{green};{blue}")
        return ";".join(parts)

    return style
