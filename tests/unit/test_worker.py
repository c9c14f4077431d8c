"""Waiting for the worker, with a process that takes as long to begin as on a busy machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from jarvis.services import worker
from jarvis.services.app import App


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(worker, "_spawned", processes)
    yield processes
    for process in processes:
        process.wait(30)


def test_drain_waits_for_a_worker_that_is_slow_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawned: list[subprocess.Popen[bytes]]
) -> None:
    done, starts = tmp_path / "done", []

    class Job:
        def pending(self, app: App) -> int:
            return 0 if done.exists() else 1

    def wake(app: App) -> None:
        slow = ["sh", "-c", f'sleep 2.5; : > "{done}"']
        spawned.append(subprocess.Popen(slow))
        starts.append(1)

    monkeypatch.setattr(worker, "jobs", lambda: [Job()])
    monkeypatch.setattr(worker, "wake", wake)
    monkeypatch.setattr(worker, "_is_running", lambda app: False)
    assert worker.drain(cast(App, None)) == 0
    assert len(starts) == 1


def test_drain_gives_up_on_workers_that_end_at_once(
    monkeypatch: pytest.MonkeyPatch, spawned: list[subprocess.Popen[bytes]]
) -> None:
    class Job:
        def pending(self, app: App) -> int:
            return 3

    monkeypatch.setattr(worker, "jobs", lambda: [Job()])
    monkeypatch.setattr(worker, "wake", lambda app: spawned.append(subprocess.Popen(["true"])))
    monkeypatch.setattr(worker, "_is_running", lambda app: False)
    assert worker.drain(cast(App, None)) == 3
