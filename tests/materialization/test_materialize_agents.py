"""Who issues what, and how many barriers that takes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from programs import TINY, Ready, placed, ready, two_agents
from stretto import Loop, Machine, build
from stretto.loop import Op, Use
from stretto.machine import Slot, load_machine
from stretto.machine.machine import Figure
from stretto.materialization import BarrierError, MaterializeError, materialize
from stretto.materialization.roster import assign, role_of


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("async.tiled_tma_load", "tma"),
        ("async.tiled_tma_store", "tma"),
        ("async.tma_gather", "tma"),
        ("tt.descriptor_load", "tma"),
        ("async.wgmma", "mma"),
        ("async.tcgen05_mma", "mma"),
        ("ttng.tc_gen5_mma", "mma"),
        ("async.dot", "mma"),
        ("async.tmem_copy", "mma"),
        ("async.mma_copy", "simt"),
        ("async.tmem_load", "simt"),
        ("arith.mulf", "simt"),
        ("reduce.max", "simt"),
    ],
)
def test_opcodes_ask_for_agents(kind: str, role: str) -> None:
    assert role_of(Op("op", kind)) == role


def test_addresses_and_views_go_where_they_are_read() -> None:
    crew = assign(ready("attention_forward").loop)
    assert crew.roles == {"tma": "tma", "mma": "mma", "simt": "simt"}
    assert [crew.agent_of[op] for op in ("row", "where", "load_k", "load_v")] == ["tma"] * 4
    assert crew.agent_of["k_transposed"] == crew.agent_of["qk"] == crew.agent_of["pv"] == "mma"
    assert crew.agent_of["m_wide"] == crew.agent_of["shift"] == "simt"


def test_an_operation_may_be_given_to_an_agent() -> None:
    case = ready("attention_forward")
    crew = assign(case.loop, {"load_o": "correction", "rescale_o": "correction"})
    assert crew.agent_of["load_o"] == "correction"
    # A view that one agent alone reads follows it there; its neighbours stay.
    assert crew.agent_of["alpha_wide"] == crew.agent_of["alpha_column"] == "correction"
    assert crew.agent_of["store_o"] == "simt"
    assert list(crew.roles) == ["tma", "mma", "simt", "correction"]
    assert crew.roles["correction"] == "simt"
    with pytest.raises(MaterializeError, match="given for `nobody`, which is no op"):
        assign(case.loop, {"nobody": "simt"})


def test_unspecialized_programs_have_one_agent() -> None:
    (agent,) = ready("gemm").program("unspecialized").agents
    assert (agent.name, agent.role) == ("all", "all")
    assert agent.ops == ("offset", "load_a", "load_b", "mma")


def halves() -> Loop:
    """Two chains that share nothing."""
    loop = build("halves")
    for n, cycles in ((0, 3), (1, 2), (2, 1)):
        x = loop.op(f"a{n}", "x", type="4xf32", uses=[Use("a", cycles)], latency=cycles)
        loop.op(f"b{n}", "x", x, type="4xf32", uses=[Use("b", cycles)], latency=cycles)
    return loop.finish()


def test_several_simt_groups_share_the_independent_work() -> None:
    crew = assign(halves(), simt_groups=2)
    groups = {
        name: [op for op, agent in crew.agent_of.items() if agent == name] for name in crew.roles
    }
    # The longest chain alone, the two shorter ones together.
    assert groups == {"simt": ["a0", "b0"], "simt1": ["a1", "b1", "a2", "b2"]}
    with pytest.raises(MaterializeError, match="0 SIMT groups"):
        assign(halves(), simt_groups=0)


# Barriers ---------------------------------------------------------------------------------


def many(pairs: int) -> Ready:
    """As many orders between two agents, none of which implies another."""
    loop = build("many")
    for n in range(pairs):
        loop.op(f"a{n}", "x", uses=[], latency=1)
        loop.op(f"b{n}", "y", uses=[], latency=1)
        loop.depends(f"a{n}", f"b{n}", n + 1)
    finished = loop.finish()
    starts = {op.name: 0 if op.name[0] == "a" else int(op.name[1:]) + 1 for op in finished.ops}
    agents = {op.name: op.name[0] for op in finished.ops}
    return placed(finished, pairs + 2, starts, **agents)


def capped(machine: Machine, cap: int) -> Machine:
    return replace(machine, limits=(Figure("named_barriers", (cap,), "", "test"),))


def test_barriers_are_counted_against_the_cap() -> None:
    case = many(3)
    program = case.program()
    assert len(program.mutexes) == 3
    machine = capped(case.machine, 3)
    assert materialize(case.loop, machine, case.analysis, "specialized", agents=case.agents)
    tight = capped(case.machine, 2)
    with pytest.raises(BarrierError) as caught:
        materialize(case.loop, tight, case.analysis, "specialized", agents=case.agents)
    assert (caught.value.needed, caught.value.cap) == (3, 2)
    assert str(caught.value) == (
        "many: 3 named barriers are needed, the machine has 2; "
        "they are taken by Mutex_a0, Mutex_a1, Mutex_a2"
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_barriers_of_the_loop_count_too() -> None:
    case = two_agents()
    own = replace(case.loop.ops[0], kind="barrier")
    loop = replace(case.loop, ops=(own, *case.loop.ops[1:]))
    program = materialize(loop, TINY, case.analysis, "specialized", agents=case.agents)
    assert program.named_barriers == ("Mutex_first", "first")


@pytest.mark.parametrize("name", ["blackwell", "b200-pipes"])
def test_the_machines_have_sixteen_named_barriers(name: str) -> None:
    assert load_machine(name, {}).limit("named_barriers") == 16
    assert Machine("m", "", (Slot(1, "a", 1),)).limit("named_barriers") is None


def test_barriers_in_memory_are_two_for_each_slot() -> None:
    assert ready("gemm").program().memory_barriers == 2 * (5 + 5)
