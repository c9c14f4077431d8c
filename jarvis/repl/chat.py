"""One chat: what it knows, and how it answers a message on the terminal."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jarvis.errors import DatabaseUnavailable, JarvisError
from jarvis.repl.commands import Needs
from jarvis.repl.figures import summary_line

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.prompt import PastTurn
    from jarvis.services.turns import TurnRequest, TurnResult


@dataclass
class Chat:
    """The state of a chat.

    Attributes:
        app: the services.
        session_id: the conversation; None until something was said, and in a private chat.
        model: another chat model than the configured one, "" for that.
        system: another persona, "" for the session's or the configured one.
        files: attached to the next message.
        past: the turns of a private chat, which nobody else keeps.
        last: the last finished answer.
        asked: the last question, and ``asked_files`` what was attached to it.
        last_message: up to which message this chat knows what its session holds.
        own_turns: turns of its own since then.
        draft: what stands in the next input line already.
        queued: a message that was typed ahead, to be sent next.
        notice: what the toolbar says about the work in the background.
        notes: what the talk should be told of it, before the next answer.
    """

    app: App
    session_id: int | None = None
    title: str = ""
    model: str = ""
    model_name: str = ""
    system: str = ""
    private: bool = False
    tools: bool = True
    files: list[tuple[str, str]] = field(default_factory=list)
    past: list[PastTurn] = field(default_factory=list)
    last: TurnResult | None = None
    asked: str = ""
    asked_files: list[tuple[str, str]] = field(default_factory=list)
    partial: str = ""
    facts: int | None = None
    last_message: int = 0
    own_turns: int = 0
    draft: str = ""
    queued: str = ""
    notice: str = ""
    notes: list[str] = field(default_factory=list)
    changed: Callable[[], None] = field(default=lambda: None)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _lists: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def request(self, text: str) -> TurnRequest:
        """The turn that ``text`` asks for, as the chat is set now."""
        from jarvis.services.turns import TurnRequest

        return TurnRequest(
            text=text,
            session_id=self.session_id,
            model=self.model,
            system=self.system,
            private=self.private,
            tools=self.tools,
            files=tuple(self.files),
            history=tuple(self.past) if self.private else (),
        )

    def begin(self) -> None:
        """Makes sure that what is said now has a session, so that it is kept whatever happens.

        Raises:
            DatabaseUnavailable: the database cannot be used.
        """
        if self.private:
            return
        if self.session_id is None:
            session = self.app.sessions.start(title=self.title, system=self.system)
            self.enter(session.id, session.title)
        else:
            self._look_for_others(self.session_id)
        self.own_turns += 1

    def _look_for_others(self, session_id: int) -> None:
        """Tells about turns that another chat added to this session since our last one."""
        new = self.app.sessions.messages_since(session_id, self.last_message)
        others = sum(message.role == "user" for message in new) - self.own_turns
        if others > 0:
            turns = "a turn" if others == 1 else f"{others} turns"
            self.notes.append(f"another chat added {turns} to this session, which now holds both")
        self.last_message = new[-1].id if new else self.last_message
        self.own_turns = 0

    def persona(self) -> str:
        """Who answers: a configured name or a text, "" for the configured persona."""
        if self.system or self.session_id is None:
            return self.system
        return self.app.sessions.persona(self.session_id)

    def set_persona(self, system: str) -> None:
        """Another persona from the next message on, and whenever this session is gone on with.

        Args:
            system: a configured name or a text; "" for the configured persona.
        """
        if self.session_id is not None:
            self.app.sessions.set_persona(self.session_id, system)
        self.system = system

    def mark(self) -> None:
        """What the session holds now is known here."""
        if self.session_id is not None:
            last = self.app.sessions.show(self.session_id, last=1).messages
            self.last_message = last[-1].id if last else 0
        self.own_turns = 0

    def asks(self, text: str) -> None:
        """A message is sent, with what is attached."""
        self.asked, self.asked_files = text, list(self.files)
        self.partial, self.last = "", None

    def finished(self, result: TurnResult) -> None:
        """Takes over what a finished turn brought."""
        self.last = result
        self.model_name = result.model
        self.keep(self.asked, result.answer)
        self.notice = ""

    def keep(self, question: str, answer: str) -> None:
        """Remembers a turn of a private chat for the following ones."""
        if self.private:
            from jarvis.services.prompt import PastTurn

            self.past.append(PastTurn(question, answer))

    def enter(self, session_id: int | None, title: str = "") -> bool:
        """Makes a session the one of this chat.

        Returns:
            Whether another chat has it open too.
        """
        self.leave()
        self.session_id, self.title = session_id, title
        self.last_message = self.own_turns = 0
        if session_id is None:
            return False
        from jarvis.services import sessions

        return self._open.enter_context(sessions.opened(self.app, session_id))

    def leave(self) -> None:
        """Lets go of the session's mark."""
        self._open.close()
        self._open = contextlib.ExitStack()

    def finish(self) -> None:
        """Lets go of the session for good: unless another chat has it open too, it is over."""
        self.leave()
        if self.session_id is not None:
            from jarvis.services import sessions

            sessions.finish(self.app, self.session_id)

    def fresh(self, title: str = "") -> None:
        """The next message starts a new session; the one before is over."""
        self.finish()
        self.enter(None, title)
        self.past.clear()
        self.last, self.asked, self.partial = None, "", ""
        self.files.clear()
        self.asked_files.clear()

    def missing(self, needs: Needs) -> str:
        """Why a command cannot run now, or ""."""
        if Needs.STORED in needs and self.private:
            return "this chat is private: nothing is stored (/private off ends that)"
        said = self.session_id is not None or bool(self.past) or bool(self.asked)
        if Needs.SESSION in needs and not said:
            return "nothing was said in this session yet"
        if Needs.ANSWER in needs and self.last is None and not self.partial:
            return "there is no answer yet"
        return ""

    # Lists for completion, and the toolbar.

    def values(self, kind: str) -> list[tuple[str, str]]:
        """What a list holds as far as it is known; never waits."""
        if kind not in self._lists:
            from jarvis.services import completions

            self._lists[kind] = completions.values(self.app.paths, kind)
        return self._lists[kind]

    def set_values(self, kind: str, values: list[tuple[str, str]]) -> None:
        """Replaces a list."""
        self._lists[kind] = values

    def toolbar(self, width: int = 80) -> str:
        """The line below the input: where we are, who answers, what is known.

        A long title is cut where the line would be wider than ``width`` characters.
        """
        if self.private:
            where = "private: nothing is stored"
        elif self.session_id is None:
            where = self.title or "new session"
        else:
            where = f"{self.session_id} {self.title or 'untitled'}"
        parts = [self.model_name or self.model or self.app.config.chat.model]
        if self.facts is not None:
            parts.append(f"{self.facts} fact{'' if self.facts == 1 else 's'} known")
        if self.files:
            parts.append(f"{len(self.files)} attached")
        parts.append(self.notice or "/help")
        rest = " · ".join(part for part in parts if part)
        room = min(40, max(12, width - len(rest) - 3))
        return f"{where if len(where) <= room else where[: room - 1] + '…'} · {rest}"

    def report(self, text: str) -> None:
        """What the background is doing, for the toolbar."""
        self.notice = " ".join(text.split())
        self.changed()

    def download(self, name: str) -> None:
        """Installs a model, told in the toolbar; where it comes from is also said in the talk."""
        from jarvis.services import models

        def tell(status: str, done: int, total: int) -> None:
            if total:
                self.report(f"{name}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")
                return
            self.report(f"{name}: {status}")
            if " from " in status and status not in self.notes:
                self.notes.append(status)

        models.download(self.app.paths, self.app.config, name, tell)
        self.report("")

    def take_notes(self) -> list[str]:
        """What the talk should be told, once."""
        notes, self.notes = self.notes, []
        return notes

    def closing(self, result: TurnResult) -> list[str]:
        """The dim lines below an answer."""
        return [summary_line(result)] if self.app.config.terminal.stats else []


def keep_draft(chat: Chat, text: str, error: JarvisError) -> None:
    """What could not even be stored stands in the next input line again."""
    if isinstance(error, DatabaseUnavailable):
        chat.draft = text


def keep_typed(chat: Chat, typed: str, *, send_now: bool = True) -> None:
    """What was typed ahead is one message: sent when it ended with Enter, else a draft."""
    text = typed.rstrip("\n")
    if not text.strip():
        return
    if send_now and typed.endswith("\n") and not (chat.draft or chat.queued):
        chat.queued = text
    else:
        chat.draft = "\n".join(part for part in (chat.draft, text) if part)


class Background:
    """Makes ready what the first turn needs, while the user types.

    Args:
        chat: whose database is opened and whose model is loaded.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._thread: threading.Thread | None = None
        self._again = False

    def start(self) -> None:
        """Begins, unless it is at it already; then it goes round once more."""
        if self._thread is not None and self._thread.is_alive():
            self._again = True
            return
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._again = False
            self._once()
            if not self._again:
                return

    def _once(self) -> None:
        chat = self._chat
        try:
            refresh(chat)
            model = chat.app.chat_model(chat.model)
            chat.model_name = model.name
            chat.changed()
            model.preload()
            chat.notice = ""
            refresh_models(chat)
        except JarvisError as error:
            chat.notice = error.message
        except Exception as error:  # noqa: BLE001 -- the turn meets it again and says it better
            chat.notice = f"not ready: {type(error).__name__}"
        chat.changed()


def refresh_models(chat: Chat) -> None:
    """Loads the names of models that can be switched to.

    Raises:
        ModelUnavailable: no server can be asked.
    """
    from jarvis.services import completions, overview

    found = overview.models_of(chat.app)
    chat.set_values("model", found)
    completions.update(chat.app.paths, "model", found)


def refresh(chat: Chat) -> None:
    """Loads what the toolbar and the completion show.

    Raises:
        DatabaseUnavailable: the database cannot be used.
    """
    from jarvis.services import completions, overview

    known = overview.of(chat.app)
    chat.facts = known.facts
    for kind, values in known.lists.items():
        chat.set_values(kind, values)
        completions.update(chat.app.paths, kind, values)
    if chat.session_id is not None:
        wanted = str(chat.session_id)
        chat.title = next((t for i, t in known.lists["session"] if i == wanted), chat.title)
    chat.changed()
