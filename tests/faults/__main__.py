"""``python -m tests.faults``: many kills, and the figures (``make faults``)."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from jarvis.paths import Paths
from tests.faults.harness import Harness
from tests.faults.home import home


def main() -> int:
    """Returns 0 when nothing was lost and nothing is wrong."""
    parser = argparse.ArgumentParser(description="Kill everything, and count what was lost.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10_000)
    parser.add_argument("--only", default="", help="activities, comma-separated")
    parser.add_argument("--models", type=Path, default=Paths.from_environment().models)
    options = parser.parse_args()
    with home(options.models) as place:
        harness = Harness(place, options.seed)
        if options.only:
            names = options.only.split(",")
            harness.activities = [one for one in harness.activities if one.name in names]
        report = harness.run(options.kills, lambda line: print(line, file=sys.stderr, flush=True))
    print("\n".join(report.lines()))
    return int(bool(report.lost or report.problems))


if __name__ == "__main__":
    raise SystemExit(main())
