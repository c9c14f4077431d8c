"""Settings: the file, the environment, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jarvis import config
from jarvis.config import Config
from jarvis.errors import ConfigError, ExitCode
from jarvis.services import configuration


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    assert config.load(tmp_path / "none.toml", {}) == Config()


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, '[chat]\nmodel = "a"\nnum_ctx = 2048\n')
    loaded = config.load(path, {"JARVIS_CHAT_MODEL": "b", "JARVIS_USER": "ada"})
    assert (loaded.chat.model, loaded.chat.num_ctx, loaded.user) == ("b", 2048, "ada")


@pytest.mark.parametrize(
    ("text", "named", "nearest"),
    [
        ("[chat]\nmodle = 'x'\n", "chat.modle", "chat.model"),
        ("[databse]\nurl = 'x'\n", "databse", "database.url"),
        ("usr = 'x'\n", "usr", "user"),
    ],
)
def test_a_misspelt_key_is_named_with_the_nearest(
    tmp_path: Path, text: str, named: str, nearest: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(write(tmp_path, text), {})
    assert named in caught.value.message
    assert nearest.split(".")[-1] in caught.value.hint or nearest in caught.value.hint
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_misspelt_variable_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path / "none", {"JARVIS_CHAT_MODLE": "x"})
    assert "JARVIS_CHAT_MODLE" in caught.value.message
    assert "JARVIS_CHAT_MODEL" in caught.value.hint


def test_a_variable_of_another_program_is_left_alone(tmp_path: Path) -> None:
    assert config.load(tmp_path / "none", {"JARVIS_ROBOT_ARMS": "4"}) == Config()


@pytest.mark.parametrize(
    "text",
    [
        "[chat]\nnum_ctx = 'many'\n",
        "[chat]\nnum_ctx = true\n",
        "[chat]\nnum_ctx = -1\n",
        "[chat]\nprovider = 'openai'\n",
        "[tools]\nfolders = [1]\n",
        "chat = 3\n",
        "[chat\n",
        "[retrieval]\ntimeout = nan\n",
    ],
)
def test_a_wrong_value_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        config.load(write(tmp_path, text), {})


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("JARVIS_MEMORY_EXTRACT", "no", "memory.extract", False),
        ("JARVIS_RETRIEVAL_TIMEOUT", "3", "retrieval.timeout", 3.0),
        ("JARVIS_TOOLS_FOLDERS", "/a, /b", "tools.folders", ["/a", "/b"]),
        ("JARVIS_RETRIEVAL_MIN_SIMILARITY", "0.4", "retrieval.min_similarity", 0.4),
    ],
)
def test_variables_have_the_type_of_their_key(
    tmp_path: Path, variable: str, text: str, key: str, value: object
) -> None:
    assert config.value_of(config.load(tmp_path / "none", {variable: text}), key) == value


def test_every_key_has_a_meaning() -> None:
    meanings = config.documentation()
    assert set(config.keys()) <= set(meanings)
    assert all(meanings[key] for key in list(config.keys()))


def test_the_example_is_made_from_the_code_and_loads(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "config.example.toml"
    assert shipped.read_text(encoding="utf-8") == config.example(), (
        "run: python -m jarvis.config > config.example.toml"
    )
    assert config.load(shipped, {}) == Config()
    # Every line that is commented out is a legal setting.
    lines = []
    for line in config.example().splitlines():
        bare = line.removeprefix("# ")
        is_setting = line.startswith("# ") and " = " in bare and bare.split(" ")[0].isidentifier()
        lines.append(bare if is_setting and "min_similarity" not in line else line)
    config.load(write(tmp_path, "\n".join(lines)), {})


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("database.password", "geheim", "(hidden)"),
        ("database.password", "", ""),
        ("database.url", "postgresql://me:ge@h/e:im@db/x", "postgresql://me:(hidden)@db/x"),
        ("database.url", "postgresql://me@db/x?sslmode=require", None),
        (
            "database.url",
            "postgresql://db/x?password=geheim",
            "postgresql://db/x?password=(hidden)",
        ),
        (
            "database.url",
            "postgresql://me:geheim@db/x?sslmode=require&sslpassword=geheim&user=a",
            "postgresql://me:(hidden)@db/x?sslmode=require&sslpassword=(hidden)&user=a",
        ),
        (
            "chat.host",
            "https://me:geheim@gpu.example:11434",
            "https://me:(hidden)@gpu.example:11434",
        ),
        ("chat.host", "127.0.0.1:11434", None),
        ("context.answer_tokens", 64, None),
    ],
)
def test_a_password_is_not_shown_wherever_it_stands(key: str, value: Any, shown: Any) -> None:
    assert configuration.without_password(key, value) == (value if shown is None else shown)
