"""One turn: store what was said, load what is relevant, ask the model, keep the answer.

The user's message is stored before the model is called, so that nothing that happens later can
lose it. Whatever came of the answer is stored too, marked when it was interrupted. What nobody
waits for, embedding and extraction, is left to the worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from jarvis.errors import JarvisError, NotFound, UsageError
from jarvis.llm.protocols import ChatChunk, ChatModel, ChatUsage
from jarvis.security.text import clean
from jarvis.services import citations, long_message, prompt, summary, tool_loop, toolbox, turn_lock
from jarvis.services.budget import Budget
from jarvis.services.context import Begun, Context, ContextLoader
from jarvis.services.telling import tells
from jarvis.services.turns import (
    Delta,
    Finished,
    Prepared,
    Stage,
    Thinking,
    TurnEvent,
    TurnRequest,
    TurnResult,
    Warning_,
)
from jarvis.store import sessions
from jarvis.types import ChunkHit, MessageStatus, Role, WorkState

if TYPE_CHECKING:
    from jarvis.services.app import App
    from jarvis.services.tokens import TokenEstimator


class Assistant:
    """Answers messages, one at a time.

    Args:
        app: the services.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    @cached_property
    def context(self) -> ContextLoader:
        """Loads what is relevant; its threads live as long as this."""
        return ContextLoader(self.app)

    def turn(self, request: TurnRequest) -> Iterator[TurnEvent]:
        """Answers one message; the last event is ``Finished``.

        Closing the iterator stops the model server too; what came of the answer is kept.

        Raises:
            UsageError: the message is empty, or too long for the model's window.
            NotFound: there is no such session.
            ModelUnavailable: no model can answer; the message is stored all the same.
            DatabaseUnavailable: nothing could be stored; the model was not called.
        """
        with turn_lock.running(self.app.paths):
            yield Stage("context")
            words = self._check(request)
            user_id = self.app.user.id
            begun = self.context.begin(words, session_id=request.session_id, search=request.memory)
            stored = self._store_question(request, words, user_id)
            try:
                model = self.app.chat_model(request.model)
                for note in self._notes():
                    yield Warning_(note)
                prepared = self._prepare(request, model, begun, *stored)
            except JarvisError:
                self._note_failure(*stored)
                raise
            for warning in prepared.warnings:
                yield Warning_(warning)
            yield from self._answer(prepared, model)

    def dry_run(self, request: TurnRequest) -> Prepared:
        """The prompt that ``turn`` would send, and what went into it; stores nothing.

        Raises:
            as ``turn``.
        """
        words = self._check(request)
        if request.session_id is not None and not request.private:
            with self.app.database.connection() as connection:
                if sessions.get(connection, self.app.user.id, request.session_id) is None:
                    raise NotFound(
                        f"there is no session {request.session_id}", "jarvis session list"
                    )
        model = self.app.chat_model(request.model)
        begun = self.context.begin(words, session_id=request.session_id, search=request.memory)
        return self._prepare(request, model, begun, request.session_id, None)

    def latest_session(self) -> int | None:
        """The id of this user's latest session; None where there is none."""
        with self.app.database.connection() as connection:
            found = sessions.latest(connection, self.app.user.id)
        return found.id if found else None

    def _check(self, request: TurnRequest) -> str:
        words = clean(request.text).strip()
        if not words:
            raise UsageError("the message is empty", "write what you want to say")
        long_message.refuse(self.app, request, words)
        return words

    def _store_question(
        self, request: TurnRequest, words: str, user_id: int
    ) -> tuple[int | None, int | None]:
        """Stores the user's message; returns the ids of its session and of itself."""
        if request.private:
            return None, None
        from jarvis.retrieval import index

        extract = self.app.config.memory.extract
        begin = (
            self.app.database.transaction
            if request.session_id is None
            else (self.app.database.connection)
        )
        with begin() as connection:
            session_id = request.session_id
            if session_id is None:
                session_id = sessions.create(connection, user_id, system=request.system).id
            language = self.app.retriever.language(connection, user_id)
            message = sessions.add_message(
                connection,
                user_id,
                session_id,
                Role.USER,
                words,
                terms=index.message_terms(user_id, Role.USER, words, language),
                extract=WorkState.PENDING if extract else WorkState.SKIPPED,
            )
        return session_id, message.id

    def _prepare(
        self,
        request: TurnRequest,
        model: ChatModel,
        begun: Begun,
        session_id: int | None,
        message_id: int | None,
    ) -> Prepared:
        words = begun.words
        now = datetime.now().astimezone()
        found = self.context.finish(
            begun, session_id=session_id, now=now, before_message=message_id
        )
        estimator = self.app.estimator(model.name)
        budget = self._budget(model, estimator)
        box = toolbox.for_turn(
            self.app, request, model, now, estimator, budget, passages=bool(found.chunks)
        )
        definitions = box.definitions() if box else []
        material = self._material(request, found)
        made = prompt.assemble(
            persona=self._persona(request, found.system),
            words=words,
            material=material,
            budget=budget,
            estimator=estimator,
            now=now,
            user=self.app.user_name,
            model=model.name,
            tools_tokens=estimator.count_messages((), definitions) if definitions else 0,
            telling=tells(words),
        )
        used = {memory.id for memory in made.memories}
        turns = {hit.id for hit in made.turns}
        chunks = {hit.id for hit in made.chunks}
        return Prepared(
            request=request,
            prompt=made,
            session_id=session_id,
            message_id=message_id,
            model=model.name,
            memories=tuple(hit for hit in found.memories if hit.memory.id in used),
            turns=tuple(hit for hit in found.turns if hit.id in turns),
            chunks=tuple(hit for hit in found.chunks if hit.id in chunks),
            warnings=(*found.warnings, *made.notes, *(box.notes if box else ())),
            timings=found.timings,
            dropped=found.dropped,
            query=found.query,
            budget=budget,
            toolbox=box,
            history=tuple(material.history),
        )

    def _material(self, request: TurnRequest, found: Context) -> prompt.Material:
        return prompt.Material(
            memories=[hit.memory for hit in found.memories],
            turns=found.turns,
            chunks=found.chunks,
            history=request.history if request.private else found.history,
            summary=found.summary,
            files=request.files,
        )

    def _budget(self, model: ChatModel, estimator: TokenEstimator) -> Budget:
        return Budget.for_model(
            model.info(), model.num_ctx, estimator.read_speed, self.app.config.context
        )

    def _persona(self, request: TurnRequest, own: str) -> str:
        """The persona of this turn: asked for, the session's own, or the configured one."""
        chosen = request.system or own
        if chosen:
            return self.app.config.chat.personas.get(chosen, chosen)
        return self.app.config.chat.system

    def _answer(self, prepared: Prepared, model: ChatModel) -> Iterator[TurnEvent]:
        pieces: list[str] = []
        warnings = list(prepared.warnings)
        timings = dict(prepared.timings)
        started = time.perf_counter()
        finished = False
        yield Stage("prompt")
        loop = tool_loop.for_turn(self.app, prepared, model)
        marker = citations.Marker(
            lambda: citations.Given((*prepared.chunks, *_found(prepared, loop)), loop.told),
            mark=prepared.request.schema is None,
        )
        stream = loop.run(
            prepared.prompt.messages,
            schema=prepared.request.schema,
            think=prepared.request.think or self.app.config.chat.think,
        )
        try:
            for item in stream:
                if not isinstance(item, ChatChunk):
                    if isinstance(item, Warning_):
                        warnings.append(item.text)
                    yield item
                    continue
                if item.thinking:
                    yield Thinking(item.thinking)
                if item.text and "first_token_ms" not in timings:
                    timings["first_token_ms"] = _ms(started)
                    yield Stage("answer")
                shown = marker.feed(item.text)
                if shown:
                    pieces.append(shown)
                    yield Delta(shown)
            rest = marker.flush()
            if not marker.cited and prepared.request.schema is None:
                given = (*prepared.chunks, *_found(prepared, loop))
                rest += self._source("".join(pieces) + rest, prepared.request.text, given)
            if rest:
                pieces.append(rest)
                yield Delta(rest)
            finished = True
        finally:
            stream.close()
            timings["total_ms"] = round(_ms(started) + timings.get("context_ms", 0.0), 2)
            if not finished:
                pieces.append(marker.flush())
                self._store_answer(prepared, "".join(pieces), timings, loop, done=False)
        observed = self.app.estimator(model.name).observe(
            prepared.prompt.messages,
            loop.first_usage,
            loop.definitions(),
            num_ctx=model.num_ctx,
        )
        answer = "".join(pieces).strip()
        for warning in (observed.warning, *marker.report(answer).warnings):
            if warning:
                warnings.append(warning)
                yield Warning_(warning)
        if not answer:
            warnings.append("the model gave an empty answer")
            yield Warning_(warnings[-1])
        self._store_answer(prepared, answer, timings, loop, done=True)
        yield Finished(
            TurnResult(
                answer=answer,
                session_id=prepared.session_id,
                message_id=prepared.message_id,
                model=prepared.model,
                memories=prepared.memories,
                turns=prepared.turns,
                documents=(*prepared.chunks, *_found(prepared, loop)),
                tools=tuple(call.as_dict() for call in loop.calls),
                timings=timings,
                tokens=_tokens(loop.usage),
                warnings=tuple(warnings),
                prompt=prepared.prompt,
                dropped=prepared.dropped,
            )
        )

    def _source(self, answer: str, question: str, chunks: Sequence[ChunkHit]) -> str:
        """The citation of the passage that an answer without any was taken from, or nothing."""
        hit = citations.source(answer, question, chunks, self.app.config.retrieval.language)
        if hit is None:
            return ""
        # Behind the fence of a block of code or the last row of a table it would break it.
        last = answer.rstrip().rpartition("\n")[2].strip()
        between = "\n\n" if last.startswith(("```", "|")) else " "
        return f"{between}{citations.label(hit)}"

    def _store_answer(
        self,
        prepared: Prepared,
        answer: str,
        timings: dict[str, float],
        loop: tool_loop.ToolLoop,
        *,
        done: bool,
    ) -> None:
        if prepared.session_id is None:
            return
        from jarvis.retrieval import index
        from jarvis.store import memories

        user_id = self.app.user.id
        passages = (*prepared.chunks, *_found(prepared, loop))
        status = MessageStatus.COMPLETE if done else MessageStatus.INTERRUPTED
        text = clean(answer)
        with self.app.database.transaction() as tx:
            for call in loop.calls:
                sessions.add_message(
                    tx,
                    user_id,
                    prepared.session_id,
                    Role.TOOL,
                    clean(call.transcript),
                    reply_to=prepared.message_id,
                    status=MessageStatus.FAILED if call.error else MessageStatus.COMPLETE,
                    details={"name": call.name, "arguments": dict(call.arguments)},
                )
            language = self.app.retriever.language(tx, user_id)
            sessions.add_message(
                tx,
                user_id,
                prepared.session_id,
                Role.ASSISTANT,
                text,
                terms=index.message_terms(user_id, Role.ASSISTANT, text, language),
                reply_to=prepared.message_id,
                status=status,
                model=prepared.model,
                details={
                    "memories": [hit.memory.id for hit in prepared.memories],
                    "turns": [hit.id for hit in prepared.turns],
                    "chunks": [hit.id for hit in passages],
                    # A document that is read anew keeps its id, its passages do not.
                    "documents": sorted({hit.document_id for hit in passages}),
                    "tools": [
                        {"name": call.name, "arguments": dict(call.arguments), "error": call.error}
                        for call in loop.calls
                    ],
                    "summarise_to": summary.outgrown(self.app, prepared, text),
                },
                tokens=_tokens(loop.usage),
                timings=timings,
            )
            if prepared.memories:
                memories.touch(tx, user_id, [hit.memory.id for hit in prepared.memories])
        with suppress(JarvisError, OSError):
            self.app.wake_worker()

    def _note_failure(self, session_id: int | None, message_id: int | None) -> None:
        """The message stays; the worker reads it for facts although nobody answered."""
        if session_id is None or message_id is None:
            return
        with suppress(JarvisError, OSError):
            self.app.wake_worker()

    def _notes(self) -> list[str]:
        notes, self.app.notes = self.app.notes, []
        return notes


def _found(prepared: Prepared, loop: tool_loop.ToolLoop) -> list[ChunkHit]:
    """The passages that a tool found and the model was given, but for those of the prompt."""
    documents = prepared.toolbox.context.documents if prepared.toolbox else None
    if not isinstance(documents, toolbox.Documents):
        return []
    known = {hit.id for hit in prepared.chunks}
    told = "\n".join(loop.told)
    found = {hit.id: hit for hit in documents.found if hit.id not in known}
    return [hit for hit in found.values() if citations.label(hit) in told]


def _tokens(usage: ChatUsage) -> dict[str, int]:
    return {
        "prompt": usage.prompt_tokens,
        "evaluated": usage.evaluated_tokens,
        "answer": usage.answer_tokens,
    }


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
