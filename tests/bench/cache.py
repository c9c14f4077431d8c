"""Tokens that a real conversation makes the model evaluate, turn by turn.

    python -m tests.bench.cache [--turns 20] [--answer 100] [--model NAME] [--seconds S] [--worker]

Runs one session with the embedded engine (or the Ollama that is configured) in a home of its
own, with facts about the user in every prompt, and prints for each turn what the prompt held and
what was evaluated of it. The bar (section 6 of the design): evaluated ≤ 1.1 × (last question +
last answer + this block + this question). Then the same turns are sent with the facts before the
history, one token of answer each: ours must evaluate at most a quarter of that.

By default the budget is so large that nothing is summarised: this measures the cache alone.
``--seconds 5`` is what a user has: then the oldest turns become a summary, and a turn may evaluate
more than the bar only where the summary or the start of the history has just changed.
``--worker`` lets the worker do all its work between two turns, with the same model.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self, cast

from jarvis import postgres
from jarvis.config import Config, ContextSettings
from jarvis.engine import launcher
from jarvis.llm.chat import OllamaChatModel
from jarvis.llm.protocols import ChatChunk, ChatMessage, ChatUsage, ModelInfo
from jarvis.paths import Paths
from jarvis.services import assistant, memory, worker
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
    "Describe at length what my sister does at the university all day.",
    "Explain in detail what I must tell the cook in a restaurant, and why.",
    "Write a long description of a winter near Lisbon.",
    "Tell me at length how I could practise the cello on a journey.",
    "Write a long letter to my sister about the boat.",
    "Explain in many words what to check on the engine before the summer.",
    "Describe in detail which cakes I had better not eat, and what instead.",
    "Write a long text on how I can learn Portuguese on the night train.",
    "Tell a long story about the orchestra and a lost bow.",
    "Explain at length why somebody may like trains better than planes.",
    "Describe in many words the harbour in which the boat lies.",
    "Write a long plan for a Tuesday on which I also have a rehearsal.",
    "Explain in detail what whales eat and where they are in winter.",
    "Write a long toast for my sister's birthday.",
    "Tell me at length what you would do with a free weekend in my place.",
)
MINUTES_A_TURN = 1
"""A person reads the answer and writes the next question; the date line says so."""


class Clock(datetime):
    """Time in which each turn of the bench takes a minute, as with a person."""

    turn = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """The time at this turn."""
        return super().now(tz) + timedelta(minutes=MINUTES_A_TURN * cls.turn)


@dataclass
class Bounded:
    """A chat model whose answers to the user have a fixed length at most."""

    real: OllamaChatModel
    tokens: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def info(self) -> ModelInfo:
        return self.real.info()

    def stream(self, messages: Sequence[ChatMessage], **options: Any) -> Iterator[ChatChunk]:
        if not options.get("background"):
            options["options"] = {"num_predict": self.tokens, "temperature": 0, "seed": 1}
        return self.real.stream(messages, **options)


class BoundedApp(App):
    """Services whose model answers briefly, and whose worker works only when told to."""

    answer_tokens = 100

    def chat_model(self, name: str = "") -> OllamaChatModel:
        return cast(OllamaChatModel, Bounded(super().chat_model(name), self.answer_tokens))

    def wake_worker(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class Row:
    """One turn. Counts are tokens; ``moved``: the history began elsewhere than in the last."""

    prompt: int
    evaluated: int
    bound: float
    block: int
    answer: int
    moved: bool

    @property
    def over(self) -> bool:
        """Whether more was evaluated than the bar allows."""
        return self.evaluated > self.bound

    def __str__(self) -> str:
        return (
            f"prompt {self.prompt:5}, evaluated {self.evaluated:5}, bar {self.bound:5.0f}"
            f" {'OVER' if self.over else 'ok'}{', the history moved' if self.moved else ''}"
        )


def facts_first(prompt: Prompt) -> list[ChatMessage]:
    """The same prompt with this turn's context in the system message, before the history."""
    messages = list(prompt.messages)
    context, _, words = messages[-1].content.rpartition("\n\n")
    messages[0] = replace(messages[0], content=f"{messages[0].content}\n\n{context}")
    messages[-1] = replace(messages[-1], content=words)
    return messages


def session(app: BoundedApp, turns: int, *, work: bool) -> list[tuple[Row, Prompt]]:
    """Runs the conversation; the first turn has no row."""
    rows: list[tuple[Row, Prompt]] = []
    session_id: int | None = None
    question = answer = first = ""
    for number in range(turns):
        Clock.turn = number
        text = QUESTIONS[number % len(QUESTIONS)]
        for event in app.assistant.turn(TurnRequest(text, session_id=session_id, tools=False)):
            if isinstance(event, Finished):
                result = event.result
        session_id = result.session_id
        assert result.prompt is not None
        *_, last = result.prompt.messages
        if number:
            new = [ChatMessage("user", question), ChatMessage("assistant", answer), last]
            count = app.estimator(result.model)
            row = Row(
                result.tokens["prompt"],
                result.tokens["evaluated"],
                BAR * count.count_messages(new),
                count.count(last.content) - count.count(text),
                result.tokens["answer"],
                first not in {"", result.prompt.messages[1].content},
            )
            first = result.prompt.messages[1].content
            rows.append((row, result.prompt))
            print(f"turn {number + 1:2}: {row}", flush=True)
        question, answer = text, result.answer
        if work:
            worker.run(app, linger=0.0)
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
    parser.add_argument("--seconds", type=float, default=100_000)
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    models = Paths.from_environment().models
    assistant.datetime = Clock  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(prefix="jb", ignore_cleanup_errors=True) as home:
        paths = Paths.from_environment({"JARVIS_HOME": home, "JARVIS_MODELS": str(models)})
        context = ContextSettings(seconds=options.seconds, answer_tokens=256)
        chat = replace(Config().chat, model=options.model, system=PERSONA)
        config = Config(user="bench", chat=chat, context=context)
        app = BoundedApp(config, paths)
        app.answer_tokens = options.answer
        try:
            memory.add(app, [memory.describe(fact) for fact in FACTS])
            missed = report(app, options.turns, work=options.worker)
        finally:
            app.close()
            launcher.stop(paths)
            postgres.remove(paths)
    raise SystemExit(missed)


def report(app: BoundedApp, turns: int, *, work: bool) -> int:
    """Prints the summary; returns whether a bar was missed."""
    made = session(app, turns, work=work)
    rows = [row for row, _ in made]
    ours = [row.evaluated for row in rows]
    moved = sum(row.moved for row in rows)
    over = sum(row.over and not row.moved for row in rows)
    print(
        f"median: answer {statistics.median(row.answer for row in rows):.0f}, block"
        f" {statistics.median(row.block for row in rows):.0f}, evaluated"
        f" {statistics.median(ours):.0f} (most {max(ours)}) tokens"
    )
    print(f"turns over the bar: {over} of {len(rows) - moved}; the history moved {moved} times")
    if moved:
        print(f"evaluated in all: {sum(ours)} of {sum(row.prompt for row in rows)}")
        return int(over > 0)
    other = other_order(app, [prompt for _, prompt in made])
    ratio = sum(ours) / max(sum(other), 1)
    print(f"against facts first: {sum(ours)} of {sum(other)} = {ratio:.2f} (bar {ORDER_BAR})")
    print(f"last turn: {ours[-1]} of {rows[-1].prompt}; facts first: {other[-1]}")
    return int(over > 0 or ratio > ORDER_BAR)


if __name__ == "__main__":
    main()
