"""Ollama's API, field by field, over a real llama.cpp with tiny models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from jarvis.engine import http as engine_http
from tests.integration import engine_server
from tests.integration.engine_server import Served

FIXED = {"temperature": 0, "num_predict": 12}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with engine_server.home() as paths, engine_server.served(paths) as made:
        yield made


def test_the_front_page(served: Served) -> None:
    got = served.client.get("/")
    assert (got.status_code, got.text) == (200, "Ollama is running")
    head = served.client.head("/")
    assert (head.status_code, head.text) == (200, "")
    assert served.client.get("/api/nothing").status_code == 404
    assert served.client.get("/api/chat").status_code == 405
    assert re.fullmatch(r"\d+\.\d+\.\d+", served.client.get("/api/version").json()["version"])


def test_tags(served: Served) -> None:
    models = served.client.get("/api/tags").json()["models"]
    assert {model["name"] for model in models} == {
        f"{name}:latest" for name in engine_server.MODELS
    }
    for model in models:
        assert model["model"] == model["name"]
        assert re.fullmatch(r"[0-9a-f]{64}", model["digest"])
        assert model["size"] > 400_000
        assert datetime.fromisoformat(model["modified_at"]).tzinfo
        assert model["details"]["family"] == "llama"
        assert model["details"]["families"] == ["llama"]
        assert model["details"]["format"] == "gguf"
        assert model["details"]["quantization_level"] == "F32"
        assert re.fullmatch(r"[\d.]+[KMB]", model["details"]["parameter_size"])


def test_show(served: Served) -> None:
    shown = served.post("/api/show", {"model": "tiny", "verbose": True}).json()
    assert shown["capabilities"] == ["completion", "tools"]
    assert shown["model_info"]["general.architecture"] == "llama"
    assert shown["model_info"]["llama.context_length"] == 32_768
    assert shown["model_info"]["tokenizer.ggml.tokens"][:3] == ["<unk>", "<s>", "</s>"]
    assert shown["model_info"]["general.parameter_count"] > 100_000
    assert "<assistant>" in shown["template"]
    assert shown["modelfile"].startswith("# Modelfile")
    assert {"name": "output_norm.weight", "type": "F32", "shape": [64]} in shown["tensors"]
    brief = served.post("/api/show", {"model": "tiny"}).json()
    assert brief["model_info"]["tokenizer.ggml.tokens"] == []
    assert "tensors" not in brief
    served.chat("measure me")
    speeds = served.post("/api/show", {"model": "tiny"}).json()["speeds"]
    assert speeds["prompt_per_second"] > 0
    assert speeds["batch"] in {8, 16, 32, 64, 128, 256, 512}


def test_names_with_and_without_tag_and_case(served: Served) -> None:
    for name in ("tiny", "tiny:latest", "TINY"):
        assert served.post("/api/show", {"model": name}).status_code == 200
    assert served.post("/api/show", {"name": "tiny"}).status_code == 200


def test_a_chat_streams_lines_that_join_to_the_whole(served: Served) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "options": FIXED}
    *parts, last = served.lines("/api/chat", body)
    assert all(part["done"] is False and "done_reason" not in part for part in parts)
    assert all(part["message"]["role"] == "assistant" for part in parts)
    assert all(part["model"] == "tiny" for part in parts)
    assert datetime.fromisoformat(parts[0]["created_at"]).tzinfo
    assert last["done"] is True
    assert last["message"] == {"role": "assistant", "content": ""}
    assert last["done_reason"] in {"length", "stop"}
    for name in ("total", "load", "prompt_eval", "eval"):
        assert isinstance(last[f"{name}_duration"], int)
    assert last["total_duration"] >= last["eval_duration"] > 0
    assert last["eval_count"] == 12
    text = "".join(part["message"]["content"] for part in parts)
    assert served.chat("hi", options=FIXED)["message"]["content"] == text


def test_prompt_eval_count_is_the_whole_prompt_cached_or_not(served: Served) -> None:
    first = served.chat("count these", options=FIXED)
    again = served.chat("count these", options=FIXED)
    assert first["prompt_eval_count"] == again["prompt_eval_count"] > 10
    assert again["prompt_cached_count"] >= again["prompt_eval_count"] - 1


def test_content_types(served: Served) -> None:
    body: dict[str, Any] = {"model": "tiny", "prompt": "x", "options": {"num_predict": 1}}
    assert served.post("/api/generate", body).headers["content-type"] == "application/x-ndjson"
    whole = served.post("/api/generate", {**body, "stream": False})
    assert whole.headers["content-type"] == "application/json; charset=utf-8"


def test_generate(served: Served) -> None:
    body = {"model": "tiny", "prompt": "once upon", "options": FIXED}
    *parts, last = served.lines("/api/generate", body)
    text = "".join(part["response"] for part in parts)
    whole = served.post("/api/generate", {**body, "stream": False}).json()
    assert whole["response"] == text
    assert whole["done"] is True
    assert all(isinstance(token, int) for token in last["context"])
    further = served.post(
        "/api/generate", {**body, "context": last["context"], "stream": False}
    ).json()
    assert further["prompt_eval_count"] > len(last["context"])
    raw = served.post("/api/generate", {**body, "raw": True, "stream": False}).json()
    assert raw["prompt_eval_count"] < whole["prompt_eval_count"]
    assert "context" not in raw


def test_an_empty_request_loads_and_keep_alive_unloads(served: Served) -> None:
    for path, empty in (("/api/chat", {"messages": []}), ("/api/generate", {"prompt": ""})):
        loaded = served.post(path, {"model": "strict", **empty}).json()
        assert loaded["done"] is True
        assert loaded["done_reason"] == "load"
        assert "strict:latest" in _running(served)
        unloaded = served.post(path, {"model": "strict", "keep_alive": 0, **empty}).json()
        assert unloaded["done_reason"] == "unload"
        engine_server.wait_for(lambda: "strict:latest" not in _running(served))


def test_ps_and_keep_alive(served: Served) -> None:
    served.chat(keep_alive="1h30m")
    model = _running(served)["tiny:latest"]
    assert model["context_length"] == 4096
    assert model["size"] > 10_000_000
    assert model["size_vram"] == 0
    left = datetime.fromisoformat(model["expires_at"]).timestamp() - datetime.now().timestamp()
    assert 5300 < left <= 5400
    served.chat(keep_alive=-1)
    until = datetime.fromisoformat(_running(served)["tiny:latest"]["expires_at"])
    assert until.year > datetime.now().year + 50
    served.chat(keep_alive=300)


def test_two_models_are_loaded_side_by_side(served: Served) -> None:
    served.chat(model="tiny")
    served.chat(model="short")
    assert {"tiny:latest", "short:latest"} <= set(_running(served))


def test_options(served: Served) -> None:
    warm = {"temperature": 1.5, "seed": 5, "num_predict": 20}
    assert served.chat(options=warm)["message"] == served.chat(options=warm)["message"]
    other = served.chat(options={**warm, "seed": 6})
    assert other["message"] != served.chat(options=warm)["message"]
    assert served.chat(options={"num_predict": 3})["eval_count"] == 3
    assert served.chat(options={"num_predict": 3})["done_reason"] == "length"
    text = served.chat(options={**FIXED, "num_predict": 30})["message"]["content"]
    stop = next(char for char in text[3:] if char.isascii() and char.isprintable())
    cut = served.chat(options={**FIXED, "num_predict": 30, "stop": [stop]})
    assert cut["message"]["content"] == text[: text.index(stop)]
    assert cut["done_reason"] == "stop"
    assert served.chat(options={"frobnicate": 1, "num_predict": 1})["done"] is True


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("options", {"temperature": "hot"}, 'option "temperature" must be of type float32'),
        ("options", {"num_ctx": "big"}, 'option "num_ctx" must be of type integer'),
        ("options", {"stop": 3}, 'option "stop" must be of type array'),
        ("options", [], "options must be an object"),
        ("keep_alive", "soon", 'time: invalid duration "soon"'),
        ("keep_alive", [], "invalid keep_alive"),
        ("format", "yaml", 'invalid format: "yaml"'),
        ("format", {"type": "frob"}, "frob"),
        ("think", True, '"tiny" does not support thinking'),
        ("think", "very", "invalid think value"),
        ("messages", "hi", "messages must be a list"),
        ("messages", [{"role": "robot", "content": "x"}], "invalid role: robot"),
        ("messages", [{"role": "user", "content": "x", "images": ["eA=="]}], "images"),
        ("messages", [{"role": "user", "content": 5}], "must be text"),
        ("tools", [{"type": "function"}], "function with a name"),
        ("options", {"num_thread": "all"}, 'option "num_thread" must be of type integer'),
        ("options", {"use_mmap": 1}, 'option "use_mmap" must be of type boolean'),
        ("stream", "no", "stream must be true or false"),
        ("logprobs", 2, "logprobs must be true or false"),
        ("top_logprobs", 21, "top_logprobs must be between 0 and 20"),
    ],
)
def test_wrong_fields_are_named(served: Served, field: str, value: Any, words: str) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], field: value}
    response = served.post("/api/chat", body)
    assert response.status_code == 400
    assert words in response.json()["error"]


def test_missing_models_and_bodies(served: Served) -> None:
    missing = served.post("/api/chat", {"model": "nope", "messages": []})
    assert missing.status_code == 404
    assert missing.json()["error"].startswith("model 'nope' not found")
    assert served.post("/api/chat", {}).json() == {"error": "model is required"}
    for content in (b"", b"{", b"[]", b'"x"', b"[" * 100_000, b"\xff\xfe"):
        response = served.client.post("/api/chat", content=content)
        assert response.status_code == 400
        assert set(response.json()) == {"error"}
    assert served.post("/api/show", {"model": "../../etc/passwd"}).status_code == 400
    deleted = served.client.request("DELETE", "/api/delete", json={"model": "nope"})
    assert deleted.status_code == 404


def test_a_schema_is_enforced_while_decoding(served: Served) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "kind": {"enum": ["a", "b"]}},
        "required": ["n", "kind"],
        "additionalProperties": False,
    }
    for path in ("/api/chat", "/api/generate"):
        body = {
            "model": "tiny",
            "messages": [{"role": "user", "content": "x"}],
            "prompt": "x",
            "format": schema,
            "options": {"seed": 3, "num_predict": 200},
            "stream": False,
        }
        answer = served.post(path, body).json()
        text = answer["message"]["content"] if "message" in answer else answer["response"]
        if answer["done_reason"] == "stop":
            value = json.loads(text)
            assert isinstance(value["n"], int)
            assert value["kind"] in {"a", "b"}
        else:  # the noise wrote an endless number: still the beginning of such an object
            assert re.match(r'\{\s*"n"\s*:\s*-?\d*', text)
    body["format"] = "json"
    assert served.post("/api/generate", body).json()["response"].lstrip().startswith("{")


def test_templates_that_refuse_roles_are_served_all_the_same(served: Served) -> None:
    talks = [
        [("user", "a"), ("user", "b")],
        [("system", "s"), ("user", "a")],
        [("user", "a"), ("assistant", "b"), ("system", "late"), ("user", "c")],
        [("assistant", "first"), ("user", "a")],
        [("user", "a"), ("assistant", ""), ("tool", "r"), ("user", "b")],
        [("system", "only")],
    ]
    for talk in talks:
        body = {
            "model": "strict",
            "messages": [{"role": role, "content": text} for role, text in talk],
            "options": {"num_predict": 2},
            "stream": False,
        }
        response = served.post("/api/chat", body)
        assert response.status_code == 200, (talk, response.text)
        assert response.json()["eval_count"] > 0


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
@pytest.mark.parametrize("top", [None, 2])
def test_log_probabilities(served: Served, path: str, top: int | None) -> None:
    body: dict[str, Any] = {"model": "tiny", "options": FIXED, "logprobs": True}
    body |= {"messages": [{"role": "user", "content": "x"}], "prompt": "x"}
    if top is not None:
        body["top_logprobs"] = top
    lines = served.lines(path, body)
    entries = [entry for line in lines for entry in line.get("logprobs", [])]
    assert len(entries) == FIXED["num_predict"]
    text = "".join(
        line["message"]["content"] if "message" in line else line["response"] for line in lines
    )
    assert "".join(entry["token"] for entry in entries) == text
    for entry in entries:
        assert entry["logprob"] <= 0
        assert bytes(entry["bytes"]).decode() == entry["token"]
        if top is None:
            assert "top_logprobs" not in entry
        else:
            assert len(entry["top_logprobs"]) == top
            assert entry["top_logprobs"][0]["token"] == entry["token"]  # temperature 0
    whole = served.post(path, {**body, "stream": False}).json()
    assert [each["token"] for each in whole["logprobs"]] == [each["token"] for each in entries]
    assert "logprobs" not in served.post(path, {**body, "logprobs": False, "stream": False}).json()


def test_without_shift_an_answer_ends_with_the_window(served: Served) -> None:
    body = {"model": "short", "prompt": "x" * 50, "raw": True, "stream": False}
    body["options"] = {"num_predict": 1000, "seed": 1}
    ended = served.post("/api/generate", {**body, "shift": False}).json()
    assert ended["done_reason"] == "length"
    assert ended["prompt_eval_count"] + ended["eval_count"] == 256
    assert served.post("/api/generate", body).json()["eval_count"] == 1000


def test_copy_gives_a_file_another_name(served: Served) -> None:
    names = {"source": "tiny", "destination": "twin"}
    assert served.post("/api/copy", names).status_code == 200
    shown = [served.post("/api/show", {"model": name}).json() for name in ("tiny", "twin")]
    assert shown[0]["model_info"] == shown[1]["model_info"]
    taken = served.post("/api/copy", {"source": "short", "destination": "twin"})
    assert (taken.status_code, "already" in taken.json()["error"]) == (400, True)
    missing = served.post("/api/copy", {"source": "nope", "destination": "x"})
    assert (missing.status_code, missing.json()["error"]) == (404, "model 'nope' not found")
    assert served.post("/api/copy", {"source": "tiny"}).status_code == 400
    assert served.client.request("DELETE", "/api/delete", json={"model": "twin"}).content == b""
    assert served.chat()["done"]


def test_what_is_not_served_says_so(served: Served) -> None:
    for path in ("/api/create", "/api/push", "/api/blobs/sha256:00"):
        refused = served.post(path, {"model": "x"})
        assert refused.status_code == 501
        assert path in refused.json()["error"]


def test_tools_are_for_models_that_take_them(served: Served) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {"messages": [{"role": "user", "content": "x"}], "tools": [tool], "stream": False}
    body["options"] = {"num_predict": 2}
    assert served.post("/api/chat", {**body, "model": "tiny"}).status_code == 200
    refused = served.post("/api/chat", {**body, "model": "strict"})
    assert refused.status_code == 400
    assert "does not support tools" in refused.json()["error"]


def test_think_reaches_the_template(served: Served) -> None:
    body = {"model": "thinker", "messages": [{"role": "user", "content": "x"}], "stream": False}
    body["options"] = {"num_predict": 2}
    shown = served.post("/api/show", {"model": "thinker"}).json()
    assert "thinking" in shown["capabilities"]
    counts = [
        served.post("/api/chat", {**body, "think": think}).json()["prompt_eval_count"]
        for think in (True, False)
    ]
    assert counts[0] - counts[1] == len("PONDER")


def test_a_long_talk_loses_its_oldest_turns(served: Served) -> None:
    talk = [{"role": "system", "content": "rules"}]
    for _ in range(20):
        talk += [
            {"role": "user", "content": "x" * 30},
            {"role": "assistant", "content": "y" * 30},
        ]
    talk.append({"role": "user", "content": "last"})
    body = {"model": "short", "messages": talk, "options": {"num_predict": 1}, "stream": False}
    assert 150 < served.post("/api/chat", body).json()["prompt_eval_count"] < 256
    refused = served.post("/api/chat", {**body, "truncate": False})
    assert refused.status_code == 400
    assert "longer than the context" in refused.json()["error"]


def test_a_single_message_that_is_too_long_is_cut(served: Served) -> None:
    body = {
        "model": "short",
        "messages": [{"role": "user", "content": "z" * 2000}],
        "prompt": "z" * 2000,
        "options": {"num_predict": 1},
        "stream": False,
    }
    for path in ("/api/chat", "/api/generate"):
        assert 50 < served.post(path, body).json()["prompt_eval_count"] < 256
    assert served.post("/api/generate", {**body, "truncate": False}).status_code == 400


def test_texts_of_megabytes_are_cut_before_they_are_tokenised(served: Served) -> None:
    long = "word " * 400_000
    body: dict[str, Any] = {"model": "short", "prompt": long, "options": {"num_predict": 1}}
    body |= {"messages": [{"role": "system", "content": "rules"}] * 3, "stream": False}
    body["messages"] += [{"role": "user", "content": text} for text in ("old", long, long, "last")]
    for path in ("/api/chat", "/api/generate"):
        assert 50 < served.post(path, body).json()["prompt_eval_count"] < 256
        refused = served.post(path, {**body, "truncate": False})
        assert (refused.status_code, set(refused.json())) == (400, {"error"})


def test_a_context_of_tokens_that_do_not_exist_is_refused(served: Served) -> None:
    for context in ([10**9], [-1], ["x"], [10**30]):
        body = {"model": "tiny", "prompt": "x", "context": context, "stream": False}
        refused = served.post("/api/generate", body)
        assert (refused.status_code, set(refused.json())) == (400, {"error"}), context
    assert served.chat()["done"]


def test_a_larger_window_reloads_and_a_smaller_one_does_not(served: Served) -> None:
    served.chat(model="tiny", options={"num_ctx": 8192, "num_predict": 1})
    assert _running(served)["tiny:latest"]["context_length"] == 8192
    served.chat(model="tiny", options={"num_ctx": 2048, "num_predict": 1})
    assert _running(served)["tiny:latest"]["context_length"] == 8192


def test_lone_surrogates_and_strange_text(served: Served) -> None:
    body = '{"model":"tiny","stream":false,"options":{"num_predict":1},"messages":[{"role":"user","content":"\\ud800 \\u0000 日本 \\ud83d\\ude00"}]}'  # noqa: E501
    response = served.client.post("/api/chat", content=body.encode())
    assert response.status_code == 200


def test_chunked_bodies_and_http_1_0(served: Served) -> None:
    body = json.dumps({"model": "tiny"}).encode()
    chunked = served.client.post("/api/show", content=iter([body[:5], body[5:]]))
    assert chunked.status_code == 200
    raw = _raw(served, b"POST /api/show HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert raw.startswith(b"HTTP/1.1 200 OK")
    assert b"Connection: close" in raw


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * (engine_http.MAX_HEAD + 100), 431),
    ],
)
def test_malformed_requests(served: Served, request_bytes: bytes, status: int) -> None:
    assert _raw(served, request_bytes).startswith(b"HTTP/1.1 %d" % status)
    assert served.client.get("/").status_code == 200


def test_pull_of_an_unknown_model_is_an_error_line(served: Served) -> None:
    lines = served.lines("/api/pull", {"model": "nope"})
    assert lines[0] == {"status": "pulling manifest"}
    assert lines[-1]["error"].startswith("pull model manifest:")
    whole = served.post("/api/pull", {"model": "nope", "stream": False})
    assert whole.status_code == 500
    assert set(whole.json()) == {"error"}
    present = served.lines("/api/pull", {"model": "tiny"})
    assert present[-1] == {"status": "success"}


def _running(served: Served) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in served.client.get("/api/ps").json()["models"]}


def _raw(served: Served, content: bytes) -> bytes:
    import socket

    from jarvis.engine import launcher

    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(20)
        plain.connect(str(launcher.socket_path(served.paths)))
        plain.sendall(content)
        answer = b""
        while piece := plain.recv(65_536):
            answer += piece
            if b"\r\n\r\n" in answer:
                break
        return answer
