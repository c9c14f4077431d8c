"""A book of more than 300 real pages, made from the language reference that ships with Python."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pydoc_data.topics import topics

from fpdf import FPDF

PAGE = 1450
"""Characters on a page at most."""

QUESTIONS = (
    ("How tightly does the power operator bind?", "binds more tightly than unary operators on its"),
    ("What is a temporary breakpoint?", "Temporary breakpoint, which is removed automatically"),
    ("How can a string be padded with zeros on the left?", "left filled with ASCII"),
    ("Which method helps with caseless matching of strings?", "used for caseless matching"),
    ("When is an UnboundLocalError raised?", 'an "UnboundLocalError" exception is raised'),
    ("In which order does popitem return pairs?", "Pairs are returned in LIFO"),
    ("What is an irrefutable case block?", "An irrefutable case block is a match-all case block"),
    ("Where is import * allowed?", "is only allowed at the module level"),
    (
        "What happens when an instance is about to be destroyed?",
        "instance is about to be destroyed",
    ),
    ("Can comparisons be chained?", "Comparisons can be chained arbitrarily"),
    (
        "How do I write a comma as a thousands separator?",
        "use of a comma for a thousands separator",
    ),
    ("What real part does an imaginary literal have?", "complex number with a real part of 0.0"),
    ("What does the nonlocal statement do?", "statement causes the listed identifiers to refer to"),
    ("Which objects are considered false?", "most of the built-in objects considered false"),
    ("What are lambda expressions used for?", "are used to create anonymous functions"),
    ("How is the deletion of a target list done?", "recursively deletes each target, from left"),
    ("What do shifts of integers do?", "shift the first argument to the left or right"),
    ("Where can async for and async with be used?", "can only be used in the body of a coroutine"),
    ("How does expandtabs replace tab characters?", "replaced by one or more spaces, depending"),
    ("Which underscores may stand in integer literals?", "One underscore can occur between digits"),
)
"""A question, and words of the page that answers it."""


@dataclass(frozen=True)
class Book:
    """The PDF, and the text that was put on each page."""

    pdf: bytes
    texts: tuple[str, ...]

    def pages_with(self, phrase: str) -> set[int]:
        """The pages (from 1) that hold a phrase, whatever its white space."""
        wanted = " ".join(phrase.split())
        found = {
            number for number, text in enumerate(self.texts, 1) if wanted in " ".join(text.split())
        }
        if not found:
            raise ValueError(f"no page holds {phrase!r}")
        return found


@functools.cache
def book() -> Book:
    """Makes the book: a topic begins a page, under its name."""
    made = FPDF(format=(148, 210))
    made.set_auto_page_break(False)
    texts = []
    for name in sorted(topics):
        for number, text in enumerate(_pages(_latin(topics[name]))):
            made.add_page()
            if number == 0:
                made.set_font("Helvetica", "B", 15)
                made.multi_cell(0, 9, name.replace("-", " ").title(), new_x="LMARGIN", new_y="NEXT")
            made.set_font("Helvetica", size=8)
            made.multi_cell(0, 3.6, text, new_x="LMARGIN", new_y="NEXT")
            texts.append(text)
    return Book(bytes(made.output()), tuple(texts))


def _pages(text: str) -> list[str]:
    """Cuts a topic between paragraphs; a paragraph is never on two pages."""
    pages = [""]
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        words = (
            paragraph if re.search(r"^[+|]|::=|^\s{6}", paragraph, re.M) else _flowing(paragraph)
        )
        for piece in [words[start : start + PAGE] for start in range(0, len(words), PAGE)]:
            if pages[-1] and len(pages[-1]) + len(piece) > PAGE:
                pages.append("")
            pages[-1] += ("\n\n" if pages[-1] else "") + piece
    return pages


def _flowing(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _latin(text: str) -> str:
    """What the PDF's built-in fonts can show."""
    table: dict[str, str | int | None] = {
        "“": '"',
        "”": '"',
        "’": "'",
        "‘": "'",
        "–": "-",
        "—": "-",
        "…": "...",
    }
    text = text.translate(str.maketrans(table))
    return text.encode("latin-1", "replace").decode("latin-1")
