"""What a command prints: records and answers on stdout, words for people on stderr.

The contract of every command in one place. Colour: NO_COLOR > FORCE_COLOR > TERM=dumb > is it a
terminal, for each stream by itself. Width matters only where stdout is a terminal. Piped records
are one a line and whole; JSON is exact. A reader that goes away (``| head``) ends the process
with 0. Text of the user's is never markup, and never acts on the terminal.

Rich is not used here: a list on a terminal starts as fast as one in a pipe.
"""

from __future__ import annotations

import dataclasses
import json as json_module
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, NoReturn, TextIO

from jarvis.errors import ExitCode, JarvisError, UsageError
from jarvis.security.terminal import escape_controls, escape_json, sanitise

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


@dataclass(frozen=True, slots=True)
class Output:
    """One stream and what may be written to it.

    Attributes:
        stream: the stream, or None when the process was started with it closed.
        terminal: whether people see it at once.
        colour: whether styles may be written.
        cursor: whether the cursor may be moved (a terminal that is not dumb).
        width: columns, where ``terminal``; None elsewhere: never fold or cut.
        unicode: whether every character can be written.
    """

    stream: TextIO | None
    terminal: bool
    colour: bool
    cursor: bool
    width: int | None
    unicode: bool

    @classmethod
    def of(cls, stream: TextIO | None, env: Mapping[str, str] | None = None) -> Output:
        """Looks at ``stream`` and the environment (default: ``os.environ``)."""
        env = os.environ if env is None else env
        terminal = is_terminal(stream)
        dumb = env.get("TERM", "") in {"", "dumb", "unknown"}
        if env.get("NO_COLOR"):
            colour = False
        elif env.get("FORCE_COLOR", "0") not in {"", "0"}:
            colour = True
        else:
            colour = terminal and not dumb
        width = max(1, shutil.get_terminal_size().columns) if terminal else None
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
        return cls(
            stream, terminal, colour, terminal and not dumb, width, encoding.startswith("utf")
        )

    def style(self, text: str, *names: str) -> str:
        """``text`` in the named styles (bold dim red green yellow cyan), where they show."""
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[name] for name in names)}m{text}\x1b[0m"

    def writable(self, text: str) -> str:
        """``text`` as the stream's encoding has it: what that lacks stands as an escape."""
        if self.unicode:
            return text
        encoding = getattr(self.stream, "encoding", None) or "ascii"
        return text.replace("…", "...").encode(encoding, "backslashreplace").decode(encoding)

    def write(self, text: str, *, flush: bool = True) -> None:
        """Writes ``text`` as it is. On stdout, a reader that went away ends the process."""
        if self.stream is None:
            return
        try:
            self.stream.write(text)
            if flush:
                self.stream.flush()
        except UnicodeEncodeError:
            self.stream.write(self.writable(text))
        except (BrokenPipeError, ValueError) as error:
            _reader_gone(self.stream, error)


def is_terminal(stream: Any) -> bool:
    """Whether ``stream`` is open and a terminal."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False


def stdout() -> Output:
    """The stream of records and answers."""
    return Output.of(sys.stdout)


def stderr() -> Output:
    """The stream of everything that is meant for a person only."""
    return Output.of(sys.stderr)


def prepare_streams() -> None:
    """Called once at start: no character can make printing fail, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")


def _reader_gone(stream: TextIO, error: Exception) -> None:
    if isinstance(error, ValueError) and not getattr(stream, "closed", False):
        raise error
    if stream is sys.stdout:
        leave_quietly()


def leave_quietly() -> NoReturn:
    """Ends the process with 0 after the reader of stdout went away."""
    if sys.stdout is not None and not sys.stdout.closed:
        # What is still in the buffer has no reader; without this, its flush at exit complains.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    raise SystemExit(int(ExitCode.OK))


def jsonable(value: Any) -> Any:
    """``value`` as JSON types: dataclasses as objects, times as RFC 3339 with offset."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.astimezone()).isoformat()
    if isinstance(value, date | PurePath):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [jsonable(item) for item in items]
    return value


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """One line of JSON with the exact text; nothing in it acts on a terminal."""
    return escape_json(json_module.dumps(jsonable(value), ensure_ascii=ascii_only))


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list.

    Attributes:
        field: name of the record's field; dots go deeper (``memory.content``).
        header: what stands above it on a terminal; default: the field's last name.
        show: turns the value into text; default ``show_value``.
        right: whether it is aligned right.
        flexible: whether it takes the room that is left, folded; the last column by default.
    """

    field: str
    header: str = ""
    show: Callable[[Any], str] | None = None
    right: bool = False
    flexible: bool = False

    @property
    def title(self) -> str:
        """What stands above the column."""
        return self.header or self.field.rpartition(".")[2].removesuffix("_at").replace("_", " ")

    def text(self, record: Any, *, terminal: bool) -> str:
        """The cell of ``record``, not yet made safe."""
        value = field_of(record, self.field)
        return self.show(value) if self.show else show_value(value, terminal=terminal)


def field_of(record: Any, name: str) -> Any:
    """The field ``name`` of a mapping or an object, None where it is missing."""
    for part in name.split("."):
        record = record.get(part) if isinstance(record, Mapping) else getattr(record, part, None)
    return record


def show_value(value: Any, *, terminal: bool = False) -> str:
    """A value as text; a time is local and short on a terminal, RFC 3339 elsewhere."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    if isinstance(value, datetime):
        local = value.astimezone()
        return f"{local:%Y-%m-%d %H:%M}" if terminal else local.isoformat(timespec="seconds")
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(show_value(item, terminal=terminal) for item in value)
    if isinstance(value, Mapping):
        return json_module.dumps(jsonable(value), ensure_ascii=False)
    return str(value)


def emit_records(
    records: Iterable[Any], *, json: bool, columns: Sequence[str | Column] | None = None
) -> int:
    """Prints a list and returns how many records it had.

    Args:
        records: mappings or dataclasses; taken one by one where no table is made of them.
        json: NDJSON, every field of each record, exact.
        columns: what people see; default: every field of the first record.
    """
    out = stdout()
    if out.terminal and not json:
        rows = list(records)
        if rows:
            from jarvis.cli.table import render

            for line in render(rows, _columns(columns, rows[0]), out):
                out.write(line + "\n")
        return len(rows)
    count, flushed, chosen = 0, 0.0, None
    for record in records:
        if json:
            line = to_json(record, ascii_only=not out.unicode)
        else:
            chosen = chosen or _columns(columns, record)
            line = "\t".join(
                escape_controls(column.text(record, terminal=False)) for column in chosen
            )
        now = time.monotonic()
        # What comes slowly is seen at once, what comes fast is written in large pieces.
        out.write(line + "\n", flush=now - flushed > 0.1)
        count, flushed = count + 1, now if now - flushed > 0.1 else flushed
    out.write("")
    return count


def _columns(columns: Sequence[str | Column] | None, record: Any) -> list[Column]:
    names = columns if columns is not None else list(jsonable(record))
    return [Column(name) if isinstance(name, str) else name for name in names]


def emit_object(value: Any, *, json: bool) -> None:
    """Prints one object: JSON in one line, else ``name: value`` lines.

    On a terminal a value of several lines is shown below its name; in a pipe each field is one
    line, name and value parted by a tab.
    """
    out = stdout()
    if json:
        out.write(to_json(value, ascii_only=not out.unicode) + "\n")
        return
    names = list(value) if isinstance(value, Mapping) else list(jsonable(value))
    longest = max((len(name) for name in names), default=0)
    for name in names:
        text = show_value(
            field_of(value, name) if "." not in name else value[name], terminal=out.terminal
        )
        label = str(name).replace("_", " ") if out.terminal else str(name)
        if not out.terminal:
            out.write(f"{label}\t{escape_controls(text)}\n")
        elif "\n" in text.strip("\n"):
            body = sanitise(text).strip("\n").replace("\n", "\n  ")
            out.write(f"{out.style(label, 'dim')}\n  {body}\n")
        else:
            out.write(f"{out.style(label.ljust(longest), 'dim')}  {sanitise(text).strip()}\n")


def emit_text(text: str) -> None:
    """Prints a text of several lines on stdout, without what would act on a terminal.

    In a pipe too: it often ends at one (``| cat``, ``| tee``, ``| head``).
    """
    stdout().write(sanitise(text).rstrip("\n") + "\n")


def note(text: str) -> None:
    """Tells a person something, on stderr."""
    _say(text, "dim")


def warn(text: str) -> None:
    """Warns a person, on stderr."""
    _say(f"warning: {text}", "yellow")


def print_error(error: JarvisError) -> None:
    """Prints an error: one line that says what, one that says what to do."""
    out = stderr()
    with quiet_line():
        out.write(f"{out.style('error:', 'red', 'bold')} {_one_line(error.message)}\n")
        if error.hint:
            out.write(f"{out.style('hint:', 'cyan')} {_one_line(error.hint)}\n")


def _say(text: str, style: str) -> None:
    out = stderr()
    with quiet_line():
        for line in sanitise(text).splitlines() or [""]:
            out.write(out.style(line, style) + "\n")


def _one_line(text: str) -> str:
    return escape_controls(" ".join(text.split()))


@contextmanager
def quiet_line() -> Iterator[None]:
    """While it lasts, a running spinner or bar is out of the way."""
    from jarvis.cli import progress

    with progress.out_of_the_way():
        yield


def status(text: str) -> Any:
    """``with status("loading …") as line: line.update("…")``: see ``jarvis.cli.progress``."""
    from jarvis.cli.progress import Progress

    return Progress(text)


def confirm(question: str, *, yes: bool = False) -> bool:
    """Asks a person; no answer is no.

    Args:
        question: one line, without the "[y/N]".
        yes: the answer was given on the command line.

    Raises:
        UsageError: there is nobody to ask.
    """
    if yes:
        return True
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"this needs an answer: {question}", "add --yes to answer yes")
    out = stderr()
    with quiet_line():
        out.write(f"{sanitise(question)} [y/N] ")
        answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        out.write("\n")
    return answer.strip().lower() in {"y", "yes"}
