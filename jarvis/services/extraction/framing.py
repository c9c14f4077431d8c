"""What of a message its writer says as true of themselves.

Quotations, code, what others are reported to have said, text that is handed over to be worked
on, fiction and suppositions hold first-person sentences that say nothing about the user.
"""

from __future__ import annotations

# ruff: noqa: E501 -- the patterns read best unbroken
import re
from collections.abc import Iterator

from jarvis.services.extraction.cutting import sentences

_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]{3,}\"|“[^”\n]{3,}”|«[^»\n]{3,}»|„[^“\n]{3,}“|「[^」\n]{2,}」"
    r"|^\s*>.*$",
    re.DOTALL | re.MULTILINE,
)
_CODE_LINE = re.compile(
    r"^[ \t]*(?:(?:let|var|const|def|class|fn|func|import|#include|select|insert into|update|delete"
    r" from|create table|sudo|curl)\b[^\n]*[=(;{*<].*|.*(?:[{}]|\)[ \t]*[;:{])[ \t]*|.*(?:==|=>|!=|:=)"
    r".*)$",
    re.MULTILINE | re.IGNORECASE,
)
_HEADERS = re.compile(r"^(?:from|subject|cc|bcc|reply-to):\s.*\Z", re.DOTALL | re.M | re.I)
"""A letter that was pasted, down to its end."""

_REPORTED = re.compile(
    r"(?<!\bi )(?<!\bi've )(?<!\bi have )(?<!\bi already )\b(?:said|says|saying|told (?:me|us|him|her"
    r"|them|everyone|everybody|people)|wrote|writes|asked|replied|texted|answered|shouted|quoted?"
    r"|lyrics?|transcript|reads|goes|sings)\b[^:\n.!?]{0,30}:\s.*$",
    re.MULTILINE | re.IGNORECASE,
)
_POLITE = (
    r"(?:(?:please|pls|now|then|jarvis|hey|ok(?:ay)?|(?:can|could|would|will) you|help me),?\s+)*"
)
_WORK = (
    r"(?:translate|re-?write|rephrase|paraphrase|reword|correct|proof-?read|fix|mend|improve|edit"
    r"|polish|summari[sz]e|sum up|shorten|expand|analy[sz]e|explain|spell-?check|check|continue"
    r"|complete|repeat|convert|classify|format|transcribe|simplify|review|parse|conjugate)\b"
)
_GIVEN = re.compile(
    rf"(?:^|(?<=[.!?\n]))\s*{_POLITE}{_WORK}[^:\n]{{0,80}}:\s.*\Z", re.DOTALL | re.IGNORECASE
)
"""A task, and after its colon the text that it is about."""

_FICTION = (
    r"(?:book|novel|story|tale|game|film|movie|play|song|dreams?|nightmare|show|series|script|poem"
    r"|scene|exercise|example|simulation|role-?play|campaign|joke)"
)
_SUPPOSED = re.compile(
    r"(?:\W*(?:ok(?:ay)?|so|now|and|but|please|well|hey|hi|just|then|or)\b[\s,]*)*"
    r"(?:(?:suppose|supposing|imagine|pretend|assume|assuming|what if|act (?:as|like)|role-?play"
    r"|you are (?:now )?|let us (?:say|suppose|assume|pretend|imagine)|let'?s (?:say|suppose|assume"
    r"|pretend|imagine)|say,? (?:i|i'm|we|my)\b)"
    rf"|(?:in|for) (?:the|my|this|that|a|our|one) (?:\w+ )?{_FICTION}\b"
    rf"|(?:in|for) (?:the|my|this|that|a|our|one) (?:last|next) {_FICTION}\b"
    r"|(?:as|my|the) (?:the |a )?(?:narrator|character|protagonist|persona)\b)",
    re.IGNORECASE,
)
_TASK = re.compile(rf"\W*{_POLITE}{_WORK}", re.IGNORECASE)
_REQUEST = re.compile(
    rf"\W*{_POLITE}(?:write|compose|draft|generate|create|make|invent|tell|give|show|draw|design"
    r"|build|come up with|sing|send|say|print|answer|reply|respond)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\W*(?:if (?:it|that|this) (?:helps|matters|counts|is (?:of (?:any )?(?:use|help)|useful|relevant"
    r"|important)|makes (?:a|any) difference)|(?:if|in case) you (?:must|want to|wanna|need to|really"
    r" want to|ask|ask me|care|'?re wondering|are wondering|are curious|were wondering)(?: know)?),?\s+",
    re.IGNORECASE,
)


def unquoted(text: str) -> str:
    """The writer's own words: without quotations, code, reported speech and pasted text."""
    text = _QUOTED.sub(" ", text.replace("’", "'"))
    text = _GIVEN.sub(" ", text)
    text = _HEADERS.sub(" ", text)
    text = _REPORTED.sub(" ", text)
    return _CODE_LINE.sub(" ", text)


def own_sentences(message: str) -> Iterator[tuple[str, bool]]:
    """The sentences in which the writer speaks of what is so, each with whether it asks.

    Suppositions and stories are left out, and "if it helps" before a statement.
    """
    for sentence, question in sentences(unquoted(message)):
        if not _SUPPOSED.match(sentence):
            yield _ASIDE.sub("", sentence, count=1), question


def is_task(sentence: str) -> bool:
    """Whether a sentence hands words over to be translated, mended, summed up …"""
    return _TASK.match(sentence) is not None


def is_request(sentence: str) -> bool:
    """Whether a sentence asks for something to be made: what it is to say is no statement."""
    return _REQUEST.match(sentence) is not None
