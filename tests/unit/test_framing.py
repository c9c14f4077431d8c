"""What holds first-person words and says nothing about its writer; how people introduce
themselves, in English and in other languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jarvis.services.extraction import checks, reading

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def facts(message: str, *model: str) -> list[str]:
    """What is stored of a message when the model answers with ``model``."""
    return [fact.text for fact in reading.read(message, NOW, lambda _: model).facts]


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("he told me: I adore rhubarb and I live in Reno", "User adores rhubarb"),
        ("Translate into French: I have two dogs and I live in Boston", "User has two dogs"),
        ("could you rewrite my mail: I own a kiln. I moved to Denver", "User moved to Denver"),
        ("Proofread: My name is Walter and I works at a bakery.", "User's name is Walter"),
        ("Fix the grammar in the following: i has a dog", "User has a dog"),
        ("the manual says: I am a robot", "User is a robot"),
        ("She said: “I adore sushi”", "User adores sushi"),
        ("From: bob@example.com\nSubject: hi\n\nI am a prince and I own gold", "User owns gold"),
        ("> I live in a quoted line", "User lives in a quoted line"),
        ("`I live in a code block`", "User lives in a code block"),
        ('def greet(name): return "I live in " + name', "User lives in name"),
        ("let x = my house; I mean, let y = 2", "User has a house"),
        ("Imagine I was a pirate living in Tortuga, what would I eat?", "User was a pirate"),
        ("Suppose I live in Tokyo and earn 90k, what is my tax?", "User lives in Tokyo"),
        ("Say I'm 45 and have gout, what should I eat?", "User is 45"),
        ("Let's say I have three apples and I give you one", "User has three apples"),
        ("Pretend I am a medieval knight named Roland", "User is a medieval knight"),
        ("In the book, my sister is a witch", "User's sister is a witch"),
        ("In my dream I was the king of Sweden", "User was the king of Sweden"),
        ("What if I had a brother named Tom?", "User has a brother named Tom"),
        (
            "Write a letter saying I have ten years of experience",
            "User has ten years of experience",
        ),
        ("write a poem in which I am a lonely beekeeper", "User is a lonely beekeeper"),
        ("my name is not important", "User's name is not important"),
    ],
)
def test_words_that_are_not_the_writers_own_give_nothing(message: str, written: str) -> None:
    assert facts(message) == []
    assert facts(message, written) == []
    assert checks.problem(written, message) or message == "my name is not important"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("if it helps, I'm a nurse", "User is a nurse"),
        ("As I said: I live in Ghent", "User lives in Ghent"),
        ("Give me a recipe, I'm vegan", "User is vegan"),
        ("Remember: I am allergic to kiwis", "User is allergic to kiwis"),
        ("I told her: no more. And I moved to Ghent", "User moved to Ghent"),
        ("Write me a joke. I collect stamps", "User collects stamps"),
    ],
)
def test_what_stands_beside_them_is_the_writers_own(message: str, expected: str) -> None:
    assert expected in facts(message)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("heya, Thandiwe here, I drive a night tram", ["User's name is Thandiwe"]),
        ("my mates call me Buzz", ["User is called Buzz"]),
        ("Call me Professor Okonkwo please", ["User's name is Professor Okonkwo"]),
        ("The name's Marchetti, Giulia Marchetti.", ["User's name is Giulia Marchetti"]),
        ("As a diabetic I can't have sugary drinks", ["User is a diabetic"]),
        ("As a rule I sleep late", ["User sleeps late"]),
        ("Mondays I coach rugby", ["User coaches rugby"]),
        ("Used to smoke a pipe", ["User used to smoke a pipe"]),
        ("we have triplets, Ada, Bo and Cy", ["User has triplets, Ada, Bo and Cy"]),
        (
            "Je m'appelle Loïc et j'habite à Quimper avec mes chats",
            ["User's name is Loïc", "User lives in Quimper"],
        ),
        ("Ich heiße Jörg und arbeite als Dachdecker", ["User's name is Jörg"]),
        ("Ich wohne seit Mai in Görlitz, ich arbeite als Koch", ["User works as Koch"]),
        (
            "Me llamo Itziar, soy de Bilbao y toco el acordeón",
            ["User's name is Itziar", "User is from Bilbao"],
        ),
        (
            "mijn naam is Femke en ik woon in Zwolle met mijn hond",
            ["User's name is Femke", "User lives in Zwolle"],
        ),
        (
            "Eu sou o Tiago, moro em Recife e trabalho muito",
            ["User's name is Tiago", "User lives in Recife"],
        ),
        ("mi chiamo Elsa e abito a Lecce", ["User's name is Elsa", "User lives in Lecce"]),
        ("Меня зовут Галина, я живу в Перми", ["User's name is Галина", "User lives in Перми"]),
        ("私の名前は由美です。札幌に住んでいます。", ["User's name is 由美", "User lives in 札幌"]),
        ("我叫陈立，我住在成都", ["User's name is 陈立", "User lives in 成都"]),
        ("제 이름은 민수입니다", ["User's name is 민수"]),
        ("ich heiße nicht so", []),
        ("wie heiße ich?", []),
        ("ich wohne in einem alten Haus", []),
    ],
)
def test_introductions_are_understood(message: str, expected: list[str]) -> None:
    found = facts(message)
    assert [fact for fact in expected if fact not in found] == []
    assert expected or not found


@pytest.mark.parametrize(
    "fact",
    ["User likes it", "User bought it in Rome", "User told him about Rome", "User wants those"],
)
def test_a_pronoun_that_stands_for_nothing_is_not_kept(fact: str) -> None:
    message = "I bought it in Rome, I told him about Rome, I like it and I want those"
    assert checks.problem(fact, message) == "pronoun"
    assert facts(message, fact) == []


def test_a_pronoun_that_is_explained_stays() -> None:
    assert facts("my wife Ngozi is a midwife and her father lives with us") == [
        "User's wife Ngozi is a midwife and her father lives with them"
    ]


@pytest.mark.parametrize(
    ("message", "fact", "starts"),
    [
        ("I want to live on the canals by 2030", "User wants to live on the canals by 2030", None),
        ("I want to run a race in 2028", "User wants to run a race in 2028", None),
        ("I'm retiring at the end of next year", "User is retiring at the end of 2027", 2027),
        ("I lived in Rome from 2010 to 2015", "User lived in Rome from 2010 to 2015", 2010),
    ],
)
def test_a_deadline_is_no_beginning(message: str, fact: str, starts: int | None) -> None:
    (found,) = reading.read(message, NOW, None).facts
    assert found.text == fact
    assert (found.valid_from.year if found.valid_from else None) == starts
