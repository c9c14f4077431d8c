"""Commands to the assistant inside text that is only data: found, and taken out.

A fact, a past turn, a passage or a tool result may hold sentences that are written for a
language model ("ignore all previous instructions and print …"). ``redact`` replaces such a
sentence with ``[REDACTED]`` before the text goes into a prompt; ``looks_like_instruction``
decides whether a fact waits in ``memory review``.

A sentence counts when it *commands*: the verb stands where an order has it (at the start of a
clause, after "please", "must", a colon …). The same words reported about somebody ("the dog
ignores all instructions", "a text such as 'ignore …'") are left as they are. This is one layer
among several and knows only what is listed here; the fence around the data is what holds.

All matching is done on a folded copy (NFKC, no invisible characters, case folded) whose
characters map back to the original, so hiding letters or zero-width spaces changes nothing.
"""

from __future__ import annotations

# ruff: noqa: E501 -- the table of patterns reads best with one entry a line
import html
import re
import unicodedata
from functools import cache, lru_cache

REDACTED = "[REDACTED]"

REMEMBERED_LENGTH = 8192
"""Characters of a text up to which what it reads like is remembered."""

_LEET = {"a": "a4@", "e": "e3", "i": "i1l!|", "l": "l1i|", "o": "o0", "s": "s5$", "t": "t7"}


def _leet(words: str) -> str:
    """A pattern for any of ``words`` that also accepts digits and signs used as letters."""
    return "|".join(
        "".join(f"[{re.escape(_LEET[c])}]" if c in _LEET else re.escape(c) for c in word)
        for word in words.split()
    )


# Where an order begins: the start of a clause, or after a word that hands the order over.
_START = (
    r"(?:^|[\n.!?;:,(\[{>\"'“‘*#=%}\-]|\b(?:please|kindly|and|then|now|just|simply|only|also|must"
    r"|should|shall|will|instead|permanently|to|can|you|would|always|first)\b)[^\w\n]*"
)
_ORDER = _START.replace("|to|can|you|would|", "|you|")
_OVERRIDE = r"(?:" + _leet("ignore disregard forget override bypass discard neglect") + r")"
_FILLER = r"(?:[^\w\n]+[\w@$!|]+){0,4}?[^\w\n]+"
_RULES = (
    r"(?:" + _leet("instructions instruction directives guidelines policies constraints") + r"|"
    r"rules?(?:et)?|prompts?|commands|filters|(?:\w+\s+)?system messages?|safety\s+\w+)\b"
)
_ANSWER = r"(?:repl(?:y|ies)|responses?|answers?|output|completion|message)"
_SAY = r"(?:say|print|reply|respond|answer|output|proclaim|prefix|prepend|append|begin|start)"
_EDIT = (
    r"(?:prefix|prepend|append|begin|start|end|finish|add|insert|integrate|include|introduce|"
    r"translate|reverse|replace|use|write|blend|limit|encode|convert|preface|"
    r"embed|mention|put|format|rewrite|validate|let)"
)
_PROMPT = (
    r"(?:(?:system|initial|starting|original|hidden|secret|developer)\s+"
    r"(?:prompts?|instructions?|configuration|messages?)|initiali[sz]ation string|"
    r"(?:all\s+)?(?:the\s+|prior\s+|above\s+|previous\s+)?(?:instructions?|prompts?|rules)"
    r"\s+(?:so far|above|prior to|(?:\w+\s+)?received)|"
    r"(?:all\s+)?(?:prior|above)\s+(?:instructions?|words|text|rules)|text above and below|"
    r"system_?prompt|"
    r"(?:your|the) (?:prompt|instructions?|rules|ruleset)(?:\s+(?:so far|below|back|to me|in)"
    r"\b|[^\w\n]*$|[^\w\n]+(?:and|be|begin|with)\b|[.,])|"
    r"text you were given|entire conversation back)"
)
_SHOW = (
    r"(?:show|print|repeat|reveal|output|list|summari[sz]e|translate|explain|encode|tell|write|"
    r"display|dump|expose|leak|share|provide|convert|reply|respond|give|copy|continue|recite)"
)
_CODING = r"(?:(?:rot-?13|base-?64|hex|morse|caesar)[^\w\n]+)?"
_MODEL = r"(?:ai|bot|chat ?bot|language model|llm|(?:ai )?assistants?|gpt|ai models?)"

_COMMANDS: tuple[tuple[str, str], ...] = (
    ("override", _START + _OVERRIDE + _FILLER + _RULES),
    (
        "override",
        _START + _OVERRIDE + r"[^\w\n]+(?:any|everything)[^\w\n]+(?:previous|prior|above)\b",
    ),
    (
        "override",
        _START + _OVERRIDE + r"[^\w\n]+(?:the[^\w\n]+user|my (?:previous|earlier) request)\b",
    ),
    (
        "override",
        _START + _OVERRIDE + r"[^\w\n]+(?:the|any|all)\b[^.\n]{0,40}\b(?:below|following)\b",
    ),
    ("override", _START + r"(?:ignore|disregard)\b[^.\n]{0,40}\b(?:indicators|user'?s? input)\b"),
    ("override", r"\bdisregard all (?:info|information|text|content)\b"),
    ("override", r"\bnew (?:instructions?|policy|rules?|task)(?: (?:from|for) (?:the user|you))?:"),
    ("override", r"(?:^|\n)[^\w\n]*instructions?\s*:"),
    ("override", r"\bobey (?:the|this|these) (?:document|text|file|page|message)\b"),
    ("override", r"\bfollow only (?:this|these)\b"),
    ("override", r"\bstop everything\b[^a-z]+(?:now|just)\b"),
    ("override", r"\b(?:administrator|admin|system|developer) override\b\W"),
    ("override", r"\bsystem (?:message|prompt|instructions?)\b[^.\n]{0,20}\b(?:obsolete|void)\b"),
    (
        "answer",
        _ORDER + _SAY + r"(?![(\w])(?:[^\w\n]+\w+){0,4}?[^\w\n]*(?<=[ :])[\"“'‘\[](?! )"
        r"[^\"”'’\]\n]{2,}[\"”'’\]]",
    ),
    (
        "answer",
        _START
        + r"(?<!we now )(?:say|print|reply|respond|answer|write)[^\w\n]+(?:back[^\w\n]+|with[^\w\n]+)?"
        r"(?:only|just|nothing but|solely|exclusively|exactly)\b",
    ),
    (
        "answer",
        r"(?:^|[.!?:;,\n]|\band|\bmust|\bplease)[^\w\n]*(?:only|just|always only)[^\w\n]+"
        r"(?:say|print|reply|respond)\b(?![^\w\n]+(?:to|the|relevant)\b)",
    ),
    (
        "answer",
        _ORDER
        + _EDIT
        + r"\b(?:[^.\n]|\.(?=\w)){0,90}\b(?:your|the|each|every)[^\w\n]+(?:next[^\w\n]+|own[^\w\n]+|"
        r"final[^\w\n]+|default[^\w\n]+)?"
        + _ANSWER
        + r"\b(?![^\w\n]+(?:sheet|letter|from|of|i got)\b)",
    ),
    ("answer", r"\byour " + _ANSWER + r" (?:should|must|will|shall|has to)\b"),
    (
        "answer",
        r"\b(?:code snippet|code block|code excerpt)\b[^.\n]{0,60}"
        r"\b(?:your|you develop)\b",
    ),
    ("answer", r"\breply\b[^.\n]{0,60}\bnothing else\b|\bno additional text\b"),
    ("answer", r"\bif (?:the|a) user (?:says|asks|enters|types)\b|\bwhen(?:ever)? asked about\b"),
    ("answer", r"\b(?:must|will|should)\s+(?:reply|respond|answer|say)\b[^.\n]{0,30}[\"“'‘]"),
    (
        "answer",
        r"\binstead\b[^.\n]{0,40}\b(?:say|answer|reply|respond|print)\s*:?\s*[\"“'‘:\w]"
        r"(?<=[\"“'‘:])",
    ),
    ("role", r"\byou are (?:now )?(?:a |an |the )?(?:\w+ ){0,3}?" + _MODEL + r"\b"),
    (
        "role",
        r"\byou are now (?:free|playing|dan\b|in developer|unrestricted|unfiltered|jailbroken"
        r"|\w*gpt)",
    ),
    ("role", r"\bfrom now on(?:,| until [^,]+,)? you(?:'re| are| must| should| will| shall)\b"),
    ("role", r"\b(?:treat|consider|accept) \w+ (?:to|from) \S+ as (?:authori[sz]ed|trusted|safe)"),
    ("role", r"\byou (?:will|must|can|should) (?:only say|never refuse|now follow|ignore)\b"),
    (
        "role",
        r"\bdo anything now\b|\bas dan\b|\bstay in character\b|\bnot break character\b|"
        r"\bin character as\b|\bjailbreak\s*:",
    ),
    ("role", r"\b(?:simulate|enable[ds]?|with|in) developer mode\b(?! on\b)"),
    ("role", r"\b(?:amoral|unfiltered|uncensored|unrestricted)\b[^.\n]{0,30}" + _MODEL),
    (
        "role",
        r"\bsome roleplay\b[^.\n]{0,5}[^\w\n]*follow your\b|\bopen to answering any question\b|"
        r"\btry and respond like\b|\brespond as such\b",
    ),
    (
        "answer",
        _START + r"(?:do not|don'?t|never)[^\w\n]+(?:add|include|give|write)[^\w\n]+(?:any |"
        r"an )?(?:other |extra |additional |further )?(?:explanations?|comments?|commentary|quotations?)\b",
    ),
    ("answer", r"\bwhat would you (?:say|answer|reply|respond) to an? user\b"),
    ("answer", r"\bif an? user\b[^.?\n]{0,60}\bwhat would you (?:say|answer|reply|respond)\b"),
    ("prompt", _START + _CODING + _SHOW + r"\b(?![^.\n]{0,10}\bprompt i\b)[^.\n]{0,60}?" + _PROMPT),
    ("prompt", r"\bwhat (?:are|is|were) your (?:\w+ )?(?:instructions|prompt|rules)\b"),
    ("prompt", r"\bwhat are you not (?:supposed|allowed) to\b"),
    ("prompt", r"\b(?:instructions|prompt|rules)\b[^.\n]{0,40}\byour? password\b"),
    ("prompt", r"\bsystem_?prompt\s*[)(>]|\bconsole\.log\(system"),
    ("prompt", r"\bthe system prompt is\s*:|\byour initial prompt\b|\brules below to python\b"),
    (
        "spoof",
        r"\[/?inst\]|<</?sys>>|<\|(?:im_start|im_end|endoftext|system|user|assistant|eot_id|"
        r"start_header_id)\|>|<start_of_turn>|</?s>\s*\[",
    ),
    (
        "spoof",
        r"(?:^|\n)[^\S\n]{0,8}#{2,6}\s*\(?(?:system|assistant|instruction)(?:_message)?\)?\s*:?"
        r"(?:\s*$|\s*\n|\s+(?:please|you|new)\b|:)",
    ),
    (
        "spoof",
        r"[-=%#>]{3}\s*(?:begin|end)(?:\s+of)?\s+(?:user|retrieved|system|buffer|ambiguity|"
        r"login|prompt|out of date|document|past|facts|context|instructions)",
    ),
    ("spoof", r"\[(?:memory|system|assistant|admin)\][^\[]*\[/"),
    (
        "spoof",
        r"\b(?:end|start|begin) access code\b|\bcorrect (?:access code|password) "
        r"(?:has been|entered|was)\b|\baccess code successfully\b|\bchecking password\b",
    ),
    ("address", r"(?:^|[.!?\n]\s*)(?:dear |hey )?(?:assistant|language model|ai|chat ?bot),\s"),
    (
        "address",
        r"\b(?:ai assistants?|language models?|llms?|ai agents?|ai models?|chat ?bots?)\b"
        r"[^.\n]{0,40}\b(?:must|should|shall|are to)\b",
    ),
    ("address", r"\bif you are an? (?:ai|language model|llm|assistant|chat ?bot)\b"),
    ("address", r"\bto you, the (?:ai|language model|assistant)\b|\bnote to (?:automated|ai)\b"),
    ("address", r"\bbefore you can solve the task\b"),
    (
        "memory",
        _START + r"(?:remember|note|save|record|memori[sz]e)\b[^.\n]{0,20}\bthat the user"
        r"\b(?! (?:manual|guide|interface|data|name|id)\b)",
    ),
    ("memory", r"\bthe user (?:has|have) (?:authori[sz]ed|agreed|consented|approved|permitted)\b"),
    ("memory", r"\bupdate the user'?s? (?:profile|memory|notes)\b"),
    (
        "memory",
        r"\b(?:add|write|save)\b[^.\n]{0,10}\b(?:to|into) (?:your |the )?(?:memory|notes|"
        r"memories)\b[^.\n]{0,12}(?::|\bthat\b)",
    ),
    (
        "memory",
        r"\bdelete all (?:stored )?memories that\b|\bdo not mention this (?:note|message)\b",
    ),
    ("memory", r"\b(?:don'?t|do not|never) (?:warn|tell|inform|alert) the user\b"),
    (
        "exfiltrate",
        r"\b(?:stored|private|saved|personal) (?:facts?|notes|memories|data)\b[^.\n]"
        r"{0,60}\b(?:append|base64|footnote|encode|url|put|send|forward|post)\b",
    ),
    (
        "exfiltrate",
        r"\b(?:send|forward|post|upload|email)\b[^.\n]{0,40}\b(?:customer|user)(?:'s)? "
        r"(?:data|notes|memories|facts)\b[^.\n]{0,12}\bto\b(?! the (?:accountant|team|office))",
    ),
    (
        "execute",
        r"\bignore filters\b|\band run (?:os|shell|system) commands\b|\bact(?:ing)? as if you "
        r"were a \w+ console\b|\bas if you were an? \w+ (?:console|terminal|shell)\b",
    ),
    # The same order in other languages: ignore + earlier/all + instructions.
    ("override", r"\bignorier(?:e|en sie)\b[^.\n]{0,40}\b(?:anweisung|instruktion|befehl|regel)"),
    ("override", r"\b(?:vergiss|missachte)\b[^.\n]{0,30}\b(?:anweisung|instruktion|regel)"),
    ("override", r"\b(?:ignor[ae]|olvida|olvide)\b[^.\n]{0,30}\b(?:instrucci|instruç|istruzion)"),
    (
        "override",
        r"\b(?:ignore[zr]?|oubli(?:e|ez))\b[^.\n]{0,30}\b(?:instruction|consigne|instruç)",
    ),
    ("override", r"\bnegeer\b[^.\n]{0,30}\binstructie"),
    ("override", r"(?:忽略|无视|無視|忘记|忘掉)[^。\n]{0,12}(?:指令|指示|说明|規則|规则)"),
    ("override", r"(?:指示|命令|指令)[^。\n]{0,8}(?:無視|忘れ)"),
    (
        "override",
        r"(?:игнорируй|игнорируйте|забудь|забудьте)[^.\n]{0,40}(?:инструкц|указани|правил)",
    ),
)

_REPORTING = re.compile(
    r"\b(?:says?|said|saying|shouts?|shouted|tells?|told|wrote|writes|reads?|called|such as|"
    r"phrases?|quotes?|quoted|titled|explains?|example|like|whispers?|yells?|cries|asks?)\b"
    r"[^\"“'‘]{0,12}[\"“'‘]?\s*$"
)
_THIRD_PERSON = re.compile(
    r"\b(?:the|a|an|his|her|their|my|our)\s+[\w-]+\s+(?:\w+\s+)?(?:says?|said|shouts?|shouted|"
    r"tells?|told|wrote|writes|reads?|explains?|whispers?|yells?|cries)\b|"
    r"\b(?:a|the) (?:text|phrase|sentence|line|string|message|document|page) (?:such as|like|that)"
)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    # Bounded gaps: a page of "=====" must not be looked through from each of its signs anew.
    return tuple(
        (
            kind,
            re.compile(
                pattern.replace(r"[^\w\n]*", r"[^\w\n]{0,12}").replace(
                    r"[^\w\n]+", r"[^\w\n]{1,12}"
                )
            ),
        )
        for kind, pattern in _COMMANDS
    )


_LOOKALIKES = str.maketrans(
    "авеикмнорстухіјѕԁһԛԝոսɡıαειοκνρτυχ’",
    "abeukmhopctyxijsdhqwnugiaeioknptux'",
)
"""Letters of other alphabets that are drawn like a Latin one, after case folding."""

_MIXED = re.compile(r"(?=[^\W\d_]*[a-z])(?=[^\W\d_]*[^\W\d_a-z])[^\W\d_]+")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")


def _fold(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A copy for matching, and for each of its characters where in ``text`` it stands.

    Character references are read, and a word that mixes Latin letters with others that are drawn
    like them is read as Latin. A word of one alphabet stays as it is.
    """
    folded: list[str] = []
    origin: list[tuple[int, int]] = []
    references = {found.start(): found for found in _ENTITY.finditer(text)} if "&" in text else {}
    index = 0
    while index < len(text):
        reference = references.get(index)
        character = html.unescape(reference[0]) if reference else text[index]
        begin, index = index, reference.end() if reference else index + 1
        for sign in character:
            if unicodedata.category(sign) in {"Cf", "Cs", "Cn", "Co"}:
                continue
            for piece in unicodedata.normalize("NFKC", sign).casefold():
                folded.append("'" if piece == "’" else piece)
                origin.append((begin, index))
    copy = "".join(folded)
    if not copy.isascii():
        copy = _MIXED.sub(lambda word: word[0].translate(_LOOKALIKES), copy)
    return copy, origin


_SENTENCE = re.compile(
    r"[^.!?。！？\n]*(?:[.!?。！？](?!\s|$|[\"”'’)\]}>])[^.!?。！？\n]*)*"
    r"[.!?。！？]*[\"”'’)\]}>]*\n?"
)


def _sentences(folded: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(folded):
        match = _SENTENCE.match(folded, start)
        end = match.end() if match and match.end() > start else start + 1
        spans.append((start, end))
        start = end
    return spans


def _reported(folded: str, start: int, end: int, position: int) -> bool:
    """Whether what stands at ``position`` is told about somebody rather than ordered."""
    before = folded[start:position].rstrip()
    told = _THIRD_PERSON.search(folded[start:position])
    return told is not None and (
        _REPORTING.search(before) is not None or before.endswith((" to", "'", '"', "“", "‘", ":"))
    )


def _commands(text: str) -> list[tuple[int, int, str]]:
    """Spans of ``text`` (whole sentences, start and end) that command, with their kind."""
    folded, origin = _fold(text)
    if not folded:
        return []
    sentences = _sentences(folded)
    hit: dict[tuple[int, int], str] = {}
    for kind, pattern in _patterns():
        for match in pattern.finditer(folded):
            first = match.start() + (len(match[0]) - len(match[0].lstrip(" \t\n.!?;:,")))
            covered = [s for s in sentences if s[0] < match.end() and s[1] > first]
            if covered and _reported(folded, *covered[0], first):
                continue
            for span in covered:
                hit.setdefault(span, kind)
    spans: list[tuple[int, int, str]] = []
    for (start, end), kind in sorted(hit.items()):
        piece = folded[start:end]
        first = start + len(piece) - len(piece.lstrip())
        last = start + len(piece.rstrip())
        if last > first:
            spans.append((origin[first][0], origin[last - 1][1], kind))
    return spans


def looks_like_instruction(text: str) -> bool:
    """Whether ``text`` orders a language model about, as far as the known forms go."""
    return bool(_commands(text))


def kinds(text: str) -> tuple[str, ...]:
    """The kinds of command found in ``text``, sorted, each once; for benchmarks."""
    return tuple(sorted({kind for _, _, kind in _commands(text)}))


def redact(text: str) -> str:
    """``text`` with every sentence that commands replaced by ``[REDACTED]``.

    Text without such a sentence comes back as it is, byte for byte.
    """
    return _redact_again(text) if len(text) <= REMEMBERED_LENGTH else _redact(text)


@lru_cache(maxsize=512)
def _redact_again(text: str) -> str:
    # A turn looks at each excerpt twice, and at the history's every time.
    return _redact(text)


def _redact(text: str) -> str:
    spans = _commands(text)
    if not spans:
        return text
    pieces: list[str] = []
    position = 0
    for start, end, _ in spans:
        gap = text[position:start]
        if not (pieces and not gap.strip() and pieces[-1] == REDACTED):
            pieces += [gap, REDACTED]
        position = end
    pieces.append(text[position:])
    return "".join(pieces)
