"""What is computed on tiles: products by the tensor cores, reductions, elementwise arithmetic.

%s = nv_tileas.async.tcgen05_mma %q, %k into %s_acc     s = q k, into a buffer
%o = nv_tileas.async.tcgen05_mma %p, %v acc %o          o = o + p v, in place
%m = nv_tileas.reduce.max %s axis 1
%x = nv_tileas.arith.mulf %s, %scale                    a scalar is spread over the tile
%x = nv_tileas.generic "tt.load"(%p) : ...              whatever a machine knows as `tt.load`
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import BytesAttr, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from stretto.ir.dialect.types import (
    FACTOR,
    NUMBERS,
    REGISTER,
    SHARED,
    SMEM,
    TMEM,
    TOKEN,
    InBuffer,
    define,
    describe,
    element_of,
    same_elements,
    same_shape,
    shape_of,
)
from stretto.ops.products import DOT_FMA, MMA_SYNC
from stretto.ops.spaces import REGISTERS

# As in `transfers.py`: of what is overridden, everything before it is overridden too.


class ProductOp(IRDLOperation):
    """a[m, k] × b[k, n], added to `acc` in place, or into a buffer; leading dimensions, which all
    have, count products that are done one after the other."""

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
        verify_product(self, self.a, self.b, self.result)


def verify_product(op: IRDLOperation, left: SSAValue, right: SSAValue, result: SSAValue) -> None:
    """Refuse factors that do not go together, and a result that is not theirs."""
    a, b, c = shape_of(left.type), shape_of(right.type), shape_of(result.type)
    if a is None or b is None or c is None:
        return
    told = f"`{op.name}` of {describe(left.type)} and {describe(right.type)}"
    if len(a) < 2 or len(b) < 2:
        raise VerifyException(f"{told}: both must have 2 dimensions")
    if a[:-2] != b[:-2]:
        raise VerifyException(f"{told}: they are not as many products")
    if a[-1] != b[-2]:
        raise VerifyException(f"{told}: {a[-1]} columns meet {b[-2]} rows")
    wanted = (*a[:-1], b[-1])
    if c != wanted:
        made = "x".join(map(str, wanted))
        raise VerifyException(f"{told} is {made}, not {describe(result.type)}")


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


class RegisterProductOp(IRDLOperation):
    """a[m, k] × b[k, n] + total, of registers and in registers."""

    T: ClassVar = VarConstraint("T", REGISTER)

    a = operand_def(REGISTER)
    b = operand_def(REGISTER)
    total = opt_operand_def(T)
    result = result_def(T)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$a `,` $b (`acc` $total^)? attr-dict `:` type($a) `,` type($b) `->` type($result)"
    )

    def verify_(self) -> None:
        """Its factors go together, and make what it says."""
        verify_product(self, self.a, self.b, self.result)


@irdl_op_definition
class WgmmaWaitOp(IRDLOperation):
    """Waits until products are done: what they read is free, and what they made may be read.

    A product of a warpgroup tells nobody when it is done; somebody has to wait for it.
    """

    name = "nv_tileas.async.wgmma_wait"
    value = opt_operand_def(REGISTER)
    after = var_operand_def(TOKEN)
    freed = var_operand_def(SMEM)
    result = opt_result_def(REGISTER)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "($value^ `:` type($value))? (`after` $after^)? (`frees` $freed^ `:` type($freed))? "
        "attr-dict (`->` type($result)^)?"
    )

    def verify_(self) -> None:
        """It hands on what it waits for."""
        waited, handed = (v and v.type for v in (self.value, self.result))
        if waited != handed:
            raise VerifyException(f"`{self.name}` hands on a value of the type it waits for")
        if self.value is None and not self.after:
            raise VerifyException(f"`{self.name}` waits for nothing; give a value or a token")


# Reductions ---------------------------------------------------------------------------------


class _Reduce(IRDLOperation):
    source = operand_def(REGISTER)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(NUMBERS)

    assembly_format = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)"

    def verify_(self) -> None:
        """The axis disappears."""
        same_elements(self, source=self.source.type, result=self.result.type)
        shape, axis = shape_of(self.source.type) or (), self.axis.value.data
        if not 0 <= axis < len(shape):
            raise VerifyException(f"`{self.name}`: axis {axis} of {len(shape)} dimensions")
        if (*shape[:axis], *shape[axis + 1 :]) != shape_of(self.result.type):
            raise VerifyException(
                f"`{self.name}` of {describe(self.source.type)} along axis {axis} is not "
                f"{describe(self.result.type)}"
            )


# Elementwise ------------------------------------------------------------------------------


class _Elementwise(IRDLOperation):
    """Its result is made of all its operands, element by element."""

    result = result_def(NUMBERS)

    def verify_(self) -> None:
        """Elements like the result's; its shape, or a scalar."""
        names = (name for name, _ in self.get_irdl_definition().operands)
        self.check(dict(zip(names, self.operands, strict=True)))

    def check(self, operands: dict[str, SSAValue]) -> None:
        """Refuse operands that do not go into the result."""
        for name, operand in operands.items():
            same_elements(self, result=self.result.type, **{name: operand.type})
            if shape_of(operand.type) not in ((), shape_of(self.result.type)):
                told = f"{name} is {describe(operand.type)}"
                result = describe(self.result.type)
                raise VerifyException(f"`{self.name}`: {told}, the result is {result}")


class _Unary(_Elementwise):
    source = operand_def(NUMBERS)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"


class _Cast(_Unary):
    def verify_(self) -> None:
        """The same shape on both sides."""
        if shape_of(self.source.type) != shape_of(self.result.type):
            told = f"the source is {describe(self.source.type)}"
            result = describe(self.result.type)
            raise VerifyException(f"`{self.name}`: {told}, the result is {result}")


class _Binary(_Elementwise):
    lhs = operand_def(NUMBERS)
    rhs = operand_def(NUMBERS)
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"


class _Ternary(_Elementwise):
    a = operand_def(NUMBERS)
    b = operand_def(NUMBERS)
    c = operand_def(NUMBERS)
    assembly_format = (
        "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c) `->` type($result)"
    )


@irdl_op_definition
class SelectOp(_Elementwise):
    """One of two tiles, element by element."""

    name = "nv_tileas.arith.select"

    condition = operand_def(NUMBERS)
    on_true = operand_def(NUMBERS)
    on_false = operand_def(NUMBERS)

    assembly_format = (
        "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` "
        "type($on_true) `,` type($on_false) `->` type($result)"
    )

    def verify_(self) -> None:
        """A condition of i1; two tiles of the result's type."""
        if element_of(self.condition.type) != str(i1):
            raise VerifyException(f"`{self.name}`: the condition is {self.condition.type}, not i1")
        self.check({"on_true": self.on_true, "on_false": self.on_false})


class _Compare(IRDLOperation):
    predicate = prop_def(base(StringAttr))
    lhs = operand_def(NUMBERS)
    rhs = operand_def(NUMBERS)
    result = result_def(NUMBERS)

    assembly_format = (
        "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
    )

    def verify_(self) -> None:
        """Two tiles of one type, a tile of i1, and a comparison that is one."""
        same_shape(self, lhs=self.lhs.type, rhs=self.rhs.type)
        shape = shape_of(self.lhs.type)
        if element_of(self.result.type) != str(i1) or shape_of(self.result.type) != shape:
            raise VerifyException(f"`{self.name}` of {self.lhs.type} is not {self.result.type}")
        known = arith.CMPI_COMPARISON_OPERATIONS
        known = known if self.name.endswith("cmpi") else arith.CMPF_COMPARISON_OPERATIONS
        if self.predicate.data not in known:
            raise VerifyException(f"`{self.name}`: `{self.predicate.data}` is no comparison")


ELEMENTWISE: tuple[type[IRDLOperation], ...] = (
    *(
        define(_Binary, f"arith.{kind}", meaning)
        for kind, meaning in (
            ("addf", "a + b."),
            ("subf", "a - b."),
            ("mulf", "a * b."),
            ("divf", "a / b."),
            ("maxnumf", "The greater of two."),
            ("minnumf", "The lesser of two."),
        )
    ),
    *(
        define(_Unary, kind, meaning)
        for kind, meaning in (
            ("arith.negf", "-a."),
            ("math.absf", "a without its sign."),
            ("math.exp2", "2 to the power of a."),
            ("math.exp", "e to the power of a."),
            ("math.log2", "The logarithm to base 2."),
            ("math.rsqrt", "One over the square root."),
            ("math.sqrt", "The square root."),
            ("math.tanh", "The hyperbolic tangent."),
        )
    ),
    *(
        define(_Cast, f"arith.{kind}", meaning)
        for kind, meaning in (
            ("extf", "To a wider floating-point element."),
            ("truncf", "To a narrower floating-point element."),
            ("sitofp", "From integers to floating point."),
            ("uitofp", "From integers without a sign to floating point."),
            ("fptosi", "From floating point to integers."),
            ("fptoui", "From floating point to integers without a sign."),
            ("extsi", "To a wider integer element, with its sign."),
            ("extui", "To a wider integer element, with zeros."),
            ("trunci", "To a narrower integer element."),
            ("index_cast", "From indices to integers, or back."),
        )
    ),
    define(_Ternary, "math.fma", "a * b + c."),
    SelectOp,
    define(_Compare, "arith.cmpi", "Whether it is so, element by element, of integers."),
    define(_Compare, "arith.cmpf", "Whether it is so, element by element, of floating point."),
)

REDUCTIONS: tuple[type[IRDLOperation], ...] = tuple(
    define(_Reduce, f"reduce.{kind}", meaning)
    for kind, meaning in (
        ("max", "The greatest element along an axis."),
        ("sum", "The sum of the elements along an axis."),
        ("maximum", "The greatest element along an axis; not a number if one is none."),
        ("min", "The least element along an axis."),
        ("minimum", "The least element along an axis; not a number if one is none."),
        ("umax", "The greatest element along an axis, taken without a sign."),
        ("umin", "The least element along an axis, taken without a sign."),
        ("prod", "The product of the elements along an axis."),
        ("and", "The elements along an axis, and-ed bit by bit."),
        ("or", "The elements along an axis, or-ed bit by bit."),
        ("xor", "The elements along an axis, xor-ed bit by bit."),
    )
)

# Any other ----------------------------------------------------------------------------------


@irdl_op_definition
class GenericOp(IRDLOperation):
    """An operation of any kind, by the name its machine knows it by."""

    name = "nv_tileas.generic"

    kind = prop_def(base(StringAttr) | base(BytesAttr))
    arguments = var_operand_def(AnyAttr())
    made = var_result_def(AnyAttr())

    assembly_format = "$kind `(` $arguments `)` attr-dict `:` functional-type($arguments, $made)"


OPERATIONS = (
    WgmmaOp,
    Tcgen05MmaOp,
    define(ProductOp, "async.dot", "A product whose factors may still be in registers."),
    define(RegisterProductOp, MMA_SYNC, "A product by the tensor cores, a warp at a time."),
    define(RegisterProductOp, DOT_FMA, "A product by multiplications and additions of threads."),
    WgmmaWaitOp,
    *REDUCTIONS,
    *ELEMENTWISE,
    GenericOp,
)
