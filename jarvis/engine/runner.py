"""The child process that holds one model: llama.cpp's own server on a Unix socket.

``python -m jarvis.engine.runner`` reads one JSON line (a ``RunnerSpec``) from its standard
input, writes one JSON line to the descriptor it was given (ready, or what failed), and serves
until its standard input closes: it cannot outlive the server that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from jarvis.engine import llama
from jarvis.engine.speeds import batch_size


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """How to load a model.

    ``slots`` requests run side by side, each with a window of ``num_ctx`` tokens. ``batch`` is
    the number of prompt tokens read at a time; 0: measure the speed first and choose. ``cache``
    is the memory for prompts that are not in a slot now, in MiB. ``memory`` is the most that the
    process may take, in bytes: a file's template may ask for any amount. ``template`` replaces
    the file's own, "" for none.
    """

    path: str
    socket: str
    embedding: bool
    num_ctx: int
    slots: int
    batch: int
    threads: int
    cache: int
    memory: int
    template: str = ""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


_PROBE_BATCH = 32
_PROBE_PROMPT, _PROBE_ANSWER = 64, 12


def main() -> None:
    """Loads the model named on standard input and serves it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which drains first
    report = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    spec = RunnerSpec(**json.loads(sys.stdin.readline()))
    # Not a signal at the parent's death: Linux sends that when the *thread* ends that started us.
    watch = threading.Thread(target=_end_with_parent, args=(spec.socket,))
    watch.start()
    # What is mapped from the file does not count. Where the system has no such limit, the server
    # looks how much the process holds.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (spec.memory, spec.memory))
    try:
        answer = _serve(spec)
    except Exception as error:  # noqa: BLE001 -- whatever the library raises is the answer
        answer = {"error": str(error)}
    with contextlib.suppress(BrokenPipeError), report:
        report.write(json.dumps(answer) + "\n")
    watch.join()


def _end_with_parent(address: str) -> None:
    """Waits until standard input closes, then ends the process, loading or not."""
    while sys.stdin.readline():
        pass
    with contextlib.suppress(FileNotFoundError):
        os.unlink(address)  # noqa: PTH108 -- pathlib is not needed otherwise
    # llama.cpp's threads need no farewell, and joining them waits for a running batch.
    os._exit(0)


_keep: list[Any] = []
"""The server object: dropping it would stop it."""


def _serve(spec: RunnerSpec) -> dict[str, Any]:
    started = time.monotonic()
    server = _load(spec, spec.batch or _PROBE_BATCH)
    answer: dict[str, Any] = {}
    if not spec.batch:
        prompt, generate = _measure(spec)
        chosen = batch_size(prompt)
        answer["measured"] = {
            "prompt_per_second": round(prompt, 1),
            "generate_per_second": round(generate, 1),
            "batch": chosen,
        }
        if chosen != _PROBE_BATCH:
            del server
            with contextlib.suppress(FileNotFoundError):
                os.unlink(spec.socket)  # noqa: PTH108
            server = _load(spec, chosen)
    _keep.append(server)
    answer["load_seconds"] = time.monotonic() - started
    return answer


def _load(spec: RunnerSpec, batch: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = spec.path
    params.hostnames = [spec.socket]
    params.ui = False
    params.warmup = False
    params.verbosity = 1
    params.fit_params = False
    params.n_gpu_layers = -1
    params.n_parallel = spec.slots
    params.n_ctx = spec.num_ctx * spec.slots
    params.cpuparams.n_threads = spec.threads
    params.cpuparams_batch.n_threads = spec.threads
    # A waiting connection holds a thread of llama.cpp's listener: never let them run out.
    params.n_threads_http = 32
    if spec.embedding:
        params.embedding = True
        params.n_batch = params.n_ubatch = spec.num_ctx * spec.slots
        params.cache_ram_mib = 0
    else:
        params.n_batch = params.n_ubatch = batch
        params.ctx_shift = True
        params.cache_ram_mib = spec.cache
        if spec.template:
            params.chat_template = spec.template
    return xllamacpp.Server(params)


def _measure(spec: RunnerSpec) -> tuple[float, float]:
    """Tokens a second while reading and while writing, on an otherwise idle machine."""
    prompt = list(range(10, 10 + _PROBE_PROMPT))  # in every vocabulary
    reading = _seconds(spec, prompt, 1)
    writing = _seconds(spec, prompt[:1], _PROBE_ANSWER)
    return _PROBE_PROMPT / reading, _PROBE_ANSWER / writing


def _seconds(spec: RunnerSpec, prompt: list[int], answer: int) -> float:
    """How long a request takes, without what other processes take of the cores.

    The threads sleep when they wait for each other, so processor time divided by threads is
    what the work needs; the wall clock counts only while nobody else is in the way.
    """
    request = {"prompt": prompt, "n_predict": answer, "ignore_eos": True, "cache_prompt": False}
    processor, wall = time.process_time(), time.monotonic()
    llama.call(spec.socket, "/completion", request, lambda: None)
    processor = (time.process_time() - processor) / spec.threads
    wall = time.monotonic() - wall
    return max(processor if wall > 1.3 * processor else wall, 1e-3)


if __name__ == "__main__":
    main()
