"""The gate, calibration and collapsing: pure rules."""

from __future__ import annotations

import pytest

from jarvis.retrieval import calibration, collapse, gate
from jarvis.retrieval.calibration import PAIRS


def statement(text: str) -> collapse.Statement:
    return collapse.statement(text, "english")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("When did Melanie paint a sunrise?", ["Melanie"]),
        ("What is Ana's job?", ["Ana"]),
        ("Is it warm in May or on Monday?", []),
        ("Where do I live? Maybe in Oslo.", ["Oslo"]),
        ("I'm tired. I've slept badly", []),
        ("Who?", []),
        ("WHERE DOES ANA LIVE", []),
        ("tell Peter-Paul", ["Peter-Paul"]),
    ],
)
def test_names(text: str, found: list[str]) -> None:
    assert gate.names(text) == found


def test_the_question_decides_how_near_is_near_enough() -> None:
    known = {"melani": 3, "paint": 2}
    personal = gate.make("What does my sister paint?", "english", 0.2, None, known)
    general = gate.make("What does Melanie paint?", "english", 0.2, None, known)
    unknown = gate.make("What does Caroline paint?", "english", 0.2, None, known)
    assert personal.cosine == 0.2
    assert personal.cosine < general.cosine < unknown.cosine < 1
    assert unknown.names == ("Caroline",)
    assert unknown.describe()["unknown_names"] == ["Caroline"]


def test_passages_have_a_threshold_of_their_own() -> None:
    general = gate.make("What is the notice period?", "english", 0.2, None, {})
    passage = gate.make("What is the notice period?", "english", 0.2, None, {}, passages=True)
    mine = gate.make("What is my notice period?", "english", 0.2, None, {}, passages=True)
    assert 0.2 < passage.cosine == mine.cosine < general.cosine


def test_the_user_may_fix_the_threshold() -> None:
    assert gate.make("What does Caroline paint?", "english", 0.2, 0.7, {}).cosine == 0.7


def test_an_uncalibrated_model_has_a_threshold() -> None:
    assert gate.make("my dog", "english", None, None, {}).cosine == gate.DEFAULT_THRESHOLD


def test_matched_share() -> None:
    weights = {1: 3.0, 2: 1.0}
    assert gate.matched_share({1}, weights) == 0.75
    assert gate.matched_share({1, 2, 9}, weights) == 1
    assert gate.matched_share(set(), {}) == 0


def test_calibration_lets_few_strangers_pass() -> None:
    others = [number / 1000 for number in range(1000)]
    found = calibration.part([0.2, 0.99, 0.995], others)
    assert found.threshold == pytest.approx(0.985)
    assert found.passed == pytest.approx(0.015)
    assert found.kept == pytest.approx(2 / 3)


def test_calibration_fits_every_scale() -> None:
    """A model whose every two sentences have 0.6 gets a threshold above that."""
    others = [0.6 + number / 10_000 for number in range(1000)]
    assert calibration.part([0.75] * 40, others).threshold > 0.69


def test_pairs_are_distinct() -> None:
    assert (
        len({question for question, _ in PAIRS}) == len({fact for _, fact in PAIRS}) == len(PAIRS)
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("User lives in Oslo", "User lives in Oslo."),
        ("User lives in Oslo", "The user lives in Oslo"),
        ("User likes strong black tea", "User likes strong, black tea"),
    ],
)
def test_says_the_same(first: str, second: str) -> None:
    assert collapse.same(statement(first), statement(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("User prefers tea over coffee", "User prefers coffee over tea"),
        ("User likes mushrooms", "User dislikes mushrooms"),
        ("User likes mushrooms", "User does not like mushrooms"),
        ("User has 12 files", "User has 9 files"),
        ("User has two cats", "User has three cats"),
        ("User lives in Oslo", "User lives in Bergen"),
        ("我住在北京", "我住在东京"),
        ("", "User lives in Oslo"),
    ],
)
def test_does_not_say_the_same(first: str, second: str) -> None:
    assert not collapse.same(statement(first), statement(second))
