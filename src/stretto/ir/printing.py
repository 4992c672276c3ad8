"""Modules as text; what xDSL's own forms have no place for is printed in the generic one.

%c = arith.cmpi slt, %a, %b : i32                       as usual
%c = "arith.cmpi"(%a, %b) <{predicate = 2 : i64}> {nv_tile.aws.stage = 0 : i64} : ...
"""

from __future__ import annotations

from xdsl.dialects.arith import CmpfOp, CmpiOp
from xdsl.ir import Operation
from xdsl.printer import Printer

_WITHOUT_ATTRIBUTES = (CmpiOp, CmpfOp)
"""Operations whose custom form drops attributes, and with them schedules."""


class ModulePrinter(Printer):
    """A printer that loses no attribute."""

    def print_op(self, op: Operation) -> None:
        """An operation, in its custom form if that says everything."""
        usual = self.print_generic_format
        if isinstance(op, _WITHOUT_ATTRIBUTES) and op.attributes:
            self.print_generic_format = True
        super().print_op(op)
        self.print_generic_format = usual
