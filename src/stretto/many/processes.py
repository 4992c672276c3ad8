"""Worker processes of our own: one that dies or hangs costs its task, not the run.

    parent ──tasks, two ahead──► worker    answers in order, so what was first unanswered did it
           ◄──────answers───────

           worker dies   ──►  that task fails with its signal or exit code, a fresh worker goes on
           a task hangs  ──►  past the limit the worker is killed, likewise
           parent dies   ──►  the worker reads the end of its pipe, and leaves in that moment

Python's own pool is broken for good once a process of it dies, and cannot end a task. Workers come
from a fork server where there is one: it has the modules loaded, so that a fresh worker takes
milliseconds, and nothing of the parent's descriptors or threads.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from time import monotonic, perf_counter
from typing import Any, NoReturn

from stretto.errors import StrettoError

AHEAD = 2
"""Tasks that a worker has: the one it works on, and one to go on with."""
QUICK = 0.05
"""Seconds; only where tasks take less is it worth having one wait, which another could begin."""
MEGABYTE = 1 << 20
LEAVES = 1.0
"""Seconds in which a process that closed its pipe is gone."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a task: a value, or the reason there is none."""

    value: Any = None
    error: str = ""
    seconds: float = 0.0


# In the worker ----------------------------------------------------------------------------


def serve_tasks(
    connection: Connection, function: bytes, memory: int | None, environment: dict[str, str]
) -> None:
    """The life of a worker: answer tasks until the pipe ends."""
    os.environ.clear()  # that of the fork server is as old as it is
    os.environ.update(environment)
    if hasattr(signal, "pthread_sigmask"):
        # Ctrl-C goes to every process of the terminal; it is the parent's to answer.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a task prints must not end up among the rows
    waiting: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(connection, waiting), daemon=True).start()
    if memory is not None:
        _limit_memory(memory)
    try:
        work: Callable[[Any], Any] = pickle.loads(function)
    except Exception as error:
        connection.send(Answer(error=told(error)))
        return
    connection.send(Answer())  # it is ready
    if memory is not None:
        _limit_memory(memory)
    try:
        _work(connection, work, waiting)
    except BaseException:
        os._exit(1)  # the one who waits for the answer says so


def _work(
    connection: Connection, work: Callable[[Any], Any], waiting: SimpleQueue[bytes]
) -> NoReturn:
    while True:
        task = waiting.get()
        began = perf_counter()
        answer = _answer(work, task)
        seconds = perf_counter() - began
        try:
            data = pickle.dumps(Answer(*answer, seconds))
        except Exception as error:
            data = pickle.dumps(Answer(None, told(error), seconds))
        try:
            connection.send_bytes(data)
        except OSError:  # nobody is left to hear it
            os._exit(0)


def _receive(connection: Connection, waiting: SimpleQueue[bytes]) -> None:
    """Take tasks off the pipe, so that whoever sends one never waits; leave where it ends."""
    with suppress(EOFError, OSError):
        while True:
            waiting.put(connection.recv_bytes())
    os._exit(0)


def _answer(work: Callable[[Any], Any], task: bytes) -> tuple[Any, str]:
    try:
        return work(pickle.loads(task)), ""
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        return None, told(error)


def told(error: BaseException) -> str:
    """An error as a row has it: the words of our own, the kind and the words of all others."""
    if isinstance(error, StrettoError):
        return "\n".join(error.lines(""))
    if isinstance(error, MemoryError):
        return "error: not enough memory"
    if isinstance(error, RecursionError):
        return "error: the input is nested too deeply"
    return f"error: {type(error).__name__}: {error}".rstrip(": ")


def _limit_memory(megabytes: int) -> None:
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    size = megabytes * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


# In the parent ----------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Worker:
    """A process, and the tasks it has not answered yet."""

    process: BaseProcess
    pipe: Connection
    ready: bool = False
    tasks: deque[tuple[Any, bytes]] = field(default_factory=deque[tuple[Any, bytes]])
    since: float = 0.0
    """When it began with the first of its tasks."""
    quick: bool = True

    @property
    def room(self) -> bool:
        """Whether it would begin another task soon."""
        return len(self.tasks) < (AHEAD if self.quick else 1)

    def give(self, token: Any, task: bytes) -> None:
        """One more task; that it may be dead already shows when it is listened to."""
        if not self.tasks:
            self.since = monotonic()
        self.tasks.append((token, task))
        with suppress(OSError):
            self.pipe.send_bytes(task)

    def end(self) -> None:
        """Kill it, and have nothing left of it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.process.close()


class Processes:
    """Some workers with one function; use it in a `with`, which ends them."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        jobs: int,
        limit: float | None = None,
        memory: int | None = None,
    ) -> None:
        try:
            self._function = pickle.dumps(function)
        except Exception as error:
            raise StrettoError(f"other processes cannot be handed {function!r}: {error}") from None
        self._limit = limit
        self._memory = memory
        self._context = _context(function)
        self._workers: list[_Worker] = []
        self._jobs = jobs
        self._again: deque[tuple[Any, bytes]] = deque()
        """Tasks of a worker that died before it came to them."""

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.end()

    @property
    def room(self) -> bool:
        """Whether another task would be begun soon."""
        return len(self._workers) < self._jobs or any(worker.room for worker in self._workers)

    @property
    def busy(self) -> bool:
        """Whether any answer is still to come."""
        return bool(self._again) or any(worker.tasks for worker in self._workers)

    def submit(self, token: Any, task: Any) -> Answer | None:
        """Have a task done, of which `token` will remind; an answer at once where it cannot be."""
        try:
            data = pickle.dumps(task)
        except Exception as error:
            return Answer(error=told(error))
        self._seat(token, data)
        return None

    def _seat(self, token: Any, task: bytes) -> None:
        worker = min(self._workers, key=lambda one: (not one.room, len(one.tasks)), default=None)
        if (worker is None or worker.tasks) and len(self._workers) < self._jobs:
            worker = self._start()
        assert worker is not None
        worker.give(token, task)

    def answers(self) -> Iterator[tuple[Any, Answer]]:
        """Wait until something happens; the tasks that are answered by then."""
        while self._again and self.room:
            self._seat(*self._again.popleft())
        pipes = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(pipes), self._patience()):
            assert isinstance(pipe, Connection)
            yield from self._heard(pipes[pipe])
        for worker in list(self._workers):
            # Whoever took long over the last answer may have left this one unread.
            if self._overdue(worker) and not worker.pipe.poll():
                text = f"error: no answer after {self._limit:g} s: its process was ended"
                yield from self._lost(worker, text)

    def _heard(self, worker: _Worker) -> Iterator[tuple[Any, Answer]]:
        try:
            data = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            yield from self._lost(worker, "")
            return
        answer = _read(data)
        worker.since = monotonic()
        if worker.ready:
            worker.quick = answer.seconds < QUICK
            yield worker.tasks.popleft()[0], answer
        elif answer.error:
            raise StrettoError(f"a worker process cannot begin: {answer.error}")
        else:
            worker.ready = True

    def _lost(self, worker: _Worker, why: str) -> Iterator[tuple[Any, Answer]]:
        """Of a worker that is dead or is to die: its first task failed, the others go again."""
        worker.process.join(0.0 if why else LEAVES)
        code = worker.process.exitcode
        tasks, ready, seconds = worker.tasks, worker.ready, monotonic() - worker.since
        self._workers.remove(worker)
        worker.end()
        if not ready:
            hint = 'a script that calls this does so under `if __name__ == "__main__":`'
            raise StrettoError(f"a worker process ended before it began, {_left(code)}; {hint}")
        if tasks:
            token, _ = tasks.popleft()
            self._again.extend(tasks)
            yield token, Answer(None, why or f"error: its process ended, {_left(code)}", seconds)

    def _start(self) -> _Worker:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # A worker that loads a script, which calls us outside of `if __name__ == "__main__":`.
            # It cannot begin, and the one that started it says so.
            raise SystemExit(1)
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._function, self._memory, dict(os.environ))
        process = self._context.Process(target=serve_tasks, args=arguments, daemon=True)
        with _interrupts_held():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _overdue(self, worker: _Worker) -> bool:
        left = self._left_to(worker)
        return left is not None and left <= 0

    def _left_to(self, worker: _Worker) -> float | None:
        if self._limit is None or not worker.ready or not worker.tasks:
            return None
        return worker.since + self._limit - monotonic()

    def _patience(self) -> float | None:
        times = [left for worker in self._workers if (left := self._left_to(worker)) is not None]
        return max(0.0, min(times)) if times else None


def _read(data: bytes) -> Answer:
    """An answer, or that it makes no sense here."""
    try:
        return pickle.loads(data)
    except Exception as error:
        return Answer(error=told(error))


def _left(code: int | None) -> str:
    """How a process ended."""
    if code is None:
        return "or closed its pipe"
    if code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            memory = " (out of memory?)" if name == "SIGKILL" else ""
            return f"killed by {name}{memory}"
    return f"exit code {code}"


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Ctrl-C waits, here and in the processes that are started inside: it is ours to answer.

    A worker that is interrupted before it can say so itself would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context(function: Callable[[Any], Any]) -> ForkServerContext | SpawnContext:
    if sys.platform == "win32" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    module = getattr(function, "__module__", None)
    if isinstance(module, str) and module != "__main__":
        context.set_forkserver_preload([module])
    return context
