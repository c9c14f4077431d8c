"""The arrows between the packages: who may import whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "jarvis"

ONLY_THERE = {
    "psycopg": "store",
    "pgvector": "store",
    "ollama": "llm",
    "xllamacpp": "engine",
    "gguf": "engine",
    "prompt_toolkit": "repl",
    "pypdfium2": "ingest",
}
"""A library, and the one package that may import it."""

FOUNDATION = {"errors", "types", "paths", "config"}

FORBIDDEN = {
    "cli": {"store", "llm", "retrieval", "engine", "ingest"},
    "repl": {"store", "llm", "retrieval", "engine", "ingest"},
    "services": {"cli", "repl"},
    "retrieval": {"cli", "repl", "services", "llm", "engine"},
    "store": {"cli", "repl", "services", "retrieval", "llm", "engine", "ingest", "tools"},
    "llm": {"cli", "repl", "services", "retrieval", "store", "ingest", "tools"},
    "engine": {"cli", "repl", "services", "retrieval", "store", "llm", "ingest", "tools"},
    "postgres": {"cli", "repl", "services", "retrieval", "store", "llm", "engine"},
    "ingest": {"cli", "repl", "services", "retrieval", "store", "llm", "engine", "tools"},
    "tools": {"cli", "repl", "services", "retrieval", "store", "llm", "engine"},
    "security": {"cli", "repl", "services", "retrieval", "store", "llm", "engine", "tools"},
}
"""A package, and those of ours that it may not import."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported name, and whether it is for the type checker only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in typing_only
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", id(node) in typing_only


def package(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows(path: Path) -> None:
    here = package(path)
    for name, typing_only in imports(path):
        parts = name.split(".")
        owner = ONLY_THERE.get(parts[0])
        if owner is not None and not typing_only:
            assert here == owner, f"only {owner} imports {parts[0]}"
        if parts[0] != "jarvis" or len(parts) < 2 or typing_only:
            continue
        assert parts[1] not in FORBIDDEN.get(here, set()), f"{here} imports {name}"
        if here in FOUNDATION:
            assert parts[1] in FOUNDATION | {"__version__"}, f"{here} imports {name}"


def test_the_table_names_packages_that_exist() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert set(FORBIDDEN) <= packages
    assert set(ONLY_THERE.values()) <= packages


def test_no_sql_is_built_from_strings() -> None:
    """Statements are constants or composed objects: no f-string reaches ``execute``."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"execute", "executemany"}
                and node.args
            ):
                assert not isinstance(node.args[0], ast.JoinedStr), f"{path}:{node.lineno}"
