"""``jarvis ask``: one turn for the shell."""

from __future__ import annotations

import contextlib
import dataclasses
import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jarvis.cli import consent, output, records
from jarvis.cli.progress import Progress
from jarvis.cli.state import State, state_of
from jarvis.cli.stdin import read_stdin
from jarvis.errors import UsageError

if TYPE_CHECKING:
    from jarvis.services.turns import Prepared, TurnRequest, TurnResult

MAX_FILE_BYTES = 8 * 2**20
"""A larger file is a document: ``jarvis doc ingest`` finds the passages that matter."""


def ask(
    context: typer.Context,
    prompt: Annotated[list[str] | None, typer.Argument(help="The question; - for stdin.")] = None,
    file: Annotated[
        list[Path] | None, typer.Option("-f", "--file", help="Attach a text file.")
    ] = None,
    continue_: Annotated[
        bool, typer.Option("-c", "--continue", help="Go on with your latest session.")
    ] = False,
    session: Annotated[int | None, typer.Option("--session", help="Go on with this one.")] = None,
    model: Annotated[str, typer.Option("--model", help="Another chat model.")] = "",
    system: Annotated[str, typer.Option("--system", help="A persona: its name or text.")] = "",
    format_: Annotated[
        str, typer.Option("--format", metavar="SCHEMA", help="json, a JSON schema, or its file.")
    ] = "",
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Inject nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Store nothing.")] = False,
    tools: Annotated[bool, typer.Option("--tools/--no-tools", help="Offer tools.")] = True,
    think: Annotated[
        bool, typer.Option("--think", help="Show a thinking model's thoughts.")
    ] = False,
    split: Annotated[
        bool, typer.Option("--split", help="Read a message that is too long in several turns.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the prompt and its token counts, send nothing.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what was used, and why.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """One question, one answer.

    The question is the argument, stdin, or both: `git diff | jarvis ask "explain this change"`.
    """
    from jarvis.services.turns import TurnRequest

    state = state_of(context)
    text, typed = question(prompt or [])
    request = TurnRequest(
        text=text,
        typed=typed,
        session_id=session_to_use(state, session, continue_),
        model=model,
        system=system,
        memory=not no_memory,
        private=private,
        tools=tools,
        schema=_schema(format_),
        files=tuple(_attached(path) for path in file or ()),
        think=think,
        confirm=consent.asker(),
    )
    if dry_run:
        _print_prompt(state.app.assistant.dry_run(request), explain=explain, json=json)
        return
    result = (
        run_parts(state, request, live=not json)
        if split
        else run_turn(state, request, live=not json)
    )
    if json:
        output.emit_object(records.answer_record(result, explain=explain), json=True)
    elif explain:
        _explain(result)


def question(words: list[str]) -> tuple[str, str]:
    """The question from the arguments and stdin, and what of it is the user's own words.

    What is piped in beside a question is data: it may come from anywhere.

    Raises:
        UsageError: there is neither.
    """
    explicit = words == ["-"]
    asked = "" if explicit else " ".join(words).strip()
    piped = (read_stdin(explicit=explicit, have_prompt=bool(asked)) or "").strip()
    text = "\n\n".join(part for part in (asked, piped) if part)
    if not text:
        raise UsageError("there is no question", 'jarvis ask "…", or pipe one in')
    return text, asked or piped


def run_parts(state: State, request: TurnRequest, *, live: bool) -> TurnResult:
    """Runs a message in as many turns of one session as it needs; returns the last result."""
    from jarvis.services import long_message
    from jarvis.services.prompt import PastTurn

    turns = long_message.parts(state.app, request)
    history = list(request.history)
    result = run_turn(state, turns[0], live=live)
    for number, turn in enumerate(turns[1:], 2):
        output.note(f"part {number} of {len(turns)}")
        history.append(PastTurn(turns[number - 2].text, result.answer))
        following = dataclasses.replace(turn, session_id=result.session_id, history=tuple(history))
        result = run_turn(state, following, live=live)
    return result


def run_turn(state: State, request: TurnRequest, *, live: bool) -> TurnResult:
    """Runs one turn; with ``live`` the answer is printed as it comes.

    Stage, thoughts and warnings go to stderr. What would act on a terminal is taken out of a
    piped answer too: a pipe often ends at one (`| cat`, `| tee`, `| head`). ``--json`` is exact.
    """
    from jarvis.security.terminal import TerminalFilter
    from jarvis.services import turns

    out, err = output.stdout(), output.stderr()
    answered, thought = TerminalFilter(), TerminalFilter()
    thinks = request.think or state.config.chat.think
    result: TurnResult | None = None
    with contextlib.ExitStack() as waiting:
        progress = waiting.enter_context(Progress("looking things up"))
        for event in state.app.assistant.turn(request):
            match event:
                case turns.Stage(name):
                    progress.update(_STAGES.get(name, name))
                case turns.Delta(text) if live:
                    waiting.close()  # no spinner in the line that the answer is written to
                    out.write(answered.feed(text))
                case turns.Thinking(text) if thinks:
                    waiting.close()
                    err.write(err.style(thought.feed(text), "dim"))
                case turns.Warning_(text):
                    output.warn(text)
                case turns.ToolStarted(name, arguments):
                    output.note(f"tool: {name} {output.show_value(arguments)}")
                case turns.ToolFinished(name, _, error) if error:
                    output.warn(f"tool {name}: {error}")
                case turns.Finished(finished):
                    result = finished
                case _:
                    pass
    assert result is not None  # noqa: S101 -- the last event of a turn that did not raise
    if live:
        out.write(answered.flush() + "\n")
    return result


_STAGES = {"context": "looking things up", "prompt": "reading", "answer": "answering"}


def session_to_use(state: State, session: int | None, continue_: bool) -> int | None:
    """The session that ``--session`` or ``--continue`` means; None: a new one."""
    if session is not None or not continue_:
        return session
    latest = state.app.assistant.latest_session()
    if latest is None:
        output.note("there is no session to go on with: this is the first")
    return latest


def _schema(text: str) -> dict[str, Any] | str | None:
    if not text or text == "json":
        return text or None
    source = text
    if not text.lstrip().startswith("{"):
        try:
            source = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot read the schema {text}: {error.strerror}", "give json, a schema or a file"
            ) from error
    try:
        schema = json_module.loads(source)
    except json_module.JSONDecodeError as error:
        raise UsageError(f"--format is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UsageError("--format must be a JSON object")
    return schema


def _attached(path: Path) -> tuple[str, str]:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is too large to attach", f"jarvis doc ingest {path}")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if b"\0" in data[:4096] and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise UsageError(f"{path} is not a text file", f"jarvis doc ingest {path}")
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    return path.name, str(best) if best else data.decode("utf-8", "replace")


def _print_prompt(prepared: Prepared, *, explain: bool, json: bool) -> None:
    if json:
        output.emit_object(records.prompt_record(prepared, explain=explain), json=True)
        return
    for message in prepared.prompt.messages:
        output.emit_text(f"[{message.role}]\n{message.content}\n")
    parts = ", ".join(f"{name} {tokens}" for name, tokens in prepared.prompt.parts.items())
    output.note(f"about {prepared.prompt.estimate} tokens for {prepared.model}: {parts}")
    budget = prepared.budget
    output.note(
        f"it may have {budget.total:,} of a window of {budget.window:,} tokens: {budget.reason}"
    )
    for warning in prepared.warnings:
        output.warn(warning)


def _explain(result: TurnResult) -> None:
    for hit in result.memories:
        output.note(f"memory {hit.memory.id} (score {hit.score:.3f}): {hit.memory.content}")
        output.note(f"  {output.show_value(hit.explanation)}")
    for turn in result.turns:
        output.note(f"turn {turn.id} (score {turn.score:.3f}): {turn.content}")
        output.note(f"  {output.show_value(turn.explanation)}")
    for chunk in result.documents:
        output.note(f"passage {chunk.id} of {chunk.document} (score {chunk.score:.3f})")
        output.note(f"  {output.show_value(chunk.explanation)}")
    for name, dropped in result.dropped.items():
        for candidate in dropped:
            output.note(f"left out of {name}: {output.show_value(candidate)}")
