"""The worker's job: reads what the user said, message by message, and stores the facts.

The state of each message is in the database and changes in the transaction that stores its
facts, so a worker that dies leaves a message either read or unread. A reply that cannot be read
is tried again with growing pauses, then given up and shown in ``memory stats``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jarvis import log
from jarvis.errors import ModelUnavailable
from jarvis.security import held
from jarvis.services import memory
from jarvis.services.extraction import bounded, prompt, reading
from jarvis.services.extraction.parse import UnreadableReply, parse_reply
from jarvis.services.extraction.reading import Fact
from jarvis.store import extraction as unread
from jarvis.store import memories, message_keys, tombstones
from jarvis.store.extraction import Unread
from jarvis.store.memories import NewMemory
from jarvis.types import Memory, MemorySource, MemoryState, WorkState

if TYPE_CHECKING:
    from jarvis.llm.protocols import ChatModel
    from jarvis.services.app import App
    from jarvis.store.database import Connection

MAX_ATTEMPTS = 4
FIRST_WAIT_S = 20.0
"""Pause after the first failure of a message; it doubles with each."""

ANSWER_TOKENS = 160
"""Three facts of twelve words, with the JSON around them."""


def ask_model(
    model: ChatModel,
    text: str,
    *,
    max_facts: int,
    timeout: float,
    stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Asks the model for the facts of one message, piece by piece where it is too long.

    Args:
        timeout: seconds from the first token on; what came by then counts.
        stop: looked at between tokens and while waiting for one.

    Raises:
        UnreadableReply: the reply holds neither facts nor that there are none.
        Interrupted: ``stop`` became true.
        ModelUnavailable: the model cannot be used.
    """
    room = max(200, model.num_ctx - ANSWER_TOKENS - prompt.PROMPT_TOKENS)
    pieces = prompt.parts(text, room)
    if len(pieces) > 1:
        log.get("extraction").info("a message is read in %d parts: it is too long", len(pieces))
        pieces = [piece for piece in pieces if reading.first_person(piece)]
    found: list[str] = []
    for piece in pieces:
        found += _ask_once(model, piece, max_facts, timeout, stop)
    return found


def _ask_once(
    model: ChatModel, text: str, max_facts: int, timeout: float, stop: Callable[[], bool]
) -> list[str]:
    stream = model.stream(
        prompt.messages(text),
        schema=prompt.schema(max_facts),
        options={"temperature": 0, "num_predict": ANSWER_TOKENS},
        think=False,
        background=True,
    )
    pieces = [chunk.text for chunk in bounded.chunks(stream, timeout=timeout, stop=stop)]
    return parse_reply("".join(pieces))


class ExtractionJob:
    """Reads the messages that wait, oldest first."""

    name = "extract facts"

    def pending(self, app: App) -> int:
        """How many messages are due."""
        if not app.config.memory.extract:
            return 0
        with app.database.connection() as connection:
            return unread.count_due(connection, app.user.id)

    def run_once(self, app: App, stop: Callable[[], bool]) -> int:
        """Reads one message; returns 1, or 0 when none is due or somebody waits.

        What the rules find is stored before the model is asked: it is known at once, and however
        long the model takes.
        """
        if not app.config.memory.extract:
            return 0
        with app.database.connection() as connection:
            waiting = unread.next_unread(connection, app.user.id, 1)
        if not waiting or stop():
            return 0
        message = waiting[0]
        if not message.ruled:
            found = self._read(app, message, None)
            final = not found.open or bool(found.secret)
            store_reading(app, message, found, final=final)
            if final:
                return 1
        try:
            result = self._read(app, message, stop)
        except bounded.Interrupted:
            return 0
        except UnreadableReply as error:
            self._postpone(app, message, error.message)
            return 1
        except ModelUnavailable as error:
            # The model is away, which is no fault of the message: it keeps its attempts.
            log.get("extraction").info("message %d waits: %s", message.id, error.message)
            raise
        store_reading(app, replace(message, ruled=True), result, final=True)
        return 1

    def _read(self, app: App, message: Unread, stop: Callable[[], bool] | None) -> reading.Reading:
        """Reads by rules alone (``stop`` None), or with the model for what they leave open."""
        settings = app.config.memory

        def ask(text: str) -> Sequence[str]:
            return ask_model(
                app.chat_model(),
                text,
                max_facts=settings.max_facts,
                timeout=settings.extract_timeout,
                stop=stop or (lambda: False),
            )

        return reading.read(
            message.content,
            message.created_at.astimezone(),
            ask if stop is not None else None,
            before=message.before,
            max_facts=settings.max_facts,
        )

    def _postpone(self, app: App, message: Unread, error: str) -> None:
        log.get("extraction").warning("message %d could not be read: %s", message.id, error)
        with app.database.transaction() as tx:
            unread.postpone(
                tx,
                app.user.id,
                message.id,
                error,
                wait_s=FIRST_WAIT_S,
                max_attempts=MAX_ATTEMPTS,
            )


def store_reading(
    app: App, message: Unread, result: reading.Reading, *, final: bool
) -> list[Memory]:
    """Stores the facts of a message and how far it is read, in one transaction.

    Args:
        final: nothing is left to ask; otherwise the message goes on waiting for the model.

    Returns:
        The memories that are new. Their vectors follow by the worker's next job.
    """
    hold = app.config.memory.hold_secrets
    user_id = app.user.id
    stored: list[Memory] = []
    barred = (result.secret and hold) or any(_why_held(fact, hold=hold) for fact in result.facts)
    with app.database.transaction() as tx:
        if barred:
            message_keys.lock(tx, user_id)
        if not unread.take(tx, user_id, message.id):
            return []
        for fact in result.facts:
            if message.ruled and fact.confidence >= reading.RULE_CONFIDENCE:
                continue  # stored before the model was asked; it may be edited or forgotten since
            entry = _store_fact(tx, user_id, message, fact, hold=hold)
            if entry is not None:
                stored.append(entry)
        if barred:
            _bar(tx, user_id, message.id)
        elif final:
            unread.settle(tx, user_id, message.id, WorkState.DONE)
        else:
            unread.mark_ruled(tx, user_id, message.id)
    return stored


def _why_held(fact: Fact, *, hold: bool) -> str:
    """Why a fact waits for the user; ``hold``: whether secrets do."""
    return "" if held.is_secret(fact.held_reason) and not hold else fact.held_reason


def _store_fact(
    tx: Connection, user_id: int, message: Unread, fact: Fact, *, hold: bool
) -> Memory | None:
    why = _why_held(fact, hold=hold)
    digest = memories.content_hash(fact.text)
    if tombstones.is_buried(tx, user_id, digest):
        return None
    if why and memories.find_by_hash(tx, user_id, digest) is not None:
        return None  # the user has it as an active memory already
    added = memory.store(
        tx,
        user_id,
        NewMemory(
            content=fact.text,
            type=fact.type,
            category=fact.category,
            subject=fact.subject,
            importance=fact.importance,
            confidence=fact.confidence,
            state=MemoryState.HELD if why else MemoryState.ACTIVE,
            source=MemorySource.CHAT,
            session_id=message.session_id,
            message_id=message.id,
            valid_from_at=fact.valid_from,
            valid_to_at=fact.valid_to,
            held_reason=why,
            check_state=WorkState.SKIPPED if why else WorkState.PENDING,
            created_at=message.created_at,
        ),
    )
    return added.memory if added.created else None


def _bar(tx: Connection, user_id: int, message_id: int) -> None:
    from jarvis.retrieval import index

    index.remove(tx, "turn", user_id, [message_id])
    unread.bar(tx, user_id, [message_id])
