"""The store: names, Ollama's own folder read in place, import, removal."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from jarvis.engine import gguf_header, ollama_store, store
from jarvis.errors import ModelNotInstalled, ModelUnavailable, UsageError
from jarvis.paths import Paths
from tests import tiny_model
from tests.integration import engine_server


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store as Ollama writes it, with one model."""
    folder = tmp_path / "ollama"
    weights = tiny_model.write(tmp_path / "w.gguf").read_bytes()
    layers = [
        _blob(folder, "model", weights),
        _blob(folder, "system", b"You are terse."),
        _blob(folder, "messages", b'[{"role": "user", "content": "An example, to begin with"}]'),
        _blob(folder, "params", json.dumps({"temperature": 0.1, "stop": ["<x>"]}).encode()),
        _blob(folder, "license", b"MIT"),
    ]
    manifest = folder / "manifests/registry.ollama.ai/library/theirs/7b"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    monkeypatch.setenv("OLLAMA_MODELS", str(folder))
    return folder


def _blob(folder: Path, kind: str, content: bytes) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    (folder / "blobs" / f"sha256-{digest}").write_bytes(content)
    media = f"application/vnd.ollama.image.{kind}"
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}


def _snapshot(folder: Path) -> list[tuple[str, int, int, int]]:
    return sorted(
        (str(each), each.stat().st_size, each.stat().st_mtime_ns, each.stat().st_mode)
        for each in folder.rglob("*")
    )


def test_ollamas_models_are_served_in_place_and_never_written(theirs: Path) -> None:
    before = _snapshot(theirs)
    with engine_server.home() as paths, engine_server.served(paths) as served:
        shown = served.post("/api/show", {"model": "theirs:7b"}).json()
        assert shown["system"] == "You are terse."
        assert "temperature" in shown["parameters"]
        assert shown["messages"] == [{"role": "user", "content": "An example, to begin with"}]
        bare = served.chat("hi")["prompt_eval_count"]
        assert served.chat("hi", model="theirs:7b")["prompt_eval_count"] > bare + 40
        refused = served.client.request("DELETE", "/api/delete", json={"model": "theirs:7b"})
        assert refused.status_code == 403
        with pytest.raises(UsageError, match="only read"):
            store.remove(paths, "theirs:7b")
        with pytest.raises(UsageError, match="only read"):
            store.copy(paths, store.get(paths, "theirs:7b"), "mine")
    assert _snapshot(theirs) == before


@pytest.mark.parametrize("damage", ["manifest", "size", "digest", "missing"])
def test_a_broken_entry_of_ollamas_is_left_out(theirs: Path, damage: str) -> None:
    manifest = next(theirs.rglob("7b"))
    value = json.loads(manifest.read_text())
    if damage == "manifest":
        manifest.write_text("{")
    elif damage == "size":
        value["layers"][0]["size"] += 1
        manifest.write_text(json.dumps(value))
    elif damage == "digest":
        value["layers"][0]["digest"] = "sha256:../../../etc/passwd"
        manifest.write_text(json.dumps(value))
    else:
        (theirs / "blobs" / value["layers"][0]["digest"].replace(":", "-")).unlink()
    assert list(ollama_store.models(theirs)) == []


def test_names(paths: Paths) -> None:
    assert store.full_name("all-minilm") == "all-minilm:latest"
    assert store.full_name("hf.co/a/b:Q4") == "hf.co/a/b:Q4"
    for bad in ("", " ", "a b", "a/../b", ":x", "x" * 300, "a\nb"):
        with pytest.raises(UsageError):
            store.full_name(bad)
    with pytest.raises(ModelNotInstalled) as missing:
        store.get(paths, "qwen2.5-coder:0.5b")
    assert missing.value.hint == "run: jarvis model pull qwen2.5-coder:0.5b"
    with pytest.raises(ModelNotInstalled) as typo:
        store.get(paths, "qwen2.5-codr:0.5b")
    assert "did you mean qwen2.5-coder:0.5b" in typo.value.hint


def test_two_names_share_a_file_until_both_are_gone(paths: Paths) -> None:
    first = _add(paths, "one")
    second = _add(paths, "two")
    assert first.path == second.path
    assert store.remove(paths, "one") == 0
    assert second.path.exists()
    assert store.remove(paths, "two") == second.size
    assert not second.path.exists()


def _add(paths: Paths, name: str) -> store.InstalledModel:
    file = tiny_model.write(store.partial_folder(paths) / f"{name}.gguf")
    return store.add(paths, name, file, store.sha256(file), "made by a test")


def test_the_header_of_a_model(tmp_path: Path) -> None:
    header = gguf_header.read(tiny_model.write(tmp_path / "t.gguf", context=777))
    assert (header.architecture, header.context_length, header.is_embedding) == (
        "llama",
        777,
        False,
    )
    assert header.metadata["tokenizer.ggml.tokens"] == {"length": 354}
    # Keys and values of 16 bits: two layers of width 64.
    assert header.cache_bytes(10) == 10 * 2 * (64 + 64) * 2


@pytest.mark.parametrize("length", [0, 3, 23, 24, 100, 5000, 100_000])
def test_a_cut_header_is_refused_in_words(tmp_path: Path, length: int) -> None:
    file = tiny_model.write(tmp_path / "t.gguf")
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(ModelUnavailable, match="not a usable GGUF"):
        gguf_header.read(file)
