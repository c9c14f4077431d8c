"""Which tokens get a place in the prompt.

The prompt of a turn may be as long as what the machine reads in ``context.seconds`` at its
measured speed, within the model's window. That total is dealt out in shares. Persona, question
and summary are never cut; history keeps a fixed share, so that its beginning, and with it the
server's prompt cache, stays put from turn to turn; what one kind of context leaves unused the
others get. Everything here is a pure function of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jarvis.config import ContextSettings
from jarvis.errors import UsageError
from jarvis.llm.protocols import ModelInfo

__all__ = [
    "Budget",
    "Fit",
    "MessageTooLong",
    "Share",
    "fit",
    "history_start",
]


class Share(StrEnum):
    """The parts of a prompt, and the answer that follows it."""

    PERSONA = "persona"
    SUMMARY = "summary"
    HISTORY = "history"
    FACTS = "facts"
    TURNS = "turns"
    DOCUMENTS = "documents"
    TOOLS = "tools"
    QUESTION = "question"
    ANSWER = "answer"


FRACTIONS: Mapping[Share, float] = {
    Share.PERSONA: 0.12,
    Share.SUMMARY: 0.06,
    Share.HISTORY: 0.38,
    Share.FACTS: 0.08,
    Share.TURNS: 0.08,
    Share.DOCUMENTS: 0.12,
    Share.TOOLS: 0.06,
    Share.QUESTION: 0.10,
}
"""Parts of the prompt's total. History has most because the cache makes it cheap: it is read
once, everything in the context block is read anew every turn."""

MIN_PROMPT = 1024
"""Tokens that a prompt may always have (where the window has them). Below it no talk is
possible: a slow machine then takes longer than ``context.seconds`` to read an uncached prompt,
and says so in ``Budget.reason``; the following turns come from the cache."""

MIN_TOOL_RESULT = 256
"""Tokens that the results of tools may always have in a turn."""

KEEP_AFTER_CUT = 0.6
"""When history outgrows its share, this much of the share is kept: the start then stays where
it is for several turns, and the cache with it."""

_STEP = 256
_MIN_PIECE = 40
"""A passage cut to fewer tokens says nothing."""


class MessageTooLong(UsageError):
    """One message that cannot be read in one go. Counts are tokens."""

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        self.parts = math.ceil(tokens / max(limit, 1))
        super().__init__(
            f"the message has about {tokens:,} tokens; this model reads {limit:,} at once",
            f"shorten it, read it in {self.parts} or more parts with `jarvis ask --split`, add it"
            " with `jarvis doc ingest`, or raise chat.num_ctx",
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a prompt may be, and of what. All numbers are tokens.

    ``total`` is the prompt's bound, ``window`` the model's whole window (prompt and answer),
    ``shares`` what each part may have, ``reason`` says in words what set the total.
    """

    total: int
    window: int
    shares: Mapping[Share, int]
    reason: str
    seconds_per_token: float | None = field(default=None)

    @classmethod
    def for_model(
        cls,
        info: ModelInfo,
        num_ctx: int,
        speed: float | None,
        settings: ContextSettings,
    ) -> Budget:
        """Deals out the window.

        Args:
            info: the model; ``context_length`` 0 means that the server did not say.
            num_ctx: the window that every request asks for.
            speed: tokens of prompt read per second; None: not measured yet.
            settings: the configured seconds, bound and answer length.

        Raises:
            UsageError: the window is too small for any conversation.
        """
        window = min(num_ctx, info.context_length) if info.context_length else num_ctx
        if window < 256:
            raise UsageError(
                f"a window of {window} tokens is too small to talk in", "raise chat.num_ctx"
            )
        answer = min(settings.answer_tokens, window // 3)
        room = window - answer
        total, reason = room, f"the window of {info.name}"
        # Rounded, so that a speed that wavers does not move the start of the history.
        readable = int(speed * settings.seconds) // _STEP * _STEP if speed else 0
        if readable < MIN_PROMPT:
            readable = MIN_PROMPT
            what = "the least that a talk needs"
            if speed:
                what += f" ({MIN_PROMPT / speed:.0f} s to read when nothing is cached)"
        else:
            what = f"what {info.name} reads in {settings.seconds:g} s"
        if readable < total:
            total, reason = readable, what
        if settings.max_tokens and settings.max_tokens < total:
            total, reason = settings.max_tokens, "context.max_tokens"
        shares = {share: int(total * fraction) for share, fraction in FRACTIONS.items()}
        shares[Share.ANSWER] = answer
        return cls(total, window, shares, reason, 1 / speed if speed else None)

    @property
    def limit(self) -> int:
        """The longest prompt that the window takes beside the answer."""
        return self.window - self.shares[Share.ANSWER]

    def message_limit(self, persona: int, frame: int = 0) -> int:
        """The longest single message: what the window holds beside persona and frame."""
        return max(self.limit - persona - frame - 16, 0)

    def tool_results(self, left: int) -> int:
        """What the results of a turn's tools may have, given what ``fit`` left."""
        return max(self.shares[Share.TOOLS], left, MIN_TOOL_RESULT)


@dataclass(frozen=True, slots=True)
class Fit:
    """What goes into the prompt. All numbers are tokens, except ``history_from``.

    ``history_from`` is the index of the first turn kept. ``facts``, ``turns`` and ``documents``
    say for each candidate, in their order, how many tokens it may have: its own count when it
    goes in whole, less when it must be cut to that, 0 when it stays out.
    """

    history_from: int
    facts: tuple[int, ...]
    turns: tuple[int, ...]
    documents: tuple[int, ...]
    total: int
    left: int
    notes: tuple[str, ...] = ()


def fit(
    budget: Budget,
    *,
    persona: int,
    question: int,
    history: Sequence[int] = (),
    summary: int = 0,
    facts: Sequence[int] = (),
    turns: Sequence[int] = (),
    documents: Sequence[int] = (),
    frame: int = 0,
) -> Fit:
    """Decides what the prompt of one turn holds.

    Args:
        budget: what there is.
        persona: tokens of the system message and the definitions of the tools offered.
        question: tokens of the user's own words; never cut.
        history: tokens of each past turn (question and answer together), oldest first.
        summary: tokens of the summary of what fell out before.
        facts: tokens of each candidate, best first; likewise ``turns`` and ``documents``.
        frame: what stands around them: date line, fences, introductions.

    Raises:
        MessageTooLong: persona and question alone do not fit into the window.
    """
    fixed = persona + question + summary + frame
    if fixed > budget.limit:
        raise MessageTooLong(question, budget.message_limit(persona + summary, frame))
    notes: list[str] = []
    limit = budget.total
    # The user's own long message is read whole, if the window holds it, and so are the best
    # fact and the newest turn: the bound in seconds then gives way.
    needed = fixed + sum(facts[:1]) + sum(history[-1:])
    if needed > limit:
        limit = min(needed, budget.limit)
        # What was answered last is in the server's cache; a long question costs time.
        if budget.seconds_per_token and fixed > budget.total:
            notes.append(
                f"a long message: reading it takes about {fixed * budget.seconds_per_token:.0f} s"
            )
    room = limit - fixed
    first_facts = min(sum(facts), budget.shares[Share.FACTS], room)
    allowed = max(min(budget.shares[Share.HISTORY], room - first_facts), 0)
    start = history_start(history, allowed)
    while start < len(history) and sum(history[start:]) > room:
        start += 1
    pool = room - sum(history[start:])
    whole_facts, used = _whole(facts, min(pool, budget.shares[Share.FACTS]))
    pool -= used
    kept_documents, used = _pieces(documents, min(pool, budget.shares[Share.DOCUMENTS]))
    pool -= used
    kept_turns, used = _pieces(turns, min(pool, budget.shares[Share.TURNS]))
    pool -= used
    # What is left is lent, to facts first: they are short and were asked for by name.
    whole_facts, pool = _lend(facts, whole_facts, pool, whole=True)
    kept_documents, pool = _lend(documents, kept_documents, pool, whole=False)
    kept_turns, pool = _lend(turns, kept_turns, pool, whole=False)
    if start and not summary:
        notes.append(f"the oldest {start} turn(s) do not fit and have no summary yet")
    dropped = sum(1 for kept in (*whole_facts, *kept_documents, *kept_turns) if kept == 0)
    if dropped:
        notes.append(f"{dropped} found item(s) left out: the prompt's budget is {limit:,} tokens")
    return Fit(
        start,
        tuple(whole_facts),
        tuple(kept_turns),
        tuple(kept_documents),
        limit - pool,
        pool,
        tuple(notes),
    )


def history_start(history: Sequence[int], share: int) -> int:
    """The first turn that is kept, as an index into ``history`` (oldest first).

    The same for as many turns as possible: replayed from the first turn on, the start moves
    only when the share is exceeded, and then far enough to leave ``KEEP_AFTER_CUT`` of it. The
    newest turn stays, however long: the next question is most often about it.
    """
    start, used = 0, 0
    for index, tokens in enumerate(history):
        used += tokens
        if used <= share:
            continue
        while start < index and used > share * KEEP_AFTER_CUT:
            used -= history[start]
            start += 1
    return start


def _whole(counts: Sequence[int], room: int) -> tuple[list[int], int]:
    """Each item whole or not at all, best first; a long one does not block the next."""
    kept, used = [], 0
    for count in counts:
        fits = used + count <= room
        kept.append(count if fits else 0)
        used += count if fits else 0
    return kept, used


def _pieces(counts: Sequence[int], room: int) -> tuple[list[int], int]:
    """Whole items, best first; the first that does not fit may be cut to what is left."""
    kept, used = [], 0
    for count in counts:
        given = min(count, room - used)
        if given < min(count, _MIN_PIECE):
            given = 0
        kept.append(given)
        used += given
    return kept, used


def _lend(
    counts: Sequence[int], kept: list[int], pool: int, *, whole: bool
) -> tuple[list[int], int]:
    """Deals once more with what was used and what is left together."""
    room = sum(kept) + pool
    dealt, used = (_whole if whole else _pieces)(counts, room)
    return dealt, room - used
