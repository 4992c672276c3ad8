"""Functions of CUDA's libdevice, as Triton calls them (`tt.extern_elementwise`): one row each.

    libdevice.erfinv   f -> f   inverse_erf   erfinvf erfinv   special

Those that MLIR has in `math` too, to the last bit the same in Gluon, have their symbols in the rows
of `arithmetic.py`. What is left is here: faster, rounded in another way, or in no dialect.
"""

from __future__ import annotations

from stretto.ops.rows import NONE, Row, elementwise

_FUNCTIONS = """
exp           f -> f       exp                 special  expf exp
exp10         f -> f       power_of_ten        special  exp10f exp10
log           f -> f       log                 special  logf log
log2          f -> f       log2                special  log2f log2
exp2          f -> f       exp2                special  exp2f exp2
sqrt          f -> f       sqrt                special  sqrtf sqrt
sin           f -> f       sin                 special  sinf sin
cos           f -> f       cos                 special  cosf cos
sinpi         f -> f       sine_of_turns       library  sinpif sinpi
cospi         f -> f       cosine_of_turns     library  cospif cospi
fast_sinf     f32 -> f32   sin                 special  fast_sinf
fast_cosf     f32 -> f32   cos                 special  fast_cosf
fast_tanf     f32 -> f32   tan                 special  fast_tanf
fast_expf     f32 -> f32   exp                 special  fast_expf
fast_exp10f   f32 -> f32   power_of_ten        special  fast_exp10f
fast_logf     f32 -> f32   log                 special  fast_logf
fast_log2f    f32 -> f32   log2                special  fast_log2f
fast_log10f   f32 -> f32   log10               special  fast_log10f
fast_powf     f32 f32 -> f32      power        library  fast_powf
fast_dividef  f32 f32 -> f32      divide       divide   fast_fdividef
hypot         f f -> f     hypot               library  hypotf hypot
rhypot        f f -> f     inverse_length      library  rhypotf rhypot
norm3d        f f f -> f   length              library  norm3df norm3d
rnorm3d       f f f -> f   inverse_length      library  rnorm3df rnorm3d
norm4d        f f f f -> f length              library  norm4df norm4d
rnorm4d       f f f f -> f inverse_length      library  rnorm4df rnorm4d
rcbrt         f -> f       inverse_cube_root   library  rcbrtf rcbrt
erfinv        f -> f       inverse_erf         library  erfinvf erfinv
erfcinv       f -> f       inverse_erfc        library  erfcinvf erfcinv
erfcx         f -> f       scaled_erfc         library  erfcxf erfcx
normcdf       f -> f       normal              library  normcdff normcdf
normcdfinv    f -> f       inverse_normal      library  normcdfinvf normcdfinv
lgamma        f -> f       log_gamma           library  lgammaf lgamma
tgamma        f -> f       gamma               library  tgammaf tgamma
j0            f -> f       bessel_j0           library  j0f j0
j1            f -> f       bessel_j1           library  j1f j1
jn            i32 f -> f   bessel_j            library  jnf jn
y0            f -> f       bessel_y0           library  y0f y0
y1            f -> f       bessel_y1           library  y1f y1
yn            i32 f -> f   bessel_y            library  ynf yn
cyl_bessel_i0 f -> f       bessel_i0           library  cyl_bessel_i0f cyl_bessel_i0
cyl_bessel_i1 f -> f       bessel_i1           library  cyl_bessel_i1f cyl_bessel_i1
saturatef     f32 -> f32   saturated           greater  saturatef
fdim          f f -> f     positive_difference add      fdimf fdim
nextafter     f f -> f     next_after          bits     nextafterf nextafter
remainder     f f -> f     ieee_remainder      divide   remainderf remainder
ldexp         f i32 -> f   scaled              multiply ldexpf ldexp
scalbn        f i32 -> f   scaled              multiply scalbnf scalbn
ilogb         f -> i32     exponent            bits     ilogbf ilogb
logb          f -> f       float_exponent      bits     logbf logb
isnan         f -> i32     isnan               compare  isnanf isnand
isinf         f -> i32     isinf               compare  isinff isinfd
finitef       f32 -> i32   isfinite            compare  finitef
isfinited     f64 -> i32   isfinite            compare  isfinited
signbit       f -> i32     signbit             compare  signbitf signbitd
llrint        f -> i64     rint                convert  llrintf llrint
llround       f -> i64     round_half_away     convert  llroundf llround
clz           i -> i32     leading_zeros       bits     clz clzll
popc          i -> i32     set_bits            bits     popc popcll
ffs           i -> i32     first_set_bit       bits     ffs ffsll
brev          i -> i       reversed_bits       bits     brev brevll
byte_perm     i32 i32 i32 -> i32  picked_bytes bits     byte_perm
mul24         i32 i32 -> i32      product_of_24 multiply_integers mul24
sad           i32 i32 i32 -> i32  sum_of_difference integer sad
hadd          i32 i32 -> i32      average      integer  hadd
rhadd         i32 i32 -> i32      average_up   integer  rhadd
hiloint2double i32 i32 -> f64     from_halves  bits     hiloint2double
double2loint  f64 -> i32   lower_half          bits     double2loint
double2hiint  f64 -> i32   upper_half          bits     double2hiint
rcp64h        f64 -> f64   inverse_upper_half  divide   rcp64h
rsqrt_rn      f32 -> f32   inverse_square_root special  frsqrt_rn
"""
"""Gluon's name, types, value, class of costs, symbols."""
_UNSIGNED = """
mul24         i32 i32 -> i32      unsigned_product_of_24 multiply_integers umul24
sad           i32 i32 i32 -> i32  unsigned_sum_of_difference integer usad
hadd          i32 i32 -> i32      unsigned_average    integer uhadd
rhadd         i32 i32 -> i32      unsigned_average_up integer urhadd
"""
"""Of integers without a sign, which Gluon's types tell."""
_AS = (
    ("int_as_float", "i32 -> f32", "int_as_float uint_as_float"),
    ("float_as_int", "f32 -> i32", "float_as_int float_as_uint"),
    ("longlong_as_double", "i64 -> f64", "longlong_as_double"),
    ("double_as_longlong", "f64 -> i64", "double_as_longlong"),
)
_ROUNDINGS = {
    "rn": ("nearest", ""),
    "rz": ("towards_zero", "zero"),
    "rd": ("down", "negative_inf"),
    "ru": ("up", "positive_inf"),
}
"""How a name ends, which way is rounded, and how Tile IR says so where it is not the usual one."""
_TILEIR = {"add": "addf", "sub": "subf", "mul": "mulf", "div": "divf", "fma": "fma", "sqrt": "sqrt"}
_ROUNDED = (
    # Gluon's name, types, the exact value, class, symbols without their ends
    ("add", "f f -> f", "add", "add", "fadd dadd"),
    ("sub", "f f -> f", "subtract", "add", "fsub dsub"),
    ("mul", "f f -> f", "multiply", "multiply", "fmul dmul"),
    ("div", "f f -> f", "divide", "divide", "fdiv ddiv"),
    ("fma", "f f f -> f", "fma", "fma", "fmaf fma"),
    ("rcp", "f -> f", "inverse", "divide", "frcp drcp"),
    ("sqrt", "f -> f", "sqrt", "special", "fsqrt dsqrt"),
    ("double2float", "f64 -> f32", "number", "convert", "double2float"),
    ("double2int", "f64 -> i32", "number", "convert", "double2int"),
    ("double2uint", "f64 -> i32", "unsigned", "convert", "double2uint"),
    ("double2ll", "f64 -> i64", "number", "convert", "double2ll"),
    ("double2ull", "f64 -> i64", "unsigned", "convert", "double2ull"),
    ("float2int", "f32 -> i32", "number", "convert", "float2int"),
    ("float2uint", "f32 -> i32", "unsigned", "convert", "float2uint"),
    ("float2ll", "f32 -> i64", "number", "convert", "float2ll"),
    ("float2ull", "f32 -> i64", "unsigned", "convert", "float2ull"),
    ("int2float", "i32 -> f32", "number", "convert", "int2float"),
    ("uint2float", "i32 -> f32", "unsigned", "convert", "uint2float"),
    ("ll2float", "i64 -> f32", "number", "convert", "ll2float"),
    ("ull2float", "i64 -> f32", "unsigned", "convert", "ull2float"),
    ("ll2double", "i64 -> f64", "number", "convert", "ll2double"),
    ("ull2double", "i64 -> f64", "unsigned", "convert", "ull2double"),
)
_ONE_ROUNDING = (
    ("int2double_rn", "i32 -> f64", "number", "int2double_rn"),
    ("uint2double_rn", "i32 -> f64", "unsigned", "uint2double_rn"),
)


_LAST = {"sad": "u"}
"""Functions whose last operand has no sign, whatever the others have."""


def _called(name: str, types: str, sign: str = "") -> str:
    """A call of the function in Gluon, whose result has the type that is wanted."""
    letters = types.partition("->")[0].split()
    signs = [_LAST.get(name, sign) if n == len(letters) - 1 else sign for n in range(len(letters))]
    taken = ", ".join(f"{{{sign}{n}}}" for n, sign in enumerate(signs))
    return f"libdevice.{name}({taken})"


def _read(text: str, sign: str = "") -> list[Row]:
    """The rows of a text."""
    found: list[Row] = []
    for line in text.strip().splitlines():
        left, _, right = line.partition(" -> ")
        name, *taken = left.split()
        made, value, cost, *symbols = right.split()
        types = f"{' '.join(taken)} -> {made}"
        prefix = "unsigned_" if sign else ""
        found.append(
            elementwise(
                f"libdevice.{prefix}{name}",
                types,
                f"libdevice's {' or '.join(symbols)}",
                numpy=value,
                gluon=_called(name, types, sign),
                cost=cost,
                symbols=" ".join(symbols),
            )
        )
    return found


def _spelled(name: str, way: str) -> str:
    """How Tile IR spells a rounding of a function, where it does."""
    return f"{_TILEIR[name]} {way}" if way and name in _TILEIR else NONE


def _rounded() -> list[Row]:
    """What is rounded in a stated way; what has a row elsewhere is left out."""
    elsewhere = {"div_rn", "sqrt_rn", "fma_rn"}
    found: list[Row] = []
    for name, types, value, cost, symbols in _ROUNDED:
        for end, (way, spelled) in _ROUNDINGS.items():
            if f"{name}_{end}" in elsewhere:
                continue
            both = " ".join(f"{symbol}_{end}" for symbol in symbols.split())
            sign = "u" if value == "unsigned" and types[0] == "i" else ""
            found.append(
                elementwise(
                    f"libdevice.{name}_{end}",
                    types,
                    f"libdevice's {both}, rounded: {way.replace('_', ' ')}",
                    numpy=f"{value} {way}",
                    gluon=_called(f"{name}_{end}", types, sign),
                    cost=cost,
                    symbols=both,
                    tileir=(_spelled(name, spelled),),
                )
            )
    return found


def _plain() -> list[Row]:
    """Conversions that are exact, and bits taken as another type."""
    found = [
        elementwise(
            f"libdevice.{name}",
            types,
            f"libdevice's {symbols}",
            numpy="bitcast",
            gluon="{0}.to({type}, bitcast=True)",
            cost="none",
            symbols=symbols,
        )
        for name, types, symbols in _AS
    ]
    for name, types, value, symbol in _ONE_ROUNDING:
        sign = "u" if value == "unsigned" else ""
        found.append(
            elementwise(
                f"libdevice.{name}",
                types,
                f"libdevice's {symbol}",
                numpy=f"{value} nearest",
                gluon=_called(name, types, sign),
                cost="convert",
                symbols=symbol,
            )
        )
    return found


LIBDEVICE: tuple[Row, ...] = (*_read(_FUNCTIONS), *_read(_UNSIGNED, "u"), *_rounded(), *_plain())
