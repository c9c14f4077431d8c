"""The interactive chat: keys, slash commands, completion, and answers that stream.

``run`` is the way in; everything else is loaded behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from jarvis.repl.terminal import Surface
    from jarvis.services.app import App


class HasApp(Protocol):
    """Whatever holds the services; the command line's state does."""

    @property
    def app(self) -> App:
        """The services."""
        ...


def run(
    state: HasApp,
    *,
    session_id: int | None = None,
    model: str = "",
    system: str = "",
    private: bool = False,
    tools: bool = True,
) -> None:
    """Runs a chat on the terminal until the user leaves it.

    Args:
        session_id: the conversation to go on with; None starts one.
        model: another chat model than the configured one.
        system: another persona: a configured name, or its text.
        private: store nothing.
        tools: whether tools may be offered to the model.
    """
    from jarvis.cli import output
    from jarvis.repl import loop
    from jarvis.repl.chat import Chat

    app = state.app
    chat = Chat(app, model=model, system=system, private=private, tools=tools)
    opening: loop.Opening | None = None
    if session_id is not None:
        from jarvis.repl import talk

        def resume(terminal: Surface) -> None:
            talk.go_on_with(chat, terminal, app.sessions.get(session_id))

        opening = resume
    app.progress, app.download = chat.report, chat.download
    if output.stdout().cursor:
        loop.converse(chat, opening)
    else:
        loop.converse_plainly(chat, opening)
