"""Arithmetic: MLIR's `arith` and `math`, element by element, one row each.

    arith.divsi   i i -> i   towards zero   {0} // {1}   divi signed zero

Columns are those of `rows.py`. What is said of integers is said of numbers that wrap around; an
`i1` that is taken with a sign is 0 or -1.
"""

from __future__ import annotations

from stretto.ops.rows import NONE, Row, elementwise

_BINARY, _UNARY, _CAST = "o , o B A : R", "o B A : R", "o B A : T to R"
_FFF, _FF, _III = "f f -> f", "f -> f", "i i -> i"
_EXACT = "{0}.to({type})"

# fmt: off
_FLOATS = (
    elementwise("arith.addf", _FFF, "a + b", numpy="add", gluon="{0} + {1}", cost="add", ttir=_BINARY, tileir=("addf",), reduces="reduce.sum"),
    elementwise("arith.subf", _FFF, "a - b", numpy="subtract", gluon="{0} - {1}", cost="add", ttir=_BINARY, tileir=("subf",)),
    elementwise("arith.mulf", _FFF, "a * b", numpy="multiply", gluon="{0} * {1}", cost="multiply", ttir=_BINARY, tileir=("mulf",), reduces="reduce.prod"),
    elementwise("arith.divf", _FFF, "a / b", numpy="divide", gluon="{0} / {1}", cost="divide", ttir=_BINARY, tileir=("divf",)),
    elementwise("arith.precise_divf", _FFF, "a / b, rounded to nearest", numpy="divide", gluon="gl.div_rn({0}, {1})", cost="divide", ttir="tt.precise_divf o , o A : R", symbols="fdiv_rn ddiv_rn"),
    elementwise("arith.remf", _FFF, "the remainder of a / b, with the sign of a", numpy="fmod", gluon="{0} % {1}", cost="divide", ttir=_BINARY, symbols="fmodf fmod", tileir=("remf",)),
    elementwise("arith.maxnumf", _FFF, "the greater of two; of a number and none, the number", numpy="fmax", gluon="gl.maximum({0}, {1})", cost="greater", ttir=_BINARY, tileir=("maxf",), reduces="reduce.max"),
    elementwise("arith.minnumf", _FFF, "the lesser of two; of a number and none, the number", numpy="fmin", gluon="gl.minimum({0}, {1})", cost="greater", ttir=_BINARY, tileir=("minf",), reduces="reduce.min"),
    elementwise("arith.maximumf", _FFF, "the greater of two; not a number if one is none", numpy="maximum", gluon="gl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", cost="greater_or_nan", ttir=_BINARY, tileir=("maxf propagate_nan",), reduces="reduce.maximum"),
    elementwise("arith.minimumf", _FFF, "the lesser of two; not a number if one is none", numpy="minimum", gluon="gl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", cost="greater_or_nan", ttir=_BINARY, tileir=("minf propagate_nan",), reduces="reduce.minimum"),
    elementwise("arith.negf", _FF, "-a", numpy="negative", gluon="-{0}", cost="sign", ttir=_UNARY, tileir=("negf",)),
    elementwise("arith.cmpf", "f f -> i1", "`predicate` as MLIR spells it: oeq, olt, une ...", numpy="compare", gluon="{0} {1}", cost="compare", ttir="W:predicate , o , o B A : C", tileir=("cmpf",), mlir="arith.cmpf nv_tileas.arith.cmpf", attributes=("predicate",)),
)
_INTEGERS = (
    elementwise("arith.addi", _III, "a + b", numpy="add", gluon="{0} + {1}", cost="integer", ttir=_BINARY, tileir=("addi",), reduces="reduce.sum", axis="add"),
    elementwise("arith.subi", _III, "a - b", numpy="subtract", gluon="{0} - {1}", cost="integer", ttir=_BINARY, tileir=("subi",), axis="subtract"),
    elementwise("arith.muli", _III, "a * b", numpy="multiply", gluon="{0} * {1}", cost="multiply_integers", ttir=_BINARY, tileir=("muli",), reduces="reduce.prod", axis="multiply"),
    elementwise("arith.mulhiui", _III, "the upper half of a * b, without a sign", numpy="unsigned_high", gluon="gl.umulhi({u0}, {u1})", cost="multiply_integers", ttir="tt.mulhiui o , o A : R", symbols="umulhi umul64hi", tileir=("mulhii",)),
    elementwise("arith.mulhisi", _III, "the upper half of a * b, with a sign", numpy="high", gluon="libdevice.mulhi({0}, {1})", cost="multiply_integers", symbols="mulhi mul64hi"),
    elementwise("arith.divsi", _III, "a / b, towards zero", numpy="quotient", gluon="{0} // {1}", cost="quotient", ttir=_BINARY, tileir=("divi signed zero",), axis="divide"),
    elementwise("arith.divui", _III, "a / b without a sign", numpy="unsigned_quotient", gluon="{u0} // {u1}", cost="quotient", ttir=_BINARY, tileir=("divi unsigned zero", "divi unsigned negative_inf"), axis="divide"),
    elementwise("arith.remsi", _III, "the remainder of a / b, with the sign of a", numpy="remainder", gluon="{0} % {1}", cost="quotient", ttir=_BINARY, tileir=("remi signed",), axis="remainder"),
    elementwise("arith.remui", _III, "the remainder of a / b without a sign", numpy="unsigned_remainder", gluon="{u0} % {u1}", cost="quotient", ttir=_BINARY, tileir=("remi unsigned",), axis="remainder"),
    elementwise("arith.floordivsi", _III, "a / b, rounded down", numpy="quotient_down", gluon="({0} - (({0} % {1} + {1}) % {1})) // {1}", cost="quotient_rounded", ttir=_BINARY, tileir=("divi signed negative_inf",), axis="divide"),
    elementwise("arith.ceildivsi", _III, "a / b, rounded up", numpy="quotient_up", gluon="gl.cdiv({0}, {1})", cost="quotient_rounded", ttir=_BINARY, tileir=("divi signed positive_inf",), axis="divide_up"),
    elementwise("arith.ceildivui", _III, "a / b without a sign, rounded up", numpy="unsigned_quotient_up", gluon="gl.cdiv({u0}, {u1})", cost="quotient_rounded", ttir=_BINARY, tileir=("divi unsigned positive_inf",), axis="divide_up"),
    elementwise("arith.maxsi", _III, "the greater of two", numpy="maximum", gluon="gl.maximum({0}, {1})", cost="extreme", ttir=_BINARY, tileir=("maxi signed",), reduces="reduce.max", axis="least"),
    elementwise("arith.minsi", _III, "the lesser of two", numpy="minimum", gluon="gl.minimum({0}, {1})", cost="extreme", ttir=_BINARY, tileir=("mini signed",), reduces="reduce.min", axis="least"),
    elementwise("arith.maxui", _III, "the greater of two without a sign", numpy="unsigned_maximum", gluon="gl.maximum({u0}, {u1})", cost="extreme", ttir=_BINARY, tileir=("maxi unsigned",), reduces="reduce.umax"),
    elementwise("arith.minui", _III, "the lesser of two without a sign", numpy="unsigned_minimum", gluon="gl.minimum({u0}, {u1})", cost="extreme", ttir=_BINARY, tileir=("mini unsigned",), reduces="reduce.umin"),
    elementwise("arith.andi", _III, "bits that both have", numpy="bitwise_and", gluon="{0} & {1}", cost="bits", ttir=_BINARY, tileir=("andi",), reduces="reduce.and", axis="logic"),
    elementwise("arith.ori", _III, "bits that one of both has", numpy="bitwise_or", gluon="{0} | {1}", cost="bits", ttir=_BINARY, tileir=("ori",), reduces="reduce.or", axis="logic"),
    elementwise("arith.xori", _III, "bits that only one of both has", numpy="bitwise_xor", gluon="{0} ^ {1}", cost="bits", ttir=_BINARY, tileir=("xori",), reduces="reduce.xor", axis="logic"),
    elementwise("arith.shli", _III, "bits moved up; none are left from the width on", numpy="shift_up", gluon="{0} << {1}", cost="bits", ttir=_BINARY, tileir=("shli",), axis="shift"),
    elementwise("arith.shrsi", _III, "bits moved down, with the sign", numpy="shift_down", gluon="{0} >> {1}", cost="bits", ttir=_BINARY, tileir=("shri signed",), axis="shift"),
    elementwise("arith.shrui", _III, "bits moved down, with zeros", numpy="unsigned_shift_down", gluon="{u0} >> {u1}", cost="bits", ttir=_BINARY, tileir=("shri unsigned",), axis="shift"),
    elementwise("arith.cmpi", "i i -> i1", "`predicate` as MLIR spells it: slt, uge, ne ...", numpy="compare", gluon="{0} {1}", cost="compare_integers", ttir="W:predicate , o , o A : C", tileir=("cmpi",), mlir="arith.cmpi nv_tileas.arith.cmpi", attributes=("predicate",), axis="compared"),
    elementwise("arith.select", "c x x -> x", "condition, then, else; the condition may be a scalar", numpy="select", gluon="gl.where({0}, {1}, {2})", cost="select", ttir="o , o , o A : V", tileir=("select",), mlir="arith.select nv_tileas.arith.select", axis="select"),
)
_CASTS = (
    elementwise("arith.extf", "f -> g ; wider", "the same number, of more bits", numpy="same", gluon=_EXACT, cost="convert", ttir=_CAST, tileir=("ftof wider",)),
    elementwise("arith.truncf", "f -> g ; narrower", "the nearest number of fewer bits", numpy="same", gluon=_EXACT, cost="convert", ttir=_CAST, tileir=("ftof narrower",)),
    elementwise("arith.extsi", "i -> j ; wider", "the same number, with its sign", numpy="same", gluon=_EXACT, cost="integer", ttir=_CAST, tileir=("exti signed",), mlir="arith.extsi nv_tileas.arith.extsi", renames=True, axis="same"),
    elementwise("arith.extui", "i -> j ; wider", "the same bits, and zeros", numpy="unsigned", gluon=_EXACT, cost="integer", ttir=_CAST, tileir=("exti unsigned",), mlir="arith.extui nv_tileas.arith.extui", renames=True, axis="unsigned"),
    elementwise("arith.trunci", "i -> j ; narrower", "the lower bits", numpy="same", gluon=_EXACT, cost="integer", ttir=_CAST, tileir=("trunci",), mlir="arith.trunci nv_tileas.arith.trunci", renames=True, axis="narrowed"),
    elementwise("arith.sitofp", "i -> f", "the nearest number", numpy="same", gluon=_EXACT, cost="convert", ttir=_CAST, tileir=("itof signed",), mlir="arith.sitofp nv_tileas.arith.sitofp"),
    elementwise("arith.uitofp", "i -> f", "the nearest number to one without a sign", numpy="unsigned", gluon=_EXACT, cost="convert", ttir=_CAST, tileir=("itof unsigned",), mlir="arith.uitofp nv_tileas.arith.uitofp"),
    elementwise("arith.fptosi", "f -> i", "towards zero", numpy="number towards_zero", gluon=_EXACT, cost="convert", ttir=_CAST, tileir=("ftoi signed",), mlir="arith.fptosi nv_tileas.arith.fptosi"),
    elementwise("arith.fptoui", "f -> i", "towards zero, without a sign", numpy="unsigned towards_zero", gluon=_EXACT, cost="convert", ttir=_CAST, tileir=("ftoi unsigned",), mlir="arith.fptoui nv_tileas.arith.fptoui"),
    elementwise("arith.index_cast", "i -> j", "the same number", numpy="same", gluon=_EXACT, cost="integer", ttir=_CAST, mlir="arith.index_cast nv_tileas.arith.index_cast", renames=True, axis="narrowed"),
    elementwise("arith.bitcast", "x -> y ; bits", "the same bits as another type", numpy="bitcast", gluon="{0}.to({type}, bitcast=True)", cost="none", ttir=_CAST, tileir=("bitcast",)),
)


def _function(name: str, says: str, numpy: str, gluon: str, *, cost: str = "special", tileir: str = NONE, symbols: str = "", types: str = _FF, ttir: str = _UNARY) -> Row:
    """A row of `math`."""
    return elementwise(f"math.{name}", types, says, numpy=numpy, gluon=gluon, cost=cost, ttir=ttir, symbols=symbols, tileir=(tileir,))


_MATH = (
    _function("absf", "a without its sign", "absolute", "gl.abs({0})", cost="sign", tileir="absf", symbols="fabsf fabs"),
    _function("absi", "a without its sign", "absolute", "gl.abs({0})", cost="magnitude", tileir="absi", symbols="abs llabs", types="i -> i"),
    _function("exp", "e to the power of a", "exp", "gl.exp({f0})", tileir="exp"),
    _function("exp2", "2 to the power of a", "exp2", "gl.exp2({f0})", tileir="exp2"),
    _function("expm1", "e to the power of a, less 1", "expm1", "libdevice.expm1({f0})", cost="library", symbols="expm1f expm1"),
    _function("log", "the natural logarithm", "log", "gl.log({f0})", tileir="log"),
    _function("log2", "the logarithm to base 2", "log2", "gl.log2({f0})", tileir="log2"),
    _function("log10", "the logarithm to base 10", "log10", "libdevice.log10({f0})", symbols="log10f log10"),
    _function("log1p", "the natural logarithm of 1 + a", "log1p", "libdevice.log1p({f0})", cost="library", symbols="log1pf log1p"),
    _function("sqrt", "the square root", "sqrt", "gl.sqrt({f0})", tileir="sqrt"),
    _function("precise_sqrt", "the square root, rounded to nearest", "sqrt", "gl.sqrt_rn({f0})", symbols="fsqrt_rn dsqrt_rn", ttir="tt.precise_sqrt o A : R"),
    _function("rsqrt", "one over the square root", "rsqrt", "gl.rsqrt({f0})", tileir="rsqrt", symbols="rsqrtf rsqrt"),
    _function("cbrt", "the cube root", "cbrt", "libdevice.cbrt({f0})", cost="library", symbols="cbrtf cbrt"),
    _function("sin", "the sine", "sin", "gl.sin({f0})", tileir="sin"),
    _function("cos", "the cosine", "cos", "gl.cos({f0})", tileir="cos"),
    _function("tan", "the tangent", "tan", "libdevice.tan({f0})", cost="library", tileir="tan", symbols="tanf tan"),
    _function("sinh", "the hyperbolic sine", "sinh", "libdevice.sinh({f0})", cost="library", tileir="sinh", symbols="sinhf sinh"),
    _function("cosh", "the hyperbolic cosine", "cosh", "libdevice.cosh({f0})", cost="library", tileir="cosh", symbols="coshf cosh"),
    _function("tanh", "the hyperbolic tangent", "tanh", "libdevice.tanh({f0})", tileir="tanh", symbols="tanhf tanh"),
    _function("asin", "the inverse of the sine", "arcsin", "libdevice.asin({f0})", cost="library", symbols="asinf asin"),
    _function("acos", "the inverse of the cosine", "arccos", "libdevice.acos({f0})", cost="library", symbols="acosf acos"),
    _function("atan", "the inverse of the tangent", "arctan", "libdevice.atan({f0})", cost="library", symbols="atanf atan"),
    _function("atan2", "the angle of the point (b, a)", "arctan2", "libdevice.atan2({f0}, {f1})", cost="library", tileir="atan2", symbols="atan2f atan2", types=_FFF, ttir=_BINARY),
    _function("asinh", "the inverse of the hyperbolic sine", "arcsinh", "libdevice.asinh({f0})", cost="library", symbols="asinhf asinh"),
    _function("acosh", "the inverse of the hyperbolic cosine", "arccosh", "libdevice.acosh({f0})", cost="library", symbols="acoshf acosh"),
    _function("atanh", "the inverse of the hyperbolic tangent", "arctanh", "libdevice.atanh({f0})", cost="library", symbols="atanhf atanh"),
    _function("erf", "the error function", "erf", "gl.erf({f0})", cost="library", symbols="erff erf"),
    _function("erfc", "one less the error function", "erfc", "libdevice.erfc({f0})", cost="library", symbols="erfcf erfc"),
    _function("powf", "a to the power of b", "power", "libdevice.pow({f0}, {f1})", cost="library", tileir="fpowf", symbols="powf pow", types=_FFF, ttir=_BINARY),
    _function("fpowi", "a to the power of an integer", "power_of_integer", "libdevice.pow({f0}, {1})", cost="library", symbols="powif powi", types="f i -> f", ttir="o , o B A : R , T"),
    _function("fma", "a * b + c, rounded once", "fma", "gl.fma({0}, {1}, {2})", cost="fma", tileir="fma", symbols="fmaf fma fmaf_rn fma_rn", types="f f f -> f", ttir="o , o , o B A : R"),
    _function("floor", "the next integer below", "floor", "gl.floor({f0})", cost="round", tileir="floor", symbols="floorf floor"),
    _function("ceil", "the next integer above", "ceil", "gl.ceil({f0})", cost="round", tileir="ceil", symbols="ceilf ceil"),
    _function("round", "the nearest integer, halves away from zero", "round_half_away", "libdevice.round({f0})", cost="round", symbols="roundf round"),
    _function("roundeven", "the nearest integer, halves to even", "rint", "libdevice.rint({f0})", cost="round", symbols="rintf rint nearbyintf nearbyint"),
    _function("trunc", "the next integer towards zero", "trunc", "libdevice.trunc({f0})", cost="round", symbols="truncf trunc"),
    _function("copysign", "a with the sign of b", "copysign", "libdevice.copysign({f0}, {f1})", cost="sign", symbols="copysignf copysign", types=_FFF, ttir=_BINARY),
    _function("isnan", "whether it is no number", "isnan", "{0} != {0}", cost="compare", types="f -> i1", ttir="o B A : C"),
    _function("isinf", "whether it is infinite", "isinf", "gl.abs({0}) == float(\"inf\")", cost="compare", types="f -> i1", ttir="o B A : C"),
    _function("isfinite", "whether it is a finite number", "isfinite", "gl.abs({0}) < float(\"inf\")", cost="compare", types="f -> i1", ttir="o B A : C"),
    _function("ctpop", "how many bits are set", "set_bits", "libdevice.popc({0}).to({type})", cost="bits", types="i -> i"),
    _function("ctlz", "how many zeros its bits begin with", "leading_zeros", "libdevice.clz({0}).to({type})", cost="bits", types="i -> i"),
    _function("cttz", "how many zeros its bits end in", "trailing_zeros", "gl.where({0} == 0, {bits}, libdevice.ffs({0}).to({type}) - 1)", cost="bits", types="i -> i"),
    _function("ipowi", "a to the power of b", "integer_power", "- multiply as often as it takes", cost="quotient", types=_III, ttir=_BINARY),
)
# fmt: on
ARITHMETIC: tuple[Row, ...] = (*_FLOATS, *_INTEGERS, *_CASTS, *_MATH)
