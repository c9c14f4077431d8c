"""Citations of documents: how a passage is named in a prompt, and what an answer made of it.

A passage stands in the context block below ``[name, p. N]``; the model is asked to repeat that
where it uses it. After the answer every citation is compared with the passages that were in the
prompt: a page that was not there was made up, however plausible it looks. Small models often name
no source at all: then the passage that holds nearly all of the answer's words is named for them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jarvis.retrieval.words import content_words
from jarvis.security.text import clean_line
from jarvis.types import ChunkHit

MARK = " – not among the passages"
"""Added inside the brackets of a citation that was made up."""

LONGEST = 300
"""Characters of a citation between its brackets at most."""

SUPPORT = 0.7
"""Share of an answer's words that a passage must hold to be named as its source."""

FEW_WORDS = 3
"""Words beside those of the question below which nobody can tell where an answer is from."""

_BRACKETS = re.compile(rf"\[([^\[\]\n]{{1,{LONGEST}}})\](?!\()")
_PAGES = re.compile(
    r"^(?P<name>.*?)[,;:]?\s*\b(?:pp?\.|pages?|pgs?\.|S\.|Seiten?)\s*(?P<pages>[\w(][^;]*)$",
    re.IGNORECASE | re.DOTALL,
)
_RANGE = re.compile(r"(\d+)\s*(?:-|–|—|to)\s*(\d+)")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[\w.\-]+")


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation in an answer.

    Attributes:
        text: as the answer has it, with its brackets.
        document: the name in it.
        pages: the page numbers in it.
        chunk_id: the passage that it means; None when there was none such in the prompt.
    """

    text: str
    document: str
    pages: tuple[int, ...]
    chunk_id: int | None

    @property
    def found(self) -> bool:
        """Whether such a passage was in the prompt."""
        return self.chunk_id is not None


@dataclass(frozen=True, slots=True)
class CitationReport:
    """Every citation of an answer.

    ``marked`` is the answer with ``MARK`` in each citation that was made up; ``warnings`` has one
    line for each of these.
    """

    citations: tuple[Citation, ...]
    marked: str
    warnings: tuple[str, ...]

    @property
    def invented(self) -> tuple[Citation, ...]:
        """Those that name no passage of the prompt."""
        return tuple(citation for citation in self.citations if not citation.found)


def label(hit: ChunkHit) -> str:
    """The citation of a passage: ``[contract.pdf, p. 6 (iv)]``.

    The number counts the file's pages from 1; the printed label follows where it differs. A
    passage that runs over to the next page has both (``p. 6–7``); one of a file without pages
    has the name alone.
    """
    name = _name(hit.document)
    if hit.page is None:
        return f"[{name}]"
    pages = str(hit.page)
    if hit.page_end is not None and hit.page_end > hit.page:
        pages += f"–{hit.page_end}"
    printed = clean_line(hit.page_label)
    if printed and printed != str(hit.page):
        pages += f" ({_name(printed)})"
    return f"[{name}, p. {pages}]"


def excerpt(hit: ChunkHit) -> str:
    """A passage as it stands in the context block: its citation, its section, its words.

    Headings that the passage itself begins with are not repeated.
    """
    begins = " ".join(hit.content[:400].split())
    path = [part for part in clean_line(hit.heading).split(" > ") if part]
    while path and path[-1] in begins:
        path.pop()
    return f"{' '.join([label(hit), ' > '.join(path)]).rstrip()}\n{hit.content}"


@dataclass(frozen=True, slots=True)
class Given:
    """What a model was given to cite.

    Attributes:
        chunks: passages, in the context block or found by a tool.
        quoted: other texts (results of tools): a citation that stands in one of them word for word
            was not made up.
    """

    chunks: Sequence[ChunkHit] = ()
    quoted: Sequence[str] = ()


class Marker:
    """Marks citations that were made up while the answer streams.

    Only what may become a citation is held back: from a bracket that is open up to the character
    behind the one that closes it. Brackets that are no citation (a list index, a link, ``[sic]``)
    are left alone; a name without a page counts as one only when it is the name of a passage.

    Args:
        given: tells what the model was given by now; tools add to it.
        mark: False only collects the citations, for answers that must stay what they are (JSON).
    """

    def __init__(self, given: Callable[[], Given], *, mark: bool = True) -> None:
        self._given = given
        self._mark = mark
        self._held = ""
        self._citations: list[Citation] = []

    @property
    def cited(self) -> bool:
        """Whether the answer cites anything so far."""
        return bool(self._citations)

    def feed(self, text: str) -> str:
        """Takes a piece of the answer; returns what can be shown by now."""
        self._held += text
        opened = self._held.rfind("[")
        ready = len(self._held) if opened < 0 or not _open(self._held[opened:]) else opened
        return self._judged(ready)

    def flush(self) -> str:
        """What is still held back, when the answer is over."""
        return self._judged(len(self._held))

    def report(self, marked: str) -> CitationReport:
        """What was found, when ``marked`` is all that was returned."""
        invented = dict.fromkeys(one.text for one in self._citations if not one.found)
        warnings = tuple(
            f"the answer cites {text}, which was not among the passages given to the model"
            for text in invented
        )
        return CitationReport(tuple(self._citations), marked, warnings)

    def _judged(self, end: int) -> str:
        ready, self._held = self._held[:end], self._held[end:]
        if "[" not in ready:
            return ready
        given = self._given()
        known = " ".join(_folded(text) for text in given.quoted)

        def judge(match: re.Match[str]) -> str:
            judged = [
                None if known and _folded(f"[{piece}]") in known else _judge(piece, given.chunks)
                for piece in (part.strip() for part in match[1].split(";"))
            ]
            self._citations += [one for one in judged if one is not None]
            if not self._mark or all(one is None or one.found for one in judged):
                return match[0]
            return f"[{match[1]}{MARK}]"

        return _BRACKETS.sub(judge, ready)


def source(
    answer: str, question: str, chunks: Sequence[ChunkHit], language: str = "english"
) -> ChunkHit | None:
    """The passage that an answer was taken from, by its words; None when that is not certain.

    The question's words are no evidence: they stand in every passage that was found for it. A
    number that the passage does not have means that the answer is not, or not only, from there.

    Args:
        answer: without any citation.
        question: the user's words.
        chunks: the passages that the model was given, best first.
        language: of the stemmer.
    """
    known = set(content_words(question, language))
    said = [word for word in content_words(answer, language) if word not in known]
    if len(said) < FEW_WORDS:
        return None
    best, most = None, 0.0
    for hit in chunks:
        there = set(content_words(f"{hit.heading}\n{hit.content}", language))
        held = sum(word in there for word in said) / len(said)
        if held > most and all(word in there for word in said if word[0].isdigit()):
            best, most = hit, held
    return best if most >= SUPPORT else None


def check(answer: str, chunks: Sequence[ChunkHit], quoted: Sequence[str] = ()) -> CitationReport:
    """Compares every ``[name, p. N]`` of a whole answer with what the model was given."""
    given = Given(chunks, quoted)
    marker = Marker(lambda: given)
    return marker.report(marker.feed(answer) + marker.flush())


def _open(tail: str) -> bool:
    """Whether ``tail``, which begins with a bracket, may still become a citation."""
    closed = tail.find("]")
    if closed >= 0:
        return closed == len(tail) - 1  # "(" behind it would make it a link
    return "\n" not in tail and len(tail) <= LONGEST + 1


def _judge(text: str, chunks: Sequence[ChunkHit]) -> Citation | None:
    match = _PAGES.match(text)
    if match is None:
        hit = next((hit for hit in chunks if _same(text, hit.document)), None)
        return Citation(f"[{text}]", hit.document, (), hit.id) if hit else None
    name = match["name"].strip(" ,:\"'“”")
    if not name:  # "[p. 4]" in an answer about one document means that one
        names = {hit.document for hit in chunks}
        name = names.pop() if len(names) == 1 else ""
    pages = _numbers(match["pages"])
    printed = {word.casefold().strip(".") for word in _WORD.findall(match["pages"])}
    found: int | None = None
    named = [hit for hit in chunks if _same(name, hit.document)]
    for hit in named:
        if hit.page is not None and _covers(hit, pages, printed):
            found = hit.id
            break
    # Every page of a citation must have been there, not only one of them.
    if found is not None and pages:
        there = {n for hit in named for n in _span(hit)}
        labels = {hit.page_label.casefold() for hit in named}
        if not all(page in there or str(page) in labels for page in pages):
            found = None
    return Citation(f"[{text}]", name, tuple(pages), found)


def _covers(hit: ChunkHit, pages: list[int], printed: set[str]) -> bool:
    if any(page in _span(hit) for page in pages):
        return True
    return bool(hit.page_label) and hit.page_label.casefold() in printed


def _span(hit: ChunkHit) -> range:
    if hit.page is None:
        return range(0)
    return range(hit.page, (hit.page_end or hit.page) + 1)


def _numbers(text: str) -> list[int]:
    """The page numbers in "3, 5-7 (iv)"; a printed label in parentheses is not one of them."""
    text = re.sub(r"\([^)]*\)", " ", text)
    found: list[int] = []
    for match in _RANGE.finditer(text):
        first, last = int(match[1]), int(match[2])
        found += range(first, last + 1) if first <= last < first + 100 else (first, last)
    rest = _RANGE.sub(" ", text)
    words = [word for word in _WORD.findall(rest) if _NUMBER.fullmatch(word.strip("."))]
    return sorted({*found, *(int(word.strip(".")) for word in words)})


def _same(name: str, document: str) -> bool:
    """Whether ``name`` means ``document``: the case, the folder and the suffix may be missing."""
    left, right = _folded(name), _folded(_name(document))
    if not left:
        return False
    return left in {right, right.rpartition(".")[0] or right} or left.endswith("/" + right)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _name(document: str) -> str:
    return clean_line(document).replace("[", "(").replace("]", ")")
