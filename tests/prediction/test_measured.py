"""A measured timeline beside the predicted one: the wait that was longer is found, by how much."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_cli import Run

import stretto
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.emission.gluon.tracing import traced
from stretto.errors import StrettoError
from stretto.machine import load_machine
from stretto.prediction.kernel_time import watch_kernel
from stretto.prediction.measured import predicted_clocks
from stretto.prediction.running import Subject
from stretto.prediction.score import scores_of
from stretto.program.traces import MARKS, RECORD, STEPS, size

ROOT = Path(__file__).parents[2]
KERNEL = str(ROOT / "examples/triton/matmul_persistent.ttir")
SIZES = {"M": 4096, "N": 4096, "K": 4096}
GRID = (132,)
LONGER = 300
EACH = size("marks")


@cache
def made() -> EmittedKernel:
    return Emitter(KERNEL, tracing="marks").candidates(2, 3)[0]


@cache
def as_predicted() -> np.ndarray[Any, Any]:
    """What two blocks would write down that run as predicted: blocks × agents × numbers."""
    one = made()
    assert one.kernel is not None
    subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
    watched = watch_kernel(subject, load_machine("h200"), GRID, SIZES)
    agents = [score.agent for score in scores_of(one.emitted.program)]
    found = np.zeros((2, len(agents), EACH), np.int64)
    for number, agent in enumerate(agents):
        marks = one.emitted.marks[agent]["0"]
        clocks = np.array(predicted_clocks(watched, agent, marks))
        assert len(clocks) == STEPS
        room = found[:, number, RECORD:].reshape(2, STEPS, MARKS)
        room[:, :, : len(marks)] = np.round(clocks) + np.array([[[1000]], [[9000]]])
    return found


def lengthened(agent: str, thing: str, what: str = "behind") -> tuple[np.ndarray[Any, Any], str]:
    """The same with one wait longer in each step, and all that comes behind it later."""
    trace = as_predicted().copy()
    number = [score.agent for score in scores_of(made().emitted.program)].index(agent)
    marks = made().emitted.marks[agent]["0"]
    at, op = next((n, m.op) for n, m in enumerate(marks) if (m.what, m.thing) == (what, thing))
    room = trace[:, number, RECORD:].reshape(2, STEPS, MARKS)
    for step in range(STEPS):
        room[:, step, at : len(marks)] += LONGER
        room[:, step + 1 :, : len(marks)] += LONGER
    return trace, op


def written(folder: Path, trace: np.ndarray[Any, Any], **other: object) -> str:
    file = folder / "trace.json"
    clocks = trace.reshape(-1).tolist()
    document = {"schema": "stretto.clocks/1", "traced": traced(made().source), "clocks": clocks}
    file.write_text(json.dumps(document | other))
    return str(file)


def measured(file: str) -> stretto.KernelPrediction:
    return stretto.predict(
        KERNEL, "h200", grid=GRID, arguments=SIZES, consumers=2, depth=3, measured=file
    )


@pytest.mark.parametrize(
    ("agent", "thing", "row"),
    [
        ("compute", "full a_0_tile", "copy_latency_"),
        ("compute.1", "products", "product_latency"),
        ("copy", "free b_tile", "wake"),
    ],
)
def test_a_wait_that_is_longer_is_found_by_name_and_by_cycles(
    agent: str, thing: str, row: str, tmp_path: Path
) -> None:
    trace, op = lengthened(agent, thing)
    found = measured(written(tmp_path, trace)).measured
    assert found is not None
    longest = found.longest
    assert longest is not None
    assert (longest.agent, longest.thing, longest.op) == (agent, thing, op)
    assert longest.longer == pytest.approx(LONGER, abs=1)
    assert any(name.startswith(row) for name in longest.rows)
    others = [one for one in found.compared if one is not longest]
    assert all(abs(one.longer) <= 1 for one in others)


@pytest.mark.parametrize("thing", ["full a_0_tile", "products"])
def test_work_that_is_longer_is_not_taken_for_a_wait(thing: str, tmp_path: Path) -> None:
    trace, op = lengthened("compute", thing, "before")
    found = measured(written(tmp_path, trace)).measured
    assert found is not None
    assert found.longest is None
    most = found.compared[0]
    assert (most.agent, most.what, most.thing, most.op) == ("compute", "work", thing, op)
    assert most.longer == pytest.approx(LONGER, abs=1)


def test_a_trace_that_runs_as_predicted_has_no_longer_wait(tmp_path: Path) -> None:
    found = measured(written(tmp_path, as_predicted()))
    assert found.measured is not None
    assert all(abs(one.longer) <= 1 for one in found.measured.compared)
    known = {figure.name for figure in load_machine("h200").timings}
    assert {row for one in found.measured.compared for row in one.rows} <= known


def test_the_command_tells_it_in_text_and_by_its_schema(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace, _ = lengthened("compute", "products")
    file = written(tmp_path, trace)
    asked = ["predict", KERNEL, "--grid", "132", "--consumers", "2", "--depth", "3"]
    asked += [part for name, n in SIZES.items() for part in ("--argument", f"{name}={n}")]
    done = Run(capsys, *asked, "--measured", file)
    assert done.code == 0
    assert "compute waits 300 cycles longer for products" in " ".join(done.out.split())
    told = Run(capsys, *asked, "--measured", file, "--json").json("prediction")
    assert told["predictions"][0]["measured"]["longest"]["longer"] == pytest.approx(300, abs=1)


def test_a_page_shows_what_was_measured_under_the_schedule(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace, op = lengthened("compute", "products")
    page, file = tmp_path / "page.html", written(tmp_path, trace)
    asked = ["predict", KERNEL, "--grid", "132", "--consumers", "2", "--depth", "3"]
    asked += [part for name, n in SIZES.items() for part in ("--argument", f"{name}={n}")]
    assert Run(capsys, *asked, "--measured", file, "--format", "html", "-o", str(page)).code == 0
    document = measured(file).to_document()
    (loop,) = document["loops"]
    assert json.dumps(loop["measured"], separators=(",", ":")) in page.read_text()
    steady = loop["ii"] * (loop["stage_count"] - 1)
    events = loop["measured"]["events"]
    assert min(event["start"] for event in events) == steady
    assert {event["agent"] for event in events} == {"copy", "compute", "compute.1"}
    assert {event["op"] for event in events} <= {each["name"] for each in loop["ops"]}
    assert all(event["start"] < event["end"] for event in events)
    waits = [event for event in events if (event["agent"], event["op"]) == ("compute", op)]
    assert max(event["end"] - event["start"] for event in waits) >= LONGER


def test_what_a_launch_writes_is_what_is_read(tmp_path: Path) -> None:
    """By the host's function at the end of the emitted source."""
    source = made().source
    space: dict[str, Any] = {}
    exec(source[source.index("TRACED =") :], space)
    file = tmp_path / "trace.json"
    space["write_trace"](as_predicted(), file)
    assert measured(str(file)).measured is not None


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"traced": "0" * 32}, "is of a source that none of"),
        ({"clocks": [1, 2, 3]}, "has 3 clocks"),
        ({"clocks": [0] * 3 * EACH}, "steps in common"),
        ({"clocks": ["x"]}, "expected a whole number"),
        ({"schema": "stretto.loop/1"}, "stretto.clocks/1"),
    ],
)
def test_a_file_that_is_no_trace_of_this_kernel_is_refused(
    other: dict[str, object], said: str, tmp_path: Path
) -> None:
    file = written(tmp_path, as_predicted(), **other)
    with pytest.raises(StrettoError) as error:
        measured(file)
    assert said in str(error.value)
    assert "trace.json" in str(error.value)


def test_the_plot_and_the_page_say_what_the_committed_rows_say(tmp_path: Path) -> None:
    script, results = ROOT / "benchmarks/gpu/predicted.py", ROOT / "benchmarks/gpu/results"
    drawn = tmp_path / "predicted.svg"
    rows = str(results / "predicted-h200-2026-11-17.jsonl")
    asked = [sys.executable, str(script), "--rows", rows, "--plot", str(drawn)]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert drawn.read_text() == (ROOT / "docs/pictures/predicted.svg").read_text()
    ElementTree.parse(drawn)
    page = (ROOT / "docs/measured.md").read_text()
    behind = re.findall(r"([\d.]+)% behind the best", said)
    assert len(behind) == 4
    assert all(f"| {float(x):.3g} % |" in page for x in behind)


def test_the_page_has_the_table_of_the_committed_rounds() -> None:
    script, results = ROOT / "benchmarks/gpu/table.py", ROOT / "benchmarks/gpu/results"
    asked = [sys.executable, str(script), str(results / "h200-2026-11-17.json")]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said in (ROOT / "docs/measured.md").read_text()


def test_tables_of_the_page_are_made_of_rows(tmp_path: Path) -> None:
    def row(name: str, cycles: float, ms: float, by: float) -> dict[str, object]:
        family = name.split("_", maxsplit=1)[0]
        return {"name": name, "family": family, "cycles": cycles, "predicted_cycles": cycles + 7,
                "ms": ms, "ranked_by_ms": by, "spilled": 0}  # fmt: skip

    rows = [
        row("gemm_128x128x64_c1_d1", 2015.4, 4.0, 4.1),
        row("gemm_128x128x64_c1_d3", 774.0, 1.03, 1.0),
        row("gemm_128x256x64_c2_d3", 1036.0, 1.0, 1.1),
        row("attention_d64_128x128_c2_d2", 2073.0, 0.6, 0.6),
        row("causal_d64_c2", 2111.0, 0.4, 0.4),
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    script = ROOT / "benchmarks/gpu/predicted.py"
    asked = [sys.executable, str(script), "--rows", str(file), "--tables"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "| 128x128x64, 1 | 2015 / 2022 | – | 774 / 781 |" in said
    assert "| D 64, 128x128, 2 | – | 2073 / 2080 |" in said
    assert "| causal d64 | – | 2111 / 2118 |" in said
    first, best = "gemm_128x128x64_c1_d3 | 1.030 ms", "gemm_128x256x64_c2_d3 | 1.000 ms"
    assert f"| gemm, 3 | {first} | {best} | 3 % |" in said
