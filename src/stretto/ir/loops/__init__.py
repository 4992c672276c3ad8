"""Loops of MLIR modules, read and written.

module   a module, asked for what loops are made of (`extraction/source.py`)
writer   the way back: a loop as text
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from stretto.extraction import LeftAlone, LoopInText, LoopsOfText, loops_of
from stretto.ir.loops.module import Module
from stretto.ir.parsing import Parsed
from stretto.machine import Machine

LoopInModule = LoopInText[Operation, SSAValue]
LeftAloneInModule = LeftAlone[Operation]
LoopsOfModule = LoopsOfText[Operation, SSAValue]


def read_loops(
    parsed: Parsed, machine: Machine | str | None = None, *, regions: bool = True
) -> LoopsOfModule:
    """Every loop of a module on a machine; MlirError where a loop is wrong in itself."""
    return loops_of(Module(parsed), machine, regions=regions)
