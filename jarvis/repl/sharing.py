"""The slash commands about texts that come in and go out: file, edit, copy, export."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from jarvis.cli import output
from jarvis.errors import UsageError
from jarvis.paths import expand
from jarvis.repl.terminal import write

if TYPE_CHECKING:
    from jarvis.repl.chat import Chat
    from jarvis.repl.terminal import Surface
    from jarvis.services.sessions import ExportFormat

_CODE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_CLIPBOARDS = (["pbcopy"], ["wl-copy"], ["xclip", "-selection", "clipboard"], ["clip.exe"])
MAX_OSC52 = 74_994
"""Bytes that terminals take by OSC 52 at most (xterm's limit, less its frame)."""


def file(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/file``"""
    from jarvis.cli.ask import _attached

    if argument == "-":
        chat.files.clear()
        output.note("no file is attached")
        return
    if argument:
        name, text = _attached(expand(argument))
        chat.files.append((name, text))
    if not chat.files:
        output.note("no file is attached: /file PATH")
        return
    for name, text in chat.files:
        output.note(f"attached to the next message: {name} ({len(text):,} characters)")


def edit(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/edit``"""
    text = terminal.edit(argument)
    if text.strip():
        chat.draft = text
    else:
        output.note("nothing was written")


def copy(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/copy``"""
    answer = chat.last.answer if chat.last is not None else chat.partial
    text = answer
    if argument:
        blocks = _CODE.findall(answer)
        if argument != "code" or not blocks:
            raise UsageError("/copy: the answer holds no block of code" if argument == "code"
                             else "/copy takes nothing, or: code")  # fmt: skip
        text = blocks[-1][1]
    how = copy_text(text)
    output.note(f"copied {len(text):,} characters{how}")


def copy_text(text: str) -> str:
    """Puts a text on the clipboard; returns how, for a note.

    By a program of the desktop where there is one, else by asking the terminal (OSC 52), which
    works over SSH too.

    Raises:
        UsageError: neither is possible.
    """
    remote = bool(os.environ.get("SSH_CONNECTION"))
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    for command in _CLIPBOARDS:
        if remote or not shutil.which(command[0]):
            continue
        if command[0] in {"wl-copy", "xclip"} and not display:
            continue
        done = subprocess.run(
            command, input=text.encode("utf-8", "replace"), capture_output=True, check=False
        )
        if done.returncode == 0:
            return ""
    data = base64.b64encode(text.encode("utf-8", "replace"))
    if len(data) > MAX_OSC52:
        raise UsageError("the answer is too long for the terminal's clipboard", "/export FILE")
    write(f"\x1b]52;c;{data.decode()}\x07")
    return ", if your terminal allows it"


def export(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/export``"""
    from jarvis.services import files

    if chat.session_id is None:
        raise UsageError("/export: nothing was said in this session yet")
    path = expand(argument or f"jarvis-session-{chat.session_id}.md")
    form: ExportFormat = "json" if path.suffix == ".json" else "markdown"
    files.write_new(path, chat.app.sessions.export(chat.session_id, form))
    output.note(f"written to {path}")
