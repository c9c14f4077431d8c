"""``jarvis doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of


def doctor(
    context: typer.Context,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write a bundle for a bug report, without your content."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a check.")] = False,
) -> None:
    """What works, and what to do about the rest."""
    from jarvis.services import doctor as service

    state = state_of(context)
    checks: list[service.Check] = []
    out = output.stdout()
    for check in service.run(state.app):
        checks.append(check)
        if json:
            output.emit_records([_record(check)], json=True)
            continue
        colour = {"ok": "green", "note": "yellow", "failed": "red"}[check.level]
        mark = out.style(f"{check.level:6}", colour)
        output.emit_text(f"{mark}  {check.name}: {check.detail}")
        if check.hint:
            output.emit_text(f"        → {check.hint}")
    if report is not None:
        from jarvis.services import report as bundle

        output.note(f"wrote {bundle.write(state.app, report, checks)}")
    code = service.exit_code(checks)
    if code:
        # The records stand on stdout; who only sees stderr is told why the command fails.
        failed = [check.name for check in checks if check.level == "failed"]
        output.warn(f"failed: {', '.join(failed)}")
        raise typer.Exit(int(code))


def _record(check: object) -> dict[str, object]:
    from dataclasses import asdict

    record = asdict(check)  # type: ignore[call-overload]
    del record["exit_code"]
    return dict(record)
