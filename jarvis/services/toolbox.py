"""What tools may use, and which of them a turn offers to the model.

The tools package imports no service; here the services are put behind the ports that it names.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jarvis.errors import JarvisError, UsageError
from jarvis.llm.protocols import ChatModel
from jarvis.security import held
from jarvis.security.text import clean_line
from jarvis.tools import Effect, Tool, ToolContext, ToolError, printed
from jarvis.tools.policy import Asker, Consents, Policy, Verdict
from jarvis.types import ChunkHit, EmbeddingModel, Filters, Memory, MemoryHit

if TYPE_CHECKING:
    from jarvis.retrieval import Query
    from jarvis.services.app import App
    from jarvis.services.budget import Budget
    from jarvis.services.tokens import TokenEstimator
    from jarvis.services.turns import TurnRequest
    from jarvis.tools.registry import Registry

DEFINITIONS = 0.4
"""Share of the prompt that the definitions of tools may take. They stand before the history and
never change within a session, so the server reads them once."""

SMALL = 4e9
"""Models with fewer parameters call tools that have nothing to do with the question ("the capital
of Norway" became a calculation, tried with 0.5e9), so they see only what a message calls for. For
larger ones the tools stay the same all through a session, and the server's cache holds."""


MAX_SECONDS = 60.0
"""How long one call may take before it is left behind."""


class Running:
    """A call on a thread of its own, so that no tool can hold up or end who waits for it.

    Args:
        tool: what is called, at once.
        arguments: checked arguments.
        context: what the tool may use.
    """

    def __init__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> None:
        self._tool = tool
        self._outcome: list[str | ToolError] = []
        self._deadline = time.monotonic() + MAX_SECONDS
        self._thread = threading.Thread(
            target=self._work, args=(arguments, context), name=f"tool-{tool.name}", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Waits so long at most; returns whether there is a result, or will be none."""
        left = self._deadline - time.monotonic()
        self._thread.join(max(min(seconds, left), 0.0))
        return not self._thread.is_alive() or time.monotonic() >= self._deadline

    def result(self) -> str:
        """What the tool returned.

        Raises:
            ToolError: it failed, or took too long (its thread is left to end by itself).
        """
        if not self._outcome:
            raise ToolError(f"{self._tool.name} took more than {MAX_SECONDS:g} s")
        if isinstance(self._outcome[0], ToolError):
            raise self._outcome[0]
        return self._outcome[0]

    def _work(self, arguments: Mapping[str, Any], context: ToolContext) -> None:
        try:
            with printed.logged(self._tool.name):
                self._outcome.append(self._tool.call(arguments, context))
        except ToolError as error:
            self._outcome.append(error)
        except BaseException as error:  # noqa: BLE001 -- a tool that exits ends nothing but itself
            self._outcome.append(ToolError(f"{self._tool.name} ended by {type(error).__name__}"))


_SEARCH = re.compile(r"\b(?:search|find|look (?:in|into|it|for|through|up))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool as ``jarvis tool list`` shows it. ``policy``: allow, ask or deny."""

    name: str
    effect: Effect
    policy: Verdict
    description: str
    source: str
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of one turn, in the order in which they are offered.

    ``withheld`` says why others that there are cannot run in this turn.
    """

    tools: tuple[Tool, ...]
    policy: Policy
    context: ToolContext
    notes: tuple[str, ...] = field(default=())
    withheld: Mapping[str, str] = field(default_factory=dict)

    def definitions(self) -> list[dict[str, object]]:
        """The tools as the chat API takes them."""
        return [tool.definition() for tool in self.tools]

    def find(self, name: str) -> Tool:
        """The offered tool of that name.

        Raises:
            ToolError: it cannot run in this turn, with the reason, or there is none; then the
                message names those that there are.
        """
        for tool in self.tools:
            if tool.name == name:
                return tool
        if name in self.withheld:
            raise ToolError(self.withheld[name])
        names = ", ".join(tool.name for tool in self.tools)
        raise ToolError(f"there is no tool {name!r}; there are: {names}")


def consents(app: App) -> Consents:
    """What the user has allowed for good."""
    return Consents(app.paths.state / "consents.json")


def policy(app: App, asker: Asker | None = None) -> Policy:
    """The policy of this user; ``asker`` None: nobody can answer."""
    return Policy(app.config.tools, consents(app), asker)


def registry(app: App) -> Registry:
    """Every tool there is; loaded again when a file of the user's tools has changed."""
    folder = app.paths.user_tools
    files = sorted(folder.glob("*.py")) if folder.is_dir() else []
    return _load(folder, tuple((path.name, path.stat().st_mtime_ns) for path in files))


@functools.lru_cache(maxsize=4)
def _load(folder: Path, _stamp: tuple[tuple[str, int], ...]) -> Registry:
    from jarvis.tools.registry import Registry

    return Registry.load(folder)


def rows(app: App) -> tuple[list[ToolRow], list[str]]:
    """All tools with what the policy says of them, and what could not be loaded."""
    found, rules = registry(app), policy(app)
    listed = [
        ToolRow(
            tool.name,
            tool.effect,
            rules.standing(tool.effect),
            tool.description,
            tool.source,
            {
                name: str(schema.get("type", ""))
                for name, schema in tool.parameters["properties"].items()
            },
        )
        for tool in found
    ]
    return listed, found.problems


def for_turn(
    app: App,
    request: TurnRequest,
    model: ChatModel,
    now: datetime,
    estimator: TokenEstimator,
    budget: Budget,
    *,
    passages: bool = False,
) -> Toolbox | None:
    """The tools of a turn; None where none are wanted or the model cannot call any.

    Args:
        passages: the message was searched for in the documents, and something was found.
    """
    capabilities = model.info().capabilities
    wanted = request.tools and request.schema is None and app.config.tools.enabled
    # A server that tells nothing of capabilities is asked by trying.
    if not wanted or (capabilities and "tools" not in capabilities):
        return None
    return open_box(
        app,
        now=now,
        estimator=estimator,
        budget=budget,
        asker=request.confirm,
        private=request.private,
        words=request.text,
        small=0 < model.info().parameters < SMALL,
        passages=passages,
    )


def open_box(
    app: App,
    *,
    now: datetime,
    estimator: TokenEstimator,
    budget: Budget,
    asker: Asker | None = None,
    private: bool = False,
    words: str = "",
    small: bool = False,
    passages: bool = False,
) -> Toolbox:
    """The tools that a turn offers: possible under the policy, useful here, within the budget.

    Args:
        now: the time that tools take for now, in the user's zone.
        asker: puts questions to the user; None: nobody can answer.
        private: nothing may be stored.
        words: the user's message.
        small: offer only what the message calls for; also done where all would cost too much.
        passages: passages stand in the prompt. A small model that is offered a search beside them
            searches instead of reading them, so it is offered only where the words ask for one.
    """
    found, rules = registry(app), policy(app, asker)
    withheld: dict[str, str] = {}
    useful: list[Tool] = []
    for tool in found:
        if reason := _withheld(app, rules, tool, private=private):
            withheld[tool.name] = reason
        else:
            useful.append(tool)
    notes = [*app.first_told(found.problems), *_missed(rules, found, withheld, words)]
    if small:
        useful = [tool for tool in useful if tool.called_for(words)]
        if passages and not _SEARCH.search(words):
            useful = [tool for tool in useful if tool.name != "search_documents"]
    costs = {tool.name: estimator.count_messages((), [tool.definition()]) for tool in useful}
    limit, used, kept = int(budget.total * DEFINITIONS), 0, []
    if not small and sum(costs.values()) > limit:
        useful = [tool for tool in useful if tool.called_for(words)]
    for tool in useful:
        used += costs[tool.name]
        if used <= limit:
            kept.append(tool)
    ports = context(app, now, private=private)
    return Toolbox(tuple(kept), rules, ports, tuple(notes), withheld)


def _withheld(app: App, rules: Policy, tool: Tool, *, private: bool) -> str:
    """Why a tool is not offered in any turn like this one, in one line; empty when it may be."""
    if tool.effect is Effect.WRITES and private:
        return f"{tool.name} was not run: this conversation is private, nothing is changed"
    if tool.name == "read_file" and not app.config.tools.folders:
        return "read_file was not run: no folder is allowed (tools.folders)"
    return rules.barred(tool)


def _missed(
    rules: Policy, tools: Iterable[Tool], withheld: Mapping[str, str], words: str
) -> Iterator[str]:
    """What the user should know of tools that a message calls for and that need their yes.

    Without it, a model that cannot look at the weather only says so. What ``remember`` would
    have stored is learnt from the message all the same.
    """
    for effect in (Effect.NETWORK, Effect.WRITES):
        if rules.standing(effect) is not Verdict.ASK:
            continue
        names = [
            tool.name
            for tool in tools
            if tool.effect is effect
            and tool.name in withheld
            and tool.name != "remember"
            and tool.when is not None
            and tool.when.search(words)
        ]
        if names and rules.asker is None:
            yield (
                f"{', '.join(names)} cannot run: nobody can be asked here;"
                f" `jarvis tool allow {effect}` allows it"
            )


def context(app: App, now: datetime, *, private: bool = False) -> ToolContext:
    """The ports of this user's services."""
    from jarvis.tools.network import Web

    return ToolContext(
        now=now,
        memories=Memories(app, private),
        documents=Documents(app),
        web=Web(page_text),
        folders=tuple(Path(folder) for folder in app.config.tools.folders),
    )


def run(app: App, name: str, arguments: object) -> str:
    """Runs one tool for the user who names it; their command is their word and their yes.

    Args:
        arguments: an object or its JSON; a list of one holds the first parameter's value.

    Raises:
        NotFound: there is no such tool.
        ToolError: wrong arguments, or it failed.
        UsageError: the configuration denies tools of its kind.
    """
    tool = registry(app).get(name)
    if policy(app).standing(tool.effect) is Verdict.DENY:
        raise UsageError(
            f"{name} is denied: tools.{tool.effect} is deny",
            f"jarvis config set tools.{tool.effect} ask",
        )
    if isinstance(arguments, list):
        arguments = dict(zip(tool.parameters["properties"], arguments, strict=False))
    ports = context(app, datetime.now().astimezone())
    try:
        running = Running(tool, tool.check(arguments), ports)
        while not running.wait(MAX_SECONDS):
            pass
        return running.result()
    except ToolError as error:
        takes = ", ".join(tool.parameters["properties"]) or "no arguments"
        raise ToolError(error.message, error.hint or f"{name} takes: {takes}") from error


def parse_arguments(words: Sequence[str]) -> object:
    """Arguments as they are typed: ``NAME=VALUE`` words, one JSON object, or plain values."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return words[0]
    pairs = [re.fullmatch(r"([a-z_]\w*)=(.*)", word, re.S) for word in words]
    if words and all(pairs):
        return {pair[1]: pair[2] for pair in pairs if pair}
    return list(words) if words else {}


class Memories:
    """The ``MemoryPort`` over the memory service."""

    def __init__(self, app: App, private: bool = False) -> None:
        self._app = app
        self._private = private

    def remember(self, content: str) -> Memory:
        """Stores a fact; what looks like a secret or an instruction is held for review."""
        from jarvis.services import memory

        if self._private:
            raise ToolError("this conversation is private: nothing is stored")
        new = memory.describe(clean_line(content))
        if why := held.reason(new.content):
            new = memory.hold(new, why)
        return memory.add(self._app, [new]).added[0].memory

    def recall(self, query: str, limit: int) -> Sequence[MemoryHit]:
        """Finds facts by meaning and by words.

        Who calls a tool asks in keywords, without "my": what no gate passes is looked up once
        more with the threshold of a question that the user asks about themself.
        """
        question, model = _question(self._app, query)
        search = functools.partial(
            self._app.retriever.memories,
            self._app.user.id, question, model, filters=Filters(), limit=limit,
        )  # fmt: skip
        hits = search().hits
        if hits or question.vector is None or model is None or model.threshold is None:
            return hits
        return search(gate=False, min_similarity=model.threshold).hits

    def forget(self, memory_id: int) -> Memory:
        """Forgets one fact, as ``jarvis memory forget`` does."""
        from jarvis.services import forget

        if self._private:
            raise ToolError("this conversation is private: nothing is changed")
        found = forget.resolve(self._app, [str(memory_id)])
        forget.forget(self._app, found)
        return found[0]


class Documents:
    """The ``DocumentPort`` over the document service."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.found: list[ChunkHit] = []
        """Every passage that a call found, in order."""

    def search(self, query: str, limit: int) -> Sequence[ChunkHit]:
        """Finds passages by meaning and by words."""
        from jarvis.services import documents

        hits = documents.Documents(self._app).search(query, limit).hits
        self.found += hits
        return hits

    def excerpt(self, hit: ChunkHit) -> str:
        """The passage under the citation that an answer is to repeat."""
        from jarvis.services import citations

        return citations.excerpt(hit)


def _question(app: App, query: str) -> tuple[Query, EmbeddingModel | None]:
    """The query with its vector, or without one where no embedding model answers."""
    from jarvis.retrieval import Query

    now = datetime.now().astimezone()
    try:
        vector, model = app.embedder().embed_query(query), app.embedding_model()
    except JarvisError:
        return Query(text=query, vector=None, now=now), None
    return Query(text=query, vector=vector, now=now), model


def page_text(body: bytes, media_type: str) -> str:
    """The text that a reader of a web page sees, its headings and lists included.

    Raises:
        ToolError: it is no text.
    """
    from jarvis.ingest import encoding, html
    from jarvis.ingest.model import Unreadable

    charset = re.search(r"charset\s*=\s*[\"']?([\w-]+)", media_type, re.I)
    try:
        declared = charset[1] if charset else encoding.declared_charset(body)
        text, _ = encoding.decode(body, declared)
    except Unreadable as error:
        raise ToolError(f"the page {error}") from error
    if "html" not in media_type and not re.match(r"\s*<(?:!doctype html|html)\b", text, re.I):
        return text
    blocks, title = html.blocks(text, main_only=True)
    parts = [title, *(block.text for block in blocks if block.text != title)]
    return "\n\n".join(part for part in parts if part)
