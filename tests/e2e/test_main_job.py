"""The main job, as a user has it: said in one process, known in another."""

from __future__ import annotations

import json

import pytest

from jarvis.services import memory, search, worker
from jarvis.services.app import App
from jarvis.services.turns import Finished, TurnRequest
from jarvis.store import memory_lists, sessions, users
from jarvis.types import MemoryHit, Role, WorkState
from tests.conftest import Cli
from tests.e2e.introductions import INTRODUCTIONS

MUST_HOLD = 14
"""Of the twenty introductions, so many must be known afterwards."""


@pytest.mark.model
def test_what_was_said_is_known_in_the_next_process(cli: Cli) -> None:
    said = "My name is Dana and I live in Kathmandu.\nI am building a note-taking app in Rust.\n"
    chat = cli("chat", stdin=said)
    assert chat.returncode == 0, chat.stderr
    assert len(chat.stdout.splitlines()) == 2
    assert all(line.strip() for line in chat.stdout.splitlines())

    listed = cli("memory", "list")
    assert "Kathmandu" in listed.stdout
    assert "Rust" in listed.stdout
    assert "Dana" in listed.stdout

    asked = cli("ask", "--json", "Which city do I live in?")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    found = [hit for hit in answer["memories"] if "Kathmandu" in hit["content"]]
    assert found, answer["memories"]
    assert 0 < found[0]["similarity"] <= 1
    assert "Kathmandu" in answer["answer"]

    greeting = json.loads(cli("ask", "--dry-run", "--json", "hi").stdout)
    assert greeting["memories"] == []
    assert greeting["turns"] == []
    assert greeting["documents"] == []


@pytest.mark.model
def test_most_of_twenty_introductions_are_remembered(app: App) -> None:
    """Extraction and search for each; the answers are checked in the benchmark."""
    people: list[App] = []
    with app.database.transaction() as tx:
        for number, introduction in enumerate(INTRODUCTIONS):
            someone = users.ensure(tx, f"person-{number}")
            people.append(app.for_user(someone))
            session = sessions.create(tx, someone.id)
            for line in introduction.lines:
                sessions.add_message(
                    tx, someone.id, session.id, Role.USER, line, extract=WorkState.PENDING
                )
    worker.run(app, linger=0)
    held = []
    for person, introduction in zip(people, INTRODUCTIONS, strict=True):
        with app.database.connection() as connection:
            contents = [
                row.content for row in memory_lists.most_important(connection, person.user.id, 50)
            ]
        known = all(any(word in content for content in contents) for word in introduction.known)
        request = TurnRequest(introduction.question, private=True)
        injected = [hit.memory.content for hit in person.assistant.dry_run(request).memories]
        found = any(introduction.answer in content for content in injected)
        held.append(known and found)
    missed = [i.lines for i, ok in zip(INTRODUCTIONS, held, strict=True) if not ok]
    print(f"{sum(held)} of {len(held)} introductions held; missed: {missed}")
    assert sum(held) >= MUST_HOLD, missed


@pytest.mark.model
def test_two_users_never_see_each_others_rows(app: App) -> None:
    with app.database.transaction() as tx:
        ada, bob = users.ensure(tx, "ada"), users.ensure(tx, "bob")
    first, second = app.for_user(ada), app.for_user(bob)
    request = TurnRequest("My bank is called Gringotts.")
    events = list(first.assistant.turn(request))
    assert isinstance(events[-1], Finished)
    worker.run(app, linger=0)
    prepared = second.assistant.dry_run(TurnRequest("What is my bank called?"))
    assert "Gringotts" not in "".join(part.content for part in prepared.prompt.messages)
    prepared = first.assistant.dry_run(TurnRequest("What is my bank called?"))
    assert "Gringotts" in "".join(part.content for part in prepared.prompt.messages)


UNRELATED = [
    f"User {verb} {what}"
    for verb, things in {
        "likes": "lentil soup,brass bands,long walks,old maps,tram rides,salt liquorice,fog,sauna,"
        "crossword puzzles,autumn,black tea,rye bread,lighthouses,opera,cold water,plums,jazz,"
        "thunderstorms,board games,marzipan",
        "dislikes": "cilantro,leaf blowers,early meetings,glitter,elevator music,wasps,spam calls,"
        "humid summers,queues,fireworks,liver,polyester,traffic jams,small talk,dust,karaoke,"
        "mosquitoes,raisins,heights,paperwork",
        "owns": "a red bicycle,two cats,a cello,a rowing boat,an allotment,a kiln,nine cacti,"
        "a tent,a globe,a typewriter,a telescope,a loom,an accordion,a caravan,a hammock,a sextant,"
        "a greenhouse,a barometer,a unicycle,a piano",
        "visited": "Tbilisi in 2011,Quito in 2012,Bergen in 2013,Hobart in 2014,Dakar in 2015,"
        "Lviv in 2016,Pune in 2017,Cork in 2018,Nagoya in 2019,Accra in 2020,Lima in 2021,"
        "Riga in 2022,Oslo in 2023,Perth in 2024,Turin in 2025,Basel in 2010,Leeds in 2009,"
        "Nice in 2008,Malmö in 2007,Split in 2006",
        "is allergic to": "peanuts,birch pollen,penicillin,nickel,bee stings,latex,shellfish,mould,"
        "cat hair,sesame,kiwi,dust mites,ragweed,lanolin,soy,wheat,celery,mustard,lupin,aspirin",
        "has an appointment with": "the dentist,the optician,the notary,the plumber,the bank,"
        "the barber,the vet,the tailor,the landlord,the tax office,the surgeon,the locksmith,"
        "the gardener,the electrician,the midwife,the roofer,the chimney sweep,the upholsterer,"
        "the dermatologist,the piano tuner",
        "is related to": "a sister in Ghent,a cousin in Porto,an uncle in Graz,an aunt in Brno,"
        "a nephew in Lund,a niece in Vilnius,a brother in Kyoto,a grandmother in Bari,"
        "a stepfather in Reno,a goddaughter in Tartu,a twin in Sofia,a son in Galway,"
        "a daughter in Utrecht,a grandfather in Izmir,a half-sister in Cusco,an ex in Bath,"
        "a mother-in-law in Pisa,a great-aunt in Kobe,a grandson in Delft,a cousin in Minsk",
        "takes": "the 7:40 tram,vitamin D,salsa lessons,cold showers,the stairs,naps on Sunday,"
        "the night train,magnesium,Finnish lessons,the ferry,tea without milk,long baths,"
        "swimming lessons,iron tablets,the scenic route,notes by hand,the blue umbrella,"
        "piano lessons,a packed lunch,holidays in June",
        "celebrates": "a birthday on 14 March,an anniversary on 2 May,name day on 6 December,Holi,"
        "Midsummer,Epiphany,Burns Night,Nowruz,Songkran,Hanami,St Lucy's Day,Eid,Passover,Diwali,"
        "Bastille Day,Carnival,Obon,Vappu,Candlemas,Harvest Home",
        "cooks": "goulash on Mondays,dal on Tuesdays,risotto on Wednesdays,ramen on Thursdays,"
        "fish on Fridays,pierogi on Saturdays,a roast on Sundays,jam in July,chutney in August,"
        "sauerkraut in October,marmalade in January,pancakes in February,asparagus in April,"
        "paella for guests,chowder in winter,moussaka in May,borscht in November,tamales in "
        "December,gazpacho in June,porridge at dawn",
    }.items()
    for what in things.split(",")
]
"""Two hundred facts that have nothing to do with code."""


@pytest.mark.model
def test_the_coding_project_is_found_among_two_hundred_others(app: App) -> None:
    assert len(UNRELATED) == 200
    target = "User is building Jarvis AI Platform in Java"
    texts = [*UNRELATED[:100], target, *UNRELATED[100:]]
    memory.add(app, [memory.describe(text) for text in texts])
    found = search.search(
        app, "How is my coding project coming along?", kinds=("memories",), limit=3
    )
    assert target in [hit.memory.content for _, hit in found.hits if isinstance(hit, MemoryHit)]
    greeting = app.assistant.dry_run(TurnRequest("hi"))
    assert (greeting.memories, greeting.turns, greeting.chunks) == ((), (), ())
