"""Shell completion: static scripts that the shells accept, and a private cache."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from jarvis.cli.app import ENTRIES
from jarvis.cli.completion import _SCRIPTS, ARGUMENT_KINDS, OPTION_KINDS, SHELLS, Node, walk
from jarvis.paths import Paths
from jarvis.services import completions
from tests.e2e.driver import Person


@pytest.fixture(scope="module")
def tree() -> list[Node]:
    return list(walk())


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})


def script(shell: str, tree: list[Node], paths: Paths, folder: Path) -> Path:
    path = folder / shell
    path.write_text(_SCRIPTS[shell](tree, str(paths.completions)), encoding="utf-8")
    return path


def fill(paths: Paths) -> None:
    completions.update(paths, "session", [("7", "Trip to\tOslo\nand back"), ("12", "")])
    completions.update(paths, "model", [("qwen2.5:1.5b", "small")])


def test_the_tree_is_whole(tree: list[Node]) -> None:
    known = {node.path for node in tree}
    assert set(ENTRIES) <= known
    assert set(ARGUMENT_KINDS) <= known
    names = {name for node in tree for name, _ in node.options}
    assert set(OPTION_KINDS) <= names
    kinds = {*ARGUMENT_KINDS.values(), *OPTION_KINDS.values()}
    assert kinds <= set(completions.KINDS)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_its_script(
    shell: str, tree: list[Node], paths: Paths, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-n", str(script(shell, tree, paths, tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


CASES = [
    ("jarvis se", "session setup search"),
    ("jarvis session ", "list show search rename export delete"),
    ("jarvis session show ", "7 12"),
    ("jarvis session show 1", "12"),
    ("jarvis ask --session ", "7 12"),
    ("jarvis --user bob session de", "delete"),
    ("jarvis ask --mod", "--model"),
]


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash_completes(
    typed: str, offered: str, tree: list[Node], paths: Paths, tmp_path: Path
) -> None:
    fill(paths)
    words = typed.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f"source '{script('bash', tree, paths, tmp_path)}'; COMP_WORDS=({quoted});"
        f' COMP_CWORD={len(words) - 1}; _jarvis; echo "${{COMPREPLY[*]}}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, env={}, check=True
    )
    assert sorted(done.stdout.split()) == sorted(offered.split())
    assert done.stderr == ""


START = {
    "bash": (["--norc", "-i"], "PS1='ready> '"),
    "zsh": (["-f", "-i"], "PS1='ready> '; autoload -Uz compinit; compinit -u -D"),
    "fish": (["--no-config", "-i"], "function fish_prompt; echo 'ready> '; end"),
}
"""How each shell begins without its user's settings, and with a prompt that a test knows."""


@pytest.mark.parametrize("shell", SHELLS)
def test_names_are_completed_at_a_real_prompt(
    shell: str, tree: list[Node], paths: Paths, tmp_path: Path
) -> None:
    """Bash takes a colon for the border of a word, but only where it reads a line itself."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    fill(paths)
    completions.update(paths, "model", [("qwen2.5-coder:0.5b", "")])
    arguments, setup = START[shell]
    person = Person(
        *arguments,
        program=shell,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        columns=200,
    )
    cases = {
        "jarvis sess": "jarvis session ",
        "jarvis session sho": "jarvis session show ",
        "jarvis session show 1": "jarvis session show 12 ",
        "jarvis ask --session 1": "jarvis ask --session 12 ",
        "jarvis model rm qwen": "jarvis model rm qwen2.5-coder:0.5b ",
        "jarvis model rm qwen2.5-coder:": "jarvis model rm qwen2.5-coder:0.5b ",
        "jarvis chat --model qwen2.5-coder:0": "jarvis chat --model qwen2.5-coder:0.5b ",
        "jarvis chat --priv": "jarvis chat --private ",
    }
    try:
        person.look(0.5)
        person.send(f"{setup}; source '{script(shell, tree, paths, tmp_path)}'; echo se''t")
        person.until(lambda: "set" in person.lines)
        for typed, completed in cases.items():
            person.type(f"{typed}\t")
            # What is typed behind the Tab stands behind what the Tab has made of the word.
            person.type("END")
            person.until(f"{completed}END")
            person.type("\x15")
    finally:
        person.kill()


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_fish_completes(
    typed: str, offered: str, tree: list[Node], paths: Paths, tmp_path: Path
) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    fill(paths)
    code = f"source '{script('fish', tree, paths, tmp_path)}'; complete -C '{typed}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    found = {line.partition("\t")[0] for line in done.stdout.splitlines()}
    assert set(offered.split()) <= found


def test_no_python_is_started_by_a_script(tree: list[Node]) -> None:
    for shell in SHELLS:
        text = _SCRIPTS[shell](tree, "/home/ada/completions.tsv")
        assert "python" not in text
        assert "$(jarvis" not in text
        assert "(jarvis " not in text


def test_the_cache_is_private_and_its_lines_are_whole(paths: Paths) -> None:
    fill(paths)
    assert stat.S_IMODE(paths.completions.stat().st_mode) == 0o600
    assert len(paths.completions.read_text().splitlines()) == 3
    assert completions.values(paths, "session") == [("7", "Trip to Oslo and back"), ("12", "")]
    completions.update(paths, "session", [("8", "new")])
    assert completions.values(paths, "session") == [("8", "new")]
    assert completions.values(paths, "model") == [("qwen2.5:1.5b", "small")]


def test_deleting_purges_it(paths: Paths) -> None:
    fill(paths)
    completions.purge(paths)
    assert not paths.completions.exists()
    completions.purge(paths)
    assert completions.values(paths, "session") == []


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    paths = Paths.from_environment({"JARVIS_HOME": str(tmp_path / "home")})
    completions.update(paths, "session", [("1", "x")])
    assert completions.values(paths, "session") == []
