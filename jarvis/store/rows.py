"""Rows read by the names of their columns, for types that need more than ``class_row`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from psycopg import Cursor

T = TypeVar("T")


def rows_by(make: Callable[[dict[str, Any]], T]) -> Callable[[Cursor[Any]], Callable[..., T]]:
    """A row factory that gives ``make`` each row as a dictionary by column name."""

    def factory(cursor: Cursor[Any]) -> Callable[[Sequence[Any]], T]:
        names = [column.name for column in cursor.description or ()]
        return lambda values: make(dict(zip(names, values, strict=True)))

    return factory
