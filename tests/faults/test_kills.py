"""Ten kills of the two hundred that ``make faults`` makes; the harness says what it checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import REAL_PATHS
from tests.faults.harness import Harness
from tests.faults.home import home


@pytest.mark.model
def test_nothing_is_lost_and_nothing_is_half_done(engine: Path) -> None:
    assert engine.exists()  # the models are there
    with home(REAL_PATHS.models) as place:
        report = Harness(place, seed=9).run(kills=10)
    print("\n".join(report.lines()))
    assert report.lost == []
    assert report.problems == []
    assert report.kills.total() >= 10
    assert report.acknowledged.total() > 0
