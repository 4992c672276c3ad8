"""What the text of a program says beside its operations.

scf.if %c { ... } {nv_tile.program.section = "prologue", nv_tile.program.step = 0}
%mma = nv_tileas... {stretto.name = "mma", nv_tile.program.stage = 2, nv_tile.program.cycle = 141}

In the kernel every operation also has its row of the loop, as `stretto.*` attributes.
"""

from __future__ import annotations

from typing import Literal

Section = Literal["prologue", "kernel", "epilogue"]

PREFIX = "nv_tile.program."
SECTION, STEP = PREFIX + "section", PREFIX + "step"
"""On the guards of the prologue and the epilogue, and on the kernel."""
STAGE, CYCLE = PREFIX + "stage", PREFIX + "cycle"
"""On every operation that issues."""
OPERANDS = PREFIX + "operands"
"""Which SSA operand each operand of the loop's operation is, where they are not the first ones;
-1: none."""
AGENTS = PREFIX + "agents"
"""Name and role of each agent, on the switch between them."""


def iterator_name(ring: str, op: str, side: str, distance: int) -> str:
    """The name that an iterator has unless it is said."""
    back = f"-{distance}" if distance else ""
    return f"{ring}.{op}.{'put' if side == 'producer' else 'take'}{back}"
