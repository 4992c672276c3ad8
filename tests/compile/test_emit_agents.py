"""Operations given to agents by name: what is emitted then still does what NumPy does."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from unittest.mock import patch

import pytest
from test_emit import GEMM, attention, gemm

import stretto
from gluon_cases import holds, shipped
from stretto.api.emitting import emit
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel
from stretto.errors import StrettoError
from stretto.machine import Machine, load_machine

ATTENTION = "triton/attention_forward_d64"


def placed(
    name: str, consumers: int | None, agents: dict[str, str], machine: Machine | None = None
) -> EmittedKernel:
    """Of the first stage count that is tried."""
    with patch.dict(STAGES, {"specialized": STAGES["specialized"][:1]}):
        return emit(shipped(name), machine, consumers=consumers, agents=agents)


def function(source: str, name: str) -> str:
    """The text of one function."""
    return source.partition(f"def {name}(")[2].partition("\n@gluon")[0]


@pytest.mark.parametrize("consumers", [1, 2])
def test_a_group_that_computes_may_issue_a_copy(consumers: int) -> None:
    source = placed(GEMM, consumers, {"b": "compute"}).source
    assert "tma_load(b_desc" in function(source, "compute_agent")
    assert "tma_load(b_desc" not in function(source, "copy_agent")
    for trips in (0, 1, 2, 5, 12):
        gemm(source, trips, naps=0.2)


def test_an_agent_that_has_nothing_to_do_is_left_out() -> None:
    made = placed(GEMM, 1, {"a": "compute", "b": "compute"})
    assert "copy_agent" not in made.source
    assert "warp_specialize" not in made.source
    assert made.emitted.maxnreg is None
    for trips in (0, 1, 5, 12):
        gemm(made.source, trips, naps=0.2)


def test_either_consumer_may_issue_a_copy_for_both() -> None:
    source = placed(ATTENTION, 2, {"k_1": "compute.1"}).source
    assert "tma_load(k_desc" in function(source, "compute_1_agent")
    for trips in (0, 1, 2, 3, 9):
        attention(source, trips, 64, 64)


def test_a_copy_holds_the_issue_slot_of_the_agent_it_is_given_to() -> None:
    (analysis,) = placed(GEMM, 1, {"b": "compute"}).analyses
    slots = {op.name: [use.slot for use in op.uses or ()] for op in analysis.problem.loop.ops}
    assert slots["a"] == ["TMA", "copy"]
    assert slots["b"] == ["TMA", "compute"]


@pytest.fixture
def two_copiers(tmp_path: Path) -> Machine:
    """The h200 with a second warp that copies, if it is asked to."""
    text = Path(stretto.machine.__file__).with_name("targets").joinpath("h200.toml").read_text()
    more = """
[slots.fetch]
id = 10
capacity = 1
kind = "pipe"
role = "issue slot of another warp that copies"
source = "test"

[agents.fetch]
issues = []
warps = 1
registers = 24
source = "test"
"""
    file = tmp_path / "two.toml"
    file.write_text(text + more)
    return load_machine(str(file))


def test_a_second_agent_may_copy(two_copiers: Machine) -> None:
    source = placed(GEMM, 2, {"b": "fetch"}, two_copiers).source
    assert "tma_load(b_desc" in function(source, "fetch_agent")
    assert "tma_load(a_desc" in function(source, "copy_agent")
    holds(GEMM, source)


def refused(name: str, consumers: int | None, agents: dict[str, str]) -> str:
    with pytest.raises(StrettoError) as error:
        placed(name, consumers, agents)
    return str(error.value)


def test_registers_do_not_go_from_agent_to_agent() -> None:
    told = refused(ATTENTION, 1, {"p_4": "copy"})
    assert "attention_forward.py:" in told
    assert told.endswith("takes `p_4` in registers from another agent")


def test_what_is_not_there_is_told_with_what_is() -> None:
    assert refused(GEMM, 1, {"x": "copy"}) == (
        "no operation `x` in a loop; there are: a, b, total, wgmma_wait_3"
    )
    assert refused(GEMM, 1, {"b": "compute.1"}) == (
        "no agent `compute.1` for `b`; there are: copy, compute"
    )


def test_names_are_those_of_one_count_of_consumers() -> None:
    assert refused(GEMM, None, {"b": "compute"}) == (
        "agents are given, and 1 to 2 consumers are tried; "
        "operations are named once rows are split: say how many consumers there are"
    )


def test_what_a_machine_does_not_state_is_told(tmp_path: Path) -> None:
    text = (resources.files("stretto.machine") / "targets" / "h200.toml").read_text("utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("[limits.thread_registers]", "[limits.others]"))
    with pytest.raises(StrettoError, match=r"does not state `limits\.thread_registers`"):
        emit(shipped(GEMM), str(file))
