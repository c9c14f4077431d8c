"""The figures of an answer, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jarvis.services.turns import TurnResult


def summary_line(result: TurnResult) -> str:
    """One line: facts and pages used, tokens, time to first token, tokens a second."""
    parts: list[str] = []
    if result.memories:
        parts.append(_count(len(result.memories), "fact"))
    if result.turns:
        parts.append(_count(len(result.turns), "past turn"))
    if result.documents:
        pages = {(hit.document_id, hit.page) for hit in result.documents}
        parts.append(_count(len(pages), "page"))
    if result.tools:
        parts.append(_count(len(result.tools), "tool call"))
    tokens, timings = result.tokens, result.timings
    if tokens.get("prompt"):
        read = tokens.get("evaluated", tokens["prompt"])
        parts.append(f"{tokens['prompt']} tokens ({read} read)")
    first = timings.get("first_token_ms")
    if first is not None:
        parts.append(f"first after {seconds(first)}")
    speed = tokens_per_second(result)
    if speed:
        parts.append(f"{speed:.0f} tokens/s")
    return " · ".join(parts)


def tokens_per_second(result: TurnResult) -> float:
    """How fast the answer was written; 0 where it is not known."""
    answer = result.tokens.get("answer", 0)
    total = result.timings.get("total_ms", 0.0) - result.timings.get("context_ms", 0.0)
    writing = result.timings.get("answer_ms") or total - result.timings.get("first_token_ms", 0.0)
    return 1000 * answer / writing if answer > 1 and writing > 0 else 0.0


def seconds(milliseconds: float) -> str:
    """A duration in the unit that fits."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def stats(result: TurnResult) -> dict[str, object]:
    """Every figure of an answer, for ``/stats``."""
    found: dict[str, object] = {"model": result.model}
    found |= {f"tokens {name}": count for name, count in result.tokens.items()}
    speed = tokens_per_second(result)
    if speed:
        found["tokens a second"] = f"{speed:.1f}"
    for name, value in result.timings.items():
        found[name.removesuffix("_ms").replace("_", " ")] = seconds(value)
    if result.prompt is not None:
        for name, count in result.prompt.parts.items():
            found[f"prompt: {name}"] = f"about {count} tokens"
    return found


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
