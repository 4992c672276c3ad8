"""The cost vector: each component against a plain recount, and the figures that are known."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import generated
from documents import parse_loop
from naive_bounds import paths
from stretto.errors import InfeasibleError
from stretto.generate.problem import Options, Problem, make_problem
from stretto.generate.seating.cost import (
    CostVector,
    Scorer,
    cost,
    refused,
    spill,
    surcharge,
)
from stretto.generate.seating.evaluators import (
    BankCaps,
    Seating,
    bank_caps,
    bank_cost,
    bank_pressure,
    pipe_slot,
    seating,
)
from stretto.loop import Access, Facts, Loop, Op, Operand, Storage, TileType, Value
from stretto.lower_bounds import compute_bounds
from stretto.machine import Budget, Machine, Slot, load_machine
from stretto.problem.banks import claimants
from stretto.resources.prepare import resolve
from stretto.solution.views import placements
from stretto.solution.views import register_lives as all_lives

EXAMPLES = Path(__file__).parents[2] / "examples"


def blackwell() -> Machine:
    return load_machine("blackwell")


def four_op() -> Problem:
    machine = blackwell()
    text = (EXAMPLES / "four_op.json").read_text()
    loop = resolve(parse_loop("four_op.json", text), machine).loop
    return make_problem(loop, machine, Options())


CANDIDATE_A = {"load": 0, "write": 0, "wgmma": 0, "read": 0}
CANDIDATE_B = {"load": 0, "write": 8, "wgmma": 0, "read": 0}


@pytest.mark.parametrize("starts", [CANDIDATE_A, CANDIDATE_B])
def test_both_printed_candidates_are_refused_at_slot_16(starts: dict[str, int]) -> None:
    problem = four_op()
    seats = seating(problem, 8, starts)
    assert cost(seats).feasibility == 1
    (conflict,) = refused(seats)
    assert conflict.use is not None
    assert problem.machine.slot(conflict.use.slot).id == 16
    assert (conflict.op, conflict.holders) == ("write", ("load",))


def test_the_remaining_components_of_candidate_b() -> None:
    seats = seating(four_op(), 8, CANDIDATE_B)
    found = cost(seats)
    assert (found.pipe_slot, found.bank, found.structural) == (0, 3, 2)
    assert found.spill == 0
    assert bank_pressure(seats) == (2, 1)


def test_the_legal_schedule_of_the_four_op_body_is_feasible() -> None:
    seats = seating(four_op(), 15, {"load": 0, "write": 8, "wgmma": 0, "read": 8})
    assert cost(seats).feasibility == 0


def test_an_ii_without_longest_paths_has_no_cost() -> None:
    ops = (
        Op("a", "k", (Operand("y", 1),), ("x",), uses=(), latency=9),
        Op("b", "k", (Operand("x"),), ("y",), uses=(), latency=1),
    )
    loop = Loop("tight", ops, (Value("x"), Value("y")))
    problem = make_problem(loop, Machine("m", "", (Slot(1, "s", 1),)), Options())
    with pytest.raises(InfeasibleError, match="below the recurrence bound 10"):
        cost(seating(problem, 9, {"a": 0}))


def test_costs_compare_component_by_component() -> None:
    low, high = CostVector(0, 0, 0, 9, 9, 9), CostVector(0, 0, 1, 0, 0, 0)
    assert low < high
    assert CostVector(0, 0, 0, 3, 2, 800) < CostVector(0, 0, 0, 3, 2, 900)


# Bank pressure ------------------------------------------------------------------------------


@st.composite
def buffered_seatings(draw: st.DrawFn) -> Seating:
    """Operations that hand buffers of both memories on, some of them seated."""
    count = draw(st.integers(1, 6))
    storages: list[Storage] = []
    writes: list[list[str]] = [[] for _ in range(count)]
    reads: list[list[Access]] = [[] for _ in range(count)]
    for n in range(draw(st.integers(1, 6))):
        fixed = draw(st.booleans())
        storages.append(Storage(f"b{n}", draw(st.sampled_from(["smem", "tmem"])), 8, fixed))
        for who in draw(st.lists(st.integers(0, count - 1), max_size=2, unique=True)):
            writes[who].append(f"b{n}")
        for who in draw(st.lists(st.integers(0, count - 1), max_size=3, unique=True)):
            reads[who].append(Access(f"b{n}", draw(st.integers(0, 2))))
    ops = tuple(
        Op(
            f"op{i}",
            "k",
            reads=tuple(reads[i]),
            writes=tuple(writes[i]),
            uses=(),
            latency=draw(st.integers(0, 9)),
        )
        for i in range(count)
    )
    problem = make_problem(Loop("l", ops, (), tuple(storages)), blackwell(), Options())
    starts = {op.name: draw(st.integers(0, 20)) for op in ops}
    return seating(problem, draw(st.integers(1, 8)), starts)


@given(buffered_seatings())
def test_bank_pressure_counts_cycles(seats: Seating) -> None:
    loop = seats.problem.loop
    at = dict(zip(seats.problem.names, seats.starts, strict=True))
    inside, carried = [0] * seats.ii, [0] * seats.ii
    for storage in loop.storages:
        writers = [op for op in loop.ops if storage.name in op.writes]
        reads = [(op, r.distance) for op in loop.ops for r in op.reads if r.storage == storage.name]
        if storage.fixed:
            reads = [(op, 0) for op, _ in reads]
        if storage.space == "smem" and (
            storage.fixed or not writers or all(op in writers for op, _ in reads)
        ):
            continue  # no pipe
        begin = min((at[op.name] or 0 for op in writers or [op for op, _ in reads]), default=0)
        ends = [(at[op.name] or 0) + op.completion for op in writers]
        ends += [(at[op.name] or 0) + op.completion + seats.ii * d for op, d in reads]
        for cycle in range(begin, max(ends, default=0)):
            (inside if cycle < seats.ii else carried)[cycle % seats.ii] += 1
    assert bank_pressure(seats) == (max(inside), max(carried))


def claims(*ops: Op, storages: tuple[Storage, ...] = ()) -> list[tuple[str, str]]:
    """Who claims something, and in which space."""
    return [(room.name, room.space) for room in claimants(Loop("l", ops, (), storages))]


def test_a_buffer_of_tensor_memory_claims_a_bank_and_a_pipe_a_barrier() -> None:
    memory = (
        Storage("s", "tmem", 8),
        Storage("acc", "tmem", 8, fixed=True),
        Storage("ring", "smem", 8),
        Storage("own", "smem", 8),
        Storage("table", "smem", 8, fixed=True),
        Storage("regs", "register", 8),
    )
    fill = Op("fill", "k", writes=("s", "acc", "ring", "own", "table", "regs"))
    drain = Op("drain", "k", reads=tuple(Access(s) for s in ("s", "acc", "ring", "table", "regs")))
    wanted = [("s", "tmem"), ("acc", "tmem"), ("ring", "smem")]
    assert claims(fill, drain, storages=memory) == wanted


def test_a_pipe_that_is_written_down_claims_a_barrier() -> None:
    at = (Operand("it", 1),)
    ops = (
        Op("acquire", "async.pipeline.producer_acquire", at),
        Op("commit", "async.pipeline.producer_commit", at),
        Op("wait", "async.pipeline.consumer_wait", at),
        Op("release", "async.pipeline.consumer_release", at),
        Op("other", "async.pipeline.consumer_wait", (Operand("more", 1),)),
    )
    (room,) = claimants(Loop("l", ops))
    assert (room.name, room.space, room.writers) == ("it", "pipe", (0, 1))
    assert room.readers == ((2, 0), (3, 0))


def test_a_stated_bank_without_a_buffer_is_a_claim() -> None:
    def read(name: str, **facts: int | str) -> Op:
        return Op(name, "async.tmem_load", facts=Facts(**facts))  # pyright: ignore[reportArgumentType]

    ops = (read("a", bank=0, buffer="tmem"), read("b", bank=0, buffer="smem"), read("c", bank=1))
    assert claims(*ops) == [("a", "tmem")]


def test_bank_caps_are_limits_of_the_machine() -> None:
    caps = bank_caps(blackwell())
    assert caps == BankCaps(4, 3)
    assert bank_cost((4, 3), caps) == 7
    assert bank_cost((5, 0), caps) is None
    assert bank_cost((0, 4), caps) is None
    assert bank_caps(load_machine("b200-pipes")) is None
    assert bank_cost((9, 9), None) == 18


# Pipe slots ---------------------------------------------------------------------------------


@given(generated.problems())
def test_pipe_slot_is_what_the_longest_paths_say(case: generated.Problem) -> None:
    ii = compute_bounds(case.loop, case.machine).mii
    problem = make_problem(case.loop, case.machine, Options())
    between = paths(case.loop, ii)
    worst = 0
    for op in problem.names:
        found = [between.get((p, op)) for p in problem.names if p != op]
        distances = [d for d in found if d is not None]
        excess = max(0, max(distances, default=0) - ii)
        assert pipe_slot(distances, ii) == excess
        worst = max(worst, excess)
    everywhere = seating(problem, ii, dict.fromkeys(problem.names, 0))
    assert Scorer(problem, ii).score(everywhere).pipe_slot == worst


def test_pipe_slot_is_what_lies_beyond_an_ii() -> None:
    assert pipe_slot([40], 16) == 24
    assert pipe_slot([16, 3], 16) == 0
    assert pipe_slot([-9], 16) == 0
    assert pipe_slot([], 16) == 0


# Spill surcharge ----------------------------------------------------------------------------


def test_surcharges() -> None:
    blackwell = load_machine("blackwell")
    assert surcharge(blackwell, 512, 512) == 0
    assert surcharge(blackwell, 517, 512) == 85
    assert surcharge(blackwell, 752, 512) == 4080
    assert surcharge(blackwell, 753, 512) == 4096
    assert surcharge(blackwell, 9999, 512) == 4096


def spilling(sizes: list[int], budget: int) -> Problem:
    """Operations that each make a value of so many registers, read by the last one."""
    machine = Machine(
        "m",
        "",
        (Slot(1, "s", None),),
        budgets=(Budget("register", 512 * budget, unit=512),),
        costs=load_machine("blackwell").costs,
    )
    values = tuple(Value(f"v{i}", TileType((128 * n,), "f32")) for i, n in enumerate(sizes))
    makers = [
        Op(f"op{i}", "k", results=(v.name,), uses=(), latency=1) for i, v in enumerate(values)
    ]
    end = Op("end", "k", tuple(Operand(v.name) for v in values), uses=(), latency=1)
    return make_problem(Loop("l", (*makers, end), values), machine, Options())


def test_each_operation_pays_for_the_pressure_in_its_own_cycle() -> None:
    problem = spilling([10, 5], budget=10)
    alone = seating(problem, 100, {"op0": 0})
    both = seating(problem, 100, {"op0": 0, "op1": 4, "end": 9})
    assert cost(alone).spill == 0
    # At 0 only op0's value lives: 10 of 10. At 4 and at 9 both do: 15.
    assert cost(both).spill == 85 + 85


def test_surcharges_are_capped_in_sum_and_never_veto() -> None:
    problem = spilling([300, 300], budget=10)
    found = cost(seating(problem, 100, {"op0": 0, "op1": 0, "end": 9}))
    assert found.spill == 4096
    assert found.feasibility == 0


def test_readers_that_are_not_seated_count_at_their_earliest_start() -> None:
    problem = spilling([6, 6], budget=10)
    # `end` may start at 51 (op1 at 50): op0's value lives until then, and meets op1's.
    assert cost(seating(problem, 100, {"op0": 0, "op1": 50})).spill == 2 * 17


@st.composite
def complete(draw: st.DrawFn) -> tuple[Seating, dict[str, int]]:
    case = draw(generated.problems())
    ii = compute_bounds(case.loop, case.machine).mii
    starts = {op.name: draw(st.integers(0, 3 * ii)) for op in case.loop.ops}
    problem = make_problem(case.loop, case.machine, Options())
    return seating(problem, ii, starts), starts


@given(complete(), st.integers(0, 9))
def test_spill_counts_live_bytes_cycle_by_cycle(
    found: tuple[Seating, dict[str, int]], registers: int
) -> None:
    seats, starts = found
    problem, ii = seats.problem, seats.ii
    machine = Machine(
        "m",
        "",
        problem.machine.slots,
        problem.machine.pools,
        budgets=(Budget("register", registers * 512, unit=512),),
        costs=load_machine("blackwell").costs,
    )
    problem = make_problem(problem.loop, machine, Options())
    lives = [
        (size, begin, end)
        for size, begin, end in all_lives(problem.loop, ii, starts)
        if end > begin
    ]
    total = 0
    for start in starts.values():
        live = sum(
            size for size, begin, end in lives for t in range(begin, end) if t % ii == start % ii
        )
        total += min(4096, 17 * max(0, -(-live // 512) - registers))
    rooms = problem.rooms
    lives = (*rooms.values, *rooms.registers)
    mine = spill(seats._replace(problem=problem), rooms.always, lives)
    assert mine == min(4096, total)


# Structural distance ------------------------------------------------------------------------


@given(complete())
def test_inversions_against_program_order(found: tuple[Seating, dict[str, int]]) -> None:
    seats, starts = found
    keys = [(p.stage, p.order) for p in placements(seats.problem.loop, seats.ii, starts)]
    assert cost(seats).structural == sum(a > b for a, b in combinations(keys, 2))
