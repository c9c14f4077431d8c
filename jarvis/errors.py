"""The error tree: every failure a user may see, with its exit code.

::

    JarvisError ................. 1  failed
    ├── UsageError .............. 2  wrong usage: arguments, values, input
    │   └── ConfigError ......... 2  a configuration file or variable is wrong
    ├── DatabaseUnavailable ..... 3  Postgres cannot be reached, started or used
    ├── ModelUnavailable ........ 4  no provider, or it failed
    │   ├── ProviderUnavailable . 4  the model server does not answer
    │   └── ModelNotInstalled ... 4  the server answers, the model is not there
    ├── NotFound ................ 5  no such memory, session, document, user …
    ├── DocumentUnreadable ...... 6  a file that cannot be read as a document
    └── Interrupted ........... 130  Ctrl-C

A message says what happened and to what; a hint says what to do. Both are for people, are one
line, and never hold a secret. Only the outermost layer (``jarvis.cli.run``, the REPL's loop)
prints them.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of ours returns. The one table; ``tests/unit/test_errors.py`` walks it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DATABASE = 3
    MODEL = 4
    NOT_FOUND = 5
    DOCUMENT = 6
    INTERRUPTED = 130


class JarvisError(Exception):
    """Something a user should be told.

    Args:
        message: what happened, to which name or address, in one line.
        hint: what to do about it, in one line; empty when there is nothing to do.
    """

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(JarvisError):
    """The command was called in a way that cannot work."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A configuration file or a ``JARVIS_…`` variable cannot be used."""


class DatabaseUnavailable(JarvisError):
    """Postgres cannot be reached, started, migrated or used."""

    exit_code = ExitCode.DATABASE


class ModelUnavailable(JarvisError):
    """A chat or embedding model cannot be used now."""

    exit_code = ExitCode.MODEL


class ProviderUnavailable(ModelUnavailable):
    """The model server does not answer."""


class ModelNotInstalled(ModelUnavailable):
    """The model server answers, but does not have the model."""


class NotFound(JarvisError):
    """The named thing does not exist (or belongs to somebody else, which is the same)."""

    exit_code = ExitCode.NOT_FOUND


class DocumentUnreadable(JarvisError):
    """A file that cannot be read as a document."""

    exit_code = ExitCode.DOCUMENT


class Interrupted(JarvisError):
    """The user pressed Ctrl-C."""

    exit_code = ExitCode.INTERRUPTED
