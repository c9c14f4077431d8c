"""How near is near enough, found out for each embedding model when it is first used.

Models differ: with one an answer has a cosine of 0.26 to its question, with another every two
sentences have 0.6. So the model is asked: it embeds questions about a person, the facts that
answer them, and by that also facts that do not. The threshold is the cosine that only a few in a
thousand of the latter reach: a store holds hundreds of facts, and all but one or two of them are
beside the point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jarvis.llm.protocols import Embedder
    from jarvis.types import Vector

PAIRS: Final = (
    ("Where do I work?", "User is employed at a shipyard"),
    ("What do I do for a living?", "User teaches chemistry at a secondary school"),
    ("Which town is my home in?", "User's flat is in Ghent"),
    ("What pets do I have?", "User keeps two parrots"),
    ("What is my partner called?", "User is married to Ingrid"),
    ("When was my son born?", "User's son Milo was born in April 2019"),
    ("Am I able to eat peanuts?", "User is allergic to nuts"),
    ("What should I avoid in restaurants?", "User cannot digest lactose"),
    ("What kind of music do I like?", "User listens to jazz while cooking"),
    ("Which instrument do I play?", "User has practised the cello since childhood"),
    ("How do I get to the office?", "User commutes by tram"),
    ("What car do I drive?", "User bought a second-hand electric van"),
    ("Which languages can I speak?", "User is fluent in Portuguese and Danish"),
    ("What am I studying?", "User is doing a degree in archaeology"),
    ("How is my app coming along?", "User is developing a budgeting tool in Kotlin"),
    ("What programming language do I prefer?", "User writes everything in Elixir"),
    ("Which editor should the plugin be for?", "User works in Emacs all day"),
    ("What laptop do I own?", "User has a ThinkPad that runs Debian"),
    ("Where are we going on holiday?", "User has booked a cabin in Norway for July"),
    ("What is my favourite food?", "User loves mushroom risotto most of all"),
    ("Do I drink coffee?", "User gave up caffeine last winter"),
    ("What sport do I do?", "User rows on the river three times a week"),
    ("How did my race go?", "User finished a half marathon in two hours"),
    ("What injury did I have?", "User tore a ligament in the left knee"),
    ("Which medicine do I take?", "User is on blood pressure tablets"),
    ("When do I see the dentist?", "User has a check-up for the teeth on 14 June"),
    ("What book am I reading?", "User is halfway through a novel by Ursula Le Guin"),
    ("Which films do I enjoy?", "User watches old westerns at the weekend"),
    ("What does my sister do?", "User's sister is a pilot"),
    ("Who is my boss?", "User reports to a manager named Farid"),
    ("How should you answer me?", "User prefers short replies without bullet points"),
    ("What do I want to achieve this year?", "User's goal is to save for a house"),
    ("How much rent do I pay?", "User's landlord asks 900 euros a month"),
    ("What did I plant in the garden?", "User grows tomatoes and beans on the balcony"),
    ("What is my thesis about?", "User is writing about bee navigation"),
    ("Which team do I support?", "User never misses a match of Ajax"),
    ("What did I cook for the party?", "User made paella for twelve guests"),
    ("What is broken in my house?", "User's boiler has been leaking since Monday"),
    ("Which phone plan do I have?", "User pays for unlimited mobile data"),
    ("What am I afraid of?", "User gets nervous in lifts and tunnels"),
)
"""Questions of a person, each with the fact that answers it; every other fact does not."""

PASSING: Final = 0.015
"""Share of the facts that do not answer which may pass: of 200 unrelated ones about three."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found.

    Attributes:
        threshold: the cosine from which on a fact may answer a question.
        kept: share of the answers at or over it.
        passed: share of the other facts at or over it.
    """

    threshold: float
    kept: float
    passed: float

    def details(self) -> dict[str, Any]:
        """For the database and ``jarvis model status``."""
        return {
            "pairs": len(PAIRS),
            "answers_kept": round(self.kept, 3),
            "others_passed": round(self.passed, 3),
        }


def calibrate(embedder: Embedder) -> Calibration:
    """Embeds the pairs and finds the threshold.

    Raises:
        ModelUnavailable: the model does not answer or gives no usable vectors.
    """
    questions = [_unit(embedder.embed_query(question)) for question, _ in PAIRS]
    facts = [_unit(vector) for vector in embedder.embed_documents([fact for _, fact in PAIRS])]
    answers: list[float] = []
    others: list[float] = []
    for row, question in enumerate(questions):
        for column, fact in enumerate(facts):
            cosine = math.fsum(a * b for a, b in zip(question, fact, strict=True))
            (answers if row == column else others).append(cosine)
    return part(answers, others)


def part(answers: list[float], others: list[float]) -> Calibration:
    """The cosine that ``PASSING`` of the facts that do not answer reach."""
    threshold = sorted(others)[-math.ceil(PASSING * len(others))]
    return Calibration(threshold, _share(answers, threshold), _share(others, threshold))


def _share(cosines: list[float], limit: float) -> float:
    return sum(cosine >= limit for cosine in cosines) / len(cosines)


def _unit(vector: Vector) -> list[float]:
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length for x in vector]
