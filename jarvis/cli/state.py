"""What every command shares: the global options, and the services behind them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jarvis import config as configuration
from jarvis.config import Config
from jarvis.errors import ConfigError
from jarvis.paths import Paths, expand

if TYPE_CHECKING:
    from jarvis.services.app import App


@dataclass
class State:
    """The global options of one call, and what is made from them when first needed."""

    user: str = ""
    config_file: str = ""
    debug: bool = False
    progress: Callable[[str], None] = field(default=lambda _: None)
    _opened: list[App] = field(default_factory=list)

    @cached_property
    def paths(self) -> Paths:
        """Where everything lies."""
        return Paths.from_environment()

    @cached_property
    def config_path(self) -> Path:
        """The configuration file of this call: ``--config``, JARVIS_CONFIG or the usual one.

        Raises:
            ConfigError: a file was named that does not exist.
        """
        named = self.config_file or os.environ.get("JARVIS_CONFIG", "")
        if not named:
            return self.paths.config_file
        path = expand(named)
        if not path.is_file():
            raise ConfigError(f"there is no configuration file {path}", "check --config")
        return path

    @cached_property
    def config(self) -> Config:
        """The settings."""
        return configuration.load(self.config_path)

    @cached_property
    def app(self) -> App:
        """The services, wired."""
        from jarvis.services.app import App

        app = App(
            self.config,
            self.paths,
            user_name=self.user,
            config_path=self.config_path,
            progress=self.progress,
            download=self._download,
            debug=self.debug,
        )
        self._opened.append(app)
        return app

    def _download(self, name: str) -> None:
        from jarvis.cli import pulling

        pulling.download(self.paths, self.config, name)

    def close(self) -> None:
        """Gives back what the services hold."""
        for app in self._opened:
            app.close()


def state_of(context: typer.Context) -> State:
    """The state of this call."""
    found = context.find_object(State)
    assert found is not None  # noqa: S101 -- ``run`` puts it there before any command
    return found
