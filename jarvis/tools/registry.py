"""Finds tools: those in this package, the user's own files, and installed packages.

A tool that cannot be loaded is a problem that is reported, never a failed turn.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType

from jarvis.errors import NotFound
from jarvis.security.text import clean_line
from jarvis.tools import printed
from jarvis.tools.protocol import Tool

BUILT_IN = (
    "jarvis.tools.calculator",
    "jarvis.tools.clock",
    "jarvis.tools.memory",
    "jarvis.tools.files",
    "jarvis.tools.weather",
    "jarvis.tools.web",
)
"""Modules with built-in tools, in the order in which tools are offered."""

ENTRY_POINTS = "jarvis.tools"
"""The entry point group of installed packages: each names a ``Tool`` or a module of them."""


@dataclass(slots=True)
class Registry:
    """All tools by name. ``problems`` says what could not be loaded, a line each."""

    tools: dict[str, Tool] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, folder: Path | None = None, *, entry_points: bool = True) -> Registry:
        """Loads every tool.

        Args:
            folder: Python files of the user's own; only read when they belong to the user and
                nobody else can write them.
            entry_points: whether installed packages are asked too.
        """
        registry = cls()
        for name in BUILT_IN:
            registry._add(_tools_of(importlib.import_module(name)), "built-in")
        if folder is not None:
            registry._load_folder(folder)
        if entry_points:
            registry._load_packages()
        return registry

    def get(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            NotFound: there is none; the hint names the nearest.
        """
        if name in self.tools:
            return self.tools[name]
        import difflib

        near = difflib.get_close_matches(name, list(self.tools), n=1)
        raise NotFound(
            f"no tool {name!r}", f"did you mean {near[0]}?" if near else "jarvis tool list"
        )

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def _add(self, tools: Iterable[Tool], source: str) -> None:
        for tool in tools:
            known = self.tools.get(tool.name)
            if known is not None:
                self.problems.append(
                    f"{source}: a tool {tool.name} exists already ({known.source}); rename it"
                )
                continue
            self.tools[tool.name] = replace(tool, source=source)

    def _load_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            return
        for path in sorted(folder.glob("*.py")):
            source = str(path)
            reason = _unsafe(folder) or _unsafe(path)
            if reason:
                self.problems.append(f"{source}: not loaded, {reason}")
                continue
            module_name = f"jarvis_user_tools.{path.stem}"
            spec = importlib.util.spec_from_file_location(module_name, path)
            if spec is None or spec.loader is None:
                continue
            module = importlib.util.module_from_spec(spec)
            sys.modules[module_name] = module
            try:
                with printed.logged(source):
                    spec.loader.exec_module(module)
            except (Exception, SystemExit) as error:  # noqa: BLE001 -- anybody's code
                del sys.modules[module_name]
                self.problems.append(_problem(source, error))
                continue
            self._add(_tools_of(module), source)

    def _load_packages(self) -> None:
        for point in metadata.entry_points(group=ENTRY_POINTS):
            source = point.dist.name if point.dist else point.value
            try:
                with printed.logged(source):
                    found = point.load()
            except (Exception, SystemExit) as error:  # noqa: BLE001 -- anybody's code
                self.problems.append(_problem(source, error))
                continue
            self._add([found] if isinstance(found, Tool) else _tools_of(found), source)


def _tools_of(module: ModuleType) -> list[Tool]:
    """The tools defined in a module (imported ones are somebody else's), in their order."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, Tool) and value.function.__module__ == module.__name__
    ]


def _problem(source: str, error: BaseException) -> str:
    return clean_line(f"{source}: {type(error).__name__}: {error}")


def _unsafe(path: Path) -> str:
    """Why code at ``path`` is not run: whoever can write it could act as the user."""
    info = path.stat()
    if info.st_uid not in {os.getuid(), 0}:
        return "it belongs to another user"
    if stat.S_IMODE(info.st_mode) & 0o022:
        return f"others can write {path.name} (chmod go-w)"
    return ""
