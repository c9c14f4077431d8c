"""Database roles and the users whose rows they may see (``sql/V003``)."""

from __future__ import annotations

from jarvis.errors import DatabaseUnavailable, NotFound
from jarvis.store import users
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


def allow(connection: Connection, role: str, user: str | None) -> bool:
    """Lets ``role`` at the rows of ``user``, who is made where there is none; None: at everybody's.

    Returns:
        whether the user was made.

    Raises:
        NotFound: there is no such role.
        DatabaseUnavailable: the connection's role does not own the tables.
    """
    _check(connection, role)
    with connection.transaction():
        made = user is not None and users.find(connection, user) is None
        if user is not None:
            users.ensure(connection, user)
        connection.execute("SELECT allow_role(%s, %s)", (role, user))
    return made


def deny(connection: Connection, role: str) -> None:
    """Takes all rights back from ``role``.

    Raises:
        as ``allow``.
    """
    _check(connection, role)
    with connection.transaction():
        connection.execute("SELECT deny_role(%s)", (role,))


def everyone(connection: Connection) -> list[tuple[str, str | None]]:
    """Every role with the user it may see; None: everybody.

    Raises:
        DatabaseUnavailable: the connection's role does not own the tables.
    """
    check_owner(connection)
    return [(role, user) for role, user in connection.execute(_EVERYONE)]


def owns_tables(connection: Connection) -> bool:
    """Whether this role may grant and make indexes: one that sees a few users' rows may not."""
    row = connection.execute(
        "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'users'::regclass"
    ).fetchone()
    return bool(row and row[0])


def check_owner(connection: Connection) -> None:
    """Raises:
    DatabaseUnavailable: the connection's role does not own the tables.
    """
    if not owns_tables(connection):
        raise DatabaseUnavailable(
            f"the role {connection.info.user} does not own Jarvis's tables",
            "run this with the role that made them (database.user)",
        )


def _check(connection: Connection, role: str) -> None:
    check_owner(connection)
    row = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if row is None:
        raise NotFound(
            f"the database has no role {role!r}",
            "an administrator makes one: CREATE ROLE … LOGIN",
        )
