"""Searching by hand: memories, past turns and passages, one kind or all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from jarvis.errors import ModelUnavailable, UsageError
from jarvis.retrieval import Query, Results
from jarvis.security.text import clean
from jarvis.types import ChunkHit, EmbeddingModel, Filters, MemoryHit, MemoryType, TurnHit, Vector

if TYPE_CHECKING:
    from jarvis.services.app import App

Kind = Literal["memories", "turns", "chunks"]
Hit = MemoryHit | TurnHit | ChunkHit

KINDS: tuple[Kind, ...] = ("memories", "turns", "chunks")
_NAMES: dict[Kind, str] = {
    "memories": "memories",
    "turns": "conversations",
    "chunks": "passages of documents",
}

MAX_EMBEDDED = 8_000
"""Characters of a question that are embedded: the mean of more is about everything and nothing."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search over some kinds found.

    Attributes:
        hits: with their kinds, best first; ranks count over all kinds.
        dropped: candidates that are no hits, with kind, reason and score terms.
        notes: what a person should know.
        gates: the gate of each kind, as ``--explain`` shows it.
    """

    hits: tuple[tuple[Kind, Hit], ...] = ()
    dropped: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    gates: dict[Kind, dict[str, Any]] = field(default_factory=dict)

    @property
    def memories(self) -> tuple[MemoryHit, ...]:
        """The memories among the hits."""
        return tuple(hit for _, hit in self.hits if isinstance(hit, MemoryHit))

    @property
    def turns(self) -> tuple[TurnHit, ...]:
        """The past turns among the hits."""
        return tuple(hit for _, hit in self.hits if isinstance(hit, TurnHit))

    @property
    def chunks(self) -> tuple[ChunkHit, ...]:
        """The passages among the hits."""
        return tuple(hit for _, hit in self.hits if isinstance(hit, ChunkHit))


def search(
    app: App,
    text: str,
    *,
    kinds: Sequence[Kind] = KINDS,
    filters: Filters | None = None,
    limit: int = 10,
    min_similarity: float | None = None,
    explain: bool = False,
) -> Found:
    """Finds what fits ``text`` best; by words alone when the embedding model does not answer.

    Somebody who searches wants to see the nearest there is: the gate only says what a turn would
    have used. Filters that only memories have leave the other kinds out, with a note.

    Raises:
        UsageError: there are no words, a number is out of range, or a filter is for memories and
            none are searched.
        NotFound: the user that was named has no rows.
    """
    from jarvis.retrieval.search import check_limit

    check_limit(limit)
    if min_similarity is not None and not -1 <= min_similarity <= 1:
        raise UsageError(
            f"a similarity lies between -1 and 1, not {min_similarity:g}",
            "give another --min-similarity",
        )
    words = clean(text).strip()
    if not words:
        raise UsageError("there is nothing to search for", "give some words")
    filters = filters or Filters()
    kinds, left_out = _kinds(kinds, filters)
    user_id = app.existing_user().id
    model, vector, notes = embed_query(app, words)
    if vector is None and min_similarity is not None:
        notes += ("without the model nothing has a similarity: --min-similarity drops everything",)
    notes += left_out
    query = Query(words, vector, datetime.now().astimezone())

    def one(kind: Kind) -> Results[Any]:
        arm: Callable[..., Results[Any]] = getattr(app.retriever, kind)
        return arm(
            user_id,
            query,
            model,
            filters=filters,
            limit=limit,
            gate=False,
            explain=explain,
            min_similarity=min_similarity,
        )

    if len(kinds) == 1:
        results = [one(kinds[0])]
    else:
        with ThreadPoolExecutor(len(kinds)) as threads:
            results = list(threads.map(one, kinds))
    return _together(kinds, results, limit, notes)


def embed_query(
    app: App, text: str
) -> tuple[EmbeddingModel | None, Vector | None, tuple[str, ...]]:
    """The model, the vector, and a note when there is none."""
    try:
        vector = app.embedder().embed_query(text[:MAX_EMBEDDED])
        return app.embedding_model(), vector, ()
    except ModelUnavailable as error:
        return None, None, (f"searching by words only: {error.message}",)


def make_filters(
    *,
    types: Sequence[str] = (),
    category: str | None = None,
    min_importance: float | None = None,
    min_confidence: float | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    at: datetime | None = None,
) -> Filters:
    """Filters from what a user typed.

    Raises:
        UsageError: there is no such type, or a number is not between 0 and 1.
    """
    try:
        wanted = tuple(MemoryType(name.upper()) for name in types)
    except ValueError:
        known = ", ".join(kind.value for kind in MemoryType)
        raise UsageError(f"there is no type {' '.join(types)}", f"one of: {known}") from None
    for name, value in (("importance", min_importance), ("confidence", min_confidence)):
        if value is not None and not 0 <= value <= 1:
            raise UsageError(f"{name} lies between 0 and 1, not {value:g}")
    return Filters(
        types=wanted,
        category=category,
        min_importance=min_importance,
        min_confidence=min_confidence,
        since=since,
        until=until,
        at=at,
    )


def moment(text: str, now: datetime | None = None) -> datetime | None:
    """A time that somebody typed: 2026-05-03, 2026-05-03T10:00, "last week"; None for nothing.

    Raises:
        UsageError: it cannot be read.
    """
    from jarvis.retrieval import dates

    text = text.strip()
    if not text:
        return None
    now = now or datetime.now().astimezone()
    try:
        typed = datetime.fromisoformat(text)
        return typed if typed.tzinfo else typed.replace(tzinfo=now.tzinfo)
    except ValueError:
        period = dates.find(text, now) or dates.find(f"in {text}", now)
    if period is None:
        raise UsageError(
            f"{text!r} is no date that can be read", 'write 2026-05-03, or "two weeks ago"'
        )
    return period.start


_OF_MEMORIES = ("types", "category", "min_importance", "min_confidence", "at")
"""Filters on what only a memory has. ``types`` is typed as --type."""


def _kinds(kinds: Sequence[Kind], filters: Filters) -> tuple[tuple[Kind, ...], tuple[str, ...]]:
    """The kinds that the filters can be applied to, and what to say of the others.

    Raises:
        UsageError: there is no such kind.
    """
    asked = [name for name in _OF_MEMORIES if getattr(filters, name) not in (None, ())]
    others = tuple(kind for kind in kinds if kind != "memories")
    if not asked or not others:
        return tuple(kinds), ()
    options = ", ".join("--" + name.removesuffix("s").replace("_", "-") for name in asked)
    names = " and ".join(_NAMES[kind] for kind in others)
    if "memories" not in kinds:
        raise UsageError(
            f"{options} cannot be asked of {names}: only memories have that",
            "leave it out, or use: jarvis memory search",
        )
    return ("memories",), (f"only memories have what {options} asks for: {names} are left out",)


def _together(
    kinds: Sequence[Kind], results: Sequence[Results[Any]], limit: int, notes: tuple[str, ...]
) -> Found:
    """One list out of several. Scores are comparable: each is a share of the best possible."""
    from dataclasses import replace

    pairs = [
        (kind, hit) for kind, result in zip(kinds, results, strict=True) for hit in result.hits
    ]
    pairs.sort(key=lambda pair: (-pair[1].score, pair[1].rank, KINDS.index(pair[0])))
    ranked = tuple(
        (kind, replace(hit, rank=rank)) for rank, (kind, hit) in enumerate(pairs[:limit], 1)
    )
    dropped = tuple(
        {"kind": kind, **entry}
        for kind, result in zip(kinds, results, strict=True)
        for entry in result.dropped
    )
    said = dict.fromkeys(note for result in results for note in result.notes)
    if notes:
        said.pop("searched by words only", None)
    return Found(
        hits=ranked,
        dropped=dropped,
        notes=(*notes, *said),
        gates={kind: result.gate for kind, result in zip(kinds, results, strict=True)},
    )
