"""What the terminal costs: start-up beside ``llm``, the first prompt with a long history, drawing.

    python -m tests.bench.startup --llm PATH [--rounds N]

``llm`` is installed in an environment of its own (``pip install llm``). Every figure is CPU time,
in turn with its reference, so that the load of the machine falls on both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jarvis.repl.history import HistoryFile
from jarvis.repl.screen import Screen
from jarvis.repl.view import AnswerView
from jarvis.services import bench_startup

HISTORY_ENTRIES = 100_000
TOKENS_PER_SECOND = 100
COMPLETION_ROUNDS = 20

ANSWER = (
    "## A heading\n\nSome **bold** words, a [link](https://example.com) and `code` in a paragraph "
    "that is long enough to fold over several rows of the terminal, as answers do.\n\n"
    "- one item\n- another item with *emphasis*\n\n"
    "```python\ndef area(radius: float) -> float:\n    return 3.14159 * radius ** 2  # rounded\n"
    '\nprint(area(2), "square metres")\n```\n\n'
    "| name | value |\n|------|-------|\n| a | 1 |\n| b | 2 |\n\n"
)


def first_prompt(home: Path, entries: int) -> float:
    """CPU seconds until the first prompt, with a history of so many entries."""
    history = HistoryFile(home / "state" / "history")
    history.path.parent.mkdir(parents=True, exist_ok=True)
    history.path.write_text(
        "".join(f"question number {n} about something\n" for n in range(entries)), "utf-8"
    )
    os.environ["JARVIS_HOME"] = str(home)
    return bench_startup.cpu_until_prompt()


def drawing(seconds: float = 20.0) -> float:
    """The share of a core that drawing an answer of 100 tokens a second takes."""
    text = ANSWER * 40
    tokens = [text[at : at + 4] for at in range(0, len(text), 4)]
    count = int(seconds * TOKENS_PER_SECOND)
    with Path(os.devnull).open("w", encoding="utf-8") as sink:

        def write(drawn: str) -> None:
            sink.write(drawn)
            sink.flush()

        clock = 0.0
        screen = Screen(write, lambda: os.terminal_size((100, 30)), colour=True)
        view = AnswerView(screen, clock=lambda: clock)
        started = time.process_time()
        for token in tokens[:count]:
            clock += 1 / TOKENS_PER_SECOND
            view.answer(token)
            view.tick()
        view.end()
    return (time.process_time() - started) / (min(count, len(tokens)) / TOKENS_PER_SECOND)


def completion(home: Path) -> float:
    """Wall milliseconds of one completion in bash, with full lists."""
    script = home / "completion.bash"
    with script.open("w", encoding="utf-8") as file:
        subprocess.run(
            [sys.executable, "-m", "jarvis", "completion", "bash"], stdout=file, check=True
        )
    cache = home / "cache" / "completions.tsv"
    cache.parent.mkdir(parents=True, exist_ok=True)
    kinds = ("session", "memory", "document", "model")
    cache.write_text("".join(f"{k}\t{n}\ta title\n" for k in kinds for n in range(500)), "utf-8")
    code = (
        f"source '{script}'; COMP_WORDS=(jarvis session show 1); COMP_CWORD=3;"
        f" TIMEFORMAT=%R; time for i in {{1..{COMPLETION_ROUNDS}}}; do _jarvis; done"
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True
    )
    return 1000 * float(done.stderr.strip().replace(",", ".")) / COMPLETION_ROUNDS


def median(measure: Callable[[], float], rounds: int) -> float:
    """The median of so many measurements, after one that is not counted."""
    measure()
    return statistics.median(measure() for _ in range(rounds))


def main() -> None:
    """Measures and prints each figure with its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--llm", default=bench_startup.find_other() or "")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rows: list[tuple[str, float, str]] = [
        ("drawing at 100 tokens/s, share of a core", median(drawing, 3), "≤ 0.05"),
    ]
    with tempfile.TemporaryDirectory(prefix="jb") as folder:
        home = Path(folder)
        os.environ["JARVIS_HOME"] = folder
        rows.append(("a completion in bash, ms", completion(home), "≤ 150"))
        empty, full = [], []
        for _ in range(options.rounds + 1):
            empty.append(first_prompt(home, 0))
            full.append(first_prompt(home, HISTORY_ENTRIES))
        extra = 1000 * (statistics.median(full[1:]) - statistics.median(empty[1:]))
        rows.append(("a history of 100,000 entries adds to the first prompt, ms", extra, "≤ 50"))
        if options.llm:
            figures = bench_startup.run(options.llm, options.rounds, lambda _: None)
            rows += [(figure.name, figure.median, figure.bar) for figure in figures]
        subprocess.run([sys.executable, "-m", "jarvis", "db", "stop"], check=False)
    for name, value, bar in rows:
        print(f"{name:65} {value:9.3f}  {bar}")


if __name__ == "__main__":
    main()
