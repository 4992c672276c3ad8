"""A Dask cluster as an executor: connect, look who is there, hand tasks over.

    dask://10.0.0.1:8786  ──►  Client  ──►  an executor that gives tasks to its workers

A worker that dies hands its tasks to others; a task with which several workers died fails. Every
worker has the same Stretto, or it is said before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from stretto import __version__
from stretto.errors import StrettoError

PATIENCE = 10.0
"""Seconds in which a scheduler answers, and in which its first worker comes."""


def version_here() -> str:
    """The Stretto of the process that is asked."""
    return __version__


@contextmanager
def connected(address: str) -> Generator[tuple[Executor, Callable[[], int]]]:
    """An executor on the cluster of a scheduler, and how many tasks it works on at a time."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise StrettoError(
            "a Dask cluster needs the extra: pip install 'stretto[dask]', here and on its workers"
        ) from None
    try:
        client: Any = distributed.Client(f"tcp://{address}", timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise StrettoError(
            f"no Dask scheduler answers at {address}: {error or type(error).__name__}; "
            "`dask scheduler` starts one and prints its address"
        ) from None
    try:
        same_everywhere(client, address)

        def workers() -> int:
            found: dict[str, int] = client.nthreads()
            return max(1, sum(found.values()))

        yield client.get_executor(pure=False), workers
    finally:
        client.close(timeout=PATIENCE)


def same_everywhere(client: Any, address: str) -> None:
    """That there are workers, and that they have this Stretto; StrettoError where not."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        hint = f"`dask worker tcp://{address}` starts one"
        raise StrettoError(f"the Dask cluster at {address} has no worker; {hint}") from None
    found: dict[str, Any] = client.run(version_here, on_error="return")
    for worker, version in sorted(found.items()):
        if version != __version__:
            has = f"stretto {version}" if isinstance(version, str) else f"no stretto: {version}"
            raise StrettoError(f"the Dask worker {worker} has {has}; here it is {__version__}")
