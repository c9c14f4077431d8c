"""Tokens that a real conversation makes the model evaluate, turn by turn.

    python -m tests.bench.cache [--turns 20] [--answer 100] [--model NAME]

Runs one session with the embedded engine (or the Ollama that is configured) in a home of its
own, with facts about the user in every prompt, and prints for each turn what the prompt held and
what was evaluated of it. The bar (section 6 of the design): evaluated ≤ 1.1 × (last question +
last answer + this block + this question). Then the same turns are sent with the facts before the
history, one token of answer each: ours must evaluate at most a quarter of that.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from jarvis import postgres
from jarvis.config import Config, ContextSettings
from jarvis.engine import launcher
from jarvis.llm.chat import OllamaChatModel
from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatUsage, ModelInfo
from jarvis.paths import Paths
from jarvis.services import memory
from jarvis.services.app import App
from jarvis.services.prompt import Prompt
from jarvis.services.turns import Finished, TurnRequest

BAR, ORDER_BAR = 1.1, 0.25

FACTS = (
    "My sister Ingrid lives in Tromsø and works as a marine biologist at the university there",
    "I am allergic to hazelnuts and walnuts, and I carry an adrenaline pen when I travel",
    "I play the cello in an amateur orchestra that rehearses every Tuesday evening at seven",
    "My boat is called Havørn, it is moored in Bergen, and its engine was renewed last spring",
    "I prefer trains to planes, and I take the night train to the north whenever there is one",
    "I am learning Portuguese because we plan to spend the next winter near Lisbon",
)
PERSONA = (
    "You are a storyteller. You answer every question with a long text of at least ten sentences,"
    " whatever it is about, and you never repeat yourself."
)
"""Small models answer in one sentence otherwise; the bar is for answers of 100 tokens."""

QUESTIONS = (
    "Write a long paragraph about what matters for me on a long trip.",
    "Write a long list of what I should pack for a week in the north.",
    "Describe in many words how I get from Bergen to Tromsø without flying.",
    "Write a long story about a rainy day there with my sister.",
    "Explain at length which of my habits would make that trip difficult.",
)


@dataclass
class Bounded:
    """A chat model whose answers have a fixed length at most."""

    real: OllamaChatModel
    tokens: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def info(self) -> ModelInfo:
        return self.real.info()

    def stream(self, messages: Sequence[ChatMessage], **options: Any) -> Iterator[ChatChunk]:
        limits = {"num_predict": self.tokens, "temperature": 0, "seed": 1}
        return self.real.stream(messages, **{**options, "options": limits})


class BoundedApp(App):
    """Services without a worker, whose model answers briefly."""

    answer_tokens = 100

    def chat_model(self, name: str = "") -> OllamaChatModel:
        return cast(OllamaChatModel, Bounded(super().chat_model(name), self.answer_tokens))

    def wake_worker(self) -> None:
        return


@dataclass(frozen=True)
class Row:
    """One turn. Counts are tokens."""

    prompt: int
    evaluated: int
    bound: float
    facts_first: int = 0


def facts_first(prompt: Prompt) -> list[ChatMessage]:
    """The same prompt with this turn's context in the system message, before the history."""
    messages = list(prompt.messages)
    context, _, words = messages[-1].content.rpartition("\n\n")
    messages[0] = replace(messages[0], content=f"{messages[0].content}\n\n{context}")
    messages[-1] = replace(messages[-1], content=words)
    return messages


def session(app: App, turns: int) -> list[tuple[Row, Prompt]]:
    """Runs the conversation; the first turn has no row."""
    rows: list[tuple[Row, Prompt]] = []
    session_id: int | None = None
    question = answer = ""
    for number in range(turns):
        text = f"{QUESTIONS[number % len(QUESTIONS)]} ({number})"
        for event in app.assistant.turn(TurnRequest(text, session_id=session_id, tools=False)):
            if isinstance(event, Finished):
                result = event.result
        session_id = result.session_id
        assert result.prompt is not None
        if number:
            new = [
                ChatMessage("user", question),
                ChatMessage("assistant", answer),
                result.prompt.messages[-1],
            ]
            bound = BAR * app.estimator(result.model).count_messages(new)
            row = Row(result.tokens["prompt"], result.tokens["evaluated"], bound)
            rows.append((row, result.prompt))
            print(
                f"turn {number + 1:2}: prompt {row.prompt:5}, evaluated {row.evaluated:5},"
                f" bar {row.bound:5.0f} {'ok' if row.evaluated <= row.bound else 'OVER'}",
                flush=True,
            )
        question, answer = text, result.answer
    return rows


def other_order(app: BoundedApp, prompts: Sequence[Prompt]) -> list[int]:
    """What the other order evaluates in the same turns."""
    app.answer_tokens = 1
    evaluated = []
    for prompt in prompts:
        usage = ChatUsage()
        for chunk in app.chat_model().stream(facts_first(prompt)):
            usage = chunk.usage or usage
        evaluated.append(usage.evaluated_tokens)
    return evaluated


def main() -> None:
    """Measures and prints; exits 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--answer", type=int, default=100)
    parser.add_argument("--model", default="qwen2.5-coder:0.5b")
    options = parser.parse_args()
    models = Paths.from_environment().models
    with tempfile.TemporaryDirectory(prefix="jb", ignore_cleanup_errors=True) as home:
        paths = Paths.from_environment({"JARVIS_HOME": home, "JARVIS_MODELS": str(models)})
        # Long enough that nothing is summarised: this measures the cache alone.
        context = ContextSettings(seconds=100_000, answer_tokens=256)
        chat = replace(Config().chat, model=options.model, system=PERSONA)
        config = Config(user="bench", chat=chat, context=context)
        app = BoundedApp(config, paths)
        app.answer_tokens = options.answer
        try:
            memory.add(app, [memory.describe(fact) for fact in FACTS])
            missed = report(app, options.turns)
        finally:
            app.close()
            launcher.stop(paths)
            postgres.remove(paths)
    raise SystemExit(missed)


def report(app: BoundedApp, turns: int) -> int:
    """Prints the summary; returns whether a bar was missed."""
    made = session(app, turns)
    other = other_order(app, [prompt for _, prompt in made])
    ours = [row.evaluated for row, _ in made]
    over = sum(row.evaluated > row.bound for row, _ in made)
    ratio = sum(ours) / max(sum(other), 1)
    print(f"evaluated a turn: median {statistics.median(ours):.0f}, most {max(ours)}")
    print(f"turns over the bar: {over} of {len(made)}")
    print(f"against facts first: {sum(ours)} of {sum(other)} = {ratio:.2f} (bar {ORDER_BAR})")
    last = made[-1][0]
    print(f"last turn: {last.evaluated} of {last.prompt}; facts first: {other[-1]}")
    return int(over > 0 or ratio > ORDER_BAR)


if __name__ == "__main__":
    main()
