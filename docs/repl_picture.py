"""Makes ``docs/repl.svg``: the real program, in a terminal, talking to a real model.

    python docs/repl_picture.py [--model NAME]

A fresh home is used and thrown away; models that are installed are not fetched again. What is
typed is below; what is answered is the model's own.
"""

from __future__ import annotations

import argparse
import html
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

COLUMNS, ROWS = 84, 20
TYPED = (
    "/remember I live in Bergen and I write Python",
    "Where do I live? Then show me a Python function that greets me from there.",
)
COLOURS = {
    "default": "#d8dee9", "black": "#3b4252", "red": "#e06c75", "green": "#98c379",
    "brown": "#e5c07b", "yellow": "#e5c07b", "blue": "#61afef", "magenta": "#c678dd",
    "cyan": "#56b6c2", "white": "#e5e9f0", "brightblack": "#7f8896",
}  # fmt: skip
BACKGROUND = "#1e222a"
CELL, LINE, MARGIN = 8.4, 18, 16


def svg(screen: Any, dim: set[tuple[int, int]]) -> str:
    """The screen of a terminal as a picture; ``dim`` holds the cells that are dimmed."""
    rows = max(y for y in range(screen.lines) if screen.display[y].strip()) + 1
    width, height = screen.columns * CELL + 2 * MARGIN, rows * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        ' role="img" aria-label="A chat with Jarvis in a terminal">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14"'
        ' xml:space="preserve">',
    ]
    for y in range(rows):
        x = 0
        while x < screen.columns:
            cell = screen.buffer[y][x]
            style = (cell.fg, cell.bold, cell.italics, (y, x) in dim)
            end = x
            text = ""
            while end < screen.columns:
                other = screen.buffer[y][end]
                if (other.fg, other.bold, other.italics, (y, end) in dim) != style:
                    break
                text += other.data
                end += 1
            if text.strip():
                colour = COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 else "#d8dee9")
                look = ' font-weight="bold"' if cell.bold else ""
                look += ' font-style="italic"' if cell.italics else ""
                look += ' opacity="0.6"' if (y, x) in dim else ""
                parts.append(
                    f'<text x="{MARGIN + x * CELL:.1f}" y="{MARGIN + y * LINE + 13}"'
                    f' textLength="{len(text) * CELL:.1f}" fill="{colour}"{look}>'
                    f"{html.escape(text)}</text>"
                )
            x = end
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main() -> None:
    """Runs the program and writes the picture."""
    import pyte

    from jarvis.paths import Paths
    from tests.e2e import driver

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="qwen2.5-coder:1.5b")
    model = parser.parse_args().model
    driver.PATIENCE = 600.0

    class Screen(pyte.HistoryScreen):  # type: ignore[misc]
        """A terminal that knows which cells are dimmed, which pyte does not tell."""

        faint = False
        dimmed: set[tuple[int, int]] = set()  # noqa: RUF012 -- there is one screen

        def select_graphic_rendition(self, *codes: int, **options: bool) -> None:
            self.faint = 2 in codes or (self.faint and 0 not in codes and bool(codes))
            super().select_graphic_rendition(*codes, **options)

        def draw(self, data: str) -> None:
            start = self.cursor.x
            super().draw(data)
            for x in range(start, min(start + len(data), self.columns)):
                cell = (self.cursor.y, x)
                (self.dimmed.add if self.faint else self.dimmed.discard)(cell)

    pyte.HistoryScreen = Screen
    with tempfile.TemporaryDirectory(prefix="jp") as home:
        env = {
            "JARVIS_HOME": home,
            "JARVIS_MODELS": str(Paths.from_environment().models),
            "JARVIS_CHAT_MODEL": model,
            "JARVIS_CHAT_TEMPERATURE": "0",
        }
        run = {**os.environ, **env}
        program = [sys.executable, "-m", "jarvis"]
        subprocess.run([*program, "setup", "--yes"], env=run, cwd=ROOT, check=True)
        person = driver.Person(
            "-m", "jarvis", "chat", "--no-tools", env=env, columns=COLUMNS, rows=ROWS
        )
        person.until(lambda: person.at_prompt and "known" in person.text)
        for text in TYPED:
            person.send(text)
            person.look(1.0)
            person.until(lambda: person.at_prompt)
        person.until("1 fact known")
        (ROOT / "docs" / "repl.svg").write_text(svg(person.screen, Screen.dimmed), "utf-8")
        person.leave()
        for part in ("engine", "db"):
            subprocess.run([*program, part, "stop"], env=run, cwd=ROOT, check=False)


if __name__ == "__main__":
    main()
