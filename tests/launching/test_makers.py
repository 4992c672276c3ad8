"""Kernels made in processes of their own: answers, limits, and ends of processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from test_launching import ROOT, TTIR

from stretto.launching import Asked, makers
from stretto.launching.makers import Makers
from stretto.launching.making import Declined, Made, Request
from stretto.triton.reading import Ttir, ttir_kernel


@pytest.fixture
def makers_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Makers]:
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "cache"))
    found = Makers()
    monkeypatch.setattr(makers, "IDLE", 0.5)
    yield found
    found.end()
    for thread in threading.enumerate():  # which close what they opened
        if thread.name == "stretto-maker":
            thread.join(20)


def request_of(text: str) -> Request:
    module = Ttir(text, 4, 3, "cuda:90")
    asked = Asked(consumers=1, depth=2).on("cuda:90")
    key = asked.key("matmul_descriptors", module.content)
    read = partial(ttir_kernel, "matmul_descriptors", module)
    return Request("matmul_descriptors", key, read, asked, module.target)


def test_a_kernel_is_made_in_another_process_which_then_serves_the_next(
    makers_here: Makers,
) -> None:
    jobs = [makers_here.start(request_of(text)) for text in (TTIR, "nonsense", TTIR)]
    assert not jobs[0].done
    for job in jobs:
        job.wait()
    assert [type(job.answer) for job in jobs] == [Made, Declined, Made]
    assert "def matmul_descriptors_kernel" in jobs[0].answer.entry.source
    assert jobs[1].answer.lasting
    (process,) = makers_here.processes
    assert process.pid != os.getpid()
    makers_here.end()
    assert process.wait(10) != 0
    assert makers_here.start(request_of(TTIR)).failure == "this process is ending"


def test_what_takes_too_long_is_ended(makers_here: Makers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_MAKER_SECONDS", "0.05")
    job = makers_here.start(request_of(TTIR))
    job.wait()
    assert job.failure == "it took more than 0.05 seconds"


def test_memory_is_limited(makers_here: Makers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python without memory for a traceback may go round for good: then its time ends it."""
    monkeypatch.setenv("STRETTO_MAKER_MEMORY", "0.05")
    monkeypatch.setenv("STRETTO_MAKER_SECONDS", "10")
    job = makers_here.start(request_of(TTIR))
    job.wait()
    refused = isinstance(job.answer, Declined) and not job.answer.lasting
    ended = ("the process that makes kernels ended", "it took more than 10 seconds")
    assert refused or any(said in job.failure for said in ended)


ENDING = """
import sys, time
from stretto.launching.makers import makers
from stretto.launching import makers as module
module.START = "import time; time.sleep(100)"
makers().start(None)
while not makers().processes:
    time.sleep(0.01)
print(makers().processes[0].pid, flush=True)
if sys.argv[1] == "killed":
    time.sleep(100)
"""
SERVING = ENDING.replace("import time; time.sleep(100)", "from stretto.launching.making import serve; serve()")  # fmt: skip  # noqa: E501


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", ["ends", "killed"])
def test_makers_end_with_the_process_that_asks_however_it_ends(how: str) -> None:
    script = ENDING if how == "ends" else SERVING
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", script, how], stdout=subprocess.PIPE, env=environment, text=True
    ) as user:
        assert user.stdout is not None
        maker = int(user.stdout.readline())
        if how == "killed":
            user.kill()
        user.wait(20)
    for _ in range(400):
        if not _alive(maker):
            break
        time.sleep(0.02)
    assert not _alive(maker)


def _forked(queue: Any, before: int) -> None:
    queue.put((makers.makers()._owner == os.getpid(), id(makers.makers()) != before))  # pyright: ignore[reportPrivateUsage]


def test_a_child_that_was_forked_has_makers_of_its_own() -> None:
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    child = context.Process(target=_forked, args=(queue, id(makers.makers())))
    child.start()
    assert queue.get(timeout=20) == (True, True)
    child.join()
