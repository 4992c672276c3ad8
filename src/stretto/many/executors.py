"""One seam for all who have many tasks: `run_tasks`, and where the tasks run.

    for done in run_tasks(function, tasks, jobs=8): ...            processes on this machine
    run_tasks(function, tasks, ThreadPoolExecutor(4))              any concurrent.futures.Executor
    run_tasks(function, tasks, "dask://10.0.0.1:8786")             a Dask cluster

    tasks (any iterable, pulled as there is room) ──► function(task) ──► Done, as they come

However many tasks there are, no more are held than are under way. A task that raises, dies or takes
too long is a `Done` with its error; the others go on. Whoever leaves the loop, by Ctrl-C too, ends
what is under way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stretto.errors import StrettoError
from stretto.many.processes import Answer, Processes, told

if TYPE_CHECKING:
    from typing import TypeAlias

T = TypeVar("T")
R = TypeVar("R")

DASK = "dask://"
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:@]+):[0-9]{1,5}")
TOGETHER, MOST = 0.2, 64
"""Seconds of tasks that travel to a cluster together, and how many at most: each call costs it some
milliseconds, whatever it is about."""
LOST = "KilledWorker"
"""What Dask calls it when the workers that a task was on died, one after the other."""
UNDER_WAY = 4
"""Tasks that an executor has, for each of its workers. It does not say when it begins with one, so
that each has the time of all of them."""

Where: TypeAlias = "Executor | str | None"
"""Where tasks run: None: on processes of this machine; else an executor, or ``dask://HOST:PORT``."""


@dataclass(frozen=True, slots=True)
class Done(Generic[T, R]):
    """What became of one task."""

    task: T
    value: R | None
    """None where there is an error."""
    error: str = ""
    """Begins with `error:`, several lines where several things are wrong; "": there is none."""
    seconds: float = 0.0
    """That the task took, where it ran."""


def run_tasks(
    function: Callable[[T], R],
    tasks: Iterable[T],
    where: Where = None,
    *,
    jobs: int | None = None,
    limit: float | None = None,
    memory: int | None = None,
) -> Generator[Done[T, R]]:
    """Each task's result as it comes, in no order that can be relied on.

    `function` is one that other processes can import, tasks and results can be pickled. `jobs`:
    processes on this machine (default: one a core). `limit`: seconds after which a task is given
    up and its process ended; an executor cannot end one, and is given more time before its tasks
    are given up. `memory`: megabytes that a process of ours may take.
    """
    if where is None:
        return _on_processes(function, tasks, jobs or cores(), limit, memory)
    return _on_executor(function, tasks, where, limit)


def cores() -> int:
    """How many processes this one may keep busy."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


# Processes --------------------------------------------------------------------------------


def _on_processes(
    function: Callable[[T], R],
    tasks: Iterable[T],
    jobs: int,
    limit: float | None,
    memory: int | None,
) -> Generator[Done[T, R]]:
    left = iter(tasks)
    with Processes(function, jobs, limit, memory) as processes:
        more = True
        while more or processes.busy:
            while more and processes.room:
                try:
                    task = next(left)
                except StopIteration:
                    more = False
                    break
                answer = processes.submit(task, task)
                if answer is not None:
                    yield _done(task, answer)
            for task, answer in processes.answers() if processes.busy else ():
                yield _done(task, answer)


def _done(task: T, answer: Answer) -> Done[T, Any]:
    return Done(task, answer.value, answer.error, answer.seconds)


# Executors --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Timed(Generic[T, R]):
    """A function as an executor is given it, for tasks one after the other.

    Errors come back as answers.
    """

    function: Callable[[T], R]

    def __call__(self, tasks: list[T]) -> list[Answer]:
        return [self._answer(task) for task in tasks]

    def _answer(self, task: T) -> Answer:
        began = monotonic()
        try:
            value, error = self.function(task), ""
        except Exception as raised:
            value, error = None, told(raised)
        return Answer(value, error, monotonic() - began)


def _on_executor(
    function: Callable[[T], R], tasks: Iterable[T], where: Executor | str, limit: float | None
) -> Generator[Done[T, R]]:
    patience = None if limit is None else UNDER_WAY * limit
    with _executor(where) as (executor, room, together):
        run = _Run(executor, _Timed(function), patience, together)
        try:
            yield from run.all_of(iter(tasks), room)
            # One of them took a worker with it, or its time; the others were with it by chance.
            suspects, run.suspects, run.together = run.suspects, None, 0.0
            yield from run.all_of(iter(suspects or ()), lambda: 1)
        finally:
            for future in run.under_way:
                future.cancel()


@dataclass(slots=True)
class _Run(Generic[T, R]):
    """Tasks on an executor."""

    executor: Executor
    timed: _Timed[T, R]
    patience: float | None
    together: float
    """Seconds of tasks that are handed over together."""
    under_way: dict[Future[list[Answer]], tuple[list[T], float]] = field(
        default_factory=dict["Future[list[Answer]]", "tuple[list[T], float]"]
    )
    suspects: list[T] | None = field(default_factory=list["T"])
    """Tasks of whose workers nothing was heard; None: who is not heard of now was alone."""
    usual: float = 1.0
    """Seconds that a task takes, of late."""

    def all_of(self, tasks: Iterator[T], room: Callable[[], int]) -> Iterator[Done[T, R]]:
        """Run tasks, no more at a time than there is room for."""
        more = True
        while more or self.under_way:
            while more and len(self.under_way) < room():
                some = list(islice(tasks, self._count()))
                if not some:
                    more = False
                    break
                self.under_way[self._submitted(some)] = some, monotonic()
            yield from self._answered()

    def _count(self) -> int:
        return max(1, min(MOST, int(self.together / max(self.usual, 1e-6))))

    def _submitted(self, tasks: list[T]) -> Future[list[Answer]]:
        try:
            return self.executor.submit(self.timed, tasks)
        except (BrokenExecutor, RuntimeError) as error:
            raise StrettoError(f"the executor takes no more tasks: {error}") from None

    def _answered(self) -> Iterator[Done[T, R]]:
        """Wait until something happens; what is done by then, or given up."""
        if not self.under_way:
            return
        left = None
        if self.patience is not None:
            first = min(began for _, began in self.under_way.values())
            left = max(0.0, first + self.patience - monotonic())
        done, _ = wait_for(self.under_way, left, FIRST_COMPLETED)
        for future in done:
            tasks, _ = self.under_way.pop(future)
            for task, answer in zip(tasks, self._answers(future, tasks), strict=False):
                self.usual += (answer.seconds - self.usual) / 8
                yield _done(task, answer)
        if not done and self.patience is not None:
            yield from self._given_up(self.patience)

    def _answers(self, future: Future[list[Answer]], tasks: list[T]) -> list[Answer]:
        """What came of tasks; nothing where it may have been others that took their worker."""
        try:
            return future.result()
        except BrokenExecutor as error:
            raise StrettoError(f"the executor broke: {error}") from None
        except CancelledError:
            raise StrettoError("the executor cancelled what it was given") from None
        except Exception as error:
            if self.suspects is not None and (len(tasks) > 1 or type(error).__name__ == LOST):
                self.suspects += tasks
                return []
            return [Answer(error=told(error))] * len(tasks)

    def _given_up(self, patience: float) -> Iterator[Done[T, R]]:
        for future, (tasks, began) in list(self.under_way.items()):
            if monotonic() - began < patience:
                continue
            del self.under_way[future]
            future.cancel()
            if self.suspects is not None and len(tasks) > 1:
                self.suspects += tasks
                continue
            text = f"error: no answer after {patience:g} s: it was given up"
            for task in tasks:
                yield Done(task, None, text, patience)


@contextmanager
def _executor(where: Executor | str) -> Generator[tuple[Executor, Callable[[], int], float]]:
    """An executor, how many calls it is worth giving, and seconds of tasks in a call."""
    if isinstance(where, str):
        if not where.startswith(DASK):
            raise StrettoError(f"no executor `{where}`; known: {DASK}HOST:PORT")
        if _PLACE.fullmatch(where.removeprefix(DASK)) is None:
            raise StrettoError(f"`{where}` is no place of a cluster; expected {DASK}HOST:PORT")
        from stretto.many.cluster import connected  # noqa: PLC0415 - an extra

        with connected(where.removeprefix(DASK)) as (executor, workers):
            yield executor, lambda: UNDER_WAY * workers(), TOGETHER
        return
    workers = getattr(where, "_max_workers", None)
    count = UNDER_WAY * (workers if isinstance(workers, int) else cores())
    yield where, lambda: count, 0.0
