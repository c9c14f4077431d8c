"""OpenAI's routes, which many clients of an Ollama use: the same answers in another form."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration import engine_server
from tests.integration.engine_server import Served

FIXED = {"model": "tiny", "temperature": 0, "max_tokens": 12}
HELLO = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with engine_server.home() as paths, engine_server.served(paths) as made:
        yield made


def events(served: Served, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream, which must end as OpenAI's do."""
    with served.client.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "text/event-stream"
        *lines, last = [line for line in response.iter_lines() if line]
    assert last == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_a_chat_whole_and_streamed(served: Served) -> None:
    body = {**FIXED, "messages": HELLO}
    whole = served.post("/v1/chat/completions", body).json()
    assert whole["object"] == "chat.completion"
    assert (whole["model"], whole["id"][:9]) == ("tiny", "chatcmpl-")
    (choice,) = whole["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert choice["message"]["role"] == "assistant"
    usage = whole["usage"]
    assert usage["completion_tokens"] == 12
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12

    chunks = events(served, "/v1/chat/completions", body)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)
    assert text == choice["message"]["content"]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["length"]
    native = served.chat("hi", options={"temperature": 0, "top_p": 1.0, "num_predict": 12})
    assert native["message"]["content"] == text


def test_usage_comes_with_the_stream_when_it_is_asked_for(served: Served) -> None:
    body = {**FIXED, "messages": HELLO, "stream_options": {"include_usage": True}}
    *_, last = events(served, "/v1/chat/completions", body)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 12


def test_sampling_fields_are_ollamas_options(served: Served) -> None:
    def said(**fields: Any) -> dict[str, Any]:
        body = {"model": "tiny", "messages": HELLO, "max_completion_tokens": 20, **fields}
        answer = served.post("/v1/chat/completions", body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["choices"][0]
        return found

    assert said(seed=4) == said(seed=4)
    assert said(seed=4) != said(seed=5)
    text = said(temperature=0)["message"]["content"]
    stop = next(char for char in text[3:] if char.isascii() and char.isprintable())
    for form in (stop, [stop]):
        cut = said(temperature=0, stop=form)
        assert cut["message"]["content"] == text[: text.index(stop)]
        assert cut["finish_reason"] == "stop"
    logged = said(logprobs=True, top_logprobs=2)["logprobs"]["content"]
    assert len(logged) == 20
    assert len(logged[0]["top_logprobs"]) == 2


def test_messages_in_openais_form_are_understood(served: Served) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    talk = [
        {"role": "developer", "content": "rules"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "result"},
    ]
    body = {**FIXED, "messages": talk, "tools": [TOOL]}
    assert served.post("/v1/chat/completions", body).json()["usage"]["prompt_tokens"] > 30
    shaped = {**FIXED, "messages": HELLO, "max_tokens": 200, "seed": 3}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"k": {"enum": ["a", "b"]}},
        "required": ["k"],
    }
    schema["additionalProperties"] = False
    shaped["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    text = served.post("/v1/chat/completions", shaped).json()["choices"][0]["message"]["content"]
    assert json.loads(text)["k"] in {"a", "b"}


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"model": "nope"}, 404, "model 'nope' not found"),
        ({"model": None}, 400, "model is required"),
        ({"messages": []}, 400, "messages must be"),
        ({"messages": ["x"]}, 400, "must be an object"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, 400, "audio"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "does not support images",
        ),
        ({"response_format": {"type": "yaml"}}, 400, "response_format"),
        ({"response_format": {"type": "json_schema"}}, 400, "json_schema"),
        ({"reasoning_effort": "high"}, 400, "does not support thinking"),
        ({"stream_options": 3}, 400, "stream_options"),
        ({"temperature": "hot"}, 400, "temperature"),
    ],
)
def test_errors_have_openais_form(
    served: Served, fields: dict[str, Any], status: int, words: str
) -> None:
    refused = served.post("/v1/chat/completions", {**FIXED, "messages": HELLO, **fields})
    assert refused.status_code == status
    error = refused.json()["error"]
    assert words in error["message"]
    assert set(error) == {"message", "type", "param", "code"}


def test_text_completions(served: Served) -> None:
    body = {**FIXED, "prompt": "once upon"}
    whole = served.post("/v1/completions", body).json()
    assert whole["object"] == "text_completion"
    chunks = events(served, "/v1/completions", body)
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert whole["choices"][0]["text"] == text
    assert served.post("/v1/completions", {**FIXED, "prompt": 3}).status_code == 400


def test_models_are_listed_and_found(served: Served) -> None:
    listed = served.client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert {each["id"] for each in listed["data"]} == {
        f"{name}:latest" for name in engine_server.MODELS
    }
    one = served.client.get("/v1/models/tiny").json()
    assert one in listed["data"]
    missing = served.client.get("/v1/models/no%2Fpe")
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")


def test_embeddings_as_numbers_and_packed(engine: Path) -> None:
    with engine_server.client(engine) as client:
        body: dict[str, Any] = {"model": "all-minilm", "input": ["a", "b"]}
        found = client.post("/v1/embeddings", json=body).json()
        assert [each["index"] for each in found["data"]] == [0, 1]
        assert found["usage"]["prompt_tokens"] == 6
        native = client.post("/api/embed", json=body).json()["embeddings"]
        assert [each["embedding"] for each in found["data"]] == native
        packed = client.post("/v1/embeddings", json={**body, "encoding_format": "base64"}).json()
        numbers = struct.unpack("<384f", base64.b64decode(packed["data"][0]["embedding"]))
        assert numbers == pytest.approx(native[0], abs=1e-6)
        short = client.post("/v1/embeddings", json={**body, "dimensions": 64}).json()
        assert len(short["data"][0]["embedding"]) == 64
        refused = client.post("/v1/embeddings", json={**body, "encoding_format": "hex"})
        assert refused.status_code == 400


def test_a_client_that_leaves_a_stream_stops_the_work(served: Served) -> None:
    body = {"model": "tiny", "messages": HELLO, "stream": True}
    body["max_tokens"] = 100_000
    with served.client.stream("POST", "/v1/chat/completions", json=body) as response:
        next(response.iter_lines())
    engine_server.wait_for(lambda: _requests(served.client) == 0)


def _requests(client: httpx.Client) -> int:
    return sum(each["requests"] for each in client.get("/api/ps").json()["models"])
