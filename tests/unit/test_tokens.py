"""The token estimate: learnt from what the server counts, kept between runs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.llm.protocols import ChatMessage, ChatUsage
from jarvis.services.tokens import PRIOR, TokenEstimator, tally


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage("user", text)]


ENGLISH = "The ferry to the island leaves every morning at nine, except on public holidays. " * 20


def test_scripts_weigh_differently() -> None:
    estimator = TokenEstimator("m")
    assert estimator.count("昨日駅前でたこ焼きを食べた") > estimator.count("abcdefghijklm")
    assert estimator.count("1234567890") == 10
    assert estimator.count("") == 0


@given(st.text(max_size=200))
def test_every_character_is_counted_in_one_class(text: str) -> None:
    counts = tally(text)
    assert set(counts) <= set(PRIOR)
    assert all(number > 0 for number in counts.values())
    assert bool(counts) == bool(text.strip() or "\n" in text or len(text) > 1)


@pytest.mark.parametrize("step", [1, 300])
def test_a_very_long_text_is_estimated_from_pieces_of_it(step: int) -> None:
    # Scripts that change in the middle, and that take turns.
    whole = (ENGLISH * 120)[:200_000] + "東京都の天気は晴れです" * 20_000
    text = whole if step == 1 else "".join(whole[start::step] for start in range(step))
    parts = [text[start : start + 50_000] for start in range(0, len(text), 50_000)]
    estimator = TokenEstimator("m")
    assert estimator.count(text) == pytest.approx(sum(map(estimator.count, parts)), rel=0.03)


def test_it_converges_to_what_the_server_counts() -> None:
    estimator = TokenEstimator("m")
    for _ in range(12):
        estimator.observe(user(ENGLISH), ChatUsage(prompt_tokens=520))
    assert estimator.count_messages(user(ENGLISH)) == pytest.approx(520, rel=0.02)


def test_each_script_is_corrected_by_its_own_texts() -> None:
    estimator = TokenEstimator("m")
    before = estimator.count(ENGLISH)
    for _ in range(10):
        estimator.observe(user("東京都の天気は晴れです" * 20), ChatUsage(prompt_tokens=120))
    assert estimator.count(ENGLISH) == pytest.approx(before, rel=0.1)
    assert estimator.count("東京都の天気は晴れです" * 20) < 130


def test_figures_are_kept_between_runs_apart_by_model_and_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "tokens.json"
    usage = ChatUsage(
        prompt_tokens=500, evaluated_tokens=400, answer_tokens=50, prompt_ms=2000, answer_ms=2500
    )
    TokenEstimator("a", path).observe(user(ENGLISH), usage)
    TokenEstimator("b", path).observe(user(ENGLISH), ChatUsage(prompt_tokens=300))
    again = TokenEstimator("a", path)
    assert again.observations == 1
    assert again.read_speed == pytest.approx(200)
    assert again.write_speed == pytest.approx(20)
    assert again.count(ENGLISH) != TokenEstimator("b", path).count(ENGLISH)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["tokens.json"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"m": 3}', '{"m": {"weights": {"latin": "x", "cjk": 1e99}}}']
)
def test_a_damaged_file_means_the_priors(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(content)
    estimator = TokenEstimator("m", path)
    assert estimator.count("hello world") == TokenEstimator("m").count("hello world")
    estimator.observe(user(ENGLISH), ChatUsage(prompt_tokens=400))
    assert "m" in json.loads(path.read_text())


def test_a_cut_prompt_is_noticed_said_and_not_learnt_from() -> None:
    estimator = TokenEstimator("m")
    for _ in range(4):
        estimator.observe(user(ENGLISH), ChatUsage(prompt_tokens=420))
    before = estimator.count(ENGLISH)
    seen = estimator.observe(user(ENGLISH * 4), ChatUsage(prompt_tokens=510), num_ctx=8192)
    assert seen.cut
    assert "510" in seen.warning
    assert estimator.count(ENGLISH) == before


def test_a_prompt_longer_than_the_window_was_cut() -> None:
    seen = TokenEstimator("m").observe(
        user(ENGLISH * 12), ChatUsage(prompt_tokens=2000), num_ctx=2048
    )
    assert seen.cut


def test_an_estimate_that_is_merely_off_is_no_cut() -> None:
    seen = TokenEstimator("m").observe(user(ENGLISH), ChatUsage(prompt_tokens=300), num_ctx=8192)
    assert not seen.cut
    assert seen.warning == ""


def test_a_server_that_says_nothing_teaches_nothing() -> None:
    estimator = TokenEstimator("m")
    assert not estimator.observe(user(ENGLISH), ChatUsage()).cut
    assert estimator.observations == 0


def test_no_speed_from_a_server_that_hides_its_cache() -> None:
    estimator = TokenEstimator("m")
    talk = [ChatMessage("user", ENGLISH), ChatMessage("assistant", "ok"), *user("and?")]
    usage = ChatUsage(prompt_tokens=500, evaluated_tokens=500, prompt_ms=10)
    estimator.observe(talk, usage)
    assert estimator.read_speed is None


@given(st.text(max_size=400), st.integers(1, 60))
def test_cut_fits_and_is_a_beginning(text: str, tokens: int) -> None:
    estimator = TokenEstimator("m")
    result = estimator.cut(text, tokens)
    assert estimator.count(result) <= tokens
    if result != text:
        assert result == "" or (result.endswith(" […]") and text.startswith(result[:-4]))


def test_cut_ends_a_sentence_where_one_is_near() -> None:
    text = "First sentence is here. Second sentence is there. Third one is far away from it."
    assert TokenEstimator("m").cut(text, 16).endswith("there. […]")
