"""The dialect `nv_tileas`: tiles, how they move, what is computed on them, and pipelines.

types       smem_ref, tmem_ref, tensor, ptr, token, iterator, pipeline; what operations ask of them
transfers   TMA, copies, shared and tensor memory, buffers, barriers
views       slices, transposes, broadcasts, layouts
compute     matrix products, reductions, elementwise arithmetic, operations of any other kind
pipeline    create, acquire, write, commit, wait, read, release
pipelined   what a pipelined loop becomes
kernels     the grid, addresses, views of tensors
short_form  operands in a row and one type, read beside the form that is printed

"nv_tileas.async.wgmma"           ──►  async.wgmma       An operation's kind, by which machines
nv_tileas.generic "tt.load"       ──►  tt.load           know it, is its name without
"foo.bar" (of no known dialect)   ──►  foo.bar           `nv_tileas.`
"""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import BytesAttr, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Dialect, Operation

from stretto.ir.dialect import (
    compute,
    kernels,
    pipeline,
    pipelined,
    short_form,
    transfers,
    types,
    views,
)
from stretto.ops.opcodes import OPCODES, UNKNOWN, Opcode

NvTileas = Dialect(
    "nv_tileas",
    [
        *transfers.OPERATIONS,
        *views.OPERATIONS,
        *compute.OPERATIONS,
        *pipeline.OPERATIONS,
        *pipelined.OPERATIONS,
        *kernels.OPERATIONS,
    ],
    [*types.TYPES],
)

_PREFIX = "nv_tileas."
# Looked up by class: xDSL's operations are abstract classes, on which isinstance is slow.
_ROWS: dict[type[Operation], Opcode] = {
    defined: OPCODES[defined.name.removeprefix(_PREFIX)] for defined in NvTileas.operations
}
for _defined in NvTileas.operations:
    short_form.allow(_defined, _defined.name.removeprefix(_PREFIX))


def text_of(attribute: Attribute) -> str:
    """A string attribute's text; xDSL reads what is not ASCII as bytes."""
    if isinstance(attribute, BytesAttr):
        return attribute.data.decode("utf-8", "replace")
    return attribute.data if isinstance(attribute, StringAttr) else str(attribute)


def name_of(op: Operation) -> str:
    """The operation's name as its text has it."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def kind_of(op: Operation) -> str:
    """The opcode by which machines know it."""
    if isinstance(op, compute.GenericOp):
        return text_of(op.kind)
    if isinstance(op, ConstantOp):
        return "constant"
    return name_of(op).removeprefix(_PREFIX)


def row_of(op: Operation) -> Opcode:
    """What is true of an operation of the dialect; of any other, as its text has it, nothing."""
    return _ROWS.get(type(op), UNKNOWN)
