"""Changing one setting leaves the user's file as it was, but for that line."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis import config
from jarvis.errors import ConfigError
from jarvis.services.settings import set_value

FILE = """\
# mine
user = "dana"   # who

[chat]
# model = ""
temperature = 0.2 # calm # really
personas = { pirate = "Arr # [x]" }

[tools]
folders = [
    "/a",  # one
    "/b",
]
"""


def change(tmp_path: Path, text: str, key: str, value: object) -> str:
    path = tmp_path / "config.toml"
    path.write_text(text)
    set_value(path, key, value)
    return path.read_text()


def test_a_missing_file_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    set_value(path, "chat.model", "qwen2.5-coder:0.5b")
    assert path.read_text() == '[chat]\nmodel = "qwen2.5-coder:0.5b"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert config.load(path, {}).chat.model == "qwen2.5-coder:0.5b"


def test_only_the_line_changes_and_its_comment_stays(tmp_path: Path) -> None:
    new = change(tmp_path, FILE, "chat.temperature", 0.5)
    assert new == FILE.replace("temperature = 0.2", "temperature = 0.5")


def test_a_new_value_goes_below_its_commented_default(tmp_path: Path) -> None:
    new = change(tmp_path, FILE, "chat.model", "x")
    assert new == FILE.replace('# model = ""\n', '# model = ""\nmodel = "x"\n')


def test_a_value_over_several_lines_is_replaced_whole(tmp_path: Path) -> None:
    new = change(tmp_path, FILE, "tools.folders", ["/c"])
    assert tomllib.loads(new)["tools"]["folders"] == ["/c"]
    assert "/b" not in new
    assert new.startswith("# mine")


def test_top_level_new_section_table_and_removal(tmp_path: Path) -> None:
    assert 'user = "sam"   # who' in change(tmp_path, FILE, "user", "sam")
    assert change(tmp_path, FILE, "log.level", "debug").endswith('\n[log]\nlevel = "debug"\n')
    table = change(tmp_path, FILE, "chat.personas", {"a": "b", "c d": "e"})
    assert tomllib.loads(table)["chat"]["personas"] == {"a": "b", "c d": "e"}
    assert "temperature" not in change(tmp_path, FILE, "chat.temperature", None)
    assert change(tmp_path, FILE, "chat.system", None) == FILE


def test_what_cannot_be_changed_safely_is_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for text in ('chat = { model = "a" }\n', '[chat]\n"model" = "a"\n'):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"only you can change"):
            set_value(path, "chat.model", "b")
        assert path.read_text() == text
    path.write_text("[chat\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        set_value(path, "chat.model", "b")


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"chat\.modell"):
        set_value(tmp_path / "config.toml", "chat.modell", "b")


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "config.toml"
    path.write_text(FILE)
    set_value(path, "chat.system", text)
    set_value(path, "chat.model", "m")
    assert tomllib.loads(path.read_text())["chat"]["system"] == text
