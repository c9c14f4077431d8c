"""Database roles and the users whose rows they may see (``sql/V003``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from jarvis.errors import DatabaseUnavailable, NotFound
from jarvis.store.database import Connection

SINCE = 3
"""The schema version that brought row-level security."""

_EVERYONE = """
SELECT r.rolname::text, NULL FROM pg_policy p
CROSS JOIN unnest(p.polroles) AS member (oid) JOIN pg_roles r ON r.oid = member.oid
WHERE p.polrelid = 'users'::regclass AND p.polname = 'everyone'
UNION ALL
SELECT m.role_name, u.name FROM role_users m JOIN users u ON u.user_id = m.user_id
ORDER BY 1, 2
"""


def allow(connection: Connection, role: str, user: str | None) -> None:
    """Lets ``role`` at the rows of ``user``; None: at everybody's.

    Raises:
        NotFound: there is no such role or user.
        DatabaseUnavailable: the connection's role does not own the tables.
    """
    _check_role(connection, role)
    with _translated(), connection.transaction():
        try:
            connection.execute("SELECT allow_role(%s, %s)", (role, user))
        except psycopg.errors.NoDataFound:
            raise NotFound(f"there is no user {user!r}", "jarvis db roles lists them") from None


def deny(connection: Connection, role: str) -> None:
    """Takes all rights back from ``role``.

    Raises:
        NotFound: there is no such role.
        DatabaseUnavailable: the connection's role does not own the tables.
    """
    _check_role(connection, role)
    with _translated(), connection.transaction():
        connection.execute("SELECT deny_role(%s)", (role,))


def everyone(connection: Connection) -> list[tuple[str, str | None]]:
    """Every role with the user it may see; None: everybody."""
    return [(role, user) for role, user in connection.execute(_EVERYONE)]


def _check_role(connection: Connection, role: str) -> None:
    row = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if row is None:
        raise NotFound(
            f"the database has no role {role!r}",
            "an administrator makes one: CREATE ROLE … LOGIN",
        )


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(
            "the configured role does not own Jarvis's tables",
            "run this with the role that made them (database.user)",
        ) from error
