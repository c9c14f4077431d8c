"""The token budget: what is kept, what is lent, and what is never cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.config import ContextSettings
from jarvis.errors import UsageError
from jarvis.llm.protocols import ModelInfo
from jarvis.services.budget import (
    MIN_PROMPT,
    Budget,
    MessageTooLong,
    Share,
    fit,
    history_start,
)

COUNTS = st.lists(st.integers(1, 400), max_size=40)


def budget(
    *, speed: float | None = 400.0, num_ctx: int = 8192, window: int = 32768, max_tokens: int = 0
) -> Budget:
    return Budget.for_model(
        ModelInfo("m", "d", window), num_ctx, speed, ContextSettings(max_tokens=max_tokens)
    )


def test_the_total_is_what_the_machine_reads_in_the_seconds() -> None:
    assert budget(speed=400).total == 400 * 5 // 256 * 256
    assert "5 s" in budget(speed=400).reason


def test_a_fast_machine_is_bound_by_the_window() -> None:
    fast = budget(speed=50_000)
    assert fast.total == fast.limit == 8192 - 1024
    assert "window" in fast.reason


def test_the_smaller_of_both_windows_counts() -> None:
    assert budget(window=2048).window == 2048
    assert budget(window=0, num_ctx=4096).window == 4096


def test_a_slow_machine_keeps_the_least_and_says_what_that_costs() -> None:
    slow = budget(speed=50)
    assert slow.total == MIN_PROMPT
    assert "20 s" in slow.reason


def test_the_configured_bound_holds() -> None:
    assert budget(speed=50_000, max_tokens=700).total == 700


def test_a_window_in_which_nobody_can_talk_is_refused() -> None:
    with pytest.raises(UsageError):
        budget(num_ctx=128)


def test_prompt_and_answer_never_exceed_the_window() -> None:
    small = budget(num_ctx=600, speed=None)
    assert small.total + small.shares[Share.ANSWER] <= 600


@given(
    history=COUNTS,
    facts=COUNTS,
    turns=COUNTS,
    documents=COUNTS,
    question=st.integers(1, 1500),
    persona=st.integers(1, 300),
)
def test_what_fits_is_within_the_total_and_prefers_the_better(
    history: list[int],
    facts: list[int],
    turns: list[int],
    documents: list[int],
    question: int,
    persona: int,
) -> None:
    whole = budget()
    result = fit(
        whole,
        persona=persona,
        question=question,
        history=history,
        facts=facts,
        turns=turns,
        documents=documents,
    )
    used = (
        persona
        + question
        + sum(history[result.history_from :])
        + sum(result.facts)
        + sum(result.turns)
        + sum(result.documents)
    )
    needed = persona + question + sum(facts[:1]) + sum(history[-1:])
    assert used == result.total <= max(whole.total, needed)
    assert result.total <= whole.limit
    assert all(kept in {0, count} for kept, count in zip(result.facts, facts, strict=True))
    assert all(kept <= count for kept, count in zip(result.documents, documents, strict=True))


def test_unused_shares_are_lent() -> None:
    whole = budget()
    result = fit(whole, persona=100, question=20, documents=[500, 500])
    assert result.documents == (500, 500)
    assert sum(result.documents) > whole.shares[Share.DOCUMENTS]


def test_a_fact_stays_when_history_is_longer_than_the_window() -> None:
    result = fit(budget(), persona=100, question=20, history=[300] * 50, facts=[20, 20, 20])
    assert result.facts == (20, 20, 20)
    assert 0 < result.history_from < 50


def test_what_is_left_out_is_said() -> None:
    result = fit(budget(speed=None), persona=100, question=20, documents=[900, 900])
    assert any("left out" in note for note in result.notes)


def test_an_overlong_message_is_refused_with_numbers() -> None:
    with pytest.raises(MessageTooLong) as caught:
        fit(budget(), persona=100, question=9000)
    assert caught.value.tokens == 9000
    assert caught.value.limit < 7168
    assert "9,000" in caught.value.message
    assert f"{caught.value.parts} or more parts" in caught.value.hint


def test_the_newest_turn_stays_however_long() -> None:
    result = fit(budget(), persona=100, question=20, history=[100] * 9 + [3000])
    assert result.history_from == 9
    assert result.total >= 3120
    gone = fit(budget(), persona=100, question=20, history=[100, 9000])
    assert gone.history_from == 2
    assert gone.total <= budget().limit


def test_history_that_falls_out_without_a_summary_is_said() -> None:
    def notes(summary: int) -> str:
        made = fit(budget(), persona=100, question=20, summary=summary, history=[300] * 50)
        return " ".join(made.notes)

    assert "no summary yet" in notes(0)
    assert "no summary yet" not in notes(40)


def test_a_message_within_the_window_is_read_whole_and_its_price_said() -> None:
    result = fit(budget(speed=400), persona=100, question=4000, history=[100] * 5, facts=[20])
    assert result.total >= 4120
    assert result.facts == (20,)
    assert any("10 s" in note for note in result.notes)


@given(history=COUNTS, share=st.integers(0, 2000))
def test_the_start_of_history_only_moves_forward_and_fits(history: list[int], share: int) -> None:
    starts = [history_start(history[:size], share) for size in range(len(history) + 1)]
    assert all(first <= second for first, second in pairwise(starts))
    for size, start in enumerate(starts):
        kept = history[start:size]
        assert sum(kept) <= share or len(kept) == 1
        assert kept or size == 0


def test_the_start_of_history_stays_put_for_several_turns() -> None:
    starts = [history_start([100] * size, 1000) for size in range(41)]
    moves = sum(first != second for first, second in pairwise(starts))
    assert moves <= 8
