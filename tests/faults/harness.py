"""Kills processes at random moments and counts what was lost.

Each round starts one activity as a real process, waits a random part of the time that it usually
takes, sends SIGKILL to it or to one of the processes that serve it, and then asks: does the next
command work, is everything there that was acknowledged, is nothing half done. What counts as
acknowledged is what the program has said on its standard output.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from jarvis import postgres
from jarvis.errors import JarvisError
from jarvis.services import backup
from tests.faults import invariants
from tests.faults.home import Home, kill, records

VICTIMS = ("client", "client", "client", "worker", "engine", "postgres", "backend")
NEXT_COMMAND_S = 240.0
MIGRATED = "faults_migration"


@dataclass
class Report:
    """What happened. ``problems`` is empty when nothing was lost and nothing is wrong."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def lines(self) -> list[str]:
        """The figures, for people."""
        victims = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        writes = ", ".join(f"{name} {count}" for name, count in sorted(self.acknowledged.items()))
        return [
            f"seed {self.seed}, {self.seconds:.0f} s",
            f"kills: {self.kills.total()} ({victims})",
            f"acknowledged writes: {self.acknowledged.total()} ({writes})",
            f"lost writes: {len(self.lost)}",
            *(f"LOST {item}" for item in self.lost),
            *(f"WRONG {item}" for item in self.problems),
        ]


@dataclass
class Activity:
    """One thing to interrupt.

    ``start`` gives the process and a function that, when it has ended, reads from its output and
    exit code what was acknowledged. ``usual_s`` is how long it takes; it is learnt.
    """

    name: str
    start: Callable[[], tuple[subprocess.Popen[bytes], Callable[[int], None]]]
    victims: tuple[str, ...] = VICTIMS
    usual_s: float = 2.0


class Harness:
    """Runs rounds in one home.

    Args:
        home: with the models that are needed.
        seed: the same seed makes the same choices (not the same moments).
    """

    def __init__(self, home: Home, seed: int) -> None:
        self.home = home
        self.random = random.Random(seed)
        self.report = Report(seed)
        self.number = 0
        self.memories: set[str] = set()
        self.messages: set[str] = set()
        self.documents: set[str] = set()
        self.backups: set[Path] = set()
        self.activities = [
            Activity("chat", self._chat, usual_s=4),
            Activity("remember", self._remember),
            Activity("ingest", self._ingest),
            Activity("extract", self._extract, usual_s=4),
            Activity("import", self._import),
            Activity("reindex", self._reindex),
            Activity("backup", self._backup, victims=("client", "client", "postgres", "backend")),
            Activity("migrate", self._migrate, victims=("client", "client", "postgres", "backend")),
        ]

    def run(self, kills: int, say: Callable[[str], None] = lambda _: None) -> Report:
        """Rounds until ``kills`` processes were killed, then everything is checked once more."""
        begin = time.monotonic()
        self._must_work("memory", "add", "Shelf 0 holds item 0")
        order: list[Activity] = []
        while self.report.kills.total() < kills:
            if not order:
                order = self.random.sample(self.activities, len(self.activities))
            activity = order.pop()
            self._round(activity)
            say(f"{self.report.kills.total():4d} kills, {activity.name}, {self._trouble()}")
        self._final()
        self.report.seconds = time.monotonic() - begin
        return self.report

    def _trouble(self) -> str:
        return f"{len(self.report.lost)} lost, {len(self.report.problems)} wrong"

    def _round(self, activity: Activity) -> None:
        self.number += 1
        process, settle = activity.start()
        begin = time.monotonic()
        delay = self.random.uniform(0.02, 1.1) * activity.usual_s
        victim = self.random.choice(activity.victims)
        while process.poll() is None and time.monotonic() - begin < delay:
            time.sleep(0.005)
        if process.poll() is None:
            pid = process.pid if victim == "client" else self.home.pids().get(victim)
            if pid is not None and kill(pid):
                self.report.kills[victim] += 1
        try:
            code = process.wait(NEXT_COMMAND_S)
        except subprocess.TimeoutExpired:
            where = self.home.standing(process.pid)
            self.report.problems.append(f"{activity.name} hung after {victim} was killed\n{where}")
            kill(process.pid)
            code = process.wait()
        if code == 0:
            took = time.monotonic() - begin
            activity.usual_s = min(max(0.7 * activity.usual_s + 0.3 * took, 0.3), 30)
        if code == 1 and "unexpected" in self.home.stderr:
            said = self.home.stderr.strip().splitlines()[0][:200]
            self.report.problems.append(f"{activity.name}, {victim} killed: {said}")
        settle(code)
        self._must_work("memory", "list", "--json")
        with self.home.sql() as connection:
            self._compare(connection)
            for what in invariants.broken(connection):
                self._wrong(f"after {activity.name}, {victim} killed: {what}")

    def _must_work(self, *arguments: str) -> str:
        try:
            done = self.home.run(*arguments, timeout=NEXT_COMMAND_S)
        except subprocess.TimeoutExpired:
            self._wrong(f"jarvis {' '.join(arguments)} hung")
            return ""
        if done.returncode:
            self._wrong(
                f"jarvis {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()[:300]}"
            )
        return done.stdout

    def _wrong(self, what: str) -> None:
        if what not in self.report.problems:
            self.report.problems.append(what)

    def _compare(self, connection: psycopg.Connection) -> None:
        """Every acknowledged write is there."""
        for name, wanted, query in (
            ("memory", self.memories, "SELECT content FROM memories"),
            ("message", self.messages, "SELECT content FROM messages WHERE role = 'user'"),
            ("document", self.documents, "SELECT name FROM documents"),
        ):
            there = {row[0] for row in connection.execute(query.encode())}
            for item in wanted - there:
                line = f"{name} {item!r}"
                if line not in self.report.lost:
                    self.report.lost.append(line)

    def _acknowledge(self, kind: str, item: str, into: set[str]) -> None:
        into.add(item)
        self.report.acknowledged[kind] += 1

    # The activities.

    def _chat(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        city = self.random.choice(("Oslo", "Lima", "Pune", "Kyiv", "Bonn"))
        text = f"Round {self.number}: I moved to {city}. Say only yes."
        process = self.home.start("ask", "--json", "--no-tools", text)

        def settle(code: int) -> None:
            if code == 0 and records(self.home.stdout):
                self._acknowledge("message", text, self.messages)

        return process, settle

    def _remember(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        lines = [f"Shelf {self.number}-{place} holds item {place * 7}" for place in range(12)]
        process = self.home.start("memory", "add", "--json", stdin="\n".join(lines).encode())

        def settle(code: int) -> None:
            for record in records(self.home.stdout):
                memory: Any = record.get("memory", record)
                self._acknowledge("memory", str(memory["content"]), self.memories)

        return process, settle

    def _ingest(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        folder = self.home.folder / f"documents-{self.number}"
        folder.mkdir()
        for place in range(4):
            words = " ".join(f"word{self.number}x{place}x{n} and more." for n in range(700))
            text = f"BEGIN-MARK {self.number} {place}\n\n{words}\n\nEND-MARK"
            (folder / f"{self.number}-{place}.txt").write_text(text)
        process = self.home.start("doc", "ingest", "--json", str(folder))

        def settle(code: int) -> None:
            for record in records(self.home.stdout):
                if record.get("status") in {"added", "unchanged", "replaced"}:
                    self._acknowledge("document", Path(record["path"]).name, self.documents)

        return process, settle

    def _extract(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        return self.home.start("memory", "extract", "--json"), lambda _: None

    def _reindex(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        return self.home.start("reindex"), lambda _: None

    def _import(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        words = [f"Drawer {self.number}-{place} has number {place * 3}" for place in range(30)]
        source = self.home.folder / "import.ndjson"
        source.write_text(self._export_of(words))
        process = self.home.start("import", str(source))

        def settle(code: int) -> None:
            if code == 0:
                for text in words:
                    self._acknowledge("imported memory", text, self.memories)

        return process, settle

    def _export_of(self, words: list[str]) -> str:
        """An export with memories of these words, made from the program's own."""
        import json

        text = self._must_work("export")
        assert text, "export gave nothing"
        lines = [json.loads(line) for line in text.splitlines()]
        head = [line for line in lines if line.get("kind") in {"header", "export", "jarvis"}][:1]
        model = next((line for line in lines if line.get("kind") == "memory"), None)
        if model is None:
            return text
        made = []
        for place, content in enumerate(words):
            line = dict(model)
            line |= {"id": 10_000 + self.number * 100 + place, "content": content}
            line |= {"state": "active", "superseded_by": None, "message_id": None}
            made.append(line | {"session_id": None, "held_reason": ""})
        return "".join(json.dumps(line) + "\n" for line in [*(head or lines[:1]), *made])

    def _backup(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        target = self.home.folder / f"backup-{self.number}.zip"
        process = self.home.start("db", "backup", "--json", str(target))

        def settle(code: int) -> None:
            if code == 0:
                self.report.acknowledged["backup"] += 1
            if code == 0 or target.exists():
                try:
                    backup.verify(target)
                except JarvisError as error:
                    self.report.lost.append(f"backup {target.name}: {error.message}")
            target.unlink(missing_ok=True)

        return process, settle

    def _migrate(self) -> tuple[subprocess.Popen[bytes], Callable[[int], None]]:
        """A database of the first schema version, brought up to date by an ordinary command."""
        from jarvis.config import DatabaseSettings
        from jarvis.store import migrations, users
        from jarvis.store.database import Database

        with self.home.sql("postgres") as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {MIGRATED} WITH (FORCE)".encode())
            connection.execute(f"CREATE DATABASE {MIGRATED} OWNER {postgres.OWNER_ROLE}".encode())
        with self.home.sql(MIGRATED) as connection:
            connection.execute("CREATE EXTENSION vector")
        address = postgres.address(self.home.paths)
        settings = DatabaseSettings(
            host=address.host, port=address.port, user=postgres.OWNER_ROLE, dbname=MIGRATED
        )
        database = Database(settings, self.home.paths)
        with database.connect_as_owner() as connection:
            migrations.migrate(connection, database, up_to=1)
            users.ensure(connection, "tester")
            connection.execute(
                "INSERT INTO sessions (user_id, id, title) SELECT 1, n, 'title ' || n"
                " FROM generate_series(1, 5000) n"
            )
        env = {
            "JARVIS_DATABASE_HOST": address.host,
            "JARVIS_DATABASE_USER": postgres.OWNER_ROLE,
            "JARVIS_DATABASE_DBNAME": MIGRATED,
        }
        process = self.home.start("memory", "list", "--json", env=env)

        def settle(_: int) -> None:
            postgres.ensure_running(self.home.paths)  # it may be what was killed
            done = self.home.run("memory", "list", "--json", env=env)
            if done.returncode:
                self._wrong(f"after a migration was killed: {done.stderr.strip()[:300]}")
            with self.home.sql(MIGRATED) as connection:
                row = connection.execute("SELECT count(*) FROM sessions").fetchone()
                version = migrations.current(connection)
            self.report.acknowledged["migration"] += 1
            if row != (5000,):
                self.report.lost.append(f"sessions in a migration: {row} of 5000")
            if version != migrations.latest():
                self._wrong(f"a migration stopped at version {version}")
            for found in backup.stored(self.home.paths):
                backup.verify(found.path)

        return process, settle

    def _settle(self) -> None:
        """Waits until no worker runs and nothing waits: one may be at it already."""
        until = time.monotonic() + NEXT_COMMAND_S
        while time.monotonic() < until:
            self._must_work("worker", "run")
            status = json.loads(self._must_work("worker", "status", "--json") or "{}")
            if not status.get("running") and not any(status.get("pending", {}).values()):
                return
            time.sleep(0.5)

    def _final(self) -> None:
        """The worker does what is left; then nothing may be missing, wrong or waiting."""
        self._settle()
        for arguments in (
            ("memory", "list", "--json"),
            ("memory", "search", "shelf", "--json"),
            ("memory", "stats", "--json"),
            ("session", "list", "--json"),
            ("doc", "list", "--json"),
            ("search", "word", "--json"),
            ("export",),
            ("db", "status", "--json"),
            ("worker", "status", "--json"),
            ("doctor", "--json"),
        ):
            self._must_work(*arguments)
        with self.home.sql() as connection:
            self._compare(connection)
            for what in invariants.broken(connection, settled=True):
                self._wrong(f"at the end: {what}")
            for what in invariants.orphans(connection):
                self._wrong(what)
