"""How many tokens a text has, learnt per model; and how fast the model reads and writes.

No tokenizer is loaded: characters are counted by script class, each class has a weight in
tokens per character, and every finished answer corrects the weights by what the server counted
(``prompt_eval_count``). Weights and speeds are kept between runs in one 0600 JSON file.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jarvis.llm.protocols import ChatMessage, ChatUsage
from jarvis.paths import private_folder

PRIOR: Mapping[str, float] = {
    "latin": 0.235,
    "accented": 0.5,
    "greek_cyrillic": 0.42,
    "cjk": 0.75,
    "digit": 1.0,
    "gap": 1.0,
    "mark": 0.7,
    "other": 1.1,
    "message": 5.0,
}
"""Tokens per character of a class before anything was measured: about what byte-pair
vocabularies of 100,000 to 150,000 entries give. ``gap`` counts runs of line breaks or of several
blanks (single blanks belong to the next word); ``message`` is what a chat template adds to each
message."""

_PIECES = re.compile(
    r"(?P<latin>[A-Za-z]+)|(?P<digit>[0-9]+)|(?P<gap>\s*\n\s*|[^\S\n]{2,})|(?P<blank>\s)"
    r"|(?P<mark>[!-/:-@\[-`{-~]+)|(?P<accented>[\u00c0-\u024f\u1e00-\u1eff]+)"
    r"|(?P<greek_cyrillic>[\u0370-\u052f]+)"
    r"|(?P<cjk>[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+)|(?P<other>.)"
)
_BOUND = 4.0
"""A weight never moves further from its prior than this factor, whatever a server reports."""
_KEPT_CHARACTERS = 4000
_SAMPLED_CHARACTERS = 200_000
"""A text of this length or more is estimated from pieces of it: it is far over most windows, and
the estimate is off by more than the sample is."""
_SAMPLES, _SAMPLE_CHARACTERS = 64, 1000
_MIN_READ = 64
"""Fewer evaluated tokens say nothing about reading speed: the fixed costs dominate."""
_SENTENCE_END = re.compile(r"(?:[.!?…]['\")\]]*\s|[。！？]|\n)")


@dataclass(frozen=True, slots=True)
class Observation:
    """What one finished answer taught. Counts are tokens; ``cut``: the server read less."""

    estimate: int
    actual: int
    cut: bool

    @property
    def warning(self) -> str:
        """One line for the user when the server cut the prompt, else empty."""
        if not self.cut:
            return ""
        return (
            f"the model server cut the prompt: it read {self.actual:,} of about"
            f" {self.estimate:,} tokens, so the beginning was lost"
        )


class TokenEstimator:
    """Counts tokens for one model.

    Args:
        model: the model's name; figures of different models never mix.
        path: where figures are kept between runs; None keeps nothing.
    """

    def __init__(self, model: str, path: Path | None = None) -> None:
        self.model = model
        self._path = path
        entry = _read(path).get(model, {})
        weights = entry.get("weights", {})
        self._weights = {
            name: _bounded(name, weights.get(name, prior)) for name, prior in PRIOR.items()
        }
        self.observations = int(entry.get("observations", 0))
        self.read_speed: float | None = _speed(entry.get("read_tokens_per_s"))
        """Tokens of prompt evaluated per second; None until measured."""
        self.write_speed: float | None = _speed(entry.get("write_tokens_per_s"))
        """Tokens of answer per second; None until measured."""

    def count(self, text: str) -> int:
        """Estimated tokens of ``text`` by itself."""
        return math.ceil(self._tokens(tally(text)))

    def count_messages(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """Estimated tokens of a whole request, the chat template included."""
        return math.ceil(self._tokens(_tally_request(messages, tools)))

    def cut(self, text: str, tokens: int) -> str:
        """``text``, or its beginning in at most ``tokens`` tokens, marked with ``[…]``.

        Cut at the end of a sentence where one is near, otherwise between words.
        """
        if self.count(text) <= tokens:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.count(text[:middle] + " […]") <= tokens:
                low = middle
            else:
                high = middle - 1
        kept = text[:low]
        ends = [match.end() for match in _SENTENCE_END.finditer(kept)]
        if ends and ends[-1] >= low * 2 // 3:
            kept = kept[: ends[-1]]
        elif low < len(text) and not text[low].isspace() and " " in kept[low // 2 :]:
            kept = kept[: kept.rindex(" ")]
        return (kept.rstrip() + " […]") if kept.strip() else ""

    def observe(
        self,
        messages: Sequence[ChatMessage],
        usage: ChatUsage,
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        num_ctx: int = 0,
    ) -> Observation:
        """Compares an estimate with what the server counted, and learns from it.

        A prompt that the server cut teaches nothing about counts. A server that says nothing
        (0 tokens) teaches nothing at all.
        """
        counts = _tally_request(messages, tools)
        estimate = self._tokens(counts)
        actual = usage.prompt_tokens
        if actual <= 0:
            return Observation(math.ceil(estimate), 0, False)
        cut = self._was_cut(estimate, actual, num_ctx)
        if not cut:
            self._correct(counts, estimate, actual)
        self._learn_speed(usage, len(messages))
        self._save()
        return Observation(math.ceil(estimate), actual, cut)

    def _was_cut(self, estimate: float, actual: int, num_ctx: int) -> bool:
        # An unsettled estimate may be off by half; a settled one is within a fifth.
        doubt = 0.6 if self.observations < 3 else 0.8
        if num_ctx and estimate * doubt > num_ctx and actual <= num_ctx:
            return True
        return actual >= 32 and actual < estimate * (0.45 if self.observations < 3 else 0.7)

    def _correct(self, counts: Mapping[str, float], estimate: float, actual: int) -> None:
        """Multiplies each weight by the error, to the power of its share in the estimate."""
        if estimate <= 0:
            return
        rate = max(0.15, 1.0 / (1.0 + self.observations))
        error = math.log(actual / estimate)
        shares = {name: counts[name] * self._weights[name] / estimate for name in counts}
        norm = sum(share * share for share in shares.values()) or 1.0
        for name, share in shares.items():
            step = math.exp(rate * error * share / norm)
            self._weights[name] = _bounded(name, self._weights[name] * step)
        self.observations += 1

    def _learn_speed(self, usage: ChatUsage, messages: int) -> None:
        # A server that does not tell cached from evaluated tokens reports a speed that is too
        # high as soon as there is history; its first turns are honest.
        telling = usage.evaluated_tokens < usage.prompt_tokens or messages <= 2
        if telling and usage.evaluated_tokens >= _MIN_READ and usage.prompt_ms > 0:
            speed = usage.evaluated_tokens / usage.prompt_ms * 1000
            self.read_speed = _smooth(self.read_speed, speed)
        if usage.answer_tokens >= 8 and usage.answer_ms > 0:
            speed = usage.answer_tokens / usage.answer_ms * 1000
            self.write_speed = _smooth(self.write_speed, speed)

    def _tokens(self, counts: Mapping[str, float]) -> float:
        return sum(self._weights[name] * number for name, number in counts.items())

    def _save(self) -> None:
        if self._path is None:
            return
        entry = {
            "weights": {name: round(weight, 4) for name, weight in self._weights.items()},
            "observations": self.observations,
            "read_tokens_per_s": self.read_speed and round(self.read_speed, 1),
            "write_tokens_per_s": self.write_speed and round(self.write_speed, 1),
        }
        # The figures only save time: a full disk must not fail a turn.
        with contextlib.suppress(OSError):
            everything = _read(self._path) | {self.model: entry}
            private_folder(self._path.parent)
            descriptor, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".tokens-")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(everything, file, indent=1)
                Path(temporary).replace(self._path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise


def tally(text: str) -> Mapping[str, float]:
    """Counts the characters of each class in ``text`` (runs, for ``gap``)."""
    # A conversation counts the same turns again and again.
    if len(text) <= _KEPT_CHARACTERS:
        return _tally_kept(text)
    return _tally(text) if len(text) < _SAMPLED_CHARACTERS else _tally_sampled(text)


def _tally_sampled(text: str) -> Mapping[str, float]:
    """What pieces from all over a very long text make the whole of it to be."""
    step = len(text) // _SAMPLES
    starts = range(0, step * _SAMPLES, step)
    sample = "".join(text[start : start + _SAMPLE_CHARACTERS] for start in starts)
    scale = len(text) / len(sample)
    return {name: number * scale for name, number in _tally(sample).items()}


@functools.lru_cache(maxsize=1024)
def _tally_kept(text: str) -> Mapping[str, float]:
    return _tally(text)


def _tally(text: str) -> Mapping[str, float]:
    counts: dict[str, float] = {}
    for match in _PIECES.finditer(text):
        name = match.lastgroup
        if name is None or name == "blank":
            continue
        size = 1 if name == "gap" else match.end() - match.start()
        counts[name] = counts.get(name, 0.0) + size
    return counts


def _tally_request(
    messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    texts = [message.content for message in messages]
    texts += [
        json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
        for message in messages
        for call in message.tool_calls
    ]
    texts += [json.dumps(tool, ensure_ascii=False) for tool in tools]
    counts: dict[str, float] = {}
    for text in texts:
        for name, number in tally(text).items():
            counts[name] = counts.get(name, 0.0) + number
    counts["message"] = float(len(messages) + 1 + (1 if tools else 0))
    return counts


def _bounded(name: str, weight: object) -> float:
    prior = PRIOR[name]
    if not isinstance(weight, (int, float)) or not math.isfinite(weight):
        return prior
    return min(max(float(weight), prior / _BOUND), prior * _BOUND)


def _speed(value: object) -> float | None:
    good = isinstance(value, (int, float)) and math.isfinite(value) and value > 0
    return float(value) if good else None  # type: ignore[arg-type]


def _smooth(known: float | None, measured: float) -> float:
    """Half the way to a new value; the speed sets a budget, which should not jitter."""
    return measured if known is None else (known + measured) / 2


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {name: entry for name, entry in value.items() if isinstance(entry, dict)}
