"""The rule `registers`: what lives with an agent, by hand, by a naive count, by brute force."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from absolute import disagreements
from brute_force import optimum
from living import alive, over
from rich_loops import rich_agents
from stretto.compile.candidates import Emitter
from stretto.errors import InfeasibleError
from stretto.exact import Limits
from stretto.exact.case import make_case
from stretto.exact.conflict import find_conflict
from stretto.exact.objectives import up_to
from stretto.exact.search import optimize
from stretto.exact.solving import Clock
from stretto.loop import Facts, Loop, Op, Operand, Storage, TileType, Use, Value
from stretto.machine import Machine, Slot
from stretto.machine.machine import Agent
from stretto.problem.registers import Registers
from stretto.resources.prepare import prepare
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify
from tiny_loops import tiny_agents

DEEP = os.environ.get("STRETTO_HYPOTHESIS") == "deep"
EXAMPLES = Path(__file__).parents[1] / "examples"
SOON = 6
"""The last II at which tiny loops are looked at: many have no schedule at all."""
TILE = TileType((128,), "f32")
"""512 bytes: four registers of each thread of a warp."""


def machine(registers: int, replicas: int = 1, addresses: int = 0) -> Machine:
    """One warp, or one for each replica."""
    agent = Agent("g", ("tma", "mma", "simt"), 1, registers, replicas, addresses)
    return Machine(
        "one", "a machine of one agent", (Slot(1, "u", 1), Slot(2, "v", 1)), agents=(agent,)
    )


def tiles(*names: str) -> tuple[Value, ...]:
    return tuple(Value(name, TILE) for name in names)


def most(loop: Loop, ii: int, **starts: int) -> int:
    """Bytes at the peak, of which the verifier, the count of solvers and a naive one agree."""
    roomy = machine(100)
    peaks = Registers(loop, roomy).peaks(ii, [starts[op.name] for op in loop.ops])
    (found,) = [peak.bytes for peak in peaks]
    naive = max(alive(loop, roomy, ii, starts).values())
    assert found == naive
    for more, legal in ((-1, False), (0, True)):
        just = machine(-(-found // 128) + more)
        analysis = analyse(loop, just, Schedule(ii, starts))
        told = [v for v in verify(loop, just, analysis) if v.rule == "registers"]
        assert (not told) == legal or found % 128
    return found


LOAD = Op("load", "load", results=("x",), uses=(Use("u", 2),), latency=4)
EXP = Op("exp", "math.exp2", (Operand("x"),), ("y",), uses=(Use("v", 3),), latency=3)
KEEP = Op("keep", "store", (Operand("y"),), uses=(Use("v", 1),), latency=1)


def test_arithmetic_goes_in_place() -> None:
    loop = Loop("l", (LOAD, EXP, KEEP), tiles("x", "y"))
    assert most(loop, 20, load=0, exp=4, keep=7) == 512
    assert most(loop, 20, load=0, exp=4, keep=19) == 512


def test_what_is_read_again_is_kept() -> None:
    again = replace(KEEP, operands=(Operand("y"), Operand("x")))
    loop = Loop("l", (LOAD, EXP, again), tiles("x", "y"))
    assert most(loop, 20, load=0, exp=4, keep=7) == 1024


def test_iterations_in_flight_add_up() -> None:
    loop = Loop("l", (LOAD, EXP, KEEP), tiles("x", "y"))
    assert most(loop, 5, load=0, exp=14, keep=17) == 4 * 512
    carried = Loop("l", (LOAD, EXP, replace(KEEP, operands=(Operand("y", 2),))), tiles("x", "y"))
    assert most(carried, 20, load=0, exp=4, keep=7) == 3 * 512


PRODUCT = Op(
    "mul", "async.wgmma", (Operand("x"), Operand("b")), ("s",), uses=(Use("u", 4),), latency=6
)
WAIT = Op("wait", "async.wgmma_wait", (Operand("s"),), ("r",), uses=(Use("v", 1),), latency=1)


def test_a_product_fills_its_registers_from_its_issue_and_keeps_its_factor_until_the_wait() -> None:
    values = (*tiles("x", "s"), Value("r", TILE, None, "s"), Value("b", None))
    loop = Loop("l", (LOAD, PRODUCT, WAIT), values)
    assert most(loop, 40, load=0, mul=4, wait=30) == 1024  # x until 31
    alone = Loop("l", (LOAD, PRODUCT), values[:2] + values[3:])
    assert most(alone, 40, load=0, mul=4) == 1024
    assert most(alone, 9, load=0, mul=4) == 1024 + 512  # x of the next iteration at its cycle 0


def test_a_sum_is_one_tile_before_and_behind_its_product() -> None:
    adds = replace(PRODUCT, operands=(Operand("a"), Operand("b"), Operand("r", 1)))
    values = (*tiles("s"), Value("r", TILE, None, "s"), Value("a", None), Value("b", None))
    assert most(Loop("l", (adds, WAIT), values), 10, mul=0, wait=6) == 512
    # Read once more behind the product, it is another tile.
    late = Op("late", "arith.addf", (Operand("r", 1),), uses=(Use("v", 1),), latency=1)
    assert most(Loop("l", (adds, WAIT, late), values), 10, mul=0, wait=6, late=3) == 1024


def test_names_take_nothing_and_what_stood_before_the_loop_stays() -> None:
    name = Op("name", "view", (Operand("x"),), ("n",), uses=(), latency=0)
    values = (*tiles("x", "given"), Value("n", TILE, None, "x"))
    loop = Loop("l", (LOAD, name, replace(KEEP, operands=(Operand("n"), Operand("given")))), values)
    assert most(loop, 20, load=0, name=15, keep=4) == 1024


def test_storages_in_registers_are_their_writers() -> None:
    total, ring = Storage("total", "register", 512, fixed=True), Storage("ring", "register", 256)
    add = Op("add", "a", writes=("total", "ring"), uses=(Use("u", 2),), latency=5)
    assert most(Loop("l", (add,), (), (total, ring)), 5, add=0) == 512 + 256
    assert most(Loop("l", (add,), (), (total, ring)), 4, add=0) == 512 + 512


def test_what_an_operation_takes_while_it_runs_is_gone_behind_it() -> None:
    takes = replace(EXP, facts=Facts(scratch=256))
    loop = Loop("l", (LOAD, takes, KEEP), tiles("x", "y"))
    assert most(loop, 20, load=0, exp=4, keep=10) == 512 + 256
    assert most(loop, 8, load=0, exp=4, keep=7) == 512 + 256
    assert most(loop, 7, load=0, exp=10, keep=13) == 2 * 512 + 256


def test_a_refusal_names_what_an_operation_takes_while_it_runs() -> None:
    takes = replace(EXP, facts=Facts(scratch=256))
    loop = Loop("l", (LOAD, takes, KEEP), tiles("x", "y"))
    analysis = analyse(loop, machine(4), Schedule(20, {"load": 0, "exp": 4, "keep": 7}))
    (told,) = verify(loop, machine(4), analysis)
    assert "768 live: `x` 512 + scratch `exp` 256" in told.message
    assert told.ops == ("load", "exp")


def test_replicas_have_registers_of_their_own_and_who_is_alone_has_all() -> None:
    loop = Loop("l", (LOAD, EXP, KEEP), tiles("x", "y"))
    starts = {"load": 0, "exp": 14, "keep": 17}
    analysis = analyse(loop, machine(8, 2), Schedule(5, starts))
    assert not verify(loop, machine(8, 2), analysis)  # 16 registers: 4 tiles
    assert [v.rule for v in verify(loop, machine(8), analysis)] == ["registers"]
    assert [v.rule for v in verify(loop, machine(8, 2, 1), analysis)] == ["registers"]
    ops = (replace(LOAD, agent="g.1"), *loop.ops[1:])
    apart = replace(loop, ops=ops)
    (told,) = verify(apart, machine(8, 2), analyse(apart, machine(8, 2), Schedule(5, starts)))
    assert told.detail[0] == ("agent", "g.1")


def test_a_refusal_has_the_numbers() -> None:
    loop = Loop("l", (LOAD, EXP, KEEP), tiles("x", "y"))
    analysis = analyse(loop, machine(12), Schedule(5, {"load": 0, "exp": 14, "keep": 17}))
    (told,) = verify(loop, machine(12), analysis)
    assert told.message == (
        "g has registers for 1,536 bytes of tiles; at cycle 15 (II 5) 2,048 live: `x` 4 × 512"
    )
    assert told.ops == ("load",)
    assert dict(told.detail) == {"agent": "g", "limit": 1536, "cycle": 15, "load": 2048, "ii": 5}


# Random loops -------------------------------------------------------------------------------


def test_verifier_and_naive_count_agree() -> None:
    seen: Counter[str] = Counter()
    for seed in range(1200 if DEEP else 60):
        rich, rng = rich_agents(seed), random.Random(f"moved {seed}")
        loop, own = rich.loop, rich.machine.with_slots(rich.loop.slots)
        try:
            found = stretto.schedule(loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages)
        except InfeasibleError:
            continue
        if not found.success:
            seen["no schedule"] += 1
            continue
        assert not disagreements(loop, own, found, rich.max_stages), f"seed {seed}"
        for _ in range(20):
            starts = dict(found.starts)
            for name in rng.sample(sorted(starts), 1):
                starts[name] = max(0, starts[name] + rng.randint(-6, 20))
            assert found.ii is not None
            moved = analyse(loop, own, Schedule(found.ii, starts, found.fused))
            told = any(v.rule == "registers" for v in verify(loop, own, moved))
            naive = over(loop, own, found.ii, starts)
            assert told == bool(naive), f"seed {seed}: {starts}: {naive}"
            seen["refused"] += told
            seen["kept"] += not told
    assert min(seen["refused"], seen["kept"]) > 5, seen


def test_the_optimum_is_that_of_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(600 if DEEP else 60):
        tiny = tiny_agents(seed)
        case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
        answer = optimize(case, 1, SOON, None, up_to("ii"), Limits())
        best = optimum(tiny.loop, tiny.machine, tiny.fuse, SOON, tiny.max_stages)
        found = None if answer.schedule is None else answer.schedule.ii
        assert found == best, f"seed {seed}"
        assert not answer.limited, f"seed {seed}"
        if best is not None and best > 1:
            # Every reason at once, as explanations ask: the same answer.
            why = find_conflict(case, best - 1, Clock(Limits()))
            assert why.status == "impossible", f"seed {seed}"
            seen["refuted by registers"] += any(r.kind == "registers" for r in why.reasons)
        free = replace(tiny.machine, agents=())
        without = optimum(tiny.loop, free, tiny.fuse, SOON, tiny.max_stages)
        seen["longer by registers"] += without != best
        seen["found"] += best is not None
    assert seen["longer by registers"] > 5, seen
    assert seen["refuted by registers"] > 0, seen
    assert seen["found"] > 20, seen


# Kernels ------------------------------------------------------------------------------------


def test_attention_counts_scores_sum_and_weights() -> None:
    """64 rows of a consumer, 64 columns, D 128: 16 KB of scores, 32 KB of sums, 8 KB of P."""
    emitter = Emitter(EXAMPLES / "triton" / "attention_forward_d128.ttir")
    (loop,) = emitter.lowered(2).loops
    registers = Registers(prepare(loop.wiring.loop, emitter.machine).loop, emitter.machine)
    agent = emitter.machine.agents_of_products()
    assert agent.registers is not None
    free = agent.registers - agent.addresses
    assert registers.limits["compute"] == registers.limits["compute.1"] == 128 * free * 4
    large = {life.name: life.bytes for life in registers.lives if life.bytes > 1024}
    mine = {name: size for name, size in large.items() if _owner(registers, name) == "compute"}
    assert mine == {
        "scores_2": 16384, "p_6": 16384, "p_8": 16384, "total_4": 32768, "total_6": 8192,
        "total_8": 32768,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "consumers", "registers"),
    [
        # lse and delta of 64 queries each, along the columns of S^T: 64 / 4 elements a thread
        ("attention_backward_kv", 2, {"p_t": 16, "ds_t": 16}),
        ("attention_backward_kv", 1, {"p_t": 16, "ds_t": 16}),
        # how much a row's sum shrinks, along 64 rows or 128: 2 of the 16 rows of each warp
        ("attention_forward_d128", 2, {"total": 2}),
        ("attention_forward_d128", 1, {"total": 2}),
        ("matmul_descriptors", 2, {}),
    ],
)
def test_vectors_that_are_converted_are_counted_as_threads_hold_them(
    name: str, consumers: int, registers: dict[str, int]
) -> None:
    emitter = Emitter(EXAMPLES / "triton" / f"{name}.ttir")
    (loop,) = emitter.lowered(consumers).loops
    threads = 128 if consumers == 2 else 256
    found = {op.name: op.facts.scratch for op in loop.wiring.loop.ops if op.facts.scratch}
    assert len(found) == consumers * len(registers)
    for op, taken in found.items():
        assert taken == registers[re.sub(r"_\d+$", "", op)] * 4 * threads


def _owner(registers: Registers, name: str) -> str:
    return next(life.owner for life in registers.lives if life.name == name)


def test_it_decides_and_says_so() -> None:
    """Attention forward at D 128 with 152 registers for a thread has another schedule."""
    emitter = Emitter(EXAMPLES / "triton" / "attention_forward_d128.ttir")
    (loop,) = emitter.lowered(2).loops
    few = emitter.machine.with_registers("compute", 152)
    free = emitter.machine.with_registers("compute", None)
    roomy = stretto.schedule(loop.wiring.loop, free, max_stages=3)
    tight = stretto.schedule(loop.wiring.loop, few, max_stages=3)
    assert roomy.ii is not None
    assert tight.ii is not None
    assert roomy.ii < tight.ii
    refused = verify(roomy.problem.loop, few, replace(roomy, machine=few.name))
    assert {v.rule for v in refused} == {"registers"}
    assert any(r.limit == "registers" for r in tight.refused)


def test_explained_by_registers() -> None:
    """Two tiles meet at II 5; with room for one of them, the first must be gone."""
    use = replace(KEEP, operands=(Operand("x"),), uses=(Use("v", 2),), latency=2)
    loop = Loop("l", (LOAD, use), tiles("x"))
    found = stretto.explain(loop, machine(4))
    assert found.best.ii == 6
    assert found.explanation is not None
    kinds = {reason.kind for reason in found.explanation.reasons}
    assert kinds == {"registers", "dependence"}
    change = next(r for r in found.explanation.relaxations if r.reason.kind == "registers")
    assert change.text == "4 registers more for each thread of g (4 -> 8)"
    assert change.ii == 3
    assert "registers of g" in "\n".join(found.view().to_text())
