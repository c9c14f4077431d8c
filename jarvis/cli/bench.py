"""``jarvis bench``: figures that a user can check. Each command loads its own service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jarvis.cli import output
from jarvis.cli.state import state_of

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="NDJSON, a line a figure.")]


@app.command()
def latency(
    context: typer.Context,
    rows: Annotated[int, typer.Option("--rows", min=100, help="Rows of each kind.")] = 10_000,
    rounds: Annotated[int, typer.Option("--rounds", min=3, help="Measurements of each part.")] = 20,
    turns: Annotated[int, typer.Option("--turns", min=0, help="Turns with the real model.")] = 5,
    llm: Annotated[str, typer.Option("--llm", help="The llm program to compare with.")] = "",
    startup: Annotated[bool, typer.Option("--startup/--no-startup", help="Start-up too.")] = True,
    json: Json = False,
) -> None:
    """What a turn costs, part by part: medians and 95th percentiles."""
    from jarvis.cli.progress import Progress
    from jarvis.services import bench_latency, bench_startup

    state = state_of(context)
    with Progress("filling a database") as progress:
        figures = bench_latency.run(
            state.app, bench_latency.Settings(rows, rounds, turns, progress.update)
        )
        other = bench_startup.find_other(llm) if startup else None
        if other:
            figures += bench_startup.run(other, rounds, progress.update)
    if startup and not other:
        output.note("start-up is not compared: there is no llm program (--llm FILE)")
    output.emit_records(
        figures, json=json, columns=("name", "median", "p95", "unit", "samples", "bar", "met")
    )


@app.command()
def recall(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where LoCoMo's files lie.")],
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="So many questions, evenly spread.")
    ] = None,
    stsb: Annotated[
        Path | None, typer.Option("--stsb", metavar="FILE", help="Pairs of sentences, as CSV.")
    ] = None,
    json: Json = False,
) -> None:
    """How well past turns and facts are found: recall on the LoCoMo benchmark."""
    from jarvis.cli.progress import Progress
    from jarvis.services import bench_recall

    with Progress("reading LoCoMo") as progress:
        figures = bench_recall.run(
            state_of(context).app, folder, sample=sample, progress=progress.update
        )
        if stsb is not None:
            figures.append(
                bench_recall.similarity(state_of(context).app, stsb, progress=progress.update)
            )
    output.emit_records(
        figures, json=json, columns=("search", "group", "questions", "recall", "ms", "bar", "met")
    )


@app.command()
def extract(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the labelled turns lie.")],
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="So many turns of each file.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Chat models; default: both coder models.")
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", min=0, help="Time for all models.")] = 20.0,
    show: Annotated[
        bool, typer.Option("--show", help="What was stored, to be read; figures as notes.")
    ] = False,
    json: Json = False,
) -> None:
    """How well facts are taken from what people say."""
    from jarvis.cli.progress import Progress
    from jarvis.services import bench_extract

    with Progress("reading") as progress:
        outcome = bench_extract.run(
            state_of(context).app,
            folder,
            sample=sample,
            models=model or bench_extract.MODELS,
            minutes=minutes,
            progress=progress.update,
        )
    for text in outcome.notes:
        output.note(text)
    for figure in outcome.figures if show else ():
        bar = f" (bar {figure.bar})" if figure.bar else ""
        output.note(
            f"{figure.reader}, {figure.turns}: {figure.percent} % of {figure.count}{bar},"
            f" asked {figure.asked}, unreadable {figure.unreadable}, whole {figure.max_ms} ms,"
            f" from the first token {figure.writing_max_ms} ms"
        )
    output.emit_records(
        outcome.examples if show else outcome.figures,
        json=json,
        columns=("reader", "turns", "hit", "text", "facts")
        if show
        else (
            "reader",
            "turns",
            "count",
            "percent",
            "bar",
            "met",
            "asked",
            "median_ms",
            "max_ms",
            "writing_max_ms",
        ),
    )


@app.command()
def injection(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where payloads.jsonl and benign.jsonl lie.")
    ],
    sample: Annotated[
        int | None, typer.Option("--sample", min=0, help="So many attacks, evenly by kind.")
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="Without --sample.")] = 20.0,
    skip: Annotated[
        int, typer.Option("--skip", min=0, help="Begin after so many, where a run ended.")
    ] = 0,
    json: Json = False,
) -> None:
    """Orders hidden in facts, documents and tool results: how many are obeyed."""
    from jarvis.cli.progress import Progress
    from jarvis.services import bench_injection

    found = bench_injection.detector(folder)
    with Progress("asking the model") as progress:
        settings = bench_injection.Settings(sample, minutes, skip, progress.update)
        rows = [] if sample == 0 else bench_injection.run(state_of(context).app, folder, settings)
    output.emit_records(rows, json=json)
    output.emit_object(found, json=json)
