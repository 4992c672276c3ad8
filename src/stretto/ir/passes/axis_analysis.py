"""`tileas-axis-analysis`: what is known of integers and addresses, told at their places.

kernel.mlir:7:8: remark: `%rows`: contiguity [128], divisibility [128], constancy [1], bounds 0..

It changes nothing. What it knows is what the lowering of kernels goes by; see `kernel/axes.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from stretto.ir.kernels.functions import analysed_kernels
from stretto.ir.telling import parsed_of, tell
from stretto.kernel.axes import analyse


@dataclass(frozen=True)
class AxisAnalysis(ModulePass):
    """Tell contiguity, divisibility, constancy and bounds of every integer and address."""

    name = "tileas-axis-analysis"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Analyse every function of a module."""
        del ctx
        parsed = parsed_of(op)
        for found in analysed_kernels(parsed):
            axes = analyse(found.kernel)
            for number, (value, kept) in enumerate(found.values.items()):
                axis = axes.get(kept)
                if axis is None:
                    continue
                named = f"`%{value.name_hint}`" if value.name_hint else f"value {number}"
                tell(parsed.diagnose(_owner(value, op), "remark", f"{named}: {axis}"))


def _owner(value: SSAValue, module: ModuleOp) -> Operation:
    if isinstance(value, BlockArgument):
        return value.block.parent_op() or module
    owner = value.owner
    assert isinstance(owner, Operation)
    return owner
