"""The front door: every function with raw loops and names of machines, its options, its errors."""

from __future__ import annotations

import inspect
import io
import json
import os
import pickle
import pydoc
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import stretto
from stretto.api import Result
from stretto.compile.sources import kernels_of
from stretto.ir import read_programs, read_schedules
from stretto.loop import Dependence, Op, Use
from stretto.machine import Machine, Slot

EXAMPLES = Path(__file__).parent.parent / "examples"
(GEMM,) = stretto.read(EXAMPLES / "gemm.json")
(FOUR_OP,) = stretto.read(EXAMPLES / "four_op.json")


# The package ------------------------------------------------------------------------------


def test_the_public_names() -> None:
    assert 20 <= len(stretto.__all__) <= 60
    assert stretto.__all__ == sorted(stretto.__all__)
    assert {*stretto.__all__} <= {*dir(stretto)}
    for name in stretto.__all__:
        found = getattr(stretto, name)
        assert inspect.isfunction(found) or inspect.isclass(found), name
        assert inspect.getdoc(found), name
    with pytest.raises(AttributeError, match="no attribute 'Access'"):
        _ = stretto.Access  # pyright: ignore[reportAttributeAccessIssue,reportUnknownVariableType,reportUnknownMemberType]


def test_help_shows_them() -> None:
    text = pydoc.plain(pydoc.render_doc(stretto))
    for name in ("read", "bounds", "schedule", "explain", "verify", "materialize", "simulate"):
        assert f"\n    {name}(" in text
    assert "The best schedule found, verified" in text
    assert "class ScheduleResult(" in text


def test_rooms_do_not_hide_functions() -> None:
    code = (
        "import stretto.lower_bounds, stretto.verification, stretto.materialization\n"
        "import stretto.simulation\n"
        "from stretto.lower_bounds import compute_bounds\n"
        "from stretto import bounds, simulate\n"
        "found = (bounds, simulate, stretto.verify, stretto.materialize, stretto.schedule)\n"
        "assert all(type(one).__name__ == 'function' for one in found), found\n"
        "assert stretto.solve.schedule_prepared\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_it_loads_nothing() -> None:
    code = (
        "import sys; before = {*sys.modules}; import stretto\n"
        "sys.exit(str({*sys.modules} - before - {'stretto', '__future__'} or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


# Reading ----------------------------------------------------------------------------------


def test_read_every_format(tmp_path: Path) -> None:
    assert stretto.read(str(EXAMPLES / "gemm.json"))["gemm"] == GEMM
    module = stretto.read(EXAMPLES / "gemm.mlir", "b200-pipes")
    assert [loop.name for loop in module] == ["gemm"]
    assert (len(module), module[0].name, repr(module)) == (
        1,
        "gemm",
        f"<Source {EXAMPLES / 'gemm.mlir'}: gemm>",
    )
    with (EXAMPLES / "four_op.mlir").open(encoding="utf-8") as file:
        assert stretto.read(file)[0].name == "four_op"
    assert stretto.read(io.StringIO((EXAMPLES / "gemm.json").read_text()))[0] == GEMM
    with pytest.raises(KeyError):
        module["other"]
    with pytest.raises(stretto.DocumentError, match="cannot be read"):
        stretto.read(tmp_path / "gone.json")
    with pytest.raises(stretto.DocumentError, match="<stream>: error: is empty"):
        stretto.read(io.StringIO(""))


def test_the_machine_of_a_loop_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('[machine]\nname = "mine"\n[slots.s]\ncapacity = 1\n')
    loop = stretto.Loop("l", (Op("a", "k", uses=(Use("s", 3),), latency=1),), machine="m.toml")
    stretto.write(loop, tmp_path / "loop.json")
    (found,) = stretto.read(tmp_path / "loop.json")
    assert stretto.bounds(found).problem.machine.name == "mine"
    assert stretto.schedule(found).ii == 3


# Functions --------------------------------------------------------------------------------


def test_bounds() -> None:
    found = stretto.bounds(FOUR_OP, "blackwell")
    assert isinstance(found, stretto.Bounds)
    assert (found.mii, found.limiter, found["fine"].bound) == (15, "resource", 1)
    assert repr(found) == "<Bounds four_op on blackwell: II >= 15, limited by slot tp_smem_wr>"
    assert found.report().startswith("four_op on blackwell: II >= 15, limited by slot")
    assert [r.mii for r in found.remedies] == [8, 8]
    assert found.to_json()["bounds"]["mii"] == 15
    assert stretto.bounds(FOUR_OP, max_stages=1).dependence.kind == "depth"


def test_schedule() -> None:
    found = stretto.schedule(GEMM)
    assert repr(found) == "<ScheduleAnalysis gemm on b200-pipes: II 256, 3 stages, optimal>"
    assert isinstance(found, stretto.ScheduleAnalysis)
    assert (found.success, found.ii, found.starts["load_a"]) == (True, 256, 1)
    assert found.analysis.starts == found.starts
    assert type(found.analysis) is stretto.ScheduleAnalysis
    assert found.report().startswith("gemm on b200-pipes: II 256 is the MII")
    assert "rung" in found.report(verbose=True)
    assert found.to_json()["ii"] == 256
    assert pickle.loads(pickle.dumps(found)) == found
    assert not found.overdue


def test_options_of_schedule() -> None:
    assert stretto.schedule(FOUR_OP, generator="serial").ii == 24
    none = stretto.schedule(FOUR_OP, max_ii=14)
    assert repr(none) == "<ScheduleAnalysis four_op on blackwell: no schedule>"
    assert stretto.schedule(GEMM, max_stages=1).stage_count == 1
    assert stretto.schedule(FOUR_OP, serial_threshold=8).generator == "serial"
    proved = stretto.schedule(
        GEMM, prove=True, objective="ii", work_limit=5.0, workers=1, seed=7, time_limit=60.0
    )
    assert proved.proved
    assert proved.proof is not None
    assert [row.name for row in proved.proof.objectives] == ["ii"]
    told: list[object] = []
    stretto.schedule(GEMM, without=["arm:fuse"], fuse=False, strict=True, progress=told.append)
    assert told == [256]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_ii": 0}, "max_ii is 0; at least 1 is needed"),
        ({"objective": "joy"}, "no objective `joy`"),
        ({"generator": "fast"}, "no generator `fast`"),
        ({"workers": 0}, "workers is 0; 1 to 1000 are possible"),
        ({"seed": -1}, "seed is -1; 0 to 2147483647 are possible"),
        ({"work_limit": 0.0}, "work_limit is 0.0; a number above 0 is needed"),
        ({"time_limit": -1.0}, "time_limit is -1.0; a number of seconds above 0 is needed"),
        ({"machine": "vax"}, "no machine `vax`"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], told: str) -> None:
    with pytest.raises(stretto.StrettoError, match=told):
        stretto.schedule(GEMM, **options)


def test_schedule_takes_what_read_gives(tmp_path: Path) -> None:
    kernel = stretto.read(EXAMPLES / "triton" / "softmax.ttir", "h200")
    (found,) = stretto.schedule(kernel)
    assert (found.loop, found.machine) == ("softmax", "h200")
    assert found.notes == kernel.notes
    assert "softmax on h200" in found.report()
    two = (GEMM, replace(FOUR_OP, machine="blackwell"))
    assert [one.ii for one in stretto.schedule(two)] == [256, 15]
    assert [one.mii for one in stretto.bounds(list(two))] == [256, 15]
    source = stretto.read(EXAMPLES / "four_op.json")
    assert [one.best.ii for one in stretto.explain(source)] == [15]
    (four,) = stretto.schedule(source)
    assert stretto.verify(cast("Any", source), four).legal
    assert stretto.simulate(cast("Any", source), four).success
    stretto.write(four, tmp_path / "four.json")


NOTHING: Any = None
MISGIVEN: list[tuple[Callable[..., object], object, str]] = [
    (stretto.schedule, "x.mlir", r"a loop is wanted, and str is given; stretto.read\('x.mlir'\)"),
    (stretto.bounds, Path("x.mlir"), r"Path is given; stretto.read\('x.mlir'\) gives the loops"),
    (stretto.explain, None, "a loop is wanted, and NoneType is given"),
    (stretto.prepare, "x.mlir", "a loop is wanted, and str is given"),
    (stretto.schedule, [3], "a loop is wanted, and int is given"),
    (stretto.schedule, stretto.bounds(GEMM), "BoundsResult is given; its loop is `.problem.loop`"),
    (partial(stretto.verify, schedule=NOTHING), GEMM, "a schedule, or the path of one, is wanted"),
    (stretto.emit, GEMM, "a kernel, or the path of one, is wanted, and Loop is given"),
    (stretto.import_kernel, 7, "a kernel, or the path of one, is wanted, and int is given"),
    (stretto.read, GEMM, "a path, an open file or a kernel is wanted, and Loop is given"),
    (
        partial(stretto.compare, b=NOTHING),
        stretto.schedule(FOUR_OP),
        "what stretto.schedule returned",
    ),
    (
        partial(stretto.schedule, GEMM),
        7,
        "a machine is wanted, and int is given; it goes by a name",
    ),
    (partial(stretto.read, EXAMPLES / "gemm.mlir"), [], "a machine is wanted, and list is given"),
]


@pytest.mark.parametrize(("function", "given", "told"), MISGIVEN)
def test_what_is_given_instead_is_told(
    function: Callable[..., object], given: object, told: str
) -> None:
    with pytest.raises(stretto.StrettoError, match=told):
        function(given)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (kernel,) = kernels_of("k.ttir", (EXAMPLES / "triton" / "softmax.ttir").read_text())
    with pytest.raises(
        stretto.StrettoError, match=r"Kernel is given; stretto.read.kernel, machine"
    ):
        stretto.write(kernel, tmp_path / "k.json")  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        stretto.StrettoError, match=r"Kernel is given; stretto.read.kernel, machine"
    ):
        stretto.schedule(kernel)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(stretto.StrettoError, match="Source is given; its loops: gemm; give one"):
        stretto.write(stretto.read(EXAMPLES / "gemm.json"), tmp_path / "k.json")  # pyright: ignore[reportArgumentType]
    with pytest.raises(stretto.StrettoError, match="path is 7; a text or a path is expected"):
        stretto.write(GEMM, 7)  # pyright: ignore[reportArgumentType]
    assert list(tmp_path.iterdir()) == []


def test_explain() -> None:
    found = stretto.explain(FOUR_OP, ii=14, seed=1)
    assert repr(found) == "<Explained four_op on blackwell: best II 15, II 14 impossible>"
    assert found.report().startswith("four_op on blackwell: II 15 is optimal. Why not 14?")
    assert found.to_json()["verdict"] == "impossible"
    assert found.best.ii == 15
    with pytest.raises(stretto.StrettoError, match="ii is 0"):
        stretto.explain(FOUR_OP, ii=0)


def test_verify() -> None:
    good = stretto.verify(FOUR_OP, EXAMPLES / "four_op.schedule.json")
    assert (good.legal, good.violations) == (True, ())
    assert repr(good) == "<Verification four_op on blackwell: II 15, legal>"
    bad = stretto.verify(FOUR_OP, str(EXAMPLES / "four_op.too_fast.json"), "blackwell")
    assert [v.rule for v in bad.violations] == ["dependence", "slot"]
    assert repr(bad) == "<Verification four_op on blackwell: II 14, 2 violations>"
    assert "not legal, 2 violations" in bad.report()
    assert bad.to_json()["legal"] is False
    found = stretto.schedule(GEMM)
    assert stretto.verify(GEMM, found).legal
    assert not stretto.verify(GEMM, found, max_stages=1).legal
    with pytest.raises(stretto.DocumentError, match="no schedule of `gemm`; has: four_op"):
        stretto.verify(GEMM, EXAMPLES / "four_op.schedule.json")


def test_the_machine_of_a_schedule_counts() -> None:
    machine = Machine("mine", "", (Slot(1, "s", 1),))
    loop = stretto.Loop("l", (Op("a", "k", uses=(Use("s", 3),), latency=1),))
    found = stretto.schedule(loop, machine)
    assert stretto.verify(loop, found).legal
    assert stretto.simulate(loop, found).machine == "mine"
    assert stretto.materialize(loop, found).machine == "mine"


def test_materialize() -> None:
    found = stretto.materialize(GEMM, mode="specialized")
    assert isinstance(found, stretto.Program)
    parts = "II 256, 3 stages, 2 agents, 2 pipes, 0 mutexes"
    assert repr(found) == f"<Program gemm on b200-pipes, specialized: {parts}>"
    assert found.report().startswith(f"gemm on b200-pipes, specialized: {parts}\n")
    assert [pipe["consumers"] for pipe in found.to_json()["pipes"]] == [
        [{"op": "mma", "distance": 0}]
    ] * 2
    assert found.starts == found.schedule.starts
    json.dumps(found.to_json())
    one = stretto.materialize(GEMM, found.schedule, agents=None, simt_groups=1)
    assert len(one.agents) == 1
    with pytest.raises(stretto.StrettoError, match="the one given, is not legal, 2 violations"):
        stretto.materialize(FOUR_OP, EXAMPLES / "four_op.too_fast.json")


def test_simulate() -> None:
    schedule = stretto.schedule(GEMM)
    found = stretto.simulate(GEMM, schedule, iterations=9, mode="specialized")
    assert (found.success, found.equal, found.cycles_per_iteration) == (True, True, 256)
    assert repr(found).endswith(", 9 iterations: equal to sequential execution>")
    assert "\n  schedule: the one given\n" in found.report()
    new = stretto.simulate(GEMM)
    assert new.to_json()["schedule"] == "a new one by the cost-based generator"
    program = stretto.materialize(GEMM, schedule)
    assert stretto.simulate(program, iterations=2).iterations == 2
    with pytest.raises(stretto.StrettoError, match="runs as it is, by no other schedule"):
        stretto.simulate(program, schedule)
    with pytest.raises(stretto.StrettoError, match="none to run"):
        stretto.simulate(FOUR_OP, stretto.schedule(FOUR_OP, max_ii=14))


def test_prepared_loops_stay_as_they_are() -> None:
    ready = stretto.prepare(GEMM)
    again = stretto.prepare(ready.loop, ready.machine)
    assert (again.loop, again.machine) == (ready.loop, ready.machine)
    assert stretto.bounds(ready).problem is ready
    assert stretto.schedule(ready, "b200-pipes").problem is ready
    assert stretto.bounds(ready.loop, ready.machine).mii == 256
    told = "gemm: the loop is prepared for b200-pipes; for blackwell, prepare it as it was"
    with pytest.raises(stretto.StrettoError, match=told):
        stretto.bounds(ready, "blackwell")


def test_faults_of_a_loop() -> None:
    wrong = replace(GEMM, stated=(Dependence("mma", "gone", 1, 0),))
    for call in (stretto.bounds, stretto.schedule, stretto.explain, stretto.materialize):
        with pytest.raises(stretto.LoopError, match="gone"):
            call(wrong)


# Writing ----------------------------------------------------------------------------------


def test_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = stretto.schedule(GEMM)
    program = stretto.materialize(GEMM, found)
    for name in ("gemm.json", "gemm.mlir"):
        stretto.write(GEMM, tmp_path / name)
        assert stretto.read(tmp_path / name)[0] == GEMM
    stretto.write(found, tmp_path / "schedule.json")
    assert stretto.verify(GEMM, tmp_path / "schedule.json").analysis.starts == found.starts
    stretto.write(found, tmp_path / "schedule.mlir")
    (there,) = read_schedules("s.mlir", (tmp_path / "schedule.mlir").read_text())
    assert there.analysis is not None
    assert there.analysis.starts == found.starts
    stretto.write(program, tmp_path / "program.mlir")
    (back,) = read_programs("p.mlir", (tmp_path / "program.mlir").read_text())
    assert (back.pipes, back.starts) == (program.pipes, program.starts)
    stretto.write(stretto.bounds(GEMM), "-", "json")
    assert json.loads(capsys.readouterr().out)["schema"] == "stretto.bounds/1"


def test_what_cannot_be_written(tmp_path: Path) -> None:
    none = stretto.schedule(FOUR_OP, max_ii=14)
    program = stretto.materialize(GEMM)
    for what, name, told in (
        (GEMM, "gemm", "no format ``; known: json, mlir"),
        (program, "p.json", "a program is written as MLIR"),
        (stretto.bounds(GEMM), "b.mlir", "<Bounds gemm .* is written as JSON"),
        (none, "n.mlir", "there is no schedule to write"),
        (GEMM, "gone/l.json", "cannot write"),
    ):
        with pytest.raises(stretto.StrettoError, match=told):
            stretto.write(what, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_results_are_results() -> None:
    names = [name for name in stretto.__all__ if name.endswith("Result")]
    assert len(names) == 7
    assert all(issubclass(getattr(stretto, name), Result) for name in names)


def test_ii_and_starts_can_be_verified_by_themselves() -> None:
    """As a generator may ask of its own candidate."""
    (loop,) = stretto.read(EXAMPLES / "gemm.json")
    found = stretto.schedule(loop)
    assert found.ii is not None
    assert stretto.verify(loop, stretto.Schedule(found.ii, found.starts)).legal
    early = stretto.verify(loop, stretto.Schedule(found.ii - 1, found.starts))
    assert {violation.rule for violation in early.violations} == {"slot"}
    for wrong, told in (
        (stretto.Schedule(0, found.starts), "an II of 0"),
        (stretto.Schedule(found.ii, {}), "no start of"),
        (stretto.Schedule(found.ii, {**found.starts, "nobody": 1}), "a start of `nobody`"),
    ):
        with pytest.raises(stretto.StrettoError, match=told):
            stretto.verify(loop, wrong)


def test_a_buffer_that_nobody_writes_is_told() -> None:
    """It counts as filled before the loop: legal, but seldom meant of what an operation makes."""
    (loop,) = stretto.read(EXAMPLES / "gemm.json")
    op = loop.op("load_a")
    mute = replace(loop, ops=tuple(replace(o, writes=()) if o is op else o for o in loop.ops))
    told = [note.text for note in stretto.prepare(mute).notes]
    assert any("`load_a` defines `load_a`, which lives in `a_tile`" in text for text in told)
    assert not any("counts as filled" in note.text for note in stretto.prepare(loop).notes)


# Machines ---------------------------------------------------------------------------------


def test_machines_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = stretto.load_machine("blackwell")
    assert stretto.load_machine("blackwell") is first
    monkeypatch.setenv("TILE_AS_DEBUG_UNLIMITED_SMEM", "1")
    lifted = stretto.load_machine("blackwell")
    assert lifted.notes
    assert not first.notes
    assert stretto.load_machine("blackwell") is lifted
    monkeypatch.delenv("TILE_AS_DEBUG_UNLIMITED_SMEM")
    assert stretto.load_machine("blackwell") == first


def test_a_machine_file_that_changes(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"

    def write(capacity: int, age: int) -> Machine:
        file.write_text(f'[machine]\nname = "mine"\n[slots.s]\ncapacity = {capacity}\n')
        when = file.stat().st_mtime_ns - age * 1_000_000_000
        os.utime(file, ns=(when, when))
        return stretto.load_machine(str(file))

    old = write(1, 100)
    assert stretto.load_machine(str(file)) is old
    assert write(2, 50).slots[0].capacity == 2
    assert write(3, 0).slots[0].capacity == 3
    assert write(4, 0).slots[0].capacity == 4  # perhaps under the same time stamp


# The page ---------------------------------------------------------------------------------


def test_the_page_is_up_to_date() -> None:
    docs = Path(__file__).parent.parent / "docs"
    page: str = runpy.run_path(str(docs / "write_api.py"))["page"]()
    assert (docs / "api.md").read_text(encoding="utf-8") == page, "make docs"
    assert all(f"`{name}`" in page for name in stretto.__all__)


def test_every_field_of_the_parts_of_loops_is_told() -> None:
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    section = page.partition("## Parts of loops")[2].partition("## Errors")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert not [row for row in rows if row.endswith("|  |")]
    for kind in (Op, Use, Dependence):
        assert all(f"| `{field.name}` |" in section for field in fields(kind))
