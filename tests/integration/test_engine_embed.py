"""Embeddings of the catalogue's model: the right vectors, whatever they are asked together with."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest

from tests.integration import engine_server

REFERENCE = (0.01007, -0.00176, 0.05007, 0.04693, 0.05492)
"""How Ollama's vector of "why is the sky blue?" begins (all-minilm, F16)."""

WORDS = "the user said that a wiki walks home in May because rivers rise near old stone".split()


@pytest.fixture(scope="module")
def client(engine: Path) -> Iterator[ollama.Client]:
    transport = httpx.HTTPTransport(uds=str(engine))
    made = ollama.Client(host="http://localhost", transport=transport, timeout=120)
    yield made
    made._client.close()


def embed(client: ollama.Client, texts: str | list[str], **more: Any) -> list[Sequence[float]]:
    return list(client.embed(model="all-minilm", input=texts, **more).embeddings)


def cosine(one: Sequence[float], two: Sequence[float]) -> float:
    dot = math.fsum(a * b for a, b in zip(one, two, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*two))


def test_the_vectors_are_those_of_ollama(client: ollama.Client) -> None:
    (vector,) = embed(client, "why is the sky blue?")
    assert len(vector) == 384
    assert cosine(vector[:5], REFERENCE) >= 0.999
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-3)


def test_a_vector_does_not_depend_on_its_batch(client: ollama.Client) -> None:
    random.seed(4)
    texts = [" ".join(random.choices(WORDS, k=random.randint(1, 160))) for _ in range(90)]
    together = embed(client, texts)
    shuffled = list(range(len(texts)))
    random.shuffle(shuffled)
    again = embed(client, [texts[number] for number in shuffled])
    for position, number in enumerate(shuffled):
        assert cosine(together[number], again[position]) >= 0.9999
    for number in (0, 17, 89):
        assert cosine(together[number], embed(client, texts[number])[0]) >= 0.9999


def test_similar_texts_are_near_and_others_far(client: ollama.Client) -> None:
    near, same, far = embed(
        client, ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "Rates rose in May."]
    )
    assert cosine(near, same) > 0.6 > 0.3 > cosine(near, far)


def test_long_texts_are_cut_to_the_window_or_refused(client: ollama.Client) -> None:
    long = "river stone " * 300
    whole = client.embed(model="all-minilm", input=long)
    assert whole.prompt_eval_count == 256
    # Everything behind the window is without effect.
    other = client.embed(
        model="all-minilm", input="river stone " * 128 + "a quite other ending " * 50
    )
    assert cosine(whole.embeddings[0], other.embeddings[0]) >= 0.9999
    with pytest.raises(ollama.ResponseError) as refused:
        client.embed(model="all-minilm", input=[long, "short"], truncate=False)
    assert refused.value.status_code == 400
    assert "exceeds the context length" in refused.value.error
    fitting = client.embed(model="all-minilm", input="river stone " * 127, truncate=False)
    assert fitting.prompt_eval_count == 256


@pytest.mark.parametrize(
    "text",
    [
        "9" * 9000,
        "1,2,3\n" * 800,
        "aGVsbG8=" * 900,
        "\U0001f600" * 3000,
        "=" * 5000,
        "\n",
        " ",
        "日" * 900,
    ],
)
def test_strange_texts_have_vectors(client: ollama.Client, text: str) -> None:
    (vector,) = embed(client, text)
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-3)


def test_dimensions_lists_and_nothing(client: ollama.Client) -> None:
    (short,) = embed(client, "hello there", dimensions=64)
    (full,) = embed(client, ["hello there"])
    assert len(short) == 64
    assert cosine(short, full[:64]) >= 0.9999
    assert math.isclose(math.hypot(*short), 1, abs_tol=1e-6)
    assert embed(client, []) == []
    assert client.embeddings(model="all-minilm", prompt="hello there").embedding == list(full)


def test_a_client_that_leaves_stops_the_batch(client: ollama.Client, engine: Path) -> None:
    def requests() -> int:
        return sum(each["requests"] for each in asking.get("/api/ps").json()["models"])

    with engine_server.client(engine) as asking:
        embed(client, "load it")
        texts = [f"a text about river {number}" for number in range(50_000)]
        with pytest.raises(httpx.ReadTimeout):
            asking.post("/api/embed", json={"model": "all-minilm", "input": texts}, timeout=0.5)
        # Long before fifty thousand texts could be done.
        engine_server.wait_for(lambda: requests() == 0, 30)


def test_what_a_model_is_not_for_is_said(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError) as refused:
        client.chat(model="all-minilm", messages=[{"role": "user", "content": "hi"}])
    assert (refused.value.status_code, refused.value.error) == (
        400,
        '"all-minilm" does not support chat',
    )
    with pytest.raises(ollama.ResponseError, match="does not support generate"):
        client.generate(model="all-minilm", prompt="hi")
