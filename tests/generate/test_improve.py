"""Placements are improved at the II found: never worse, legal, the same steps in both worlds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import stretto
from rich_loops import rich_problem
from stretto import Loop, ScheduleAnalysis, StrettoError
from stretto.frontends.random_loops import random_loop
from stretto.generate import improve as improving
from stretto.generate.kernel import COMPILED, moving
from stretto.generate.kernel.board import Worth
from stretto.generate.ladder.rau import refine
from stretto.generate.problem import Options, Problem, make_problem
from stretto.generate.search import search
from stretto.generate.seating.partial import Partial
from stretto.loop import Dependence, Op, Use
from stretto.lower_bounds import bounds_of
from stretto.machine import Machine, Slot
from stretto.solution import Pressure, SpaceUse
from stretto.solution.views import analyse
from stretto.solve.proving import told_of_growth
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Loop:
    (loop,) = stretto.read(EXAMPLES / name).loops
    return loop


def worth(analysis: ScheduleAnalysis) -> Worth:
    """What a schedule takes, by the definitions."""
    assert analysis.pressure is not None
    peak, budget = analysis.pressure.peak, analysis.pressure.budget
    used = sum(space.used for space in analysis.memory)
    return Worth(budget is not None and peak > budget, analysis.stage_count, used, peak)


@pytest.mark.parametrize(
    ("name", "stages"),
    [("attention_forward.json", 4), ("attention_backward.json", 5), ("layernorm.json", 5)],
)
def test_the_examples_have_as_few_stages_as_the_proof_finds(name: str, stages: int) -> None:
    found = stretto.schedule(example(name))
    assert found.stage_count == stages
    before = stretto.schedule(example(name), without=["improve"])
    assert found.ii == before.ii
    assert worth(found) < worth(before)


@pytest.mark.parametrize("name", ["attention_forward.json", "attention_backward.json"])
def test_attention_does_not_spill(name: str) -> None:
    loop = example(name)
    assert worth(stretto.schedule(loop, without=["improve"])).spills
    assert not worth(stretto.schedule(loop, strict=True)).spills


EARLY = """
module {
  func.func @early(%A: !nv_tileas.tensor<4096x64xf16, global>, %n: i32, %x: tensor<64x64xf32>) {
    %zero = arith.constant 0 : i32
    %rows = arith.constant 64 : i32
    scf.for %row = %zero to %n step %rows : i32 {
      %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] {stretto.latency = 300}
        : !nv_tileas.tensor<4096x64xf16, global> -> !nv_tileas.smem_ref<64x64xf16>
      %twice = arith.addf %x, %x : tensor<64x64xf32>
      %read = nv_tileas.async.smem_read %load : !nv_tileas.smem_ref<64x64xf16> -> tensor<64x64xf16>
      %sum = nv_tileas.generic "arith.addf"(%twice, %read)
        : (tensor<64x64xf32>, tensor<64x64xf16>) -> tensor<64x64xf32>
    }
    func.return
  }
}
"""


def test_what_nobody_waits_for_does_not_live_early(tmp_path: Path) -> None:
    """`twice` is ready at once and read after the load: seated first, it would live for 300."""
    path = tmp_path / "early.mlir"
    path.write_text(EARLY, encoding="utf-8")
    (loop,) = stretto.read(path).loops
    assert worth(stretto.schedule(loop, without=["improve"])).spills
    found = stretto.schedule(loop)
    assert not worth(found).spills
    assert found.starts["twice"] > found.starts["load"]


def placement_of(seed: int) -> tuple[Problem, Partial] | None:
    """A rich loop and what the search finds before it is improved."""
    rich = rich_problem(seed)
    options = Options(
        fuse=rich.fuse, max_stages=rich.max_stages, without=frozenset({"improve"}), max_ii=64
    )
    problem = make_problem(rich.loop, rich.machine, options)
    bounds = bounds_of(problem)
    found = search(problem, bounds, lambda: 64).placement
    return None if found is None else (problem, found)


def test_nothing_gets_worse_and_all_stays_legal() -> None:
    improved = fused = ruled = 0
    for seed in range(150):
        found = placement_of(seed)
        if found is None:
            continue
        problem, before = found
        after = improving.improve(problem, before)
        schedules = [analyse(problem.loop, problem.machine, p.schedule) for p in (before, after)]
        assert not verify(
            problem.loop, problem.machine, schedules[1], max_stages=problem.options.max_stages
        ), seed
        assert worth(schedules[1]) <= worth(schedules[0]), seed
        improved += worth(schedules[1]) < worth(schedules[0])
        fused += bool(before.fused)
        ruled += problem.staged
    assert improved > 20
    assert fused > 5
    assert ruled > 10


def source() -> ModuleType:
    """The moves as Python runs them."""
    path = Path(improving.__file__).parent / "kernel" / "moving.py"
    spec = spec_from_file_location("moving_in_python", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_a_recurrence_ties_together_counts_together_where_it_moves() -> None:
    """Two operations that draw two units each, one cycle of them together, came upon a third."""
    (loop,) = stretto.generate_loops(1, seed=5, ops=(8, 20), first=266)
    found = stretto.schedule(loop)
    assert stretto.verify(loop, found).legal
    assert found.ii == stretto.schedule(loop, without=["improve"]).ii


@pytest.mark.skipif(not COMPILED, reason="nothing was compiled here")
def test_compiled_and_in_python_the_moves_are_the_same() -> None:
    assert not str(moving.__file__).endswith(".py")
    twin = source()
    for seed in range(40):
        found = placement_of(seed)
        if found is None:
            continue
        rows = improving.rows_of(*found)
        ends: list[object] = []
        for world in (moving.Moving, twin.Moving):
            moves = world(rows.board())
            moves.take(rows.starts(found[1]))
            fewer = max(1, moves.worth().stages - 1)
            known = moves.part(fewer, 30)
            moves.fit(fewer, 60, 2, 10)
            closed = [moves.close(turn, 60, 2, 10) for turn in (0, 1) if moves.worth().stages > 1]
            moves.polish(20)
            ends.append((moves.worth(), moves.starts(), moves.tried, known, closed))
        assert ends[0] == ends[1], seed


def packed(seed: int) -> tuple[Problem, Partial]:
    """140 operations on three slots, with recurrences, and a placement at the bound.

    There are more segments in a column than are looked at one by one.
    """
    rng = random.Random(f"packed {seed}")
    machine = Machine("m", "", (Slot(1, "a", 1), Slot(2, "b", 3), Slot(3, "c", 2)))
    ops = [
        Op(
            f"o{i}",
            "k",
            uses=tuple(
                Use(slot, rng.randint(1, 9), rng.choice([0, 0, 3]))
                for slot in rng.sample("abc", rng.randint(1, 2))
            ),
            latency=rng.randint(1, 20),
        )
        for i in range(140)
    ]
    stated = [
        Dependence(f"o{i - rng.randint(1, min(i, 12))}", f"o{i}", rng.randint(1, 20), 0, "order")
        for i in range(1, 140)
    ]
    stated += [
        Dependence(f"o{i}", f"o{max(0, i - rng.randint(1, 12))}", rng.randint(1, 9), 2, "order")
        for i in range(0, 140, 7)
    ]
    problem = make_problem(Loop("packed", tuple(ops), stated=tuple(stated)), machine, Options())
    found = refine(problem, bounds_of(problem).mii, 400_000).placement
    assert found is not None
    return problem, found


@pytest.mark.parametrize("seed", range(3))
def test_looking_nearby_in_a_crowded_column_finds_what_looking_at_all_finds(seed: int) -> None:
    found = packed(seed)
    rows = improving.rows_of(*found)
    ends: list[object] = []
    for crowded in (8, 1_000_000):
        world = source()
        world.__dict__["CROWDED"] = crowded
        moves = world.Moving(rows.board())
        assert any(moves.part_wide) == (crowded == 8)
        moves.take(rows.starts(found[1]))
        moves.fit(max(1, moves.worth().stages - 1), 150, 2, 20)
        moves.polish(10)
        ends.append((moves.worth(), moves.starts(), moves.pushed))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_a_stage_taken_out_is_gone_and_what_is_left_is_legal(seed: int) -> None:
    """In both worlds alike; where it cannot be repaired the placement stays what it was."""
    problem, found = packed(seed)
    rows = improving.rows_of(problem, found)
    ends: list[object] = []
    for world in (moving.Moving, source().Moving):
        moves = world(rows.board())
        moves.take(rows.starts(found))
        first, closed = moves.worth().stages, 0
        for turn in (0, 0, 1, 2, 3):
            before = moves.worth().stages, moves.starts()
            if moves.close(turn, 400, moves.ii // 16, 30):
                closed += 1
                assert moves.worth().stages < before[0]
                placed = rows.placed(moves.starts(), found)
                analysis = analyse(problem.loop, problem.machine, placed.schedule)
                assert not verify(problem.loop, problem.machine, analysis)
                assert placed.stage_count == moves.worth().stages
            else:
                assert (moves.worth().stages, moves.starts()) == before
        assert closed
        ends.append((first, moves.worth(), moves.starts(), moves.pushed))
    assert ends[0] == ends[1]


def test_large_loops_have_fewer_stages_at_the_same_ii() -> None:
    stages = [0, 0]
    for seed in range(4):
        loop, machine = random_loop(seed, 160)
        for k, without in enumerate(((), ("improve",))):
            found = stretto.schedule(loop, machine, without=without)
            assert found.ii == stretto.schedule(loop, machine).ii
            stages[k] += found.stage_count
    assert stages[0] < stages[1]


@pytest.mark.parametrize("seed", [2, 5, 7])
def test_no_stage_of_a_large_loop_can_be_saved_by_moving_whole_iis(seed: int) -> None:
    """The same cycles, with stages by longest paths over all dependences, have no fewer."""
    problem, found = packed(seed)
    ii, starts = found.ii, found.whole()
    least = [start % ii for start in starts]
    moved = True
    while moved:
        moved = False
        for src, dst, latency, distance in problem.between.edges:
            while least[src] + latency - ii * distance > least[dst]:
                least[dst] += ii
                moved = True
    assert max(least) // ii - min(least) // ii == max(starts) // ii - min(starts) // ii


def test_so_few_stages_are_never_ruled_out_where_a_placement_has_them() -> None:
    world = source()
    seen = 0
    for seed in range(150):
        found = placement_of(seed)
        if found is None or found[0].staged:
            continue
        rows = improving.rows_of(*found)
        moves = world.Moving(rows.board())
        moves.take(rows.starts(found[1]))
        assert moves.windows(moves.worth().stages), seed
        assert not moves.overfull(), seed
        seen += 1
    assert seen > 50


def tiny(seed: int, capacity: int = 1) -> Problem:
    """Four or five operations on two slots, one of them exclusive, with a recurrence."""
    rng = random.Random(f"tiny {seed}")
    machine = Machine("m", "", (Slot(1, "a", 1), Slot(2, "b", capacity)))
    count = rng.randint(4, 5)
    ops = [
        Op(f"o{i}", "k", uses=(Use(rng.choice("ab"), rng.randint(1, 3), rng.choice([0, 0, 1])),))
        for i in range(count)
    ]
    ops = [replace(op, latency=rng.randint(1, 5)) for op in ops]
    stated = [
        Dependence(f"o{rng.randrange(i)}", f"o{i}", rng.randint(1, 5), 0, "order")
        for i in range(1, count)
    ]
    stated.append(Dependence(f"o{count - 1}", "o0", rng.randint(1, 4), rng.randint(1, 2), "order"))
    return make_problem(Loop("tiny", tuple(ops), stated=tuple(stated)), machine, Options())


def possible(problem: Problem, ii: int, stages: int, starts: tuple[int, ...] = ()) -> bool:
    """Whether some starts below so many stages keep to every dependence and slot: all are tried."""
    n = len(starts)
    for src, dst, latency, distance in problem.graph.edges:
        if max(src, dst) < n and starts[dst] < starts[src] + latency - ii * distance:
            return False
    held = [
        (use.slot, (start + use.offset + k) % ii)
        for start, op in zip(starts, problem.loop.ops[:n], strict=True)
        for use in op.uses or ()
        for k in range(use.duration)
    ]
    room = {slot.name: slot.capacity or 1 for slot in problem.machine.slots}
    if any(count > room[at[0]] for at, count in Counter(held).items()):
        return False
    if n == problem.size:
        return True
    return any(possible(problem, ii, stages, (*starts, at)) for at in range(stages * ii))


def test_numbers_of_stages_are_parted_into_those_that_can_be_and_those_that_cannot() -> None:
    """As trying every start says, in both worlds; what is found is legal and has no more."""
    verdicts: list[tuple[int, bool]] = []
    for seed in range(80):
        problem = tiny(seed)
        ii = bounds_of(problem).mii
        found = refine(problem, ii).placement
        if found is None:
            continue
        rows = improving.rows_of(problem, found)
        for stages in (1, 2):
            there = possible(problem, ii, stages)
            for world in {moving.Moving, source().Moving}:
                moves = world(rows.board())
                moves.take(rows.starts(found))
                known = moves.part(stages, 10_000)
                assert known == (moving.FOUND if there else moving.REFUTED), (seed, stages)
                if there:
                    placed = rows.placed(moves.starts(), found)
                    analysis = analyse(problem.loop, problem.machine, placed.schedule)
                    assert not verify(problem.loop, problem.machine, analysis)
                    assert placed.stage_count <= stages
            verdicts.append((stages, there))
    assert min(verdicts.count((stages, there)) for stages in (1, 2) for there in (True, False)) > 2


@pytest.mark.parametrize("capacity", [2, 3])
def test_what_several_share_is_parted_as_trying_every_start_says(capacity: int) -> None:
    """Where holds reach around the II it may stay open; what is said is right, in both worlds."""
    said: list[int] = []
    for seed in range(200):
        problem = tiny(seed, capacity)
        ii = bounds_of(problem).mii
        found = refine(problem, ii).placement
        if found is None:
            continue
        rows = improving.rows_of(problem, found)
        for stages in (1, 2):
            known = [0, 0]
            for k, world in enumerate((moving.Moving, source().Moving)):
                moves = world(rows.board())
                moves.take(rows.starts(found))
                known[k] = moves.part(stages, 10_000)
            assert known[0] == known[1], (seed, stages)
            there = possible(problem, ii, stages)
            assert known[0] in (moving.OPEN, moving.FOUND if there else moving.REFUTED), seed
            said.append(known[0])
    assert min(said.count(moving.FOUND), said.count(moving.REFUTED)) > 20
    assert said.count(moving.OPEN) < len(said) // 10


def test_a_stretch_that_must_hold_too_much_rules_a_number_of_stages_out() -> None:
    """Both writers end before 5, so that the third has its place; 2 × 3 cycles are 6."""
    machine = Machine("m", "", (Slot(1, "a", 1), Slot(2, "b", 1)))
    ops = (
        Op("x", "k", uses=(Use("a", 3),), latency=3),
        Op("y", "k", uses=(Use("a", 3),), latency=3),
        Op("z", "k", uses=(Use("b", 1),), latency=1),
    )
    stated = (Dependence("x", "z", 3, 0, "order"), Dependence("y", "z", 3, 0, "order"))
    problem = make_problem(Loop("tight", ops, stated=stated), machine, Options())
    found = refine(problem, 6).placement
    assert found is not None
    assert found.stage_count == 2
    rows = improving.rows_of(problem, found)
    moves = source().Moving(rows.board())
    moves.take(rows.starts(found))
    assert moves.windows(1)
    assert moves.overfull()
    assert moves.windows(2)
    assert not moves.overfull()


def test_a_schedule_that_spills_says_so_first_and_what_would_help() -> None:
    loop = example("layernorm.json")
    told = " ".join(stretto.schedule(loop).report().split())
    first = told[: told.index(" 5 stages")]
    assert "513 of 512 registers: it spills 1 (--effort thorough" in first
    assert not worth(stretto.schedule(loop, effort="thorough")).spills


def test_strict_refuses_what_spills() -> None:
    with pytest.raises(StrettoError, match="513 of 512 registers: it spills"):
        stretto.schedule(example("layernorm.json"), strict=True)


def test_a_proof_that_takes_more_memory_says_so() -> None:
    found = stretto.schedule(example("gemm.json"))
    more = replace(
        found,
        memory=tuple(SpaceUse(s.space, s.used + 4096, s.budget) for s in found.memory[:1])
        + found.memory[1:],
        pressure=Pressure(600, 512, 0),
    )
    (note,) = set(told_of_growth(found, more).warnings) - set(more.warnings)
    space = found.memory[0]
    assert f"{space.used + 4096:,} bytes of {space.space} instead of {space.used:,}" in note.text
    assert "600 of 512 registers: it spills" in note.text
    assert told_of_growth(found, found) is found
