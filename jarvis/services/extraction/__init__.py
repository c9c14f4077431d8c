"""Facts out of what the user says: see ``reading`` for one message, ``job`` for the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jarvis.services.extraction.job import ExtractionJob


def job() -> ExtractionJob:
    """The worker's job."""
    from jarvis.services.extraction.job import ExtractionJob

    return ExtractionJob()
