"""Words: what is found by which."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from jarvis.retrieval import terms
from jarvis.retrieval.words import content_words, frequencies, stemmer, words


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("I was running in the hills", "run hill"),
        ("The cat's bowl is empty", "cats"),
        ("The cat's bowl is empty", "cat’s"),
        ("We rewrote it in C++ last year", "c++"),
        ("We rewrote it in C++ last year", "C++"),
        ("never type rm -rf / as root", "rm -rf"),
        ("never type rm -rf / as root", "-rf"),
        ("the bug is in src/x.py", "src/x.py"),
        ("the bug is in src/x.py", "src"),
        ("we shipped v1.2.3 today", "v1.2.3"),
        ("please re-run the tests", "re-run"),
        ("please re-run the tests", "run"),
        ("write to ana@example.org", "ana@example.org"),
        ("the flag --min-similarity", "--min-similarity"),
        ("昨日、駅前でたこ焼きを食べた", "たこ焼き"),
        ("私の猫は黒い", "猫"),
        ("我住在北京", "北京"),
        ("서울에 살아요", "서울"),
        ("naïve café", "naive cafe"),
        ("naive cafe", "Naïve CAFÉ"),
        ("Ｊａｒｖｉｓ full width", "jarvis"),
        ("Clause 7 says nothing", "clause 7"),
        ("I don't eat meat", "I do not eat meat"),
        ("pizza 🍕 tonight", "🍕"),
    ],
)
def test_a_text_is_found_by(stored: str, asked: str) -> None:
    assert set(content_words(asked)) <= set(words(stored)), (list(words(stored)), asked)


def test_what_differs_stays_apart() -> None:
    assert "c++" not in list(words("the letter c"))
    assert set(content_words("东京")) & set(words("我住在北京")) == {"京"}


@pytest.mark.parametrize("query", ["", "   ", "a & | ! ( :*", "'\"\\", "\x00", "(((", "\ud800"])
def test_any_string_is_a_legal_question(query: str) -> None:
    assert isinstance(content_words(query), list)
    assert isinstance(terms.question(1, query, "english"), dict)


@given(st.text())
def test_no_text_fails(text: str) -> None:
    for word in words(text):
        assert word
        assert 1 <= terms.term(7, word) <= 999_999_999


def test_a_question_of_stop_words_keeps_them() -> None:
    assert content_words("to be or not to be") == ["to", "be", "or", "not"]
    assert content_words("what is the name of my dog") == ["name", "dog"]


def test_other_languages_are_stemmed_by_their_own_rules() -> None:
    assert list(words("Häuser", "german")) == list(words("Haus", "german"))
    assert list(words("Häuser", "none")) == ["hauser"]
    with pytest.raises(ValueError, match="klingon"):
        stemmer("klingon")


def test_threads_that_stem_at_once_do_not_mix_their_words() -> None:
    english = snowballstemmer.stemmer("english")
    lists = [[f"{name}{number:04}izations" for number in range(600)] for name in "abcd"]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(lists)) as pool:
            found = list(pool.map(lambda some: [stemmer("english")(word) for word in some], lists))
    finally:
        sys.setswitchinterval(before)
    assert found == [english.stemWords(some) for some in lists]


def test_terms_of_two_users_differ() -> None:
    assert terms.term(1, "oslo") != terms.term(2, "oslo")
    assert terms.term(1, "oslo") == terms.term(1, "oslo")


def test_a_repeated_word_counts_more_but_ever_less() -> None:
    one, two, many = (
        terms.weigh("memory", {1: count, 2: 10.0 - count})[1] for count in (1.0, 2.0, 5.0)
    )
    assert one < two < many < 2.2
    assert two - one > (many - two) / 3


def test_idf_is_positive_and_falls() -> None:
    found = [terms.idf(100, holding) for holding in (0, 1, 50, 100, 120)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 0


def test_an_endless_text_keeps_a_bounded_number_of_terms() -> None:
    counts = terms.count(1, " ".join(f"w{i}" for i in range(20_000)), "english")
    assert len(counts) == terms.MAX_TERMS


def test_frequencies_are_the_counted_words() -> None:
    for text in (
        "The cats' cat saw 3 cats at C:\\x\\y.txt, C++ and rm -rf; v1.2.3, café CAFÉ ﬁn 日本語日本",
        "0.845 0.845 845 6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
        "",
    ):
        for language in ("english", "german", "none"):
            assert frequencies(text, language) == Counter(words(text, language))


def test_numbers_and_hashes_are_no_words_to_stem() -> None:
    digest = "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407es"
    assert list(words(f"7s {digest} 1984")) == ["7s", digest, "1984"]
    assert list(words("internationalizations")) == ["internation"]
