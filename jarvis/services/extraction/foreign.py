"""How people introduce themselves in other languages: name, home, origin and work.

The model reads everything else; a small one reads other languages badly, and these are the
phrases that everybody begins with. Closed frames only: what is filled in is open.
"""

from __future__ import annotations

# ruff: noqa: E501 -- lists of words read best unbroken
import re
from collections.abc import Iterator
from functools import cache

_NAMED = r"(?P<v>[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’-]+){0,2})"
_PLACE = r"(?P<v>[^\W\d_][\w'’-]*(?:[ -][^\W\d_][\w'’-]+){0,2})"
_TRADE = r"(?P<v>(?:un[ae]? |ein[e]? |een |en |uma? )?[^\W\d_][\w'’-]+)"
_CJK = r"[^\s、。，,.!?！？「」はがをにでもの的和在是]"

# What a frame says, its phrases, and whether a capital has to begin what fills it.
_FRAMES: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    (
        "User's name is {}",
        (
            rf"ich hei(?:ß|ss)e {_NAMED}",
            rf"mein name ist {_NAMED}",
            rf"ich bin (?:der|die) {_NAMED}",
            rf"(?:ik heet|mijn naam is) {_NAMED}",
            rf"(?:je m'appelle|mon (?:nom|prénom) est|moi,? c'est) {_NAMED}",
            rf"(?:me llamo|mi nombre es) {_NAMED}",
            rf"(?:me chamo|chamo-me|meu nome é|sou [oa]) {_NAMED}",
            rf"(?:mi chiamo|mio nome è) {_NAMED}",
            rf"(?:jag heter|mitt namn är|jeg hedder|jeg heter|mit navn er|navnet mitt er) {_NAMED}",
            rf"(?:mam na imię|nazywam się) {_NAMED}",
            rf"nimeni on {_NAMED}",
            rf"(?:меня зовут|мо[её] имя|мене звати) {_NAMED}",
            rf"(?:adım|ismim) {_NAMED}",
        ),
        True,
    ),
    (
        "User lives in {}",
        (
            rf"ich (?:wohne|lebe) (?:(?:jetzt|gerade|nun) )?in {_PLACE}",
            rf"ik woon (?:nu )?in {_PLACE}",
            rf"(?:j'habite|je vis) (?:maintenant )?(?:à|au|aux|en|dans) {_PLACE}",
            rf"vivo en {_PLACE}",
            rf"(?:moro|vivo|resido) (?:em|no|na|nos|nas) {_PLACE}",
            rf"(?:abito|vivo) (?:a|ad|in) {_PLACE}",
            rf"(?:jag|jeg) bor (?:nu )?i {_PLACE}",
            rf"mieszkam we? {_PLACE}",
            rf"живу во? {_PLACE}",
        ),
        True,
    ),
    (
        "User is from {}",
        (
            rf"ich komme aus {_PLACE}",
            rf"ik kom uit {_PLACE}",
            rf"je viens (?:de|d')\s*{_PLACE}",
            rf"soy de {_PLACE}",
            rf"(?:vengo da|sono di) {_PLACE}",
            rf"sou (?:de|do|da) {_PLACE}",
            rf"(?:jag kommer från|jeg kommer fra) {_PLACE}",
            rf"(?:jestem|pochodzę) z {_PLACE}",
            rf"я из {_PLACE}",
        ),
        True,
    ),
    (
        "User works as {}",
        (
            rf"ich arbeite als {_TRADE}",
            rf"ik werk als {_TRADE}",
            rf"je travaille comme {_TRADE}",
            rf"trabajo (?:como|de) {_TRADE}",
            rf"trabalho como {_TRADE}",
            rf"lavoro come {_TRADE}",
            rf"(?:jag jobbar|jag arbetar|jeg arbejder|jeg jobber) som {_TRADE}",
            rf"pracuję jako {_TRADE}",
            rf"работаю {_TRADE}",
        ),
        False,
    ),
    (
        "User's name is {}",
        (
            rf"名前は(?P<v>{_CJK}{{1,12}}?)(?=です|だ|と[申言い]|$)",
            rf"(?:^|私は|僕は)(?P<v>{_CJK}{{1,12}}?)と(?:申します|いいます|言います)",
            rf"我(?:的名字)?叫(?:做|作)?(?P<v>{_CJK}{{1,6}})(?=[，,。.!！\s]|$)",
            rf"我的名字是(?P<v>{_CJK}{{1,6}})(?=[，,。.!！\s]|$)",
            r"(?:제|내) 이름은 (?P<v>[가-힣]{1,6}?)(?=입니다|이에요|예요|이야|야|$)",
            r"저는 (?P<v>[가-힣]{1,6}?)(?:이)?라고 합니다",
        ),
        False,
    ),
    (
        "User lives in {}",
        (
            rf"(?P<v>{_CJK}{{1,12}})に(?:住んで|住む|暮らし)",
            rf"我?(?:现在|現在)?(?:住|居住|生活)在(?P<v>{_CJK}{{1,12}})(?=[，,。.!！\s]|$)",
            r"(?P<v>[가-힣]{1,10})에(?:서)? (?:살|거주)",
        ),
        False,
    ),
    (
        "User is from {}",
        (
            rf"(?P<v>{_CJK}{{1,12}})(?:の)?出身",
            rf"我(?:来自|來自)(?P<v>{_CJK}{{1,12}})(?=[，,。.!！\s]|$)",
        ),
        False,
    ),
)
_STOPS = frozenset(
    # Small words that end a name or a place: and, with, but, from, there, by trade …
    "und et y e en ed och og i и та ve mit met avec con com med z с aber mais pero ma men но aus"
    " de del da do di dal et je ik ich yo eu io jag jeg ja я ben en ou oder o or bei près cerca soy"
    " sono sou suis bin seit depuis desde dal sedan since dans à au im am zusammen samen ensemble".split()
)


@cache
def _compiled() -> tuple[tuple[str, re.Pattern[str], bool], ...]:
    return tuple(
        (form, re.compile(phrase if _unspaced(phrase) else rf"(?<!\w){phrase}", re.I), capital)
        for form, phrases, capital in _FRAMES
        for phrase in phrases
    )


def _unspaced(phrase: str) -> bool:
    """Whether a phrase is of a script in which words are not set apart."""
    return any("\u3040" <= character <= "\ud7af" for character in phrase)


def facts(sentence: str) -> Iterator[str]:
    """Facts in the third person that ``sentence`` states in a language other than English."""
    seen: set[str] = set()
    for form, pattern, capital in _compiled():
        match = pattern.search(sentence)
        if match is None:
            continue
        value = _value(match["v"], capital=capital)
        if value and form not in seen:
            seen.add(form)
            yield form.format(value)


def _value(words: str, *, capital: bool) -> str:
    """What fills the frame: without the words that go on after it; "" where it is no name."""
    kept: list[str] = []
    for word in words.split():
        proper = word[0].isupper() or word[0].lower() == word[0].upper()
        if kept and (word.casefold() in _STOPS or (capital and not proper)):
            break
        if capital and not proper:
            return ""
        kept.append(word)
    return " ".join(kept).rstrip(".'’-")
