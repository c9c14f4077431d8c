"""Twenty ways in which people introduce themselves, and what must be known afterwards.

Names, places, verbs and orders differ, and none resembles an example of the extraction prompt.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Introduction:
    """What is said, what a memory must then hold, and a question with the word of its answer."""

    lines: tuple[str, str]
    known: tuple[str, str]
    question: str
    answer: str


INTRODUCTIONS = (
    Introduction(
        ("My name is Dana and I live in Kathmandu.", "I am building a note-taking app in Rust."),
        ("Kathmandu", "Rust"),
        "Which city do I live in?",
        "Kathmandu",
    ),
    Introduction(
        ("Hello! I'm Tobias, a beekeeper from Ljubljana.", "My brother Matej owns a bakery."),
        ("beekeeper", "bakery"),
        "What is my job?",
        "beekeeper",
    ),
    Introduction(
        ("People call me Wren.", "I moved to Valparaíso three years ago to teach geology."),
        ("Wren", "Valparaíso"),
        "Where did I move to?",
        "Valpara",
    ),
    Introduction(
        ("I've been playing the oboe since I was nine.", "Olga is my name, by the way."),
        ("oboe", "Olga"),
        "Which instrument do I play?",
        "oboe",
    ),
    Introduction(
        ("I study marine biology in Bergen.", "My favourite food is lentil soup."),
        ("marine", "lentil"),
        "What do I study?",
        "marine",
    ),
    Introduction(
        ("Our dog is called Biscuit and she is deaf.", "I work nights as a nurse in Leeds."),
        ("Biscuit", "nurse"),
        "What is the name of my dog?",
        "Biscuit",
    ),
    Introduction(
        ("I'm allergic to peanuts.", "I write embedded firmware for elevators."),
        ("peanut", "elevator"),
        "What am I allergic to?",
        "peanut",
    ),
    Introduction(
        ("My wife Amara and I have twin daughters.", "We rent a flat in Accra."),
        ("twin", "Accra"),
        "What is my wife called?",
        "Amara",
    ),
    Introduction(
        ("I drive an old Saab.", "Next year I want to learn Finnish."),
        ("Saab", "Finnish"),
        "Which car do I drive?",
        "Saab",
    ),
    Introduction(
        ("Hi, this is Jiro.", "I run a tiny print shop in Nagoya and I hate mornings."),
        ("Jiro", "print shop"),
        "What do I run?",
        "print",
    ),
    Introduction(
        ("I grew up in Tbilisi but my home is Lisbon now.", "I collect fountain pens."),
        ("Lisbon", "fountain pens"),
        "What do I collect?",
        "pen",
    ),
    Introduction(
        ("For work I translate patents from German.", "I prefer tea to coffee."),
        ("patents", "tea"),
        "Which do I prefer, tea or coffee?",
        "tea",
    ),
    Introduction(
        ("I'm training for the Comrades marathon.", "My coach is Lindiwe."),
        ("marathon", "Lindiwe"),
        "Who is my coach?",
        "Lindiwe",
    ),
    Introduction(
        ("My birthday is on 14 March.", "I'm a vegetarian."),
        ("14 March", "vegetarian"),
        "When is my birthday?",
        "14",
    ),
    Introduction(
        ("I maintain a weather station library written in Elixir.", "I'm based in Tallinn."),
        ("Elixir", "Tallinn"),
        "Which language is my library written in?",
        "Elixir",
    ),
    Introduction(
        ("I can't stand cilantro.", "My kitchen has an induction stove."),
        ("cilantro", "induction"),
        "Which herb can I not stand?",
        "cilantro",
    ),
    Introduction(
        ("I retired from the railways in 2019.", "These days I restore clocks."),
        ("railway", "clocks"),
        "What do I restore?",
        "clock",
    ),
    Introduction(
        ("Name's Priyanka, I'm a judge in Pune.", "I sing in a choir on Thursdays."),
        ("judge", "choir"),
        "What do I do on Thursdays?",
        "choir",
    ),
    Introduction(
        ("I have two cats, Mochi and Taro.", "I sleep badly when it is warm."),
        ("Mochi", "warm"),
        "What are my cats called?",
        "Mochi",
    ),
    Introduction(
        ("We are planning a wedding in September.", "I play chess on my phone every evening."),
        ("wedding", "chess"),
        "What do I play every evening?",
        "chess",
    ),
)
