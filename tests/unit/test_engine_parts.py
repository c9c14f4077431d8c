"""The engine's small parts: options, durations, roles, batch sizes, the default model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis.engine import catalogue, messages, options, speeds, templates
from jarvis.engine.origins import Origins
from jarvis.engine.pool import FOREVER
from jarvis.engine.request import HTTPError

GIB = 2**30


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None), (0, 0), (300, 300), (1.5, 1.5), ("5m", 300), ("1h30m", 5400), ("100ms", 0.1),
        ("1.5h", 5400), ("30", 30), (-1, FOREVER), ("-1m", FOREVER), ("-1", FOREVER), ("0", 0),
        ("+2s", 2), ("10µs", 1e-5),
    ],
)  # fmt: skip
def test_keep_alive(value: object, seconds: float | None) -> None:
    assert options.keep_alive(value) == (seconds if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("value", ["", "m", "5 minutes", "1h-3m", True, [], {}, "inf", "nan"])
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(HTTPError) as refused:
        options.keep_alive(value)
    assert refused.value.status == 400


def test_the_request_comes_before_the_model_and_the_model_before_the_defaults() -> None:
    merged = options.merged({"temperature": 0.1, "top_k": 3}, {"temperature": 0.9, "top_p": None})
    fields = options.sampling(merged, 1000)
    assert (fields["temperature"], fields["top_k"], fields["top_p"]) == (0.9, 3, 0.9)
    assert fields["n_predict"] == 10_000
    assert options.sampling({"num_predict": 7, "stop": ["a", ""]}, 10)["stop"] == ["a"]
    assert options.num_ctx({"num_ctx": 0}) is None
    assert options.num_ctx({"num_ctx": 10**12}) == 1 << 24


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_no_value_of_an_option_is_more_than_an_error(value: object) -> None:
    for key in ("temperature", "seed", "num_ctx", "num_predict", "stop", "mirostat", "unknown"):
        try:
            options.sampling(options.merged({}, {key: value}), 100)
        except HTTPError as error:
            assert error.status == 400


@pytest.mark.parametrize(
    ("speed", "batch"), [(0.1, 8), (16, 8), (37, 16), (72, 32), (141, 64), (1000, 256), (1e6, 512)]
)
def test_a_batch_takes_half_a_second_at_most(speed: float, batch: int) -> None:
    assert speeds.batch_size(speed) == batch
    assert batch == speeds.SMALLEST_BATCH or batch / speed <= speeds.BATCH_SECONDS


@pytest.mark.parametrize(
    ("cores", "memory", "huggingface", "name"),
    [
        (2, 24 * GIB, True, "qwen2.5-coder:0.5b"),
        (8, 4 * GIB, True, "qwen2.5-coder:0.5b"),
        (4, 8 * GIB, True, "qwen2.5:1.5b"),
        (4, int(7.7 * GIB), False, "qwen2.5-coder:1.5b"),
        (1, 1 * GIB, False, "qwen2.5-coder:0.5b"),
    ],
)
def test_the_default_chat_model(cores: int, memory: int, huggingface: bool, name: str) -> None:
    chosen = catalogue.default_chat_model(cores, memory, huggingface=huggingface)
    assert chosen.name == name
    assert f"{cores} cores" in chosen.reason


def test_the_catalogue_is_whole() -> None:
    for name, entry in catalogue.CATALOGUE.items():
        assert entry.name == name
        assert catalogue.find(name.upper() + ("" if ":" in name else ":latest")) is entry
        for file in entry.files:
            assert len(file.sha256) == 64
            assert file.size > 0
            assert bool(file.member) == bool(entry.wheels)
        assert all("==" in wheel for wheel in entry.wheels)
    assert catalogue.near("qwen2.5-codr:0.5b")[0] == "qwen2.5-coder:0.5b"
    assert catalogue.near("qwen2.5")
    assert catalogue.near("zzzz") == []


def talk(*turns: tuple[str, str]) -> messages.Messages:
    return [{"role": role, "content": content} for role, content in turns]


def test_the_plainest_variant_alternates_and_keeps_every_word() -> None:
    given_talk = talk(
        ("system", "one"), ("user", "two"), ("user", "three"), ("system", "four"),
        ("assistant", "five"), ("tool", "six"), ("user", "seven"), ("assistant", "eight"),
    )  # fmt: skip
    first, *_, last = messages.variants(given_talk)
    assert first == given_talk
    roles = [each["role"] for each in last]
    assert roles == ["user", "assistant", "user", "assistant"]
    text = " ".join(each["content"] for each in last)
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight"):
        assert word in text


@given(st.lists(st.tuples(st.sampled_from(messages.ROLES), st.text(min_size=1)), min_size=1))
def test_the_plainest_variant_of_any_talk_alternates(turns: list[tuple[str, str]]) -> None:
    *_, last = messages.variants(talk(*turns))
    expected = ["user", "assistant"] * len(last)
    assert [each["role"] for each in last] == expected[: len(last)]


def test_the_oldest_go_but_not_the_rules_nor_the_question() -> None:
    given_talk = talk(
        ("system", "s"), ("user", "a"), ("assistant", "b"), ("tool", "c"), ("user", "q")
    )
    kept = messages.without_oldest(given_talk, 2)
    assert [each["content"] for each in kept] == ["s", "q"]
    assert messages.without_oldest(given_talk, 99)[-1]["content"] == "q"


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost:11434", True), ("127.0.0.1", True), ("[::1]:80", True), ("x.localhost", True),
        ("evil.example", False), ("127.0.0.1.evil.example", False), ("", True), ("[", False),
        ("localhost.evil.example", False), ("192.168.1.5", True), ("9.9.9.9", False),
        ("host.docker.internal", True), ("internal.example", False),
    ],
)  # fmt: skip
def test_hosts_of_a_loopback_listener(host: str, allowed: bool) -> None:
    assert Origins("127.0.0.1").host_allowed(host) is allowed
    assert Origins("0.0.0.0").host_allowed(host)


def test_a_template_that_shows_calls_in_doubled_braces_is_mended() -> None:
    before = (
        r'{{- "<tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n" }}'
    )
    right = (
        r'{{- "<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n" }}'
    )
    assert templates.mended(before) == right
    assert templates.mended(right) == ""
    assert templates.mended("{{- messages[0].content }}") == ""
