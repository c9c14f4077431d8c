"""The engine against the bare library, in one run: ``python -m tests.bench.engine [CHAT]``.

Both sides use the same file, threads, window, slots and batch size. The library is driven
through its own HTTP listener, as the engine drives it, with nothing of ours in between. Rounds
alternate, so that what else the machine does hits both. Bars: embeddings at least 0.9 of the
library's rate, time to first token and tokens a second at least 0.95. At last a client leaves in
the middle of each kind of work: the models' processes must rest within a second.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import httpx

from jarvis.engine import launcher, llama, machine, store
from jarvis.engine.pool import Pool
from jarvis.paths import Paths
from tests.integration import engine_server

ROUNDS = 5
TEXTS = [
    f"On day {number} the user wrote that the wiki listens on port {7000 + number} and that "
    "the ferry to the island leaves at nine."
    for number in range(192)
]
QUERIES = [f"which port has wiki {number}?" for number in range(40)]


def main(chat: str) -> None:
    """Measures and prints one JSON object a figure."""
    models = Paths.from_environment().models
    with tempfile.TemporaryDirectory(prefix="je") as folder:
        environment = {"JARVIS_HOME": folder, "JARVIS_MODELS": str(models)}
        paths = Paths.from_environment(environment)
        socket = launcher.ensure_running(paths)
        transport = httpx.HTTPTransport(uds=str(socket))
        try:
            with httpx.Client(
                transport=transport, base_url="http://localhost", timeout=600
            ) as client:
                with bare(paths, "all-minilm") as address:
                    embeddings(client, address)
                with bare(paths, chat) as address:
                    chats(client, address, chat)
                leaving(paths, client, chat)
        finally:
            launcher.stop(paths)


@contextmanager
def bare(paths: Paths, name: str) -> Iterator[str]:
    """The library alone, loaded as the engine loads it; yields its socket."""
    other = replace(paths, runtime=paths.runtime / "bare")
    paths.logs.mkdir(parents=True, exist_ok=True)
    (paths.runtime / "bare").mkdir(parents=True, exist_ok=True)
    pool = Pool(other, 0, 600, paths.logs / "bare.log")
    try:
        with pool.lease(store.get(paths, name), None, None, nothing) as loaded:
            yield loaded.address
    finally:
        pool.close()


def embeddings(client: httpx.Client, address: str) -> None:
    """Texts a second, and milliseconds for a short query."""

    def ours(texts: list[str]) -> Any:
        return client.post("/api/embed", json={"model": "all-minilm", "input": texts}).json()

    def theirs(texts: list[str]) -> Any:
        return bare_client.post("/v1/embeddings", json={"input": texts}).json()

    # The same client on both sides: its own cost is not the engine's.
    bare_client = httpx.Client(
        transport=httpx.HTTPTransport(uds=address), base_url="http://localhost", timeout=600
    )
    for call in (ours, theirs):
        call(TEXTS[:8])
    rate = alternate(lambda call: len(TEXTS) / seconds(lambda: call(TEXTS)), ours, theirs)
    show("embedding, texts a second", *rate, bar=0.9)
    single = alternate(
        lambda call: 1e3 * statistics.median(seconds(lambda q=q: call([q])) for q in QUERIES),  # type: ignore[misc]
        ours,
        theirs,
    )
    show("embedding a query, ms", *single, bar=0.9, lower=True)


def chats(client: httpx.Client, address: str, name: str) -> None:
    """Time to the first token of a new prompt, and tokens a second after it."""

    def ours(prompt: str) -> Iterator[bool]:
        body = {
            "model": name,
            "messages": [{"role": "user", "content": prompt}],
            "options": {"temperature": 0, "num_predict": 48},
        }
        with client.stream("POST", "/api/chat", json=body) as response:
            for line in response.iter_lines():
                yield bool(json.loads(line)["message"]["content"])

    def theirs(prompt: str) -> Iterator[bool]:
        body = {
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "repeat_penalty": 1.1,
            "max_tokens": 48,
            "stream": True,
        }
        for event in llama.stream(address, "/v1/chat/completions", body, nothing):
            choices = event.get("choices")
            yield bool(choices and choices[0]["delta"].get("content"))

    def first_and_rate(call: Callable[[str], Iterator[bool]], prompt: str) -> tuple[float, float]:
        started = time.monotonic()
        times = [time.monotonic() for has_text in call(prompt) if has_text]
        return (times[0] - started) * 1e3, (len(times) - 1) / (times[-1] - times[0])

    results: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for number in range(ROUNDS + 1):
        for label, call in (("ours", ours), ("theirs", theirs)):
            prompt = f"{number} {label}: " + "Tell me about rivers, stones and ferries. " * 12
            figures = first_and_rate(call, prompt)
            if number:  # the first loads
                results[label].append(figures)
    for position, what, lower in ((0, "first token, ms", True), (1, "tokens a second", False)):
        sides = [
            statistics.median(each[position] for each in results[label])
            for label in ("ours", "theirs")
        ]
        show(f"{name}, {what}", sides[0], sides[1], bar=0.95, lower=lower)


def leaving(paths: Paths, client: httpx.Client, name: str) -> None:
    """How long the models work on after their client has gone, in milliseconds."""
    long = "Tell me about rivers, stones and ferries. " * 300
    plain = {"num_predict": 2000, "num_ctx": 4096}
    begun: list[tuple[str, str, dict[str, Any], float]] = [
        ("reading a prompt", "generate", {"model": name, "prompt": long, "options": plain}, 1.5),
        ("writing", "generate", {"model": name, "prompt": "Count.", "options": plain}, 3.0),
        ("embedding", "embed", {"model": "all-minilm", "input": TEXTS * 20}, 1.5),
    ]
    models = engine_server.children(launcher.status(paths).pid)

    def used() -> float:
        return sum(machine.processor_seconds(pid) for pid in models)

    for what, route, body, after in begun:
        took = []
        for _ in range(ROUNDS):
            with suppress(httpx.ReadTimeout):
                client.post(f"/api/{route}", json={**body, "stream": False}, timeout=after)
            left = worked = time.monotonic()
            before = used()
            while time.monotonic() - worked < 0.5:
                time.sleep(0.01)
                if (now := used()) > before + 0.01:  # one tick may be a wink
                    worked, before = time.monotonic(), now
            took.append(1e3 * (worked - left))
        sys.stdout.write(
            json.dumps(
                {
                    "what": f"client leaves: {what}, ms until at rest",
                    "median": round(statistics.median(took)),
                    "worst": round(max(took)),
                    "bar": 1000,
                    "met": max(took) <= 1000,
                }
            )
            + "\n"
        )


def alternate(measure: Callable[[Any], float], ours: Any, theirs: Any) -> tuple[float, float]:
    """The medians of both sides over alternating rounds."""
    figures = [(measure(ours), measure(theirs)) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in figures), statistics.median(
        two for _, two in figures
    )


def seconds(work: Callable[[], object]) -> float:
    """How long ``work`` takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def nothing() -> None:
    """Never cancels."""


def show(what: str, ours: float, library: float, *, bar: float, lower: bool = False) -> None:
    """One line: both figures and their ratio, which is to be at least ``bar``."""
    ratio = library / ours if lower else ours / library
    figures = {
        "what": what,
        "engine": round(ours, 2),
        "library": round(library, 2),
        "ratio": round(ratio, 3),
        "bar": bar,
        "met": ratio >= bar,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "qwen2.5-coder:0.5b")
