"""Which models are loaded: starts, shares, keeps and ends the runners.

A runner is used under a lease; when the last lease ends its time to live begins. A model is
loaded once however many ask for it, and again with another window only when a larger one is
needed. Before a load, idle models make room when memory is short.
"""

from __future__ import annotations

import itertools
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from jarvis.engine import child, gguf_header, machine, speeds, templates
from jarvis.engine.gguf_header import Header
from jarvis.engine.llama import Check, RunnerFailed, RunnerGone
from jarvis.engine.runner import RunnerSpec
from jarvis.engine.speeds import Speeds
from jarvis.engine.store import InstalledModel
from jarvis.errors import ModelUnavailable
from jarvis.paths import Paths, private_folder

log = logging.getLogger("jarvis.engine")

T = TypeVar("T")

FOREVER = float("inf")
DEFAULT_NUM_CTX = 4096
"""Ollama's default window, in tokens."""

_SMALL_CACHE = 512 << 20
_OVERHEAD = 200 << 20
_SLACK = 2 << 30
_CACHE_MIB = 2048
_EMBEDDING_TOKENS = 2048
_LOAD_SECONDS, _LOAD_RATE = 60.0, 10e6
"""A model may take so long to load, and a second more for so many bytes (a slow disk)."""

_RUNAWAY_SECONDS = 10.0
"""Longer than any batch of a cancelled request takes."""


@dataclass(eq=False)
class Loaded:
    """A model in memory. Leases and times change under the pool's lock.

    ``answering`` are the requests in its slots; ``idle_work`` is when it was last seen at rest
    without a lease, and the processor seconds that it had used by then.
    """

    model: InstalledModel
    header: Header
    num_ctx: int
    spec: RunnerSpec
    process: subprocess.Popen[str]
    load_seconds: float = 0.0
    leases: int = 0
    keep_alive: float = 0.0
    expires: float = FOREVER
    retired: bool = False
    answering: set[int] = field(default_factory=set)
    idle_work: tuple[float, float] = (0.0, 0.0)
    loaded_at: float = field(default_factory=time.time)

    @property
    def address(self) -> str:
        """The runner's socket."""
        return self.spec.socket

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process.poll() is None

    @property
    def memory(self) -> int:
        """Bytes of memory that it holds now."""
        return machine.resident_memory(self.process.pid)


class Pool:
    """The loaded models of one server."""

    def __init__(self, paths: Paths, threads: int, keep_alive: float, log_file: Path) -> None:
        self.paths, self.threads, self.keep_alive = paths, threads or machine.cores(), keep_alive
        self.configured_threads = threads
        self.log_file = log_file
        self._lock = threading.Condition()
        self._loaded: list[Loaded] = []
        self._loading: set[str] = set()
        self._numbers = itertools.count(1)
        self._closed = False

    def loaded(self) -> list[Loaded]:
        """The models in memory, oldest first."""
        with self._lock:
            return [each for each in self._loaded if each.alive and not each.retired]

    @contextmanager
    def lease(
        self, model: InstalledModel, num_ctx: int | None, keep_alive: float | None, check: Check
    ) -> Iterator[Loaded]:
        """Loads the model unless it is loaded, and holds it for the time of the block.

        Args:
            num_ctx: the least window in tokens; None takes the model's own default.
            keep_alive: seconds to keep it after the last use; None takes the default.
            check: raises ``Cancelled`` when the client has gone; asked while it loads.

        Raises:
            ModelUnavailable: the file cannot be loaded, or memory does not suffice.
        """
        loaded = self._acquire(model, num_ctx, check)
        with self._lock:
            loaded.keep_alive = self.keep_alive if keep_alive is None else keep_alive
        try:
            yield loaded
        except RunnerFailed as error:
            # Gone or stuck, it may take a moment to die: nobody else is to wait for it.
            with self._lock:
                loaded.retired |= not error.status
            raise
        finally:
            with self._lock:
                loaded.leases -= 1
                loaded.idle_work = (0.0, 0.0)
                loaded.expires = time.monotonic() + loaded.keep_alive
                self._lock.notify_all()
            if loaded.keep_alive <= 0 or loaded.retired or not loaded.alive:
                self.sweep()

    def work(
        self,
        model: InstalledModel,
        num_ctx: int | None,
        keep_alive: float | None,
        check: Check,
        work: Callable[[Loaded], Iterator[T]],
    ) -> Iterator[T]:
        """Yields what ``work`` makes of the model, under a lease.

        A process that has gone before the first result is replaced and the work tried once more:
        another request may have been its end (a hostile template, memory that ran out). A request
        that is the end of a second process gets the error.

        Args:
            model, num_ctx, keep_alive, check: as for ``lease``.
            work: what is done with the loaded model; called a second time for a second process.

        Raises:
            as ``lease``; RunnerFailed, Cancelled.
        """
        begun = False
        for again in (True, False):
            try:
                with self.lease(model, num_ctx, keep_alive, check) as loaded:
                    for result in work(loaded):
                        begun = True
                        yield result
            except RunnerGone:
                if begun or not again:
                    raise
                log.warning("the process of %s has gone: it is loaded again", model.name)
            else:
                return

    def unload(self, model: InstalledModel) -> None:
        """Ends the model's runners as soon as nobody uses them."""
        with self._lock:
            for each in self._loaded:
                if each.model.digest == model.digest:
                    each.retired = True
        self.sweep()

    def sweep(self) -> None:
        """Ends runners whose time is over, that are retired, or that have died."""
        now = time.monotonic()
        self._kill_the_bloated()
        self._kill_the_runaways(now)
        with self._lock:
            ended = [
                each
                for each in self._loaded
                if not each.leases and (each.expires <= now or each.retired or not each.alive)
            ]
            self._loaded = [each for each in self._loaded if each not in ended]
            self._lock.notify_all()
        for each in ended:
            child.end(each.process, each.address)
            log.info("unloaded %s (exit code %s)", each.model.name, each.process.returncode)

    def _kill_the_bloated(self) -> None:
        """Ends a process that holds far more memory than its model explains (a hostile file)."""
        for each in self.loaded():
            if each.memory > each.spec.memory:
                log.error("%s holds %d MiB: ended", each.model.name, each.memory >> 20)
                child.kill(each.process)

    def _kill_the_runaways(self, now: float) -> None:
        """Ends a process that works although nobody asks: llama.cpp cannot cancel a template."""
        for each in self.loaded():
            used = machine.processor_seconds(each.process.pid)
            since, before = each.idle_work
            if each.leases or not since or used - before < (now - since) / 10:
                each.idle_work = (now, used)
            elif now - since > _RUNAWAY_SECONDS:
                log.error("%s works for nobody: ended", each.model.name)
                child.kill(each.process)

    def pinned(self) -> bool:
        """Whether a model is to stay for ever: then so must the server."""
        return any(each.keep_alive == FOREVER for each in self.loaded())

    def close(self) -> None:
        """Ends every runner."""
        with self._lock:
            self._closed = True
            ended, self._loaded = self._loaded, []
            self._lock.notify_all()
        for each in ended:
            child.end(each.process, each.address)

    def _acquire(self, model: InstalledModel, num_ctx: int | None, check: Check) -> Loaded:
        while True:
            check()
            with self._lock:
                if self._closed:
                    raise ModelUnavailable("the engine is stopping", "try again")
                found = self._fitting(model, num_ctx)
                if found is not None:
                    found.leases += 1
                    found.expires = FOREVER
                    return found
                if model.digest in self._loading:
                    self._lock.wait(0.2)
                    continue
                self._loading.add(model.digest)
            try:
                loaded = self._load(model, num_ctx, check)
                with self._lock:
                    self._loaded.append(loaded)
            finally:
                with self._lock:
                    self._loading.discard(model.digest)
                    self._lock.notify_all()

    def _fitting(self, model: InstalledModel, num_ctx: int | None) -> Loaded | None:
        for each in self._loaded:
            if each.model.digest == model.digest and each.alive and not each.retired:
                wanted = num_ctx or self._default_window(model, each.header)
                if each.num_ctx >= min(wanted, each.header.context_length):
                    return each
                each.retired = True
        return None

    def _default_window(self, model: InstalledModel, header: Header) -> int:
        configured = model.parameters.get("num_ctx")
        window = configured if isinstance(configured, int) else DEFAULT_NUM_CTX
        if header.is_embedding and not isinstance(configured, int):
            window = _EMBEDDING_TOKENS
        return min(window, header.context_length)

    def _load(self, model: InstalledModel, num_ctx: int | None, check: Check) -> Loaded:
        header = gguf_header.read(model.path)
        window = min(num_ctx or self._default_window(model, header), header.context_length)
        self.sweep()
        slots = self._slots(header, window)
        self._make_room(model, header, window * slots, check)
        known = speeds.read_digest(self.paths, model.digest, self.configured_threads)
        runtime = private_folder(self.paths.engine_runtime)
        cache = min(_CACHE_MIB, machine.memory_bytes() // 8 >> 20)
        spec = RunnerSpec(
            path=str(model.path),
            socket=str(runtime / f"r{next(self._numbers)}.sock"),
            embedding=header.is_embedding,
            num_ctx=window,
            slots=slots,
            batch=1 if header.is_embedding else (known.batch if known else 0),
            threads=self.threads,
            cache=cache,
            # Its weights (twice: llama.cpp repacks them), windows and cache never take more.
            memory=2 * model.size + header.cache_bytes(window * slots) + (cache << 20) + _SLACK,
            template=templates.mended(header.chat_template),
        )
        started = time.monotonic()
        limit = _LOAD_SECONDS + model.size / _LOAD_RATE
        try:
            process, answer = child.start(spec, self.log_file, limit, check)
        except child.Failed as error:
            raise ModelUnavailable(
                f"cannot load {model.name}: {error}", f"see {self.log_file}"
            ) from error
        if measured := answer.get("measured"):
            speeds.write(self.paths, model.digest, self.configured_threads, Speeds(**measured))
        seconds = time.monotonic() - started
        log.info(
            "loaded %s in %.1f s: window %d, %d slots, batch %s",
            model.name, seconds, window, slots, spec.batch or answer.get("measured"),
        )  # fmt: skip
        return Loaded(model, header, window, spec, process, seconds)

    def _slots(self, header: Header, window: int) -> int:
        """How many requests run side by side: two chats where their memory is small."""
        if header.is_embedding:
            return max(1, _EMBEDDING_TOKENS // window)
        return 2 if header.cache_bytes(window) <= _SMALL_CACHE else 1

    def _make_room(self, model: InstalledModel, header: Header, tokens: int, check: Check) -> None:
        """Ends idle models, least recently used first, until the new one fits."""
        cache = 0 if header.is_embedding else header.cache_bytes(tokens)
        needed = model.size + cache + _OVERHEAD
        while machine.available_memory() < needed:
            check()
            with self._lock:
                idle = sorted(
                    (each for each in self._loaded if not each.leases),
                    key=lambda each: each.expires,
                )
                if idle:
                    idle[0].retired = True
            if not idle:
                have = machine.available_memory()
                raise ModelUnavailable(
                    f"model requires more system memory ({needed / 2**30:.1f} GiB) "
                    f"than is available ({have / 2**30:.1f} GiB)",
                    "use a smaller model or a smaller num_ctx",
                )
            self.sweep()
