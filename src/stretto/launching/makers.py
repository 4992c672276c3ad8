"""Processes that make kernels beside the user's own: started, limited and ended here.

    job = start(request) ──► queue ──► thread ──pickle──► python -c "serve()"   reads, schedules,
    job.answer           ◄───────────  thread ◄──pickle──                       emits, compiles

A maker is a fresh process (spawned, never forked: the user's may hold a GPU and threads) that does
one request after the other. It ends when nothing is asked for a while, when the user's process
ends, however that ends, and when a request takes too long or too much memory.

`STRETTO_MAKERS` says how many run at once (1; 0: kernels are made in the user's process, and their
launch waits), `STRETTO_MAKER_MEMORY` how many GiB each may have (16), `STRETTO_MAKER_SECONDS` how
long a kernel may take (300).
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

IDLE = 20.0
"""Seconds without a request after which a maker ends."""
START = "from stretto.launching.making import serve; serve()"
TAIL = 2_000
"""Characters of a maker's last words."""


def _number(name: str, otherwise: float) -> float:
    try:
        return max(0.0, float(os.environ.get(name, otherwise)))
    except ValueError:
        return otherwise


@dataclass(eq=False)
class Job:
    """Something that is made, and its answer once it is there."""

    request: Any
    answer: Any = None
    failure: str = ""
    """Why there is no answer: the process that was to give it."""
    withdrawn: bool = False
    """Whether nobody wants it any more, as long as it is not begun."""
    _done: threading.Event = field(default_factory=threading.Event)

    @property
    def done(self) -> bool:
        """Whether there is an answer, or a failure."""
        return self._done.is_set()

    def wait(self, seconds: float | None = None) -> None:
        """Until it is done, or for so long at most."""
        self._done.wait(None if seconds is None else max(0.0, seconds))

    def settle(self, answer: Any = None, failure: str = "") -> None:
        """It is done."""
        self.answer, self.failure = answer, failure
        self._done.set()


class Makers:
    """The makers of this process."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Job] = queue.Queue()
        self._lock = threading.Lock()
        self._threads = 0
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._ended = False
        self._owner = os.getpid()

    @property
    def processes(self) -> tuple[subprocess.Popen[bytes], ...]:
        """Those that run."""
        with self._lock:
            return tuple(self._processes)

    def start(self, request: Any) -> Job:
        """Have a request done beside what this process does."""
        job = Job(request)
        with self._lock:
            if self._ended:
                job.settle(failure="this process is ending")
                return job
            self._jobs.put(job)
            if self._threads < max(1, int(_number("STRETTO_MAKERS", 1))):
                self._threads += 1
                threading.Thread(target=self._serve, name="stretto-maker", daemon=True).start()
        return job

    def _serve(self) -> None:
        process = words = None
        while True:
            try:
                job = self._jobs.get(timeout=IDLE)
            except queue.Empty:
                with self._lock:
                    if not self._jobs.empty():
                        continue
                    self._threads -= 1
                break
            if job.withdrawn:
                job.settle(failure="nobody wants it any more")
                continue
            try:
                if process is None or process.poll() is not None:
                    process, words = self._spawned()
                job.settle(_asked(process, job.request))
            except Exception as error:  # a pipe that broke, an answer that is none
                job.settle(failure=self._ended_by(process, words, error))
                process = words = None
        self._end(process, words)

    def _spawned(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the maker
        path = [os.path.abspath(entry) for entry in sys.path if entry]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "CUDA_VISIBLE_DEVICES": "",  # makers compile; nothing runs there
        }
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env=environment,
        )
        with self._lock:
            if self._ended:
                process.kill()
            self._processes.add(process)
        return process, words

    def _ended_by(
        self, process: subprocess.Popen[bytes] | None, words: IO[bytes] | None, error: Exception
    ) -> str:
        """End a maker that did not answer; why it did not."""
        if process is not None:
            process.kill()
            process.wait()
        said = ""
        if words is not None:
            words.seek(0)
            said = words.read()[-TAIL:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        self._end(process, words)
        if isinstance(error, TimeoutError):
            return str(error)
        code = None if process is None else process.returncode
        return f"the process that makes kernels ended ({said or f'exit code {code}, {error}'})"

    def _end(self, process: subprocess.Popen[bytes] | None, words: IO[bytes] | None) -> None:
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, words):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with self._lock:
            self._processes.discard(process)

    def end(self) -> None:
        """End all makers, as this process ends; a child that was forked leaves them alone."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._ended = True
            processes = tuple(self._processes)
        for process in processes:
            with suppress(OSError):
                process.kill()


def _asked(process: subprocess.Popen[bytes], request: Any) -> Any:
    """A maker's answer to a request, which it has a limited time for."""
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump(request, process.stdin)
    process.stdin.flush()
    seconds = _number("STRETTO_MAKER_SECONDS", 300)
    overdue = threading.Event()

    def stop() -> None:
        overdue.set()
        process.kill()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        return pickle.load(process.stdout)
    except Exception:
        if overdue.is_set():
            raise TimeoutError(f"it took more than {seconds:g} seconds") from None
        raise
    finally:
        timer.cancel()


_makers: list[Makers] = []
_lock = threading.Lock()


def makers() -> Makers:
    """The makers of this process; a child that was forked has its own."""
    with _lock:
        if not _makers or _makers[0]._owner != os.getpid():  # pyright: ignore[reportPrivateUsage]
            _makers[:] = [Makers()]
            atexit.register(_makers[0].end)
        return _makers[0]


def start(request: Any, here: Callable[[Any], Any]) -> Job:
    """Have a request done beside this process, or by `here` in it, where no makers are wanted."""
    if _number("STRETTO_MAKERS", 1) < 1:
        job = Job(request)
        job.settle(here(request))
        return job
    return makers().start(request)
