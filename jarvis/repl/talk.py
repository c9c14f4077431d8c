"""The slash commands about sessions: new, sessions, resume, rename, retry, undo, private."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jarvis.cli import output
from jarvis.cli.output import Column
from jarvis.errors import UsageError
from jarvis.repl.chat import refresh
from jarvis.types import Message, MessageStatus, Role, Session

if TYPE_CHECKING:
    from jarvis.repl.chat import Chat
    from jarvis.repl.terminal import Surface

REPLAYED_TURNS = 2
"""Turns shown again when a session is resumed."""
REPLAYED_MESSAGES = 40
"""Messages that are looked through for them."""
LISTED = 20


def age(moment: datetime, now: datetime | None = None) -> str:
    """How long ago something was, in one unit."""
    gone = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    for size, unit in ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h")):
        if gone >= size:
            return f"{gone // size} {unit} ago"
    return f"{gone // 60} min ago" if gone >= 60 else "just now"


def new(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/new``"""
    chat.fresh(argument)
    output.note(f"a new session{f' called {argument}' if argument else ''}")


def sessions(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/sessions``"""
    wanted = argument.casefold()
    known = [s for s in chat.app.sessions.recent() if wanted in s.title.casefold()]
    if not known:
        output.note(f"no session is called {argument!r}" if argument else "there are no sessions")
        return
    shown = known[:LISTED]
    output.emit_records(
        [_row(chat, session) for session in shown],
        json=False,
        columns=["id", Column("title", flexible=True), Column("turns", right=True), "used"],
    )
    if len(known) > LISTED:
        output.note(f"{len(known) - LISTED} older ones: /sessions WORDS, jarvis session list")


def _row(chat: Chat, session: Session) -> dict[str, object]:
    here = " (this one)" if session.id == chat.session_id else ""
    return {
        "id": session.id,
        "title": (session.title or "untitled") + here,
        "turns": session.turns,
        "used": age(session.updated_at),
    }


def resume(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/resume``"""
    if argument:
        session = chat.app.sessions.find(argument)
    else:
        known = [s for s in chat.app.sessions.recent(limit=200) if s.turns]
        if not known:
            output.note("there is no session to go on with")
            return
        rows = [
            f"{s.title or 'untitled'}  ({s.turns} turn{'s' * (s.turns != 1)},"
            f" {age(s.updated_at)}, {s.id})"
            for s in known
        ]
        chosen = terminal.pick(rows, "go on with which session?")
        if chosen is None:
            return
        session = known[chosen]
    chat.system = ""  # a persona that was chosen elsewhere is not this session's
    go_on_with(chat, terminal, session)


def go_on_with(chat: Chat, terminal: Surface, session: Session) -> None:
    """Makes ``session`` the one of this chat, and shows how it ended."""
    chat.private = False
    chat.fresh()
    elsewhere = chat.enter(session.id, session.title)
    last = last_turns(chat.app.sessions.show(session.id, last=REPLAYED_MESSAGES).messages)
    replay(terminal, last)
    if last:
        chat.mark()
        chat.asked = next((m.content for m in reversed(last) if m.role is Role.USER), "")
        chat.partial = next((m.content for m in reversed(last) if m.role is Role.ASSISTANT), "")
    output.note(f"going on with session {session.id}: {session.title or 'untitled'}")
    if elsewhere:
        output.warn("another chat has this session open: what both say becomes one talk")


def last_turns(messages: Sequence[Message], turns: int = REPLAYED_TURNS) -> Sequence[Message]:
    """The messages from the last few questions on; a turn may hold calls of tools as well."""
    starts = [i for i, message in enumerate(messages) if message.role is Role.USER]
    return messages[starts[-turns] :] if len(starts) >= turns else messages


def replay(terminal: Surface, messages: Sequence[Message]) -> None:
    """Shows messages as they looked when they were said."""
    for message in messages:
        if message.role is Role.USER:
            terminal.echo(message.content)
        elif message.role is Role.ASSISTANT:
            stopped = message.status is MessageStatus.INTERRUPTED
            terminal.answer(message.content, ["(interrupted)"] if stopped else ())
            output.emit_text("")


def rename(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/rename``"""
    if chat.session_id is None:
        raise UsageError("/rename: a private chat has no title")
    session = chat.app.sessions.rename(chat.session_id, argument)
    chat.title = session.title
    output.note(f"this session is called {session.title}")
    refresh(chat)


def undo(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/undo``"""
    words = _take_back(chat)
    if words is None:
        output.note("there is nothing to take back")
        return
    shown = words if len(words) <= 60 else words[:59] + "…"
    output.note(f"taken back: {' '.join(shown.split())}")
    chat.asked, chat.partial, chat.last = "", "", None


def retry(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/retry``"""
    if argument:
        from jarvis.repl.actions import model

        model(chat, terminal, argument)
    words = _take_back(chat) or chat.asked
    if not words:
        output.note("there is no question to ask again")
        return
    if words.strip() == chat.asked.strip():
        chat.files = list(dict.fromkeys([*chat.asked_files, *chat.files]))
    chat.queued = words


def _take_back(chat: Chat) -> str | None:
    if chat.private:
        return chat.past.pop().question if chat.past else None
    if chat.session_id is None:
        return None
    words = chat.app.sessions.take_back(chat.session_id)
    chat.mark()
    return words


def private(chat: Chat, terminal: Surface, argument: str) -> None:
    """``/private``"""
    if argument not in {"", "on", "off"}:
        raise UsageError("/private takes on or off")
    wanted = not chat.private if not argument else argument == "on"
    if wanted == chat.private:
        output.note(f"this chat is {'private' if wanted else 'not private'} already")
        return
    chat.fresh()
    chat.private = wanted
    output.note(
        "private: from here on nothing is stored, and this is a talk of its own"
        if wanted
        else "no longer private: a new session; what was said before is not in it"
    )
