"""`tileas-axis-analysis`: what is known of addresses, written on what touches global memory.

    tiled_tma_load %A[%row, %zero] ...   ──►   the same {stretto.facts = {contiguity = 64, ...}}

kernel.mlir:7:8: remark: `%rows`: contiguity [128], divisibility [128], constancy [1], bounds 0..

Those are the facts that a reader of the module goes by where none are written; facts that are
stated stand. What is known of each integer and address is told as remarks at their places.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from stretto.ir.attributes import STATED, to_attribute
from stretto.ir.loops.module import Addresses
from stretto.ir.telling import parsed_of, tell
from stretto.loop.json import part_to_json


@dataclass(frozen=True)
class AxisAnalysis(ModulePass):
    """Write the facts of accesses to global memory; tell those of integers and addresses."""

    name = "tileas-axis-analysis"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Analyse every function of a module."""
        del ctx
        parsed = parsed_of(op)
        addresses = Addresses(parsed)
        for number, (value, axis) in enumerate(addresses.axes()):
            if axis is not None:
                named = f"`%{value.name_hint}`" if value.name_hint else f"value {number}"
                tell(parsed.diagnose(_owner(value, op), "remark", f"{named}: {axis}"))
        for access in op.walk():
            row = part_to_json(addresses.of(access))
            if row and FACTS not in access.attributes:
                access.attributes[FACTS] = to_attribute(row)


FACTS = STATED + "facts"


def _owner(value: SSAValue, module: ModuleOp) -> Operation:
    if isinstance(value, BlockArgument):
        return value.block.parent_op() or module
    owner = value.owner
    assert isinstance(owner, Operation)
    return owner
