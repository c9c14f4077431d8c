"""Downloads: resumed, checked, whole or not at all. The server is a real one, on loopback."""

from __future__ import annotations

import hashlib
import http.server
import os
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from jarvis.config import Config, EngineSettings
from jarvis.engine import catalogue, download, pull, store
from jarvis.engine.catalogue import ModelEntry, ModelFile
from jarvis.errors import JarvisError, ModelUnavailable
from jarvis.paths import Paths
from tests import tiny_model

FILE = "tiny.gguf"


@dataclass
class Hub:
    """A server of files with ranges, that can be told to misbehave.

    ``signed_for``: the file is behind a redirect that is good for so many requests. ``refuse``:
    the status of every block. ``shifted``: it sends another range than was asked for.
    """

    address: str
    content: bytes
    ranges: bool = True
    cut_after: int | None = None
    signed_for: int | None = None
    refuse: int = 0
    shifted: bool = False
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    # Padded, so that it takes several blocks.
    content = tiny_model.write(tmp_path / FILE).read_bytes()
    content += random.Random(3).randbytes(3 * download.BLOCK)
    state = Hub("", content)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            if state.signed_for is not None:
                if not self.path.startswith("/signed/"):
                    signature = f"/signed/{len(state.requests) + state.signed_for}"
                    return self._short(302, ("Location", state.address + signature))
                if len(state.requests) >= int(self.path.rpartition("/")[2]):
                    return self._short(403)
            state.requests.append(asked)
            if state.refuse and asked != "bytes=0-0":
                return self._short(state.refuse)
            start, end = 0, len(state.content) - 1
            if asked and state.ranges:
                first, _, last = asked.removeprefix("bytes=").partition("-")
                start, end = int(first) + state.shifted, min(int(last), end)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(state.content)}")
            else:
                self.send_response(200)
            body = state.content[start : end + 1]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if state.cut_after is not None and start >= state.cut_after:
                body = body[: len(body) // 2]
                self.close_connection = True
            self.wfile.write(body)
            return None

        def _short(self, status: int, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in (*headers, ("Content-Length", "0")):
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", state.address)
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    monkeypatch.setattr(download, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(download, "CONNECTIONS", 1)
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def entry(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> ModelEntry:
    digest = hashlib.sha256(hub.content).hexdigest()
    made = ModelEntry(
        name="test:tiny",
        kind="chat",
        licence="Apache-2.0",
        repository="someone/tiny",
        files=(ModelFile(FILE, len(hub.content), digest),),
        summary="",
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", {made.name: made})
    return made


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})


CONFIG = Config(engine=EngineSettings(sources=["local", "huggingface", "mirror"]))


def fetch(paths: Paths, **more: Any) -> store.InstalledModel:
    return pull.pull(paths, CONFIG, "test:tiny", more.pop("progress", lambda _: None), **more)


def test_a_download_is_installed_whole_and_private(
    paths: Paths, hub: Hub, entry: ModelEntry
) -> None:
    seen: list[pull.PullProgress] = []
    model = fetch(paths, progress=seen.append)
    assert model.path.read_bytes() == hub.content
    assert model.path.stat().st_mode & 0o077 == 0
    assert model.source == "Hugging Face, someone/tiny"
    assert max(each.completed for each in seen) == entry.size
    assert seen[-1].status == "success"
    assert [each.name for each in store.installed(paths, ollama=False)] == ["test:tiny"]
    asked = len(hub.requests)
    assert fetch(paths) == model
    assert len(hub.requests) == asked


def test_an_interrupted_download_goes_on(paths: Paths, hub: Hub, entry: ModelEntry) -> None:
    hub.cut_after = 2 * download.BLOCK
    with pytest.raises(ModelUnavailable, match="cannot download test:tiny"):
        fetch(paths)
    assert store.installed(paths, ollama=False) == []
    hub.cut_after = None
    hub.requests.clear()
    assert fetch(paths).path.read_bytes() == hub.content
    blocks = [asked for asked in hub.requests if asked != "bytes=0-0"]
    assert f"bytes=0-{download.BLOCK - 1}" not in blocks
    assert any(asked.startswith(f"bytes={2 * download.BLOCK}-") for asked in blocks)


def test_a_signed_address_that_expires_is_asked_for_again(
    paths: Paths, hub: Hub, entry: ModelEntry
) -> None:
    hub.signed_for = 3  # the first look and two of four blocks
    assert fetch(paths).path.read_bytes() == hub.content


@pytest.mark.parametrize("status", [403, 404, 416, 429, 500])
def test_a_server_that_refuses_is_named_with_its_status(
    paths: Paths, hub: Hub, entry: ModelEntry, status: int
) -> None:
    hub.refuse = status
    with pytest.raises(ModelUnavailable) as failed:
        fetch(paths)
    assert hub.address in failed.value.message
    assert str(status) in failed.value.message
    hub.refuse = 0
    assert fetch(paths).path.read_bytes() == hub.content


def test_another_range_than_was_asked_for_is_not_taken(
    paths: Paths, hub: Hub, entry: ModelEntry
) -> None:
    hub.shifted = True
    with pytest.raises(ModelUnavailable, match="another range"):
        fetch(paths)
    hub.shifted = False
    assert fetch(paths).path.read_bytes() == hub.content


def test_stop_keeps_what_was_fetched(paths: Paths, hub: Hub, entry: ModelEntry) -> None:
    done: list[int] = []
    with pytest.raises(download.Stopped):
        fetch(
            paths,
            progress=lambda each: done.append(each.completed),
            stop=lambda: sum(len(each) > 0 for each in hub.requests) > 2,
        )
    assert store.installed(paths, ollama=False) == []
    assert fetch(paths).path.read_bytes() == hub.content


def test_another_hash_is_refused_and_removed(paths: Paths, hub: Hub, entry: ModelEntry) -> None:
    hub.content = hub.content[:-1] + bytes([hub.content[-1] ^ 1])
    with pytest.raises(ModelUnavailable) as refused:
        fetch(paths)
    assert entry.files[0].sha256 in refused.value.message
    assert hashlib.sha256(hub.content).hexdigest() in refused.value.message
    assert hub.address in refused.value.message
    assert not list(paths.models.rglob("*.part"))
    assert not list(paths.models.rglob("sha256-*"))


def test_a_server_without_ranges_and_one_with_another_size(
    paths: Paths, hub: Hub, entry: ModelEntry
) -> None:
    hub.content += b"x"
    with pytest.raises(ModelUnavailable, match="instead of"):
        fetch(paths)
    hub.content, hub.ranges = hub.content[:-1], False
    assert fetch(paths).size == entry.size


def test_a_local_file_needs_no_network(paths: Paths, hub: Hub, entry: ModelEntry) -> None:
    paths.models.mkdir(parents=True, mode=0o700)
    (paths.models / FILE).write_bytes(hub.content)
    assert fetch(paths).source == "a local file"
    assert hub.requests == []


def test_a_local_file_with_another_hash_is_not_taken(
    paths: Paths, hub: Hub, entry: ModelEntry
) -> None:
    paths.models.mkdir(parents=True, mode=0o700)
    (paths.models / FILE).write_bytes(bytes(entry.size))
    assert fetch(paths).source.startswith("Hugging Face")


def test_without_network_the_message_says_what_to_do(
    paths: Paths, entry: ModelEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable) as failed:
        fetch(paths)
    assert "http://127.0.0.1:9" in failed.value.message
    assert FILE in failed.value.hint


def test_two_processes_fetch_once(paths: Paths, hub: Hub, entry: ModelEntry) -> None:
    results: list[store.InstalledModel] = []
    threads = [threading.Thread(target=lambda: results.append(fetch(paths))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert hub.requests.count("bytes=0-0") == 1


def test_a_half_written_blob_is_never_listed(paths: Paths, hub: Hub, entry: ModelEntry) -> None:
    model = fetch(paths)
    os.truncate(model.path, 100)
    assert store.installed(paths, ollama=False) == []
    assert store.find(paths, "test:tiny") is None


def test_an_unknown_source_is_named(paths: Paths, entry: ModelEntry) -> None:
    config = replace(CONFIG, engine=EngineSettings(sources=["moon"]))
    with pytest.raises(JarvisError, match="moon"):
        pull.pull(paths, config, "test:tiny", lambda _: None)
