"""Shows how far a download is: a bar where stderr is a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jarvis.cli import output
from jarvis.cli.progress import Progress

if TYPE_CHECKING:
    from jarvis.config import Config
    from jarvis.paths import Paths


def download(paths: Paths, config: Config, name: str) -> None:
    """Installs a model of the embedded engine, shown to a person."""
    from jarvis.services import models

    output.note(f"downloading the model {name}; this is done once")
    with report(name) as tell:
        models.download(paths, config, name, tell)


@contextmanager
def report(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """A function for ``services.models``: what is done, bytes there, bytes in all."""
    said = ""
    with Progress(name) as line:

        def tell(status: str, completed: int, total: int) -> None:
            nonlocal said
            if total:
                size = f"{completed / 1e6:,.0f} of {total / 1e6:,.0f} MB"
                line.update(f"{name}  {size}", done=completed, total=total)
                return
            line.update(f"{name}  {status}")
            # Where it comes from is named before it is used.
            if status != said and (" from " in status or status.startswith(("ignoring", "wait"))):
                output.note(status)
            said = status

        yield tell
