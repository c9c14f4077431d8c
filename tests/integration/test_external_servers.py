"""Servers that Jarvis does not run: versions, rights, schemas, poolers, and who may see what."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jarvis.config import DatabaseSettings
from jarvis.errors import DatabaseUnavailable, NotFound
from jarvis.paths import Paths
from jarvis.postgres import programs
from jarvis.services import backup
from jarvis.store import migrations, roles, sessions, transfer, users, vectors, work
from jarvis.store.database import Database
from tests.conftest import Cli
from tests.integration import external_server
from tests.integration.external_server import Authority, ExternalServer, free_port

REFUSED = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.NoDataFound,  # to ada, bob does not exist: that is said of him, too
    psycopg.errors.FeatureNotSupported,  # COPY into a table under row-level security
)
POOLER = pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="PgBouncer is not installed")
PASSWORD = "p@ss:w#rd%/?&=ß x"


@pytest.fixture(scope="module", params=[16, 18])
def server(request: pytest.FixtureRequest) -> Iterator[ExternalServer]:
    """A server of each version, with the roles ``owner`` (of a database), ``ada`` and ``bob``."""
    if request.param not in programs.available():
        pytest.skip(f"no Postgres {request.param} in the package")
    with external_server.running(request.param) as running:
        running.run(
            *(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'" for name in ("owner", "ada", "bob"))
        )
        yield running


@pytest.fixture
def dbname(server: ExternalServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of ``owner``'s, pgvector in it."""
    name = f"db_{abs(hash(request.node.name)) % 10**8}"
    server.run(f"CREATE DATABASE {name} OWNER owner")
    server.run("CREATE EXTENSION vector", dbname=name)
    yield name
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


def settings_for(server: ExternalServer, dbname: str, role: str = "owner") -> DatabaseSettings:
    return DatabaseSettings(url=server.url(role, PASSWORD, dbname))


@pytest.fixture
def settings(server: ExternalServer, dbname: str) -> DatabaseSettings:
    return settings_for(server, dbname)


@contextlib.contextmanager
def opened(settings: DatabaseSettings, paths: Paths) -> Iterator[Database]:
    database = Database(settings, paths, before_migration=backup.before_migration)
    try:
        yield database
    finally:
        database.close()


def test_all_of_it_with_a_password_full_of_marks(settings: DatabaseSettings, paths: Paths) -> None:
    with opened(settings, paths) as database:
        with database.transaction() as tx:
            ada = users.ensure(tx, "ada")
            sessions.create(tx, ada.id, title="hello")
        assert not paths.postgres.exists(), "the embedded server was made"
        with database.connection() as connection:
            assert migrations.current(connection) == migrations.latest()


def test_a_wrong_password_is_never_printed(server: ExternalServer, paths: Paths) -> None:
    wrong = DatabaseSettings(url=server.url("owner", "secret@1#2", "postgres"))
    with opened(wrong, paths) as database, pytest.raises(DatabaseUnavailable) as caught:
        database.open()
    said = f"{caught.value} {caught.value.hint} {database.describe()} {caught.value.__cause__}"
    for part in ("secret", "1#2", "1%232"):
        assert part not in said


def test_no_right_to_create_the_extension(server: ExternalServer, paths: Paths) -> None:
    server.run("CREATE DATABASE bare OWNER postgres")
    server.run("GRANT ALL ON SCHEMA public TO owner", dbname="bare")
    try:
        with opened(settings_for(server, "bare"), paths) as database:
            with pytest.raises(DatabaseUnavailable, match="may not create the extension") as caught:
                database.open()
            assert "CREATE EXTENSION vector" in caught.value.hint
            server.run("CREATE EXTENSION vector", dbname="bare")
            database.open()
    finally:
        server.run("DROP DATABASE bare WITH (FORCE)")


def test_the_extension_in_a_schema_where_nobody_looks(
    server: ExternalServer, dbname: str, paths: Paths
) -> None:
    server.run(
        "CREATE SCHEMA tools",
        "GRANT USAGE ON SCHEMA tools TO owner",
        "ALTER EXTENSION vector SET SCHEMA tools",
        dbname=dbname,
    )
    with opened(settings_for(server, dbname), paths) as database:
        with pytest.raises(DatabaseUnavailable, match="schema tools") as caught:
            database.open()
        assert "SET search_path" in caught.value.hint
        server.run(f"ALTER ROLE owner IN DATABASE {dbname} SET search_path = public, tools")
        database.open()


def test_the_extension_elsewhere_beside_a_schema_of_ours(
    server: ExternalServer, dbname: str, settings: DatabaseSettings, paths: Paths
) -> None:
    server.run(
        "CREATE SCHEMA tools",
        "GRANT USAGE ON SCHEMA tools TO owner",
        "ALTER EXTENSION vector SET SCHEMA tools",
        # What the role's own path says does not count here, so it is not what is advised.
        f"ALTER ROLE owner IN DATABASE {dbname} SET search_path = public, tools",
        dbname=dbname,
    )
    mine = replace(settings, schema="mine")
    with opened(mine, paths) as database:
        with pytest.raises(DatabaseUnavailable, match="schema tools") as caught:
            database.open()
        assert "ALTER ROLE" not in caught.value.hint
        (parameter,) = re.findall(r"\?options=\S+", caught.value.hint)
    with opened(replace(mine, url=mine.url + parameter), paths) as database:
        database.open()
    server.run("ALTER EXTENSION vector SET SCHEMA public", dbname=dbname)
    with opened(mine, paths) as database, database.transaction() as tx:
        assert tx.execute("SELECT 'mine.users'::regclass = 'users'::regclass").fetchone() == (True,)


ODD_ROLE = {
    "timezone": "'Asia/Tokyo'",
    "datestyle": "German",
    "extra_float_digits": "-3",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "'repeatable read'",
    "statement_timeout": "'20ms'",
    "bytea_output": "escape",
}


@pytest.mark.parametrize("pooled", [False, pytest.param(True, marks=POOLER)])
def test_what_is_set_for_the_role_changes_nothing(
    server: ExternalServer, dbname: str, settings: DatabaseSettings, paths: Paths, pooled: bool
) -> None:
    confidence = 0.123456789

    def look(settings: DatabaseSettings, name: str) -> tuple[object, ...]:
        with opened(settings, paths) as database:
            with database.transaction() as tx:
                ada = users.ensure(tx, "ada")
                if not pooled:
                    tx.execute("SELECT pg_sleep(0.05)")
                    row = tx.execute("SHOW transaction_isolation").fetchone()
                    assert row == ("read committed",)
                (session,) = sessions.recent(tx, ada.id)
            with database.transaction() as tx:
                transfer.one_moment(tx)
                lines = list(transfer.rows(tx, ada.id, "memories"))
            made = backup.create(database, paths, paths.data / name)
        with zipfile.ZipFile(made.path) as archive:
            rows = [archive.read(entry) for entry in archive.namelist() if "memor" in entry]
        return session.created_at.isoformat(), lines, rows

    with opened(settings, paths) as database, database.transaction() as tx:
        ada = users.ensure(tx, "ada")
        sessions.create(tx, ada.id, title="a \\ b")
        tx.execute(
            "INSERT INTO memories"
            " (user_id, id, type, content, content_hash, importance, confidence, source)"
            " VALUES (%s, 1, 'FACT', 'x', sha256('x'), 0.5, %s, 'manual')",
            (ada.id, confidence),
        )
    paths.data.mkdir(parents=True, exist_ok=True)
    before = look(settings, "before.zip")
    for name, value in ODD_ROLE.items():
        if not (pooled and name == "statement_timeout"):
            server.run(f"ALTER ROLE owner IN DATABASE {dbname} SET {name} = {value}")
    with _pooler(server, dbname) if pooled else contextlib.nullcontext(0) as port:
        url = server.url("owner", PASSWORD, dbname, port)
        after = look(DatabaseSettings(url=url, prepared_statements=not pooled), "after.zip")
    assert after == before


def test_in_another_schema(settings: DatabaseSettings, paths: Paths) -> None:
    with opened(replace(settings, schema="jarvis_x"), paths) as database:
        with database.transaction() as tx:
            ada = users.ensure(tx, "ada")
            sessions.create(tx, ada.id, title="hello")
        with database.connection() as connection:
            places = connection.execute(
                "SELECT DISTINCT schemaname FROM pg_tables"
                " WHERE tablename IN ('users', 'messages', 'schema_migrations')"
            ).fetchall()
        assert places == [("jarvis_x",)]
        made = backup.create(database, paths)
        with database.transaction() as tx:
            tx.execute("DELETE FROM users")
        backup.restore(database, made.path)
        with database.transaction() as tx:
            assert users.find(tx, "ada") == ada


def test_a_backup_of_one_server_goes_into_another(
    server: ExternalServer, settings: DatabaseSettings, paths: Paths
) -> None:
    with opened(settings, paths) as database:
        with database.transaction() as tx:
            ada = users.ensure(tx, "ada")
            sessions.create(tx, ada.id, title="Grüße\t\\N\n")
        made = backup.create(database, paths)
    server.run("CREATE DATABASE other OWNER owner")
    server.run("CREATE EXTENSION vector", dbname="other")
    try:
        with opened(settings_for(server, "other"), paths) as database:
            backup.restore(database, made.path)
            with database.transaction() as tx:
                row = tx.execute("SELECT title FROM sessions").fetchone()
            assert row == ("Grüße\t\\N\n",)
    finally:
        server.run("DROP DATABASE other WITH (FORCE)")


class TestRowSecurity:
    """Raw SQL as a second role: what the server itself keeps apart."""

    @pytest.fixture
    def people(self, settings: DatabaseSettings, paths: Paths) -> Iterator[dict[str, int]]:
        """Two users with a session each; the roles ``ada`` and ``bob`` may see their own."""
        with opened(settings, paths) as database:
            found = {}
            with database.transaction() as tx:
                for name in ("ada", "bob"):
                    person = users.ensure(tx, name)
                    sessions.create(tx, person.id, title=f"of {name}")
                    found[name] = person.id
            with database.maintenance() as connection:
                for name in found:
                    roles.allow(connection, name, name)
            yield found

    @pytest.fixture
    def ada(
        self, server: ExternalServer, dbname: str, people: dict[str, int]
    ) -> Iterator[psycopg.Connection]:
        """A raw connection of the role ``ada``."""
        with server.connect("ada", PASSWORD, dbname) as connection:
            yield connection

    def test_the_role_is_nobody_special(self, ada: psycopg.Connection) -> None:
        row = ada.execute(
            "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = session_user"
        ).fetchone()
        assert row == (False, False)
        owners = ada.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner = 'ada'"
        ).fetchone()
        assert owners == (0,)

    def test_it_sees_its_own_rows_only(
        self, ada: psycopg.Connection, people: dict[str, int]
    ) -> None:
        assert ada.execute("SELECT name FROM users").fetchall() == [("ada",)]
        assert ada.execute("SELECT title FROM sessions").fetchall() == [("of ada",)]
        bob = people["bob"]
        gone = ada.execute("DELETE FROM sessions WHERE user_id = %s", (bob,))
        assert gone.rowcount == 0
        changed = ada.execute("UPDATE sessions SET title = 'x' WHERE user_id = %s", (bob,))
        assert changed.rowcount == 0

    def test_it_cannot_write_for_another(
        self, ada: psycopg.Connection, people: dict[str, int]
    ) -> None:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute("INSERT INTO sessions (user_id, id) VALUES (%s, 99)", (people["bob"],))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute("UPDATE sessions SET user_id = %s", (people["bob"],))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute("SELECT next_id(%s, 'session')", (people["bob"],))

    def test_the_setting_only_chooses_among_its_own(
        self, ada: psycopg.Connection, people: dict[str, int]
    ) -> None:
        def seen(user_id: int | str) -> list[tuple[str]]:
            with ada.transaction():
                ada.execute("SELECT set_config('jarvis.user_id', %s, true)", (str(user_id),))
                return [(row[0],) for row in ada.execute("SELECT title FROM sessions")]

        assert seen(people["ada"]) == [("of ada",)]
        assert seen(people["bob"]) == []
        assert seen("1 OR true") == []
        assert ada.execute("SELECT title FROM sessions").fetchall() == [("of ada",)]

    def test_no_way_around(self, ada: psycopg.Connection) -> None:
        for statement in (
            "SET ROLE owner",
            "SET SESSION AUTHORIZATION bob",
            "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
            "ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY",
            "DROP POLICY own ON sessions",
            "INSERT INTO role_users SELECT generate_series(1, 9), 'ada'",
            "SELECT * FROM role_users",
            "SELECT allow_role('ada')",
            "SELECT allow_role('ada', 'bob')",
            "SELECT protect_tables()",
            "SELECT deny_role('bob')",
            "TRUNCATE sessions",
            "COPY sessions FROM STDIN",
            "DELETE FROM schema_migrations",
            "ALTER FUNCTION allowed_users() SET search_path = public",
            "CREATE OR REPLACE FUNCTION allowed_users() RETURNS SETOF bigint LANGUAGE sql"
            " AS 'SELECT generate_series(1, 9)'",
            "UPDATE role_users SET role_name = 'ada'",
            "DELETE FROM role_users",
            "CREATE POLICY more ON sessions USING (true)",
            "ALTER POLICY own ON sessions USING (true)",
            "ALTER TABLE sessions OWNER TO ada",
            "CREATE TABLE mine AS SELECT 1",
            "CREATE TRIGGER t BEFORE INSERT ON sessions EXECUTE FUNCTION protect_tables()",
            "CREATE VIEW seen AS SELECT * FROM sessions",
            "GRANT owner TO ada",
            "ALTER ROLE ada BYPASSRLS",
            "ALTER ROLE owner PASSWORD 'mine'",
            "ALTER SYSTEM SET row_security = off",
            "SELECT setval('users_user_id_seq', 1)",
            "COPY sessions TO PROGRAM 'cat'",
            "COPY sessions TO '/tmp/sessions'",
            "SELECT pg_read_file('PG_VERSION')",
            "SELECT lo_import('/etc/passwd')",
            "REINDEX TABLE sessions",
            "SELECT * FROM pg_statistic",
        ):
            with pytest.raises(REFUSED):
                ada.execute(statement.encode())
        assert ada.execute("SELECT title FROM sessions").fetchall() == [("of ada",)]
        ada.execute("SET row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute("SELECT * FROM sessions")
        ada.execute("RESET row_security")

    def test_no_word_of_another_by_any_door(
        self, ada: psycopg.Connection, server: ExternalServer, dbname: str
    ) -> None:
        server.run("ANALYZE sessions", dbname=dbname)
        with ada.cursor().copy("COPY (SELECT title FROM sessions) TO STDOUT") as rows:
            assert b"".join(rows) == b"of ada\n"
        for query in (
            "TABLE sessions",
            "SELECT * FROM pg_stats WHERE schemaname = 'public'",
            "SELECT query FROM pg_stat_activity",
            "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM sessions WHERE title > 'of b'",
            "SELECT * FROM sessions s FULL JOIN users u ON u.name = s.title",
            "UPDATE sessions SET title = title RETURNING *",
            "DELETE FROM messages RETURNING *",
        ):
            assert "of bob" not in str(ada.execute(query.encode()).fetchall()), query
        ada.execute("CREATE TEMP VIEW mine AS SELECT title FROM sessions")
        assert ada.execute("SELECT title FROM mine").fetchall() == [("of ada",)]

    def test_a_taken_key_of_another_is_not_told(
        self, ada: psycopg.Connection, people: dict[str, int]
    ) -> None:
        """The policy is asked before a unique index or a foreign key could say what is there."""
        for number in (1, 77):  # bob has a session 1 and none with 77
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ada.execute(
                    "INSERT INTO sessions (user_id, id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    (people["bob"], number),
                )

    def test_every_table_with_a_user_is_forced_through_two_policies(
        self, ada: psycopg.Connection
    ) -> None:
        rows = ada.execute(
            "SELECT c.relname, array_agg(p.polname::text ORDER BY p.polname),"
            " bool_and(c.relrowsecurity AND c.relforcerowsecurity),"
            " bool_and(p.polcmd = '*' AND p.polpermissive),"
            " bool_and(p.polname <> 'own' OR pg_get_expr(p.polqual, c.oid) LIKE '%allowed_users()%'"
            "  AND pg_get_expr(p.polwithcheck, c.oid) LIKE '%allowed_users()%')"
            " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id'"
            " LEFT JOIN pg_policy p ON p.polrelid = c.oid"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
            " GROUP BY c.relname"
        ).fetchall()
        assert len(rows) > 15
        assert [row for row in rows if row[1:] != (["everyone", "own"], True, True, True)] == []

    def test_a_table_of_its_own_with_the_same_name_deceives_nobody(
        self, ada: psycopg.Connection, people: dict[str, int]
    ) -> None:
        ada.execute("CREATE TEMP TABLE role_users (user_id bigint, role_name text)")
        ada.execute("INSERT INTO role_users VALUES (%s, 'ada')", (people["bob"],))
        ada.execute("SET search_path = pg_temp, public")
        assert ada.execute("SELECT title FROM public.sessions").fetchall() == [("of ada",)]

    def test_a_function_that_tells_what_it_sees_is_told_nothing(
        self, ada: psycopg.Connection
    ) -> None:
        ada.execute(
            "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001"
            " AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
        )
        told: list[str] = []
        ada.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        ada.execute("SELECT count(*) FROM sessions WHERE pg_temp.tell(title)")
        assert told == ["of ada"]

    def test_models_are_shared_but_not_its_to_change(
        self, ada: psycopg.Connection, server: ExternalServer, dbname: str
    ) -> None:
        ada.execute("INSERT INTO embedding_models (name, digest, dimensions) VALUES ('m', 'd', 3)")
        assert ada.execute("DELETE FROM embedding_models").rowcount == 0
        assert ada.execute("UPDATE embedding_models SET threshold = 1").rowcount == 0
        assert ada.execute("SELECT name FROM embedding_models").fetchall() == [("m",)]

    def test_the_program_as_that_role(
        self, server: ExternalServer, dbname: str, people: dict[str, int], paths: Paths
    ) -> None:
        with opened(settings_for(server, dbname, "ada"), paths) as database:
            with database.transaction() as tx:
                ada = users.ensure(tx, "ada")
                assert users.names(tx) == ["ada"]
                sessions.create(tx, ada.id, title="second")
            with pytest.raises(NotFound), database.transaction() as tx:
                users.ensure(tx, "bob")
            with pytest.raises(NotFound), database.transaction() as tx:
                users.ensure(tx, "carol")

    @pytest.fixture
    def as_ada(self, server: ExternalServer, dbname: str, tmp_path: Path) -> Cli:
        """The program as somebody with the role ``ada`` would set it up; no model answers."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("JARVIS_", "OLLAMA_"))}
        return Cli(
            {
                **kept,
                "JARVIS_HOME": str(tmp_path / "ada"),
                "JARVIS_USER": "ada",
                "JARVIS_DATABASE_URL": server.url("ada", PASSWORD, dbname),
                "JARVIS_CHAT_PROVIDER": "ollama",
                "JARVIS_CHAT_HOST": "http://127.0.0.1:9",
                "JARVIS_EMBEDDING_PROVIDER": "ollama",
                "JARVIS_EMBEDDING_HOST": "http://127.0.0.1:9",
            }
        )

    def test_every_command_as_that_role(
        self,
        as_ada: Cli,
        settings: DatabaseSettings,
        people: dict[str, int],
        paths: Paths,
        tmp_path: Path,
    ) -> None:
        with opened(settings, paths) as database, database.transaction() as tx:
            vectors.add_model(tx, "m", "d", 3, "", "")
        target = str(tmp_path / "b.zip")
        for arguments, code in (
            (("memory", "add", "The key hangs behind the clock"), 0),
            (("memory", "list"), 0),
            (("memory", "search", "clock"), 0),
            (("search", "clock"), 0),
            (("session", "list"), 0),
            (("memory", "stats"), 0),
            (("export",), 0),
            (("worker", "run"), 0),
            (("memory", "list", "--user", "bob"), 5),
            (("memory", "add", "--user", "bob", "The key is under the mat"), 5),
            (("db", "backup", target), 3),
            (("db", "roles"), 3),
            (("db", "allow", "ada", "bob"), 3),
            (("db", "allow", "ada"), 3),
            (("db", "deny", "bob"), 3),
        ):
            done = as_ada(*arguments)
            assert done.returncode == code, (arguments, done.stderr)
            assert "unexpected" not in done.stderr
            assert "of bob" not in done.stdout
        assert not Path(target).exists()
        # Nothing waits for ever: what only the owner can do is not counted.
        status = json.loads(as_ada("worker", "status", "--json").stdout)
        assert status["pending"]["indexes"] == 0
        log = (tmp_path / "ada" / "state" / "logs" / "jarvis.log").read_text()
        assert "permission denied" not in log

    def test_a_worker_keeps_only_its_own_users_from_others(
        self, server: ExternalServer, dbname: str, people: dict[str, int], paths: Paths
    ) -> None:
        ada, bob = people["ada"], people["bob"]
        with (
            opened(settings_for(server, dbname, "ada"), paths) as hers,
            opened(settings_for(server, dbname, "bob"), paths) as his,
            work.worker_locks(hers) as first,
            work.worker_locks(his) as second,
        ):
            assert first.take(ada)
            assert second.take(bob)
            assert not second.take(ada)
            assert first.take(ada)

    def test_allowing_a_role_makes_its_user(
        self, settings: DatabaseSettings, people: dict[str, int], paths: Paths
    ) -> None:
        with opened(settings, paths) as database, database.maintenance() as connection:
            assert roles.allow(connection, "ada", "carol")
            assert not roles.allow(connection, "ada", "carol")
            assert ("ada", "carol") in roles.everyone(connection)
            with pytest.raises(NotFound, match="no role 'nobody'"):
                roles.allow(connection, "nobody", "dan")
            assert users.find(connection, "dan") is None

    def test_taken_back(
        self,
        settings: DatabaseSettings,
        paths: Paths,
        ada: psycopg.Connection,
    ) -> None:
        with opened(settings, paths) as database, database.maintenance() as connection:
            assert roles.everyone(connection) == [("ada", "ada"), ("bob", "bob"), ("owner", None)]
            roles.allow(connection, "ada", None)
            assert len(ada.execute("SELECT title FROM sessions").fetchall()) == 2
            roles.deny(connection, "ada")
            assert roles.everyone(connection) == [("bob", "bob"), ("owner", None)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute("SELECT title FROM sessions")

    def test_the_rights_survive_a_restore(
        self, settings: DatabaseSettings, paths: Paths, ada: psycopg.Connection
    ) -> None:
        with opened(settings, paths) as database:
            backup.restore(database, backup.create(database, paths).path)
        assert ada.execute("SELECT title FROM sessions").fetchall() == [("of ada",)]


@POOLER
def test_through_a_transaction_pooler(server: ExternalServer, dbname: str, paths: Paths) -> None:
    with _pooler(server, dbname) as port:
        prepared = DatabaseSettings(url=server.url("owner", PASSWORD, dbname, port))
        with opened(prepared, paths) as database:
            with pytest.raises(DatabaseUnavailable, match="options") as caught:
                database.open()
            assert "database.prepared_statements to false" in caught.value.hint
        settings = DatabaseSettings(
            url=server.url("owner", PASSWORD, dbname, port), prepared_statements=False
        )
        with opened(settings, paths) as database:
            for number in range(20):
                with database.transaction() as tx:
                    ada = users.ensure(tx, "ada")
                    sessions.create(tx, ada.id, title=str(number))
            with database.connection() as connection:
                for _ in range(20):
                    connection.execute("SELECT title FROM sessions WHERE user_id = %s", (ada.id,))
            with work.worker_locks(database) as first, work.worker_locks(database) as second:
                assert (first.take(ada.id), second.take(ada.id)) == (True, False)
                assert second.take(ada.id + 1)
            with work.worker_locks(database) as again:
                assert again.take(ada.id)
            made = backup.create(database, paths)
            backup.restore(database, made.path)
            with database.connection() as connection:
                row = connection.execute("SELECT count(*) FROM sessions").fetchone()
            assert row == (20,)


@contextlib.contextmanager
def _pooler(server: ExternalServer, dbname: str) -> Iterator[int]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="jp") as folder:
        place = Path(folder)
        quoted = PASSWORD.replace('"', '""')
        (place / "users").write_text(f'"owner" "{quoted}"\n')
        (place / "ini").write_text(
            f"[databases]\n{dbname} = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = scram-sha-256\nauth_file = {place / 'users'}\n"
            "pool_mode = transaction\ndefault_pool_size = 3\n"
        )
        # It refuses to run as root.
        somebody: dict[str, Any] = {}
        if os.geteuid() == 0:
            somebody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            place.chmod(0o755)
            for name in ("users", "ini"):
                (place / name).chmod(0o644)
        process = subprocess.Popen(
            ["pgbouncer", str(place / "ini")], stderr=subprocess.DEVNULL, cwd="/", **somebody
        )
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    psycopg.connect(server.url("owner", PASSWORD, dbname, port)).close()
                    break
                except psycopg.OperationalError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
            yield port
        finally:
            process.terminate()
            process.wait()


SYSTEM_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
"""Servers of the machine: built with TLS, which those of the package are not."""


@pytest.mark.skipif(
    not SYSTEM_SERVERS or shutil.which("openssl") is None, reason="no Postgres with TLS here"
)
class TestTls:
    """A server that somebody's own authority vouches for, as ``localhost``."""

    @pytest.fixture(scope="class")
    @classmethod
    def authority(cls, tmp_path_factory: pytest.TempPathFactory) -> Authority:
        return Authority.new(tmp_path_factory.mktemp("authority"))

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, authority: Authority) -> Iterator[ExternalServer]:
        folder = SYSTEM_SERVERS[-1].parent
        binaries = programs.Binaries(folder, programs.version(folder))
        with external_server.running(binaries.major, binaries, authority) as server:
            server.run(
                f"CREATE ROLE owner LOGIN PASSWORD '{PASSWORD}'", "CREATE ROLE certified LOGIN"
            )
            yield server

    @pytest.fixture
    def checked(self, server: ExternalServer, authority: Authority) -> DatabaseSettings:
        """Settings that check everything."""
        url = server.url("owner", PASSWORD, "postgres").replace("127.0.0.1", "localhost")
        return DatabaseSettings(
            url=url, sslmode="verify-full", sslrootcert=str(authority.certificate)
        )

    def test_encrypted_and_checked(self, checked: DatabaseSettings, paths: Paths) -> None:
        assert _connected(checked, paths) == ("owner", True)
        # That server has no pgvector: it is said, and nothing else is the matter.
        with opened(checked, paths) as database, pytest.raises(DatabaseUnavailable, match="pgve"):
            database.open()

    def test_all_in_the_address(
        self, checked: DatabaseSettings, authority: Authority, paths: Paths
    ) -> None:
        more = f"?sslmode=verify-full&sslrootcert={authority.certificate}&application_name=mine"
        assert _connected(DatabaseSettings(url=checked.url + more), paths) == ("owner", True)

    def test_a_certificate_instead_of_a_password(
        self, checked: DatabaseSettings, authority: Authority, paths: Paths, tmp_path: Path
    ) -> None:
        certificate, key = tmp_path / "me.crt", tmp_path / "me.key"
        authority.sign(certificate, key, "certified")
        url = checked.url.replace(checked.url.partition("@")[0], "postgresql://certified")
        mine = replace(checked, url=url, sslcert=str(certificate), sslkey=str(key))
        assert _connected(mine, paths) == ("certified", True)
        with pytest.raises(DatabaseUnavailable, match="requires a valid client certificate"):
            _connected(replace(checked, url=url), paths)

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"sslrootcert": "{other}"}, "certificate verify failed"),
            ({"sslrootcert": "{nowhere}"}, "does not exist"),
            ({"host": "127.0.0.1"}, 'does not match host name "127.0.0.1"'),
            ({"sslmode": "disable"}, "no encryption"),
            ({"sslmode": "never"}, "invalid sslmode"),
        ],
    )
    def test_what_does_not_fit_is_refused_and_told(
        self,
        checked: DatabaseSettings,
        paths: Paths,
        tmp_path: Path,
        change: dict[str, str],
        why: str,
    ) -> None:
        places = {
            "other": Authority.new(tmp_path / "other").certificate,
            "nowhere": tmp_path / "nowhere.crt",
        }
        changed: dict[str, Any] = {key: value.format(**places) for key, value in change.items()}
        with pytest.raises(DatabaseUnavailable, match=re.escape(why)) as caught:
            _connected(replace(checked, **changed), paths)
        assert "sslmode" in caught.value.hint
        assert PASSWORD not in f"{caught.value} {caught.value.hint}"


def _connected(settings: DatabaseSettings, paths: Paths) -> tuple[str, bool]:
    """The role that the server takes us for, and whether the connection is encrypted."""
    with (
        contextlib.closing(Database(settings, paths)) as database,
        contextlib.closing(database.connect_as_owner()) as connection,
    ):
        row = connection.execute(
            "SELECT session_user::text, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return row[0], row[1]
