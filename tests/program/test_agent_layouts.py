"""A tile that an agent works out for itself lies in the threads of that agent, not in another's.

tests/ttir/agents/length_of_tile.ttir has a trip count that is the largest element of a tile: the
warp that copies needs it as well as the four that multiply.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

from stretto.api.emitting import emit
from stretto.program import KernelProgram
from stretto.program.layouts import Named, WarpProduct
from stretto.program.walk import layouts_in

ROOT = Path(__file__).parents[2]
OURS = ROOT / "tests" / "ttir" / "agents" / "length_of_tile.ttir"
SHIPPED = [
    ROOT / "examples" / "triton" / f"{name}.ttir"
    for name in ("attention_forward_d64", "matmul_descriptors", "layer_norm")
]


def warps(layout: Named) -> int:
    """Those over which a layout spreads a tile."""
    return prod(layout.warps) if isinstance(layout, WarpProduct) else layout.warps


def of_each(program: KernelProgram) -> dict[str, set[int]]:
    """By agent: over how many warps its tiles lie."""
    return {agent.name: set(map(warps, layouts_in(agent.body))) for agent in program.agents}


@pytest.mark.parametrize("file", [OURS, *SHIPPED], ids=lambda file: file.stem)
def test_tiles_lie_in_the_threads_of_their_agent(file: Path) -> None:
    program = emit(str(file), "h200").emitted.program
    for agent in program.agents:
        assert of_each(program)[agent.name] <= {agent.warps}, agent.name


def test_whoever_copies_works_the_trip_count_out_of_a_tile_of_its_own() -> None:
    made = emit(str(OURS), "h200").emitted
    found = of_each(made.program)
    assert found["copy"] == {1}
    assert found["compute"] == {4}
    layouts = {layout.name: layout for layout in made.program.layouts}
    assert len(layouts) == len(made.program.layouts), "each has a name of its own"
