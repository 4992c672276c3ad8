"""A batch on a real Dask cluster: a scheduler and two workers, one of which is killed on the way.

Run by `make test-dask`, which has Dask in a folder of its own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.loop.json import loop_to_json
from stretto.many.executors import run_tasks
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify

LOOPS = list(stretto.generate_loops(200, seed=5, ops=(5, 12)))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Cluster:
    """A scheduler, and the workers that were started."""

    port: int
    folder: Path
    stack: ExitStack

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        log = self.stack.enter_context((self.folder / f"{words[0]}.log").open("ab"))
        path = os.pathsep.join((str(Path(__file__).parent), os.environ["PYTHONPATH"]))
        around = {**os.environ, "PYTHONPATH": path}
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=around)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        """A worker without a nanny: when it is killed it stays so."""
        words = ("--no-nanny", "--nthreads", "1", "--name", name)
        return self.start("worker", f"tcp://{self.address}", *words)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        found = Cluster(free_port(), tmp_path_factory.mktemp("cluster"), stack)
        found.start("scheduler", "--host", "127.0.0.1", "--port", str(found.port))
        until = time.monotonic() + 30
        while not answers(found.port):
            assert time.monotonic() < until, (found.folder / "scheduler.log").read_text()
            time.sleep(0.05)
        yield found


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "loops.jsonl"
    file.write_text("".join(json.dumps(loop_to_json(loop)) + "\n" for loop in LOOPS))
    return file


def test_a_cluster_without_workers_is_said(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stretto.many.cluster.PATIENCE", 2.0)
    with pytest.raises(StrettoError, match=r"has no worker; `dask worker tcp://.*` starts one"):
        list(run_tasks(abs, [1], f"dask://{cluster.address}"))


def test_an_address_where_nobody_listens_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.many.cluster.PATIENCE", 1.0)
    for address in (f"127.0.0.1:{free_port()}", "nowhere.invalid:8786"):
        with pytest.raises(StrettoError, match=f"no Dask scheduler answers at {address}"):
            list(run_tasks(abs, [1], f"dask://{address}"))


def process(_: int) -> int:
    time.sleep(0.01)
    return os.getpid()


def workers_of(cluster: Cluster) -> set[int]:
    """The processes that do the work."""
    done = run_tasks(process, range(20), f"dask://{cluster.address}")
    return {one.value for one in done if one.value is not None}


def test_a_batch_is_complete_though_a_worker_is_killed_in_its_midst(
    cluster: Cluster, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = cluster.worker("first"), cluster.worker("second")
    until = time.monotonic() + 60
    while {first.pid, second.pid} != (there := workers_of(cluster)):
        assert time.monotonic() < until, there
    out = tmp_path / "rows.jsonl"
    killed = 0
    for count, _ in enumerate(
        stretto.batch([lines], out, executor=f"dask://{cluster.address}", cache=False), 1
    ):
        if count == 50:
            first.send_signal(signal.SIGKILL)
            first.wait()
            killed = count
    assert killed == 50
    assert second.poll() is None
    assert main(["batch", str(lines), "-o", str(out), "--no-cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["found_before"] == len(LOOPS)
    rows: list[dict[str, Any]] = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(row["number"] for row in rows) == list(range(1, len(LOOPS) + 1))
    for row in rows:
        loop = LOOPS[int(row["number"]) - 1]
        assert row["loop"] == loop.name
        ready = stretto.prepare(loop)
        found = Schedule(row["ii"], row["starts"], tuple(map(tuple, row["fused"])))
        analysis = analyse(ready.loop, ready.machine, found)
        assert verify(ready.loop, ready.machine, analysis) == ()


def deadly(number: int) -> int:
    if number == 3:
        os._exit(1)
    return -number


def test_a_task_that_kills_every_worker_it_meets_is_a_row(cluster: Cluster) -> None:
    words = ("--nthreads", "1", "--name", "third")  # a nanny gives a new process for a dead one
    cluster.start("worker", f"tcp://{cluster.address}", *words)
    found = {d.task: d for d in run_tasks(deadly, range(6), f"dask://{cluster.address}")}
    assert sorted(found) == list(range(6))
    assert "KilledWorker" in found[3].error
    assert [found[n].value for n in (0, 1, 2, 4, 5)] == [0, -1, -2, -4, -5]


def test_the_command_line_runs_on_a_cluster(
    cluster: Cluster, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    where = f"dask://{cluster.address}"
    assert main(["batch", str(lines), "-o", str(out), "--executor", where, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["loops"], summary["failed"]) == (len(LOOPS), 0)
