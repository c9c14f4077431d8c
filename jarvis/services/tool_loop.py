"""The model calls tools, reads what they return, and answers: all within one turn.

Each round streams; when it ends with calls, they run one after the other under the user's
policy, their results go back as fenced data within the budget, and the next round begins. A
call that fails tells the model why. The chain has a limit; after it the model must answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jarvis.errors import ModelUnavailable
from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatModel, ChatUsage, ToolCall
from jarvis.security.fence import Fence, fence
from jarvis.security.text import clean
from jarvis.services.budget import Budget
from jarvis.services.tokens import TokenEstimator
from jarvis.services.toolbox import Running, Toolbox
from jarvis.services.turns import Prepared, Stage, ToolFinished, ToolStarted, Warning_
from jarvis.tools import Effect, Tool, ToolError, written

if TYPE_CHECKING:
    from jarvis.services.app import App

_POLL_S = 0.2
"""How often a waiting turn lets its reader cancel it."""
_STUCK = 2
"""Rounds of nothing but repeated calls after which the result itself is the answer."""
_FRUITLESS = 3
"""Rounds of failed calls, however different, after which tools are no longer offered."""
_MIN_RESULT = 48
"""A result cut to fewer tokens helps nobody."""
_OVER = "no more calls in this turn: answer with what is known"
_AGAIN = "this call was made before; its result stands above"
_FAILED_BEFORE = "this call failed before and is not made again: answer without it"
_UNREADABLE = "this call could not be read: it is not valid JSON with name and arguments"
_NO_TOOL = "there is no tool"
_NUDGE = (
    "Now answer the user's question in words that state this result, without making the same call"
    " again."
)
"""Stands after a result, outside the fence. With anything weaker the smallest models repeat the
call (tried with qwen2.5-coder:0.5b); larger ones still make further, other calls."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A call as it is stored and listed. ``error``: why it did not run or failed."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    error: str
    elapsed_ms: float

    @property
    def transcript(self) -> str:
        """The call and what came of it, for a person to read."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({arguments}): {f'error: {self.error}' if self.error else self.result}"

    def as_dict(self) -> dict[str, Any]:
        """The call as JSON."""
        return {
            "name": self.name,
            "arguments": dict(self.arguments),
            "result": self.result,
            "error": self.error,
            "elapsed_ms": self.elapsed_ms,
        }


class ToolLoop:
    """One turn's talk between model and tools.

    Args:
        model: answers.
        box: the tools that are offered; without any, this is one plain stream.
        words: what the user typed, nothing else.
        estimator: counts tokens.
        budget: the prompt's budget.
        left: tokens that the prompt left unused.
        max_calls: calls that run in one turn.
    """

    def __init__(
        self,
        model: ChatModel,
        box: Toolbox | None,
        *,
        words: Sequence[str],
        estimator: TokenEstimator,
        budget: Budget,
        left: int,
        max_calls: int,
    ) -> None:
        self._model = model
        self._box = box if box is not None and box.tools else None
        self._words = words
        self._estimator = estimator
        self._budget = budget
        self._room = budget.tool_results(left)
        self._max_calls = max_calls
        self.calls: list[ToolRecord] = []
        """What was called, in order."""
        self.told: list[str] = []
        """The results as far as the model was given them."""
        self.usage = ChatUsage()
        """All rounds together; ``prompt_tokens`` is the last round's."""
        self.first_usage = ChatUsage()
        """The first round's, which belongs to the prompt as it was assembled."""

    def definitions(self) -> list[dict[str, object]]:
        """What the first round offers."""
        return self._box.definitions() if self._box else []

    def run(
        self, messages: Sequence[ChatMessage], **options: Any
    ) -> Generator[ChatChunk | Stage | ToolStarted | ToolFinished | Warning_, None, None]:
        """Streams the answer, with what happens in between. Closing it stops everything.

        Args:
            messages: the assembled prompt.
            options: further arguments of ``ChatModel.stream``.

        Raises:
            ModelUnavailable: the model cannot be used.
        """
        talk = list(messages)
        rounds_over = stuck = failed = 0
        parted = False
        while True:
            offered = self.definitions() if rounds_over < 2 else []
            if not offered and self.calls and all(made.error for made in self.calls):
                # Nothing came of it: a talk full of calls only makes small models write another.
                talk = list(messages)
            text: list[str] = []
            asked: list[ToolCall] = []
            sieve = written.WrittenCalls(self._names)
            for item in self._kept_apart(self._round(talk, offered, options), sieve):
                if isinstance(item, ChatChunk):
                    if parted and item.text:
                        # What was said before a call is a paragraph of its own.
                        yield ChatChunk(text="\n\n")
                        parted = False
                    text.append(item.text)
                    asked += item.tool_calls
                yield item
            unreadable = False
            if sieve.text and not asked:
                asked = [self._meant(name, each) for name, each in written.read(sieve.text)]
                unreadable = not asked
                asked = asked or [ToolCall(sieve.name, {})]
            if not asked and offered and not self.calls:
                said = written.announced("".join(text), self._names)
                asked = [ToolCall(*each) for each in said if self._fits(*each)]
            if not asked:
                return
            if self._box is None or not offered:
                if sieve.text and not "".join(text).strip():
                    yield from self._instead()
                return
            talk.append(ChatMessage("assistant", "".join(text), tuple(asked)))
            parted = parted or bool("".join(text).strip())
            over = len(self.calls) >= self._max_calls
            rounds_over += over
            before = len(self.calls)
            for call in asked:
                result = yield from self._call(self._box, call, unreadable=unreadable)
                talk.append(ChatMessage("tool", self._fenced(result), tool_name=call.name))
            repeated = all(_leads_nowhere(made.error) for made in self.calls[before:])
            stuck += repeated and not over
            failed += all(made.error for made in self.calls[before:]) and not over
            fruitless = stuck >= _STUCK or failed >= _FRUITLESS
            if fruitless and all(made.error for made in self.calls):
                rounds_over = 2  # nothing ever came of a call: the model answers without tools
            elif stuck >= _STUCK:
                if parted:
                    yield ChatChunk(text="\n\n")
                yield from self._instead()
                return
            yield Stage("prompt")

    def _instead(self) -> Iterator[ChatChunk | Warning_]:
        """What stands for the answer that the model does not give: a tool's own words."""
        result = next((made.result for made in self.calls if not made.error), "")
        if not result:
            yield Warning_("the model wrote a call of a tool in place of an answer")
            return
        yield Warning_("the model gave no answer of its own: this is what the tool returned")
        self.told.append(result)
        yield ChatChunk(text=result)

    def _fits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether an offered tool takes these arguments."""
        tools = self._box.tools if self._box else ()
        for tool in tools:
            if tool.name == name:
                try:
                    return bool(tool.check(arguments)) or not arguments
                except ToolError:
                    return False
        return False

    def _meant(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        """A written call; one of a tool that there is not is a call of the only tool that takes
        such arguments and changes nothing, if there is one: ``difference(when=…, to=…)``."""
        tools = self._box.tools if self._box else ()
        if arguments and name not in {tool.name for tool in tools}:
            takers = [
                tool for tool in tools if set(arguments) <= set(tool.parameters["properties"])
            ]
            if len(takers) == 1 and takers[0].effect is not Effect.WRITES:
                return ToolCall(takers[0].name, arguments)
        return ToolCall(name, arguments)

    @property
    def _names(self) -> frozenset[str]:
        """Tools whose calls are no answer: those offered, and those called in this turn."""
        offered = self._box.tools if self._box else ()
        return frozenset({tool.name for tool in offered} | {call.name for call in self.calls})

    def _kept_apart(
        self, stream: Iterator[ChatChunk | Warning_], sieve: written.WrittenCalls
    ) -> Iterator[ChatChunk | Warning_]:
        """The stream without calls that were written as text; where no tool is, all is text."""
        if self._box is None and not self.calls:
            yield from stream
            return
        try:
            for item in stream:
                if isinstance(item, ChatChunk) and item.text:
                    item = replace(item, text=sieve.feed(item.text))
                yield item
            if rest := sieve.finish():
                yield ChatChunk(text=rest)
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()

    def _round(
        self, talk: Sequence[ChatMessage], offered: list[dict[str, object]], options: Any
    ) -> Iterator[ChatChunk | Warning_]:
        try:
            yield from self._stream(talk, offered, options)
        except ModelUnavailable as error:
            if not offered or "does not support tools" not in error.message:
                raise
            self._box = None
            yield Warning_(f"{self._model.name} cannot call tools")
            yield from self._stream(talk, [], options)

    def _stream(
        self, talk: Sequence[ChatMessage], offered: list[dict[str, object]], options: Any
    ) -> Iterator[ChatChunk]:
        stream = self._model.stream(talk, tools=offered, **options)
        try:
            for chunk in stream:
                if chunk.usage is not None:
                    self._add(chunk.usage)
                yield chunk
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()

    def _add(self, usage: ChatUsage) -> None:
        if self.usage == ChatUsage():
            self.first_usage = self.usage = usage
            return
        total = self.usage
        self.usage = replace(
            usage,
            evaluated_tokens=total.evaluated_tokens + usage.evaluated_tokens,
            answer_tokens=total.answer_tokens + usage.answer_tokens,
            load_ms=total.load_ms + usage.load_ms,
            prompt_ms=total.prompt_ms + usage.prompt_ms,
            answer_ms=total.answer_ms + usage.answer_ms,
        )

    def _call(
        self, box: Toolbox, call: ToolCall, *, unreadable: bool = False
    ) -> Generator[Stage | ToolStarted | ToolFinished, None, str]:
        """Runs one call; returns what the model is told."""
        started = time.perf_counter()
        arguments: Mapping[str, Any] = dict(call.arguments)
        result, error = "", ""
        try:
            if unreadable:
                raise ToolError(_OVER if len(self.calls) >= self._max_calls else _UNREADABLE)
            tool, arguments = self._checked(box, call)
            refusal = box.policy.refusal(tool, arguments, self._words)
            if refusal:
                raise ToolError(refusal)
            yield ToolStarted(tool.name, arguments)
            result = yield from _in_thread(tool, arguments, box)
        except ToolError as failure:
            error = failure.message
        record = ToolRecord(
            call.name,
            arguments,
            clean(result),
            clean(error),
            round((time.perf_counter() - started) * 1000, 2),
        )
        if error != _OVER:
            self.calls.append(record)
        yield ToolFinished(record.name, record.result, record.error)
        return f"error: {record.error}" if error else record.result

    def _checked(self, box: Toolbox, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        if len(self.calls) >= self._max_calls:
            raise ToolError(_OVER)
        tool = box.find(call.name)
        arguments = tool.check(call.arguments)
        for done in self.calls:
            if done.name == call.name and _same(done.arguments, arguments):
                raise ToolError(_FAILED_BEFORE if done.error else _AGAIN)
        return tool, arguments

    def _fenced(self, result: str) -> str:
        """The result as data, cut to what is left of the turn's budget for results."""
        # One long result leaves something for the next call.
        given = max(self._room * 3 // 4, _MIN_RESULT)
        shown = self._estimator.cut(result, given) or "(the result is empty)"
        self._room -= min(self._estimator.count(shown), self._room)
        self.told.append(shown)
        return f"{fence(Fence.TOOL, [shown])}\n{_NUDGE}"


def for_turn(app: App, prepared: Prepared, model: ChatModel) -> ToolLoop:
    """The loop of a prepared turn.

    Only what the user typed in this very message counts as their words: earlier ones may hold
    what was piped or pasted from elsewhere.
    """
    request = prepared.request
    typed = request.text if request.typed is None else request.typed
    return ToolLoop(
        model,
        prepared.toolbox,
        words=(clean(typed),),
        estimator=app.estimator(model.name),
        budget=prepared.budget,
        left=prepared.prompt.left,
        max_calls=app.config.tools.max_calls,
    )


def _in_thread(
    tool: Tool, arguments: Mapping[str, Any], box: Toolbox
) -> Generator[Stage, None, str]:
    """Runs a tool where it cannot hold up the turn; gives the reader chances to cancel.

    Raises:
        ToolError: the tool failed, or took too long (its thread is left to end by itself).
    """
    running = Running(tool, arguments, box.context)
    while not running.wait(_POLL_S):
        yield Stage("tool")
    return running.result()


def _leads_nowhere(error: str) -> bool:
    """Whether a call failed in a way that the same model repeats."""
    return error in {_AGAIN, _FAILED_BEFORE, _UNREADABLE} or error.startswith(_NO_TOOL)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(
        other, sort_keys=True, default=str
    )
