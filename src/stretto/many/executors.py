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
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stretto.errors import StrettoError
from stretto.many.processes import Answer, Processes, told

if TYPE_CHECKING:
    from typing import TypeAlias

T = TypeVar("T")
R = TypeVar("R")

DASK = "dask://"
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
    """A function as an executor is given it: its own errors come back as answers."""

    function: Callable[[T], R]

    def __call__(self, task: T) -> Answer:
        began = monotonic()
        try:
            value, error = self.function(task), ""
        except Exception as raised:
            value, error = None, told(raised)
        return Answer(value, error, monotonic() - began)


def _on_executor(
    function: Callable[[T], R], tasks: Iterable[T], where: Executor | str, limit: float | None
) -> Generator[Done[T, R]]:
    left = iter(tasks)
    timed = _Timed(function)
    patience = None if limit is None else UNDER_WAY * limit
    with _executor(where) as (executor, room):
        under_way: dict[Future[Answer], tuple[T, float]] = {}
        try:
            more = True
            while more or under_way:
                while more and len(under_way) < room():
                    try:
                        task = next(left)
                    except StopIteration:
                        more = False
                        break
                    under_way[_submitted(executor, timed, task)] = task, monotonic()
                yield from _answered(under_way, patience)
        finally:
            for future in under_way:
                future.cancel()


def _submitted(executor: Executor, timed: _Timed[T, R], task: T) -> Future[Answer]:
    try:
        return executor.submit(timed, task)
    except (BrokenExecutor, RuntimeError) as error:
        raise StrettoError(f"the executor takes no more tasks: {error}") from None


def _answered(
    under_way: dict[Future[Answer], tuple[T, float]], limit: float | None
) -> Iterator[Done[T, Any]]:
    """Wait until something happens; what is done by then, or given up."""
    if not under_way:
        return
    patience = None
    if limit is not None:
        patience = max(0.0, min(began for _, began in under_way.values()) + limit - monotonic())
    done, _ = wait_for(under_way, patience, FIRST_COMPLETED)
    for future in done:
        task, _ = under_way.pop(future)
        try:
            answer = future.result()
        except BrokenExecutor as error:
            raise StrettoError(f"the executor broke: {error}") from None
        except CancelledError:
            raise StrettoError("the executor cancelled what it was given") from None
        except Exception as error:
            answer = Answer(error=told(error))
        yield _done(task, answer)
    if limit is None or done:
        return
    for future, (task, began) in list(under_way.items()):
        if monotonic() - began >= limit:
            del under_way[future]
            future.cancel()
            yield Done(task, None, f"error: no answer after {limit:g} s: it was given up", limit)


@contextmanager
def _executor(where: Executor | str) -> Generator[tuple[Executor, Callable[[], int]]]:
    """An executor, and how many tasks it is worth giving."""
    if isinstance(where, str):
        if not where.startswith(DASK):
            raise StrettoError(f"no executor `{where}`; known: {DASK}HOST:PORT")
        from stretto.many.cluster import connected  # noqa: PLC0415 - an extra

        with connected(where.removeprefix(DASK)) as (executor, workers):
            yield executor, lambda: UNDER_WAY * workers()
        return
    workers = getattr(where, "_max_workers", None)
    count = UNDER_WAY * (workers if isinstance(workers, int) else cores())
    yield where, lambda: count
