"""Tasks on processes and on executors: what dies, hangs or raises is a row, the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stretto.errors import DocumentError, StrettoError
from stretto.many import cluster
from stretto.many.executors import UNDER_WAY, Done, cores, run_tasks


def square(number: int) -> int:
    return number * number


def misbehave(number: int) -> int:
    """Six ways not to answer, among tasks that do."""
    if number == 3:
        os._exit(7)
    if number == 5:
        raise ValueError("five")
    if number == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 11:
        time.sleep(600)
    if number == 13:
        raise DocumentError("loop.json", "$.ops", "is missing")
    if number == 17:
        return bytearray(1 << 40)  # type: ignore[return-value] # more than there is
    return number * number


def unpicklable(_: int) -> object:
    return lambda: None


def identity_of_process(_: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def errors(found: list[Done[int, int]]) -> dict[int, str]:
    return {done.task: done.error for done in found if done.error}


def test_every_task_is_answered_once_on_processes() -> None:
    found = list(run_tasks(square, range(200), jobs=2))
    assert sorted((done.task, done.value) for done in found) == [(n, n * n) for n in range(200)]


def test_a_task_that_dies_hangs_or_raises_is_a_row_and_the_others_go_on() -> None:
    found = list(run_tasks(misbehave, range(30), jobs=2, limit=1.0, memory=4000))
    assert sorted(done.task for done in found) == list(range(30))
    assert errors(found) == {
        3: "error: its process ended, exit code 7",
        5: "error: ValueError: five",
        8: "error: its process ended, killed by SIGKILL (out of memory?)",
        11: "error: no answer after 1 s: its process was ended",
        13: "loop.json: $.ops: error: is missing",
        17: "error: not enough memory",
    }
    assert all(done.value == done.task**2 for done in found if not done.error)


def test_a_task_that_waited_behind_one_that_died_is_done_by_another_process() -> None:
    found = list(run_tasks(misbehave, [3, 4], jobs=1))
    assert [(done.task, done.value) for done in found] == [(3, None), (4, 16)]


def test_tasks_are_pulled_as_there_is_room_and_not_before() -> None:
    pulled = 0

    def tasks() -> Iterator[int]:
        nonlocal pulled
        for number in range(10_000):
            pulled += 1
            yield number

    running = run_tasks(square, tasks(), jobs=2)
    for _, _ in zip(range(10), running, strict=False):
        assert pulled < 40
    running.close()


def test_leaving_the_loop_ends_the_processes() -> None:
    running = run_tasks(identity_of_process, range(1000), jobs=2)
    process = next(running).value
    assert process is not None
    assert process != os.getpid()
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_result_that_cannot_be_sent_is_an_error() -> None:
    (done,) = run_tasks(unpicklable, [1], jobs=1)
    assert "pickle" in done.error


def test_a_task_that_cannot_be_sent_is_an_error() -> None:
    found = list(run_tasks(repr, [lambda: None, 4], jobs=1))
    assert sorted(bool(done.error) for done in found) == [False, True]


def test_a_function_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(StrettoError, match="other processes cannot be handed"):
        list(run_tasks(lambda task: task, [1], jobs=1))


class OnlyThere:
    """What can be sent, and makes no sense to whoever gets it."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return only_there, (__name__,)


def only_there(_: str) -> object:
    if os.getpid() == int(os.environ["STRETTO_TEST_PARENT"]):
        raise LookupError("only there")
    return OnlyThere()


def made_there(_: int) -> OnlyThere:
    return OnlyThere()


def test_a_result_that_makes_no_sense_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_TEST_PARENT", str(os.getpid()))
    found = list(run_tasks(made_there, [1, 2], jobs=1))
    assert [done.error for done in found] == ["error: LookupError: only there"] * 2


def test_who_takes_long_over_an_answer_does_not_lose_the_next_ones() -> None:
    found: list[Done[int, int]] = []
    for done in run_tasks(square, range(8), jobs=2, limit=1.0):
        found.append(done)
        if len(found) == 3:
            time.sleep(1.3)
    assert errors(found) == {}
    assert sorted(done.task for done in found) == list(range(8))


def test_no_tasks_are_no_rows_and_start_nothing() -> None:
    assert list(run_tasks(square, [], jobs=2)) == []
    assert cores() >= 1


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_will_do(kind: type[ThreadPoolExecutor] | type[ProcessPoolExecutor]) -> None:
    with kind(2) as executor:
        found = list(run_tasks(square, range(50), executor))
    assert sorted((done.task, done.value) for done in found) == [(n, n * n) for n in range(50)]


def test_what_a_task_raises_on_an_executor_is_its_row() -> None:
    with ThreadPoolExecutor(1) as executor:
        found = list(run_tasks(misbehave, [4, 5, 6, 13], executor))
    assert errors(found) == {
        5: "error: ValueError: five",
        13: "loop.json: $.ops: error: is missing",
    }


def test_an_executor_that_broke_ends_the_run_and_says_so() -> None:
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(StrettoError, match=r"the executor (broke|takes no more tasks)"),
    ):
        list(run_tasks(misbehave, [3, 4], executor))


def test_an_executor_that_does_not_answer_is_given_up() -> None:
    with ThreadPoolExecutor(1) as executor:
        found = list(run_tasks(time.sleep, [0.5], executor, limit=0.2 / UNDER_WAY))
    assert [done.error for done in found] == ["error: no answer after 0.2 s: it was given up"]


class KilledWorker(Exception):  # noqa: N818 - as Dask calls it
    """What Dask says of tasks whose workers died."""


class Shaky(Executor):
    """Task 3 takes its worker with it, and so the task behind it."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def submit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, function: Callable[..., Any], /, *given: Any
    ) -> Future[Any]:
        ((task,),) = given
        future: Future[Any] = Future()
        if task == 3 or (self.seen[-1:] == [3] and task not in self.seen):
            future.set_exception(KilledWorker(f"task {task}"))
        else:
            future.set_result(function([task]))
        self.seen.append(task)
        return future


def test_who_was_on_a_worker_that_died_is_tried_alone_before_it_is_blamed() -> None:
    executor = Shaky()
    found = list(run_tasks(square, range(6), executor))
    assert sorted(done.task for done in found) == list(range(6))
    assert errors(found) == {3: "error: KilledWorker: task 3"}
    assert sorted(executor.seen) == [0, 1, 2, 3, 3, 4, 4, 5]


def test_an_executor_that_nobody_knows_is_refused() -> None:
    with pytest.raises(StrettoError, match="no executor `ray://x`; known: dask://HOST:PORT"):
        list(run_tasks(square, [1], "ray://x"))


def test_a_cluster_without_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StrettoError, match=r"needs the extra: pip install 'stretto\[dask\]'"):
        list(run_tasks(square, [1], "dask://127.0.0.1:8786"))


@pytest.mark.parametrize(
    ("has", "told"), [("0.0.1", "has stretto 0.0.1; here"), (ImportError("none"), "has no stretto")]
)
def test_a_worker_with_another_stretto_is_named(has: object, told: str) -> None:
    class Client:
        def wait_for_workers(self, count: int, timeout: float) -> None: ...

        def run(self, function: Callable[[], str], on_error: str) -> dict[str, object]:
            assert on_error == "return"
            return {"tcp://a:1": function(), "tcp://b:2": has}

    with pytest.raises(StrettoError, match=f"the Dask worker tcp://b:2 {told}"):
        cluster.same_everywhere(Client(), "a:8786")


@pytest.mark.parametrize("place", ["", "host", "host:", ":8786", "host:port", "a b:1", "tcp://h:1"])
def test_a_cluster_is_at_a_host_and_a_port(place: str) -> None:
    with pytest.raises(StrettoError, match="is no place of a cluster; expected dask://HOST:PORT"):
        list(run_tasks(square, [1], f"dask://{place}"))


SCRIPT = """
import sys
from stretto.many.executors import run_tasks
from test_many_executors import identity_of_process
if __name__ == "__main__":
    for done in run_tasks(identity_of_process, range(100_000), jobs=2):
        print(done.value, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_processes_leave_with_the_one_that_started_them(number: int, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, str(script)]
    parent = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    with parent:
        assert parent.stdout is not None
        for _ in range(10):
            assert int(parent.stdout.readline()) != parent.pid
        parent.send_signal(number)
        # The pipes end when the last process that has them is gone, not before.
        _, told = parent.communicate(timeout=20)
        assert "BrokenPipeError" not in told
