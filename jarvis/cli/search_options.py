"""The options and the output that every search command shares.

Every search takes every option. What only memories have (type, category, importance, confidence)
leaves other kinds out of a search over all of them, which is said, and is refused where no
memories are searched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from jarvis.cli import output, records
from jarvis.cli.state import state_of
from jarvis.types import ChunkHit, MemoryHit, TurnHit

if TYPE_CHECKING:
    from jarvis.services.search import Found, Hit, Kind

QueryWords = Annotated[list[str], typer.Argument(help="What to look for.", metavar="QUERY...")]
Limit = Annotated[int, typer.Option("-k", "--limit", help="Hits at most, 1 to 1000.")]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only memories of this type; repeatable."),
]
Category = Annotated[str | None, typer.Option("--category", help="Only memories of this category.")]
MinImportance = Annotated[
    float | None, typer.Option("--min-importance", help="Least importance of a memory, 0 to 1.")
]
MinConfidence = Annotated[
    float | None, typer.Option("--min-confidence", help="Least confidence of a memory, 0 to 1.")
]
Since = Annotated[
    str, typer.Option("--since", metavar="DATE", help='From then on: 2026-05-03, "last week".')
]
Until = Annotated[str, typer.Option("--until", metavar="DATE", help="Before then.")]
MinSimilarity = Annotated[
    float | None, typer.Option("--min-similarity", help="Cosine that every hit must reach.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Every term of the score, the gate, what was dropped.")
]
Json = Annotated[bool, typer.Option("--json", help="Exact records as NDJSON.")]

SIMILARITY = output.Column("similarity", right=True)
COLUMNS: dict[str, tuple[output.Column, ...]] = {
    "memories": (
        output.Column("id", right=True),
        SIMILARITY,
        output.Column("type"),
        output.Column("content", flexible=True),
    ),
    "turns": (
        output.Column("session_id", "session", right=True),
        SIMILARITY,
        output.Column("created_at", "said"),
        output.Column("content", flexible=True),
    ),
    "chunks": (
        output.Column("id", right=True),
        SIMILARITY,
        output.Column("document"),
        output.Column("page", right=True),
        output.Column("content", flexible=True),
    ),
    "": (
        output.Column("kind"),
        output.Column("id", right=True),
        SIMILARITY,
        output.Column("content", flexible=True),
    ),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of a search command: its words and the options that all of them take."""

    query: QueryWords
    limit: Limit
    type_: Types = None
    category: Category = None
    min_importance: MinImportance = None
    min_confidence: MinConfidence = None
    since: Since = ""
    until: Until = ""
    min_similarity: MinSimilarity = None
    explain: Explain = False
    json: Json = False

    def run(self, context: typer.Context, kinds: Sequence[Kind], **more: Any) -> None:
        """Searches and prints: hits on stdout, everything for a person only on stderr.

        Args:
            context: of the command.
            kinds: what is searched.
            more: fields of ``Filters`` that one command alone has an option for.
        """
        from jarvis.services import search

        filters = search.make_filters(
            types=self.type_ or (),
            category=self.category,
            min_importance=self.min_importance,
            min_confidence=self.min_confidence,
            since=search.moment(self.since),
            until=search.moment(self.until),
        )
        found = search.search(
            state_of(context).app,
            " ".join(self.query),
            kinds=kinds,
            filters=replace(filters, **more),
            limit=self.limit,
            min_similarity=self.min_similarity,
            explain=self.explain,
        )
        show(found, kinds, explain=self.explain, json=self.json)


def command(limit: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the words and options of ``Asked``, before those of its own.

    The body takes the context, an ``Asked``, and its own options by name.

    Args:
        limit: hits where no ``-k`` says otherwise.
    """

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        context, _, *own = inspect.signature(body, eval_str=True).parameters.values()
        hints = get_type_hints(Asked, include_extras=True)
        defaults = {
            each.name: each.default for each in fields(Asked) if each.default is not MISSING
        }
        defaults["limit"] = limit
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=defaults.get(name, inspect.Parameter.empty),
                annotation=hint,
            )
            for name, hint in hints.items()
        ]

        @functools.wraps(body)
        def run(context: typer.Context, **given: Any) -> None:
            asked = Asked(**{name: given.pop(name) for name in hints})
            body(context, asked, **given)

        parameters = [context, *shared, *own]
        # Typer reads both.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def show(found: Found, kinds: Sequence[Kind], *, explain: bool, json: bool) -> None:
    """Prints what a search found."""
    for text in found.notes:
        output.note(text)
    many = len(kinds) > 1
    rows = [record(kind, hit, explain=explain, with_kind=many) for kind, hit in found.hits]
    output.emit_records(rows, json=json, columns=COLUMNS["" if many else kinds[0]])
    if explain:
        for line in explanation(found, json=json):
            output.note(line)
    if not rows:
        output.note("nothing was found")


SINGULAR: dict[str, str] = {"memories": "memory", "turns": "turn", "chunks": "chunk"}
"""What a record calls itself."""


def record(kind: Kind, hit: Hit, *, explain: bool, with_kind: bool) -> dict[str, Any]:
    """A hit as JSON has it; a search over several kinds says which."""
    if kind == "memories":
        fields = records.memory_hit_record(cast(MemoryHit, hit), explain=explain)
    elif kind == "turns":
        fields = records.turn_hit_record(cast(TurnHit, hit), explain=explain)
    else:
        fields = records.chunk_hit_record(cast(ChunkHit, hit), explain=explain)
    return {"kind": SINGULAR[kind], **fields} if with_kind else fields


def explanation(found: Found, *, json: bool) -> list[str]:
    """Why each hit is where it is, and why each other candidate is none."""
    if json:
        lines = [output.to_json({"gate": {kind: gate}}) for kind, gate in found.gates.items()]
        return lines + [output.to_json({"dropped": entry}) for entry in found.dropped]
    lines = []
    for kind, gate in found.gates.items():
        if gate:
            unknown = ", ".join(gate.get("unknown_names", ()))
            lines.append(
                f"gate for {kind}: cosine {gate['cosine']:.2f} ({gate['reason']}"
                f"{': ' + unknown if unknown else ''}), or {gate['matched']:.0%} of the"
                " question's words by weight, one of them rare"
            )
    for kind, hit in found.hits:
        owner = hit.memory.id if isinstance(hit, MemoryHit) else hit.id
        lines.append(f"{hit.rank}. {SINGULAR[kind]} {owner}: {_terms(hit.score, hit.explanation)}")
    for entry in found.dropped:
        lines.append(
            f"left out {SINGULAR[entry['kind']]} {entry['id']}: {entry['reason']};"
            f" {_terms(entry['score'], entry)}"
        )
    return lines


def _terms(score: float, terms: dict[str, Any]) -> str:
    factors = "".join(
        f" × {name} {terms[name]:.2f}"
        for name in ("importance", "recency", "date")
        if name in terms
    )
    meaning = (
        f"meaning #{terms['meaning_rank']} (cosine {terms['similarity']})"
        if terms["similarity"] is not None
        else "meaning unknown (no vector yet)"
    )
    words = (
        f"words #{terms['words_rank']} (BM25 {terms['bm25']:.2f}: {' '.join(terms['words'])})"
        if terms["words_rank"]
        else "no words"
    )
    return (
        f"score {score:.3f} = fused {terms['fused']:.3f}{factors}; {meaning}; {words};"
        f" gate {terms['gate']}"
    )
