"""A batch of many small loops, killed on the way: is it complete and correct, how fast, how large?

python benchmarks/batch.py --loops 100000 --kills 2

    loops.jsonl ──► stretto batch ──SIGKILL──► again ──SIGKILL──► again ──► every row verified

Each run is killed with SIGKILL once it has written its share of the rows. In the end every loop has
one row, and the verifier is asked about every schedule as it stands in the file. Beside it stand
the memory of the command and of its largest worker, and its CPU time: what one command can hand
out and write, however many processes work for it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stretto
from stretto.document import parse_json
from stretto.loop.json import loop_to_json, read_loop
from stretto.many.executors import cores, run_tasks
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify

CHUNK = 200
"""Rows that are verified together."""


@dataclass
class Watch:
    """What a command and its workers took, as the system counts it."""

    process: subprocess.Popen[bytes]
    own: int = 0
    """Megabytes, at most."""
    worker: int = 0
    cpu: float = 0.0

    def look(self) -> None:
        """Once more."""
        group = self.process.pid
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(fields[2]) != group:
                continue
            size = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") >> 20
            if int(entry.name) == group:
                self.own = max(self.own, size)
                ticks = int(fields[11]) + int(fields[12])
                self.cpu = ticks / os.sysconf("SC_CLK_TCK")
            else:
                self.worker = max(self.worker, size)


def write_loops(file: Path, count: int, ops: tuple[int, int]) -> None:
    """The loops, one a line."""
    with file.open("w", encoding="utf-8") as out:
        for loop in stretto.generate_loops(count, seed=18, ops=ops):
            out.write(json.dumps(loop_to_json(loop)) + "\n")


def run_once(command: list[str], rows: Path, until: int | None) -> Watch:
    """One run, killed once the file is so large."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    watch = Watch(process)
    while process.poll() is None:
        watch.look()
        if until is not None and rows.exists() and rows.stat().st_size >= until:
            process.send_signal(signal.SIGKILL)
            process.wait()
            break
        time.sleep(0.25)
    return watch


def pairs(loops: Path, rows: Path) -> Iterator[list[tuple[str, str]]]:
    """Documents and rows that belong together, some at a time, in the order of the loops."""
    places: dict[int, int] = {}
    with rows.open("rb") as file:
        at = 0
        for line in file:
            number = json.loads(line)["number"]
            if number in places:
                raise SystemExit(f"{rows}: loop {number} has two rows")
            places[number] = at
            at += len(line)
    with loops.open(encoding="utf-8") as documents, rows.open("rb") as file:
        chunk: list[tuple[str, str]] = []
        for number, document in enumerate(documents, 1):
            if number not in places:
                raise SystemExit(f"{rows}: loop {number} has no row")
            file.seek(places[number])
            chunk.append((document, file.readline().decode()))
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
        yield chunk


def wrong(chunk: list[tuple[str, str]]) -> list[str]:
    """What the verifier has against the schedules of some rows."""
    found: list[str] = []
    for document, line in chunk:
        row: dict[str, Any] = json.loads(line)
        loop = read_loop(parse_json("loop", document))
        ready = stretto.prepare(loop)
        if not row["success"] or row["loop"] != loop.name:
            found.append(f"{row['source']}: {row['loop']}: {row['errors']}")
            continue
        fused = tuple(tuple(group) for group in row["fused"])
        schedule = Schedule(row["ii"], row["starts"], fused)
        analysis = analyse(ready.loop, ready.machine, schedule)
        found += [
            f"{row['source']}: {violation.rule}: {violation.message}"
            for violation in verify(ready.loop, ready.machine, analysis)
        ]
    return found


def main() -> None:
    """Make, run, kill, go on, verify, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--loops", type=int, default=2000)
    parser.add_argument("--ops", type=int, nargs=2, default=(3, 8), metavar=("LEAST", "MOST"))
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--executor", help="dask://HOST:PORT")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stretto-batch-") as name:
        loops, rows = Path(name) / "loops.jsonl", Path(name) / "rows.jsonl"
        write_loops(loops, arguments.loops, tuple(arguments.ops))
        command = [sys.executable, "-c", "from stretto.cli import run; run()", "batch", str(loops)]
        command += ["-o", str(rows), "--no-cache", "-j", str(arguments.jobs)]
        if arguments.executor:
            command += ["--executor", arguments.executor]
        print(f"{arguments.loops:,} loops, {loops.stat().st_size / 1e6:.0f} MB", flush=True)
        began = time.monotonic()
        row = 0.0
        for run in range(arguments.kills + 1):
            wanted = None
            if run < arguments.kills:
                row = row or first_rows(command, rows)
                wanted = int(row * arguments.loops * (run + 1) / (arguments.kills + 1))
            watch = run_once(command, rows, wanted)
            done = rows.read_bytes().count(b"\n")
            how = "killed" if wanted else f"ended with {watch.process.returncode}"
            print(
                f"  {how} after {time.monotonic() - began:.0f} s: {done:,} rows; "
                f"{watch.own} MB, a worker {watch.worker} MB, {watch.cpu:.0f} s CPU of its own",
                flush=True,
            )
        seconds = time.monotonic() - began
        print(f"{arguments.loops / seconds:.0f} loops a second on {arguments.jobs} processes")
        checked = list(run_tasks(wrong, pairs(loops, rows), jobs=arguments.jobs))
        problems = [text for done in checked for text in (done.value or [done.error]) if text]
        for text in problems[:20]:
            print(f"  {text}")
        count = sum(len(done.task) for done in checked)
        print(f"{count:,} rows, one a loop; {count - len(problems):,} schedules verified")
        sys.exit(bool(problems) or count != arguments.loops)


def first_rows(command: list[str], rows: Path) -> float:
    """Bytes that a row takes, of a run that is killed at once."""
    run_once(command, rows, 20_000)
    data = rows.read_bytes()
    return len(data) / max(1, data.count(b"\n"))


if __name__ == "__main__":
    main()
