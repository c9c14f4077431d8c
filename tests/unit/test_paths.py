"""Where things lie, and with which modes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jarvis.errors import ConfigError, JarvisError
from jarvis.paths import MAX_SOCKET_PATH, Paths, expand, private_file, private_folder
from jarvis.services import turn_lock


def test_one_home_holds_everything(tmp_path: Path) -> None:
    home = tmp_path / "my home"
    paths = Paths.from_environment({"JARVIS_HOME": str(home)})
    for place in (paths.config, paths.data, paths.state, paths.cache, paths.models):
        assert place.is_relative_to(home)
    assert not home.exists(), "working out the paths creates nothing"


def test_models_can_lie_elsewhere(tmp_path: Path) -> None:
    paths = Paths.from_environment(
        {"JARVIS_HOME": str(tmp_path / "home"), "JARVIS_MODELS": str(tmp_path / "big")}
    )
    assert paths.models == tmp_path / "big"


def test_a_relative_home_is_refused() -> None:
    with pytest.raises(ConfigError):
        Paths.from_environment({"JARVIS_HOME": "here"})


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container under a uid that has no line in passwd."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with pytest.raises(ConfigError, match="no home folder"):
        Paths.from_environment({})
    assert Paths.from_environment({"JARVIS_HOME": str(tmp_path)}).config == tmp_path / "config"
    assert expand("~/notes") == Path("~/notes")


def test_a_home_of_nobody_is_a_name_like_any_other() -> None:
    assert expand("~no.such.user/notes") == Path("~no.such.user/notes")
    assert expand("~/notes") == Path.home() / "notes"


@pytest.mark.parametrize("length", [10, 60, 150])
def test_socket_paths_stay_short(length: int) -> None:
    home = "/" + "h" * length
    paths = Paths.from_environment({"JARVIS_HOME": home, "XDG_RUNTIME_DIR": "/x" * 60})
    socket = paths.postgres_runtime / ".s.PGSQL.5432"
    assert len(os.fsencode(socket)) <= MAX_SOCKET_PATH


def test_folders_are_closed_and_those_above_left_alone(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir(mode=0o755)
    before = above.stat().st_mode
    made = private_folder(above / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
    assert above.stat().st_mode == before
    made.chmod(0o755)
    private_folder(made)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_file_in_the_way_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(JarvisError):
        private_folder(tmp_path / "x" / "y")


def test_files_are_private_and_links_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("")
    path.chmod(0o644)
    os.close(private_file(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        private_file(tmp_path / "link")


def test_a_turn_runs_in_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    paths = Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})
    ran = False
    with turn_lock.running(paths):
        ran = True
    assert ran
