"""Conversations as a user sees them: found, shown, named, exported, taken back, deleted."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from jarvis.errors import JarvisError, NotFound, UsageError
from jarvis.paths import private_file, private_folder
from jarvis.security.terminal import escape_json
from jarvis.security.text import clean
from jarvis.store import sessions as store
from jarvis.types import Message, MessageStatus, Role, Session

if TYPE_CHECKING:
    from jarvis.services.app import App

ExportFormat = Literal["markdown", "json"]
TITLE_LENGTH = 120
"""Characters of a title."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session with its messages, oldest first."""

    session: Session
    messages: tuple[Message, ...]


class Sessions:
    """The conversations of one user.

    Args:
        app: the services.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    def recent(self, *, limit: int | None = None) -> list[Session]:
        """Conversations, the one used last first."""
        user = self.app.existing_user()
        with self.app.database.connection() as connection:
            return store.recent(connection, user.id, limit=limit)

    def get(self, session_id: int) -> Session:
        """One conversation.

        Raises:
            NotFound: there is none with that id.
        """
        user = self.app.existing_user()
        with self.app.database.connection() as connection:
            found = store.get(connection, user.id, session_id)
        if found is None:
            raise _no_session(session_id)
        return found

    def find(self, text: str) -> Session:
        """The conversation that ``text`` means: its id, its title, or a part of one title.

        Raises:
            NotFound: none is meant, or more than one.
        """
        text = text.strip().removeprefix("#")
        if text.isdecimal():
            return self.get(int(text))
        wanted = text.casefold()
        known = self.recent()
        for matches in (
            [s for s in known if s.title.casefold() == wanted],
            [s for s in known if wanted and wanted in s.title.casefold()],
        ):
            if len(matches) == 1:
                return matches[0]
            if matches:
                ids = ", ".join(str(s.id) for s in matches[:5])
                raise NotFound(f"{len(matches)} sessions are called {text!r}", f"one of: {ids}")
        raise NotFound(f"there is no session {text!r}", "jarvis session list")

    def latest(self) -> Session | None:
        """The conversation that was used last, or None."""
        user = self.app.existing_user()
        with self.app.database.connection() as connection:
            return store.latest(connection, user.id)

    def start(self, *, title: str = "", system: str = "") -> Session:
        """Starts a conversation, before anything is said in it."""
        title = " ".join(clean(title).split())[:TITLE_LENGTH]
        with self.app.database.transaction() as tx:
            return store.create(tx, self.app.user.id, title=title, system=system)

    def show(self, session_id: int, *, last: int | None = None) -> Conversation:
        """A conversation with its messages.

        Args:
            last: only so many messages, counted from the end.

        Raises:
            NotFound: there is none with that id.
        """
        session = self.get(session_id)
        with self.app.database.connection() as connection:
            found = store.messages(connection, self.app.user.id, session_id, last=last)
        return Conversation(session, tuple(found))

    def messages_since(self, session_id: int, message_id: int) -> list[Message]:
        """What was written into a conversation after a message, by whatever chat."""
        with self.app.database.connection() as connection:
            return store.messages(connection, self.app.user.id, session_id, after=message_id)

    def rename(self, session_id: int, title: str) -> Session:
        """Gives a conversation a title that the worker will not replace.

        Raises:
            NotFound: there is none with that id.
            UsageError: the title is empty.
        """
        title = " ".join(clean(title).split())[:TITLE_LENGTH]
        if not title:
            raise UsageError("the title is empty", "give the session a title")
        user = self.app.existing_user()
        with self.app.database.transaction() as tx:
            if not store.rename(tx, user.id, session_id, title, "user"):
                raise _no_session(session_id)
        return self.get(session_id)

    def persona(self, session_id: int) -> str:
        """Who answers in a conversation: a name or a text, "" for the configured one."""
        user = self.app.existing_user()
        with self.app.database.connection() as connection:
            return store.persona(connection, user.id, session_id)

    def set_persona(self, session_id: int, system: str) -> None:
        """Changes who answers from the next turn on; "" brings the configured persona back.

        Raises:
            NotFound: there is no such conversation.
        """
        user = self.app.existing_user()
        with self.app.database.transaction() as tx:
            if not store.set_persona(tx, user.id, session_id, clean(system)):
                raise _no_session(session_id)

    def delete(self, session_ids: Sequence[int]) -> list[int]:
        """Deletes conversations; facts learnt from them stay. All of them or none.

        Raises:
            NotFound: one of them does not exist.
        """
        user = self.app.existing_user()
        wanted = list(dict.fromkeys(session_ids))
        with self.app.database.transaction() as tx:
            for session_id in wanted:
                if store.get(tx, user.id, session_id) is None:
                    raise _no_session(session_id)
            store.delete(tx, user.id, wanted)
        from jarvis.services import completions

        completions.purge(self.app.paths)
        return wanted

    def take_back(self, session_id: int) -> str | None:
        """Removes the last turn of a conversation and returns the user's words in it.

        The memories that the worker may have found in it stay: they are listed like any other.

        Raises:
            NotFound: there is no such conversation.
        """
        self.get(session_id)
        with self.app.database.transaction() as tx:
            return store.remove_last_turn(tx, self.app.user.id, session_id)

    def export(self, session_id: int, form: ExportFormat = "markdown") -> str:
        """A conversation as a text of its own.

        Raises:
            NotFound: there is none with that id.
        """
        conversation = self.show(session_id)
        return as_markdown(conversation) if form == "markdown" else as_json(conversation)


def as_markdown(conversation: Conversation) -> str:
    """A conversation for reading."""
    session = conversation.session
    lines = [
        f"# {session.title or f'Session {session.id}'}",
        "",
        f"*Session {session.id}, {_day(session.created_at)}*",
    ]
    for message in conversation.messages:
        who = {Role.USER: "You", Role.ASSISTANT: "Jarvis"}.get(message.role, "Tool")
        details = [part for part in (message.model, f"{_day(message.created_at)}") if part]
        lines += ["", f"## {who} ({', '.join(details)})", "", message.content]
        if message.status is not MessageStatus.COMPLETE:
            lines += ["", f"*({message.status.value})*"]
    return "\n".join(lines) + "\n"


def as_record(conversation: Conversation) -> dict[str, Any]:
    """A conversation with every field of its messages."""
    session = conversation.session
    return {
        "id": session.id,
        "title": session.title,
        "summary": session.summary,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "turns": session.turns,
        "messages": [
            {
                "id": message.id,
                "role": message.role.value,
                "content": message.content,
                "status": message.status.value,
                "model": message.model,
                "created_at": message.created_at,
                "tokens": message.tokens,
                "timings": message.timings,
            }
            for message in conversation.messages
        ],
    }


def as_json(conversation: Conversation) -> str:
    """A conversation for programs: one object, exact; nothing in it acts on a terminal."""
    import json

    text = json.dumps(as_record(conversation), ensure_ascii=False, indent=2, default=_iso)
    return "\n".join(map(escape_json, text.split("\n"))) + "\n"


def _iso(value: Any) -> str:
    assert isinstance(value, datetime)  # noqa: S101 -- the only other type in the record
    return value.isoformat()


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _no_session(session_id: int) -> NotFound:
    return NotFound(f"there is no session {session_id}", "jarvis session list")


@contextlib.contextmanager
def opened(app: App, session_id: int) -> Iterator[bool]:
    """Marks a conversation as open in this chat; yields whether another chat has it open too.

    The mark is a lock that the kernel takes back when the process ends.
    """
    try:
        folder = private_folder(app.paths.runtime)
        path = folder / f"session-{app.user.id}-{session_id}.lock"
        descriptor = private_file(path, os.O_RDWR | os.O_CREAT)
    except (JarvisError, OSError):
        yield False  # a home that cannot be written: nobody else has it open from there either
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            elsewhere = False
        except BlockingIOError:
            elsewhere = True
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield elsewhere
    finally:
        os.close(descriptor)


def finish(app: App, session_id: int) -> None:
    """Notes that a conversation which this chat has let go of is over; its next message opens it.

    Nothing happens while another chat has it open, nor where the database does not answer: a
    server is not started for this, and a conversation is over by itself once it lies idle.
    """
    from jarvis.services import summary

    with opened(app, session_id) as elsewhere, contextlib.suppress(JarvisError):
        if not elsewhere and app.database.answers():
            summary.close_session(app, session_id)
