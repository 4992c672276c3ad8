"""Matrix products by the tensor cores.

%s = nv_tileas.async.tcgen05_mma %q, %k into %s_acc     s = q k, into a buffer
%o = nv_tileas.async.tcgen05_mma %p, %v acc %o          o = o + p v, in place
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_result_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from stretto.ir.dialect.constraints import FACTOR, SHARED, SMEM, TMEM, TOKEN, InBuffer, describe
from stretto.ir.dialect.types import shape_of
from stretto.vocabulary.spaces import REGISTERS

# As in `transfers.py`: of what is overridden, everything before it is overridden too.


class ProductOp(IRDLOperation):
    """a[m, k] × b[k, n], added to `acc` in place, or into a buffer."""

    T: ClassVar = VarConstraint("T", InBuffer(("tmem", REGISTERS)))

    a = operand_def(FACTOR)
    b = operand_def(FACTOR)
    accumulator = opt_operand_def(T)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$a `,` $b (`acc` $accumulator^)? (`into` $destination^)? (`after` $after^)? attr-dict "
        "`:` type($a) `,` type($b) `->` type($result) (`,` type($token)^)?"
    )

    def verify_(self) -> None:
        """a[m, k] × b[k, n] is [m, n], and it goes to one place."""
        if self.accumulator is not None and self.destination is not None:
            raise VerifyException(f"`{self.name}` has both `acc` and `into`; it fills one buffer")
        a, b, c = shape_of(self.a.type), shape_of(self.b.type), shape_of(self.result.type)
        if a is None or b is None or c is None:
            return
        told = f"`{self.name}` of {describe(self.a.type)} and {describe(self.b.type)}"
        if len(a) != 2 or len(b) != 2:
            raise VerifyException(f"{told}: both must have 2 dimensions")
        if a[1] != b[0]:
            raise VerifyException(f"{told}: {a[1]} columns meet {b[0]} rows")
        if c != (a[0], b[1]):
            raise VerifyException(f"{told} is {a[0]}x{b[1]}, not {describe(self.result.type)}")


@irdl_op_definition
class WgmmaOp(ProductOp):
    """A product by a warpgroup, summed up in tensor memory or registers."""

    name = "nv_tileas.async.wgmma"

    a = operand_def(FACTOR)
    b = operand_def(SMEM)


@irdl_op_definition
class Tcgen05MmaOp(ProductOp):
    """A product by the fifth-generation tensor cores, summed up in tensor memory."""

    name = "nv_tileas.async.tcgen05_mma"
    T: ClassVar = VarConstraint("T", TMEM)

    a = operand_def(SHARED)
    b = operand_def(SMEM)
    accumulator = opt_operand_def(T)
    destination = opt_operand_def(T)
    result = result_def(T)


@irdl_op_definition
class DotOp(ProductOp):
    """A product whose factors may still be in registers."""

    name = "nv_tileas.async.dot"


OPERATIONS = (WgmmaOp, Tcgen05MmaOp, DotOp)
